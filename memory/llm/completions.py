"""The chat completions of any OpenAI-compatible server as a `LanguageModel`.

A client's request is sent as it came: its parameters unchanged, its messages as they are.  Recap adds parameters of its
own only where the client names none, and leaves out those that the server refuses.

Guarantee: an answer takes at most three tries, none after its first part was yielded, and one more for each parameter
that the server refuses for the first time.  MODEL_TIMEOUT bounds all of them together, with the pauses between them.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Collection, Iterator
from typing import Any

from memory.errors import ModelError
from memory.llm import ChatMessage, Chunk, Finish, Interrupted, ModelRequest, Piece, Tool, ToolCall
from memory.llm.answers import read
from memory.llm.client import Endpoint
from memory.llm.failures import WORTH_ANOTHER_TRY
from memory.llm.passing import sent_call

TRIES = 3
LONGEST_PAUSE = 5.0  # seconds; a server that asks for a longer one is reported
BUSY_SECONDS = 10.0  # what the caller is told to wait if a busy server does not say
CACHE_KEY_CHARS = 64  # servers refuse longer ones
_OPTIONAL = {
    "stream_options": ("stream_options",),
    "prompt_cache_key": ("prompt_cache_key",),
    "response_format": ("response_format", "json_schema"),
    "tools": ("tools", "tool_choice", "tool choice", "tool use", "tool calling", "function calling"),
}
"""Parameters that an answer can do without, and the words by which a server's refusal names them."""


class OpenAIModel:
    """A `LanguageModel`: the model `name` at `endpoint`, chosen by the environment variable `setting`.

    Threads may share it.  `backoff` is the pause in seconds before the first retry; the second is twice as long.
    """

    def __init__(self, endpoint: Endpoint, name: str, setting: str = "OPENAI_MODEL", *, backoff: float = 0.5) -> None:
        self.endpoint = endpoint
        self.name = name
        self._failures = endpoint.failures(name, setting)
        self._backoff = backoff
        self._refused: frozenset[str] = frozenset()

    @property
    def can_call_tools(self) -> bool:
        """True until the server has refused tools once."""
        return "tools" not in self._refused

    def answer(self, request: ModelRequest) -> Iterator[Piece | Chunk | ToolCall | Finish]:
        """See `LanguageModel`.  Closing the iterator early closes the connection."""
        chunks_of = self.endpoint.chunks_ahead if request.stream else self.endpoint.chunks
        deadline = time.monotonic() + self.endpoint.timeout
        without, tries, began = self._refused, 0, False
        while True:
            body = self._body(request, without)
            try:
                chunks = chunks_of("/chat/completions", body, self._failures, deadline, request.call)
                with contextlib.closing(chunks):
                    for part in read(chunks, request, self._failures):
                        if not began:  # only now it is known that leaving parameters out helps
                            self._refused |= without
                            began = True
                        yield part
                return
            except ModelError as failed:
                error = failed
            if request.call.stopped:  # which may have broken the connection
                raise Interrupted
            unknown = None if began else _parameter_refused(error, body.keys() - (request.client or {}))
            if unknown is not None:
                without |= {unknown}
                continue
            tries += 1
            pause = error.retry_after
            if pause is None:  # with jitter, so that callers who failed together do not return together
                pause = self._backoff * 2 ** (tries - 1) * (1 + random.random() / 4)  # nosec B311 # a pause
            lasting = began or error.code not in WORTH_ANOTHER_TRY or pause > LONGEST_PAUSE
            if lasting or tries == TRIES or time.monotonic() + pause >= deadline:
                if error.code == "model_busy" and error.retry_after is None:
                    error.retry_after = BUSY_SECONDS
                raise error
            if request.call.wait(pause):
                raise Interrupted

    def _body(self, request: ModelRequest, without: Collection[str]) -> dict[str, Any]:
        """What is sent: a client's own parameters, and ours except those in `without`."""
        ours: dict[str, Any] = {"model": self.name}
        if request.tools:
            ours["tools"] = list(map(_sent_tool, request.tools))
        if request.stream:
            ours["stream_options"] = {"include_usage": True}
        if request.cache_key is not None and self.endpoint.takes_cache_key:
            ours["prompt_cache_key"] = request.cache_key[:CACHE_KEY_CHARS]
        if request.schema is not None:
            schema = {"name": "memory_update", "strict": True, "schema": request.schema}
            ours["response_format"] = {"type": "json_schema", "json_schema": schema}
        body = {name: value for name, value in ours.items() if name not in without} | dict(request.client or {})
        if request.client is not None and request.stream and isinstance(body.get("stream_options"), dict):
            body["stream_options"] = {**body["stream_options"], "include_usage": True}
        return body | {"messages": list(map(_sent, request.messages)), "stream": request.stream}


def _parameter_refused(error: ModelError, ours: Collection[str]) -> str | None:
    """Which of our optional parameters the server's refusal is about, if any."""
    refusal = error.upstream
    if refusal is None or refusal.status not in (400, 404, 422):  # servers built on pydantic say 422, routers 404
        return None
    said = f"{refusal.message} {refusal.param}".lower()
    named = (name for name, words in _OPTIONAL.items() if name in ours and any(word in said for word in words))
    return next(named, None)


def _sent(message: ChatMessage) -> dict[str, Any]:
    """A message in the form of a request's body."""
    if message.raw is not None:
        return dict(message.raw)
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:  # some servers refuse empty text, and all accept none beside calls
        sent |= {"content": message.content or None, "tool_calls": list(map(sent_call, message.tool_calls))}
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _sent_tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
