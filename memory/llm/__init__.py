"""Protocol of language models: a `LanguageModel` answers a `ModelRequest`, piece by piece.

openai                    asks any OpenAI-compatible server
request_form, retries     the body in the form that a server takes; whether to ask it again
response_parser           reads an answer; thoughts and text_calls find what stands in its text beside the words
provider_errors           failures of a server as errors
openai_form               answers in OpenAI's form, for clients
builtin                   works by rules, without network or key
fallback                  lets another model answer when one fails
registry, model_server    the models that settings name; the server that an administrator set; model_check tries them
mini_model                asks the mini model for JSON

Invariant (tests/model_client/test_answers.py): an answer is text, tool calls, or both, and then exactly one
`StreamEnd`; or it raises ModelError or Cancelled.  Replies are always consumed as an iterator, streamed or not, so
there is one code path for both.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from memory import tokens
from models.owners import Usage

QUIET_SECONDS = 1.0  # without anything for the reader of a stream, after which it gets a `Waiting`


class Cancelled(Exception):
    """`CancelToken.cancel` ended an answer before its end."""


class CancelToken:
    """Calls of a model that one turn makes.  Any thread may stop them."""

    def __init__(self) -> None:
        self.cancelled = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._actions: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """End the answer.  May be called at any time, and more than once."""
        with self._lock:
            self.cancelled = True
            self._over.set()
            for action in self._actions:
                action()

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is over or the call is stopped.  Return whether it is stopped."""
        return self._over.wait(seconds)

    @contextmanager
    def on_cancel(self, action: Callable[[], object]) -> Iterator[None]:
        """Run `action` when the call is stopped inside this context, or at once if it is stopped already."""
        with self._lock:
            self._actions.append(action)
            if self.cancelled:
                action()
        try:
            yield
        finally:
            with self._lock:  # `action` does not run any more
                self._actions.remove(action)


@dataclass(frozen=True)
class Tool:
    """Function that a model may call.  `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """Model's call of a tool.

    arguments: the text that the model wrote, which need not be JSON. extra: goes back to the server unchanged with the
    call (Gemini signs its calls).
    """

    id: str
    name: str
    arguments: str
    extra: Any = None


class ChatMessage(NamedTuple):
    """Message of a prompt; one of the role `tool` answers the assistant's call with the id `tool_call_id`.

    raw: the message as an OpenAI client sent it, which is sent on; the other fields say what Recap read in it.
    thoughts: the fields with the model's thoughts that go back to its server beside its calls.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    raw: Mapping[str, Any] | None = None
    thoughts: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ModelRequest:
    """Request to a model.

    schema: the JSON schema that the answer must follow. client: the parameters of an OpenAI client's request, which are
    sent unchanged; the answer then comes as `RawChunk`s too. cache_key: requests that share it begin with the same
    prompt, which some servers cache.
    """

    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any] | None = None
    stream: bool = False
    tools: tuple[Tool, ...] = ()
    cancel: CancelToken = field(default_factory=CancelToken, compare=False)
    client: Mapping[str, Any] | None = None
    cache_key: str | None = None


@dataclass(frozen=True)
class TextDelta:
    """More of the reply's text; never empty."""

    text: str


@dataclass(frozen=True)
class Thought:
    """More of what the model thinks before it answers. It is never part of the reply, and never stored.

    withdraws: the words that came before it belong to the thought, and not to the reply.
    """

    text: str
    withdraws: bool = False


@dataclass(frozen=True)
class Waiting:
    """Silence of the model. It comes again after each QUIET_SECONDS, in streams only."""


@dataclass(frozen=True)
class Fallback:
    """Another model answers, called `model`, because the one that was asked failed before its first word."""

    model: str


@dataclass(frozen=True)
class RawChunk:
    """Chunk that the server sent for a client's request, with every field, also the thoughts in its text."""

    data: Mapping[str, Any]


@dataclass(frozen=True)
class StreamEnd:
    """End of an answer.  `reason` is `stop`, `length`, `content_filter` or `tool_calls`.

    thoughts: fields of the message that hold thoughts. Some servers want them back beside the calls of tools.
    """

    reason: str
    model: str
    usage: Usage
    thoughts: Mapping[str, Any] = field(default_factory=dict)


ModelEvent = TextDelta | Thought | Waiting | Fallback | RawChunk | ToolCall | StreamEnd


@runtime_checkable
class LanguageModel(Protocol):
    """Anything that can answer a `ModelRequest`."""

    name: str

    @property
    def supports_tools(self) -> bool:
        """Return whether to offer tools.  A model that cannot call tools ignores them."""
        ...

    @property
    def window(self) -> int | None:
        """Return the tokens that the model can read in one prompt; None while nobody knows."""
        ...

    @property
    def down(self) -> str | None:
        """Return the code of the error with which the model failed lately, so that fallbacks are asked before it."""
        ...

    def answer(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """Yield the text, then any tool calls, then one `StreamEnd`.

        A client's answer may have neither text nor calls. A `Fallback` comes before everything else; thoughts and
        `Waiting` may stand anywhere before the `StreamEnd`.
        Raises ModelError, also after some text.  Raises Cancelled when the request's call is stopped while the model
        is silent; between two pieces the caller looks at `CancelToken.cancelled`.
        """
        ...


def complete(model: LanguageModel, request: ModelRequest) -> tuple[str, StreamEnd]:
    """Return the whole text of an answer, without thoughts, and its end."""
    events = list(model.answer(request))
    end = events[-1]
    assert isinstance(end, StreamEnd)
    return text_of(events), end


def text_of(events: Iterable[ModelEvent]) -> str:
    """Return the text in parts of an answer, without thoughts."""
    text = ""
    for event in events:
        if isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, Thought) and event.withdraws:
            text = ""
    return text


def estimate_prompt(request: ModelRequest) -> int:
    """Return the estimated tokens of a request's messages and tools."""
    calls = [call.name + call.arguments for message in request.messages for call in message.tool_calls]
    texts = [message.content for message in request.messages]
    words = sum(map(tokens.estimate, [*texts, *calls]))
    return len(texts) * tokens.MESSAGE_OVERHEAD + words + estimate_tools(request.tools)


def estimate_tools(tools: Iterable[Tool]) -> int:
    """Return the estimated tokens of Recap's tools."""
    return sum(tokens.estimate(json.dumps([tool.name, tool.description, tool.parameters])) for tool in tools)
