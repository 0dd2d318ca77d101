"""Language models behind one small door.

Guarantee: a `LanguageModel` either yields text, tool calls if it was offered tools, or both, and then exactly one
`Finish`, or raises `ModelError`, or `Interrupted` if that was asked of it; nothing a server sends comes through as
anything else.  A reply is always consumed as an iterator, streamed or not, so that there is one code path for both.

`openai_client` speaks to any OpenAI-compatible server.  `extractive` is built in: rules, no network, no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from memory.domain import Excerpt, Fact, Message, Sections, Usage
from memory.llm.interrupt import Interrupt


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


class ChatMessage(NamedTuple):  # as `Message` is: a prompt has a dozen
    """One message as it is sent to a model.

    An assistant's message may hold calls; each is answered by a message of the role `tool` with its `tool_call_id`.
    `raw` is the message as a client of the OpenAI protocol sent it, with all it holds, and sent on so; the rest then
    says what of it counts here.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    raw: Mapping[str, Any] | None = None


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
    `interrupt` ends the answer from outside.  `client` are the parameters of an OpenAI client whose request this is,
    all but its messages: they are sent as they are, and the answer comes as `Chunk`s too.  `cache_key` is the same for
    prompts that begin alike: some servers keep what they have read.
    """

    messages: tuple[ChatMessage, ...]
    material: ReplyMaterial | DigestMaterial
    schema: Mapping[str, Any] | None = None
    stream: bool = False
    tools: tuple[Tool, ...] = ()
    interrupt: Interrupt = field(default_factory=Interrupt, compare=False)
    client: Mapping[str, Any] | None = None
    cache_key: str | None = None


@dataclass(frozen=True)
class Piece:
    """Some more of the reply's text; never empty."""

    text: str


@dataclass(frozen=True)
class Chunk:
    """What the server answered to a client's request, with every field it has: a `chat.completion.chunk` of a stream,
    or the one `chat.completion`.  It comes after the `Piece` that tells its text."""

    data: Mapping[str, Any]


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

    def answer(self, request: ModelRequest) -> Iterator[Piece | Chunk | ToolCall | Finish]:
        """Yield one or more `Piece` and then one `Finish`; or, offered tools, any `Piece`, one or more `ToolCall`,
        and a `Finish` for the reason `tool_calls`.  To a client's request also each `Chunk`, and whatever else the
        server answered, were it nothing, since that is then the client's to judge.

        Raises ModelError when the server can't be reached, refuses, takes longer than MODEL_TIMEOUT, or answers
        something that is not a chat completion; also in mid-iteration, when a stream breaks off.  Raises Interrupted
        when it waits for a server and the request's interrupt is asked; between pieces it is the caller who looks.
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
