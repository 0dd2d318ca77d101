"""The OpenAI protocol: requests of its clients, and the answers.

Only what Recap itself reads is checked.  Everything else goes to the model unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, fields, validates

from memory.errors import RecapError
from memory.llm import Chunk, Waiting
from memory.turn.values import TurnEvent
from schemas.errors import openai_error
from schemas.fields import PARTS_MAX, Input, Items, about

MESSAGES_MAX = 10_000  # more than any model reads
STREAM = fields.Boolean(load_default=False, allow_none=True, truthy={True}, falsy={False})


class Open(Schema):
    """What the model server may add to."""

    class Meta:
        unknown = INCLUDE


class _Request(Open, Input):
    long = True


class CompletionRequest(_Request):
    """A chat completion.  Parameters that are not listed are passed on unchanged.

    `messages` are the whole conversation, a part of it, or only the newest message.
    """

    messages = Items(fields.Dict(), MESSAGES_MAX, least=1, required=True)
    model = fields.String(metadata=about("Passed on. Without it, and with the built-in model, the main model answers."))
    stream = STREAM
    user = fields.Raw(metadata=about("The person, unless a header or `safety_identifier` names one."))
    safety_identifier = fields.Raw(metadata=about("The person, unless a header names one."))
    metadata = fields.Raw(metadata=about("Its `session_id` names the session, unless a header does."))
    n = fields.Raw(metadata=about("Of several choices, the first is stored."))

    @validates("messages")
    def _few_parts(self, messages: list[dict[str, Any]], data_key: str) -> None:
        lists = (message.get(name) for message in messages for name in ("content", "tool_calls"))
        if any(isinstance(parts, list) and len(parts) > PARTS_MAX for parts in lists):
            raise ValidationError(f"One of them has more than {PARTS_MAX:,} parts or calls of tools.")


class Completion(Open):
    """The model server's chat.completion, or with `stream` its chat.completion.chunk events."""

    id = fields.String()
    object = fields.String()
    created = fields.Integer()
    model = fields.String()
    choices = fields.List(fields.Dict())
    usage: fields.Field = fields.Dict()


class CompletionWriter:
    """Writes down the model server's own answer: every field of it is passed on."""

    named = False

    def whole(self, events: Sequence[TurnEvent]) -> Mapping[str, Any]:
        (completion,) = (part.data for part in events if isinstance(part, Chunk))
        return completion

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any] | None]:
        for part in turn:
            if isinstance(part, Chunk):
                yield part.data
            elif isinstance(part, Waiting):
                yield None

    def failed(self, error: RecapError) -> Mapping[str, Any]:
        return openai_error(error)[0]


class EmbeddingRequest(_Request):
    """Texts to embed.  Everything is passed on unchanged."""


class Model(Open):
    """A model, as the model server describes it."""


class ModelList(Open):
    data = fields.List(fields.Nested(Model))
