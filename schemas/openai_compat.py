"""The OpenAI protocol: requests of its clients, and whose they are.

Only what Recap itself reads is checked.  Everything else goes to the model unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, fields, validates

from memory.access.keys import USER_CHARS
from memory.clients.conversation import ClientRequest, Conversation
from memory.domain import Caller
from memory.turn.values import TurnRequest
from schemas.fields import ID, PARTS_MAX, UNSTORABLE, Input, Items, about

SESSION_HEADERS = ("X-Session-Id", "X-Conversation-Id", "X-OpenWebUI-Chat-Id", "x-litellm-session-id")
PERSON_HEADERS = ("X-OpenWebUI-User-Id", "x-litellm-end-user-id")
WHOLE_HEADER = "X-OpenWebUI-Chat-Id"  # its frontend sends every conversation from the start
TEMPORARY = "local:"  # begins the ids of its temporary chats, which it does not store either
MESSAGES_MAX = 10_000  # more than any model reads
PATIENCE = 5.0  # seconds that each write waits for the database; then the request is answered without memory
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


class EmbeddingRequest(_Request):
    """Texts to embed.  Everything is passed on unchanged."""


class Model(Open):
    """A model, as the model server describes it."""


class ModelList(Open):
    data = fields.List(fields.Nested(Model))


def turn_of(
    caller: Callable[[str | None], Caller],
    parameters: dict[str, Any],
    metadata: Any,
    header: Callable[[str], str],
    body: bytes,
    retry_key: str | None,
) -> TurnRequest:
    """The turn of a request with these `parameters` of a chat completion, on behalf of the `caller` of a person.

    Headers count before the body, whose `metadata` may name the session.  The same `body` again is a retry.

    Without a `session_id`, the session is found by the conversation.  Such a client always sends the whole of it, and
    so does the one of WHOLE_HEADER.
    """
    conversation, stream = Conversation.read(parameters.pop("messages")), bool(parameters.pop("stream"))
    in_body = _text(metadata.get("session_id")) if isinstance(metadata, Mapping) else ""
    named_by = next(filter(header, SESSION_HEADERS), None)
    session = header(named_by) if named_by else in_body
    people = (*map(header, PERSON_HEADERS), _text(parameters.get("safety_identifier")), _text(parameters.get("user")))
    person = next(filter(None, people), "")
    session_id = _fitting(session, ID.fullmatch(session) is not None) if session else None
    user_id = _fitting(person, len(person) <= USER_CHARS and not UNSTORABLE.search(person)) if person else None
    known = hashlib.sha256(f"{user_id}\0{session_id}\0".encode("utf-8", "replace") + body)
    return TurnRequest(
        caller(user_id),
        message=conversation.asked,
        session_id=session_id,
        stream=stream,
        model=_text(parameters.get("model")) or None,
        idempotency_key=retry_key,
        unheard="interrupt" if stream else "finish",
        patience=PATIENCE,
        client=ClientRequest(
            conversation,
            parameters,
            fingerprint=known.hexdigest(),
            whole=not session or named_by == WHOLE_HEADER,
            temporary=named_by == WHOLE_HEADER and session.startswith(TEMPORARY),
            retried=header("X-Stainless-Retry-Count") not in ("", "0"),
        ),
    )


def _text(value: Any) -> str:
    """A name in a body.  Some programs number their users."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value).strip()


def _fitting(name: str, fits: bool) -> str:
    """A name that can be stored: a name that does not fit is replaced by its hash."""
    return name if fits else f"id-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
