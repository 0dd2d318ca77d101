"""Language models behind one small door.

Guarantee: a `LanguageModel` either yields text, tool calls if it was offered tools, or both, and then exactly one
`Finish`, or raises `ModelError`; nothing a server sends comes through as anything else.  A reply is always consumed
as an iterator, streamed or not, so that there is one code path for both.

`openai_client` speaks to any OpenAI-compatible server.  `extractive` is built in: rules, no network, no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from memory.domain import Excerpt, Fact, Message, Sections, Usage


@dataclass(frozen=True)
class Tool:
    """A function a model may call: `parameters` is the JSON schema of its arguments, the rest is written for it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """A model's wish to have a tool run.  `arguments` is JSON text as the model wrote it, which may be none.

    `extra` is what its server wants to see again, untouched, when the call is sent back (Gemini signs its calls).
    """

    id: str
    name: str
    arguments: str
    extra: Any = None


@dataclass(frozen=True)
class ChatMessage:
    """One message as it is sent to a model.

    An assistant's message may hold calls; each is answered by a message of the role `tool` with its `tool_call_id`.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True)
class ReplyMaterial:
    """What a reply can draw on, before it was rendered into messages: for a model that works by rules."""

    question: str
    now: datetime
    summary: Sections
    facts: Sequence[Fact]
    excerpts: Sequence[Excerpt]
    tail: Sequence[Message]


@dataclass(frozen=True)
class DigestMaterial:
    """What a summary and facts are made from: the previous summary, the messages since, the facts known already."""

    previous: Sections
    messages: Sequence[Message]
    known_facts: Sequence[Fact]


@dataclass(frozen=True)
class ModelRequest:
    """A call to a model.

    `messages` is the prompt.  `material` is the same before it was rendered.  `schema` asks for JSON of that JSON
    schema.  `stream` asks for the text in pieces as it is written.  `tools` may be called instead of answering.
    """

    messages: tuple[ChatMessage, ...]
    material: ReplyMaterial | DigestMaterial
    schema: Mapping[str, Any] | None = None
    stream: bool = False
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True)
class Piece:
    """Some more of the reply's text; never empty."""

    text: str


@dataclass(frozen=True)
class Finish:
    """The end of a reply: why it ended (`stop`, `length`, `content_filter`, `tool_calls`), who wrote it, its cost."""

    reason: str
    model: str
    usage: Usage


class LanguageModel(Protocol):
    """Anything that can answer a `ModelRequest`."""

    name: str

    @property
    def can_call_tools(self) -> bool:
        """Whether offering this model tools is of use, as far as is known; one that can't ignores them."""
        ...

    def answer(self, request: ModelRequest) -> Iterator[Piece | ToolCall | Finish]:
        """Yield one or more `Piece` and then one `Finish`; or, offered tools, any `Piece`, one or more `ToolCall`,
        and a `Finish` for the reason `tool_calls`.

        Raises ModelError when the server can't be reached, refuses, takes longer than MODEL_TIMEOUT, or answers
        something that is not a chat completion; also in mid-iteration, when a stream breaks off.
        """
        ...


def complete(model: LanguageModel, request: ModelRequest) -> tuple[str, Finish]:
    """The whole text of an answer, and its end."""
    text: list[str] = []
    for part in model.answer(request):
        if isinstance(part, Finish):
            return "".join(text), part
        if isinstance(part, Piece):
            text.append(part.text)
    raise AssertionError("a LanguageModel ended without Finish")
