"""The chat completions of any OpenAI-compatible server as a `LanguageModel`.

A client's request is sent as it came: its parameters unchanged, its messages as they are.  Recap adds parameters of its
own only where the client names none, and leaves out those that the server refuses.

Guarantee: an answer takes at most three tries, none after its first part was yielded, and one more for each parameter
that the server refuses for the first time.  MODEL_TIMEOUT bounds all of them together, with the pauses between them.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from memory import tokens
from memory.domain import Usage
from memory.errors import ModelError
from memory.llm.answers import End, read
from memory.llm.client import Endpoint, Refused, Response
from memory.llm.failures import WORTH_ANOTHER_TRY, Failures, parameter_refused
from memory.llm.model import ChatMessage, Chunk, DigestMaterial, Finish, Interrupted, ModelRequest, Piece, ToolCall
from memory.llm.passing import as_completion, for_client
from memory.llm.tool_calls import estimate_call, estimate_prompt, sent_call, sent_tool

RETRIES = 2
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
    """A `LanguageModel`: the model called `name` at `endpoint`.  Threads may share it.

    `backoff` is the pause in seconds before the first retry; the second is twice as long.
    """

    def __init__(self, endpoint: Endpoint, name: str, *, backoff: float = 0.5) -> None:
        self.endpoint = endpoint
        self.name = name
        self._backoff = backoff

    @property
    def can_call_tools(self) -> bool:
        """True until the server has refused tools once."""
        return "tools" not in self.endpoint.refused.get(self.name, ())

    def answer(self, request: ModelRequest) -> Iterator[Piece | Chunk | ToolCall | Finish]:
        """See `LanguageModel`.  Closing the iterator early closes the connection.

        A failure that may pass is retried as long as nothing was yielded, there is time left, and the server does not
        ask for a pause longer than LONGEST_PAUSE.
        """
        setting = "OPENAI_SUMMARY_MODEL" if isinstance(request.material, DigestMaterial) else "OPENAI_MODEL"
        failures = self.endpoint.failures(self.name, setting)
        deadline = time.monotonic() + self.endpoint.timeout
        without = self.endpoint.refused.get(self.name, frozenset())
        tries = 0
        while True:
            body, began = self._body(request, without), False
            try:
                with contextlib.closing(self._try(body, request, failures, deadline)) as parts:
                    for part in parts:
                        if not began and without:  # only now it is known that leaving them out helps
                            self.endpoint.refused[self.name] = without
                        began = True
                        yield part
                return
            except Refused as refusal:
                ours = {
                    name: words for name, words in _OPTIONAL.items() if name in body.keys() - (request.client or {})
                }
                unknown = parameter_refused(refusal.status, refusal.body, ours)
                if unknown is not None:
                    without |= {unknown}
                    continue
                error = failures.refused(refusal.status, refusal.headers, refusal.body)
            except ModelError as failed:
                error = failed
            if request.call.stopped:  # which may have broken the connection
                raise Interrupted
            tries += 1
            pause = self._pause(error, tries)
            if began or pause is None or time.monotonic() + pause >= deadline:
                if error.code == "model_busy" and error.retry_after is None:
                    error.retry_after = BUSY_SECONDS
                raise error
            if request.call.wait(pause):
                raise Interrupted

    def _pause(self, error: ModelError, tries: int) -> float | None:
        """Seconds to wait before the next try; None if there is none."""
        if tries > RETRIES or error.code not in WORTH_ANOTHER_TRY:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= LONGEST_PAUSE else None
        # Jitter, so that callers who failed together do not return together.
        return self._backoff * 2 ** (tries - 1) * (1 + random.random() / 4)  # nosec B311 # a pause

    def _try(
        self, body: dict[str, Any], request: ModelRequest, failures: Failures, deadline: float
    ) -> Generator[Piece | Chunk | ToolCall | Finish, None, None]:
        endpoint, for_a_client = self.endpoint, request.client is not None
        response = Response(endpoint.client, "/chat/completions", body, failures, deadline, endpoint.timeout)
        chunks = response.read_ahead(request.call) if request.stream else response.read(request.call)
        text, calls, sent = list[str](), list[ToolCall](), list[dict[str, Any]]()
        end = End("stop", None, None)
        with contextlib.closing(chunks):
            for part in read(chunks, failures, tools=bool(request.tools), client=for_a_client):
                if isinstance(part, str):
                    text.append(part)
                    if request.stream:
                        yield Piece(part)
                elif isinstance(part, ToolCall):
                    calls.append(part)
                elif isinstance(part, End):
                    end = part
                    response.complete = True
                else:
                    sent.append(part)
                    if request.stream and (chunk := for_client(part, request.client)):
                        yield Chunk(chunk)
        whole = "".join(text)
        finish = self._finish(end, request, whole, calls)
        if text and not request.stream:
            yield Piece(whole)
        if for_a_client and not request.stream:
            yield Chunk(as_completion(sent, whole, finish, calls))
        yield from calls
        yield finish

    def _body(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
        """What is sent: a client's own parameters, and ours except those in `without`."""
        ours: dict[str, Any] = {"model": self.name}
        if request.tools:
            ours["tools"] = [sent_tool(tool) for tool in request.tools]
        if request.stream:
            ours["stream_options"] = {"include_usage": True}
        if request.cache_key is not None:
            ours["prompt_cache_key"] = _cache_key(request.cache_key)
        if request.schema is not None:
            schema = {"name": "memory_update", "strict": True, "schema": dict(request.schema)}
            ours["response_format"] = {"type": "json_schema", "json_schema": schema}
        ours = {name: value for name, value in ours.items() if name not in without}
        theirs = dict(request.client or {})
        if request.stream and isinstance(options := theirs.get("stream_options"), dict):
            theirs["stream_options"] = {**options, "include_usage": True}
        return {**ours, **theirs, "messages": list(map(_sent, request.messages)), "stream": request.stream}

    def _finish(self, end: End, request: ModelRequest, text: str, calls: Sequence[ToolCall]) -> Finish:
        usage = end.usage
        if usage is None:
            completion_tokens = tokens.estimate(text) + sum(map(estimate_call, calls))
            usage = Usage(estimate_prompt(request), completion_tokens, estimated=True)
        return Finish(end.reason, end.model or self.name, usage)


def _sent(message: ChatMessage) -> dict[str, Any]:
    """A message in the form of a request's body."""
    if message.raw is not None:
        return dict(message.raw)
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:  # some servers refuse empty text, and all accept none beside calls
        sent |= {"content": message.content or None, "tool_calls": [sent_call(call) for call in message.tool_calls]}
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _cache_key(name: str) -> str:
    return name if len(name) <= CACHE_KEY_CHARS else hashlib.sha256(name.encode()).hexdigest()
