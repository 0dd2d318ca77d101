"""Any OpenAI-compatible server as a `LanguageModel`: what is sent, what is done when that fails, what comes back.

The connection is `transport`'s, reading what comes over it `completion`'s, the sentences for what goes wrong are
`failures`'.

A request of an OpenAI client (`ModelRequest.client`) is sent as it is: its parameters untouched, its messages as they
came.  What is added can be left out again: the usage of a stream, a key for the server's cache.

Guarantee: an answer takes at most three tries (and, once a process, one call more for each parameter that its server
refuses), none after its first piece of text was yielded; and it ends in time: MODEL_TIMEOUT bounds the whole call,
waits between tries and the time the caller takes between pieces included (see `transport` for how well).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory import tokens
from memory.domain import Usage
from memory.errors import ModelError
from memory.llm import ChatMessage, Chunk, DigestMaterial, Finish, ModelRequest, Piece, ToolCall
from memory.llm.completion import End, read
from memory.llm.failures import WORTH_ANOTHER_TRY, Failures, parameter_refused
from memory.llm.interrupt import Interrupted
from memory.llm.passing import assembled, for_client
from memory.llm.tool_calls import estimate_call, estimate_prompt, sent_call, sent_tool
from memory.llm.transport import Opened, Refused, Transport
from search_index import DIMENSIONS, EmbeddingUnavailable

RETRIES = 2
EMBEDDING_SECONDS = 8.0  # a search waits for it
LONGEST_SLEEP = 5.0  # a server that asks for more is reported instead of waited for
BUSY_SECONDS = 10.0  # what to tell the caller of a busy server that does not say how long
CACHE_KEY_CHARS = 64  # more is refused

_OPTIONAL = {
    "stream_options": ("stream_options",),
    "prompt_cache_key": ("prompt_cache_key",),
    "response_format": ("response_format", "json_schema"),
    "tools": ("tools", "tool_choice", "tool choice", "tool use", "tool calling", "function calling"),
}
"""Parameters an answer can do without, and the words by which a server's refusal of them is known."""


class OpenAIModel:
    """A `LanguageModel`: the model called `name` at the server of `transport`.  Any number of threads may use it."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport = transport
        self.name = name

    @property
    def can_call_tools(self) -> bool:
        """True until the server has refused them once."""
        return "tools" not in self.transport.without.get(self.name, frozenset())

    def answer(self, request: ModelRequest) -> Iterator[Piece | Chunk | ToolCall | Finish]:
        """Yield the answer's text, its calls, and then its `Finish`; closing the iterator early drops the connection.

        Raises Interrupted when the request's interrupt ended it, and ModelError as `failures` words it.  Failures that
        may pass are met with up to two more tries as long as no text was yielded, there is time left, and the server
        does not ask to wait longer than five seconds.
        """
        failures = self._failures(request)
        deadline = time.monotonic() + self.transport.timeout
        for attempt in range(RETRIES + 1):
            spoken = False
            try:
                with contextlib.closing(self._attempt(request, failures, deadline)) as parts:
                    for part in parts:
                        spoken = True
                        yield part
                return
            except ModelError as error:
                if request.interrupt.asked:  # which is what broke the connection
                    raise Interrupted from None
                pause = self._pause(error, attempt)
                if spoken or pause is None or time.monotonic() + pause >= deadline:
                    if error.code == "model_busy" and error.retry_after is None:
                        error.retry_after = BUSY_SECONDS
                    raise
            if request.interrupt.wait(pause):
                raise Interrupted

    def _pause(self, error: ModelError, attempt: int) -> float | None:
        """Seconds to wait before another try, None for no other try."""
        if attempt == RETRIES or error.code not in WORTH_ANOTHER_TRY:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= LONGEST_SLEEP else None
        # Jitter, so that callers who failed together do not return together.
        return self.transport.backoff * 2**attempt * (1 + random.random() / 4)  # nosec B311 # a pause

    def _attempt(
        self, request: ModelRequest, failures: Failures, deadline: float
    ) -> Generator[Piece | Chunk | ToolCall | Finish, None, None]:
        response = self._open(request, failures, deadline)
        try:
            text, calls, whole = list[str](), list[ToolCall](), list[dict[str, Any]]()
            for part in read(response, failures, bool(request.tools), client=request.client is not None):
                if isinstance(part, str):
                    text.append(part)
                    if request.stream:
                        yield Piece(part)
                elif isinstance(part, ToolCall):
                    calls.append(part)
                elif isinstance(part, dict):
                    whole.append(part)
                    if request.stream and (chunk := for_client(part, request.client)):
                        yield Chunk(chunk)
                else:
                    if text and not request.stream:
                        yield Piece("".join(text))  # one piece, also from a server that streamed unasked
                    if whole and not request.stream:
                        yield Chunk(assembled(whole))
                    yield from calls
                    try:
                        yield self._finish(part, request, "".join(text), calls)
                    finally:  # many callers ask for nothing after the Finish
                        response.read_out()
        finally:
            response.close()

    def _open(self, request: ModelRequest, failures: Failures, deadline: float) -> Opened:
        """The response to `request`, its body still to be read; what the server refuses of our own is left out."""
        known = without = self.transport.without.get(self.name, frozenset())
        while True:
            body = self._body(request, without)
            try:
                response = self.transport.post(
                    "/chat/completions", body, failures, deadline, interrupt=request.interrupt
                )
            except Refused as refusal:
                ours = body.keys() - (request.client or {}).keys()
                optional = {name: words for name, words in _OPTIONAL.items() if name in ours}
                name = parameter_refused(refusal.status, refusal.body, optional)
                if name is None:
                    raise failures.refused(refusal.status, refusal.headers, refusal.body) from None
                without |= {name}
                continue
            if without != known:  # remembered only now that leaving it out is known to have helped
                self.transport.without[self.name] = self.transport.without.get(self.name, frozenset()) | without
            return response

    def _body(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
        """The request as it is sent: a client's own parameters, and ours that are not among `without`."""
        ours: dict[str, Any] = {"model": self.name}
        if request.tools:
            ours["tools"] = [sent_tool(tool) for tool in request.tools]
        if request.stream:
            ours["stream_options"] = {"include_usage": True}
        if request.cache_key is not None:
            ours["prompt_cache_key"] = cache_key(request.cache_key)
        if request.schema is not None:
            schema = {"name": "memory_update", "strict": True, "schema": dict(request.schema)}
            ours["response_format"] = {"type": "json_schema", "json_schema": schema}
        ours = {name: value for name, value in ours.items() if name not in without}
        theirs = dict(request.client or {})
        if request.stream and isinstance(options := theirs.get("stream_options"), dict):
            theirs["stream_options"] = {**options, "include_usage": True}
        sent = {"messages": [_sent(message) for message in request.messages], "stream": request.stream}
        return {**ours, **theirs, **sent}

    def _finish(self, end: End, request: ModelRequest, text: str, calls: Sequence[ToolCall]) -> Finish:
        usage = end.usage
        if usage is None:
            completion = tokens.estimate(text) + sum(map(estimate_call, calls))
            usage = Usage(estimate_prompt(request), completion, estimated=True)
        return Finish(end.reason, end.model or self.name, usage)

    def _failures(self, request: ModelRequest) -> Failures:
        setting = "OPENAI_SUMMARY_MODEL" if isinstance(request.material, DigestMaterial) else "OPENAI_MODEL"
        return self.transport.failures(self.name, setting)


def cache_key(name: str) -> str:
    """`name` as a `prompt_cache_key`."""
    return name if len(name) <= CACHE_KEY_CHARS else hashlib.sha256(name.encode()).hexdigest()


def _sent(message: ChatMessage) -> dict[str, Any]:
    """A message as it stands in a request's body."""
    if message.raw is not None:
        return dict(message.raw)
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:  # some servers refuse empty text, and all take none beside calls
        sent |= {"content": message.content or None, "tool_calls": [sent_call(call) for call in message.tool_calls]}
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


class OpenAIEmbedder:
    """An `Embedder`: the embedding model called `name` at the server of `transport`, in one call for many texts."""

    instant = False

    def __init__(self, transport: Transport, name: str) -> None:
        self.name = f"openai:{name}:{DIMENSIONS}"
        self._transport = transport
        self._model = name

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of DIMENSIONS numbers for each text.  Raises EmbeddingUnavailable, also for other shapes."""
        failures = self._transport.failures(self._model, "OPENAI_EMBEDDING_MODEL")
        body = {"model": self._model, "input": list(texts), "dimensions": DIMENSIONS, "encoding_format": "float"}
        try:
            deadline = time.monotonic() + EMBEDDING_SECONDS
            with contextlib.closing(
                self._transport.post("/embeddings", body, failures, deadline, EMBEDDING_SECONDS)
            ) as response:
                rows = sorted(json.loads(b"".join(response))["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], np.float32)
        except Refused as refusal:
            raise EmbeddingUnavailable(failures.refused(refusal.status, refusal.headers, refusal.body).kept) from None
        except ModelError as error:
            raise EmbeddingUnavailable(error.kept) from None
        except (ValueError, LookupError, TypeError) as error:
            raise EmbeddingUnavailable(failures.bad_answer(f"no embeddings ({error})").kept) from None
        if vectors.shape != (len(texts), DIMENSIONS):
            raise EmbeddingUnavailable(
                f"The model {self._model} made vectors of shape {vectors.shape} for {len(texts)} texts, "
                f"not {DIMENSIONS} numbers each: it can't shorten them. Choose another with OPENAI_EMBEDDING_MODEL."
            )
        return vectors
