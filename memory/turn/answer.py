"""Read the reply of the main model as it arrives, over several calls if the model uses tools.

Invariants:
- A reply ends with text, with a ModelError or, when it is cancelled, with the text until then (test_stop).
- If a model fails in the middle of a reply, a person keeps the text until then, and a client gets the error
  (test_chat_failures, test_openai_failing_open).
"""

import logging
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

from memory import tokens
from memory.errors import Conflict, ModelError
from memory.json_values import text_in
from memory.llm import (
    Cancelled,
    Fallback,
    LanguageModel,
    ModelEvent,
    ModelRequest,
    RawChunk,
    StreamEnd,
    TextDelta,
    Thought,
    Tool,
    ToolCall,
    Waiting,
    estimate_prompt,
    estimate_tools,
)
from memory.llm.openai_form import last_chunk, to_chunks
from memory.ops import logs
from memory.turn.client_answer import ClientAnswer
from memory.turn.prompt import Prompt
from memory.turn.request import TurnEvent, TurnFinished, TurnRequest
from models.owners import Usage
from models.turns import CUT_OFF, INTERRUPTED

log = logging.getLogger(__name__)

ID_CHARS = 64  # of a model server's id that are kept
ReplyEvent = TextDelta | Thought | Waiting | RawChunk


@dataclass
class Reply:
    """Reply of the model so far; complete when `read_reply` is exhausted.

    id: of the completion; a client's reply has the model server's id.
    first_word_at: by `time.perf_counter`. usages: of each call; `end` has their sum.
    tool_calls: of a client's tools. last_chunk: the last one that a client got.
    token_rate: tokens that the model counts for each token of our estimate. failure: the error that cut the reply off.
    model: the name of the model that answers the current call: a fallback model's, once it has begun.
    """

    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(16)}")
    pieces: list[str] = field(default_factory=list)
    first_word_at: float | None = None
    usages: list[Usage] = field(default_factory=list)
    tool_calls: tuple[ToolCall, ...] = ()
    last_chunk: RawChunk | None = None
    token_rate: float = 1.0
    model: str = ""
    failure: ModelError | None = None
    end: StreamEnd = field(init=False)
    model_events: Iterator[ModelEvent] = field(init=False, repr=False)

    @property
    def text(self) -> str:
        return "".join(self.pieces)  # not after each piece: the time would grow with the square of the length

    @property
    def has_words(self) -> bool:
        return bool(self.text.strip())

    def end_call(self, request: ModelRequest, prompt: Prompt, reason: str, text: str) -> None:
        """End a call that brought this `text`.  prompt: of the first call.

        reason: why it ended early; then the server reports no usage, and it is estimated. "": the model ended it.
        """
        if reason:
            usage = Usage(estimate_prompt(request), tokens.estimate(text), estimated=True)
            self.end = StreamEnd(reason, self.model, usage)
        if not self.usages:
            estimated = prompt.tokens + prompt.client_tool_tokens + estimate_tools(request.tools)
            self.token_rate = self.end.usage.prompt_tokens / max(1, estimated)
        self.usages.append(self.end.usage)


def read_reply(model: LanguageModel, prompt: Prompt, reply: Reply) -> Iterator[ReplyEvent]:
    """Yield the events of the reply, and fill `reply`.

    Raises ModelError, and Conflict when a person's turn was stopped before the first word.
    """
    request = prompt.request
    tools = prompt.tools
    client = prompt.request.client
    answer = ClientAnswer(tools.names, stream=request.stream) if tools is not None and client is not None else None
    while True:
        request = tools.offer(request) if tools is not None else request
        start = len(reply.text)
        reason = ""
        calls: tuple[ToolCall, ...] = ()
        try:
            calls = yield from _call_model(model, request, reply, answer)
        except Cancelled:
            reason = INTERRUPTED
        except ModelError as error:
            if client is not None or not reply.has_words:
                raise
            log.warning("the model failed within a reply; what it said stays", extra=logs.fields(code=error.code))
            error.message += " What it had said is kept."
            reason, reply.failure = CUT_OFF, error
        reply.end_call(request, prompt, reason, reply.text[start:])
        if reason == INTERRUPTED and client is None and not reply.has_words:
            raise Conflict("turn_stopped", "The reply was stopped before its first word, and none was stored.")
        client_calls, recap_calls = (calls, ()) if tools is None else tools.split(request, calls)
        if tools is None or not recap_calls:
            break
        if client_calls:  # the client answers next
            tools.run_writes(recap_calls)
            break
        request = tools.run_calls(request, reply.text[start:].strip(), recap_calls, reply.end.thoughts)
    reply.tool_calls = client_calls
    reply.end = replace(reply.end, usage=reduce(add, reply.usages))
    if answer is not None and reason != INTERRUPTED:
        reply.end = replace(reply.end, reason=answer.reason(reply.end.reason, client_calls))
        yield from answer.end(reply.text, client_calls, reply.end)
    elif reason == INTERRUPTED and client is not None:
        yield from _interrupted_chunks(reply, client, stream=request.stream)


def replay(request: TurnRequest, finished: TurnFinished) -> Iterator[TurnEvent]:
    """Yield the events of a finished turn again, for a retry."""
    if request.transcript is not None:
        finished = replace(finished, reply=finished.reply.removeprefix(request.transcript.conversation.prefill))
    yield finished.started
    if request.transcript is None:
        yield TextDelta(finished.reply)
    else:
        reason = "stop" if finished.finish_reason == INTERRUPTED else finished.finish_reason
        end = StreamEnd(reason, finished.model, finished.usage.spent)
        parameters = request.transcript.parameters
        calls = finished.calls
        id = finished.started.completion_id
        yield from to_chunks([finished.reply], end, parameters, stream=request.stream, calls=calls, id=id)
    yield finished


def _interrupted_chunks(reply: Reply, parameters: Mapping[str, Any], *, stream: bool) -> Iterator[ReplyEvent]:
    """End an interrupted reply to a client with the finish reason `stop`, which clients know."""
    if stream and reply.last_chunk is not None:
        yield last_chunk(reply.last_chunk)
    else:
        yield from to_chunks([reply.text], replace(reply.end, reason="stop"), parameters, stream=stream)


def _call_model(
    model: LanguageModel, request: ModelRequest, reply: Reply, answer: ClientAnswer | None = None
) -> Generator[ReplyEvent, None, tuple[ToolCall, ...]]:
    """Call the model once: yield its events for the reader, and return its calls of tools.  Raises Cancelled."""
    calls: list[ToolCall] = []
    before = reply.text
    start = len(reply.pieces)
    reply.model = model.name
    feed = answer.begin(before) if answer is not None else None
    if request.cancel.cancelled:
        raise Cancelled
    reply.model_events = model.answer(request)  # kept: closing it here would wait for the rest that a server sends
    for part in reply.model_events:
        if isinstance(part, StreamEnd):
            reply.end = part
            break
        if request.cancel.cancelled:
            raise Cancelled
        if isinstance(part, TextDelta):
            if text := _next_text(part.text, before, is_first=len(reply.pieces) == start, tools=request.tools):
                reply.first_word_at = reply.first_word_at or time.perf_counter()
                reply.pieces.append(text)
                yield TextDelta(text)
        elif isinstance(part, Fallback):
            reply.model = part.model
        elif isinstance(part, ToolCall):
            calls.append(part)
        else:
            yield from _for_reader(part, reply, start, feed)
    return tuple(calls)


def _for_reader(
    part: ReplyEvent, reply: Reply, start: int, feed: Callable[[RawChunk], Iterator[ReplyEvent]] | None
) -> Iterator[ReplyEvent]:
    """Yield the events that a reader gets for a thought, a silence or a chunk.

    start: the pieces of the reply that earlier calls brought; they stay where a thought withdraws those of this call.
    """
    withdraws = isinstance(part, Thought) and part.withdraws
    if withdraws:
        del reply.pieces[start:]
    for event in feed(part) if feed is not None and isinstance(part, RawChunk) else (part,):
        if isinstance(event, RawChunk):
            reply.last_chunk = event
            reply.id = text_in(event.data.get("id"))[:ID_CHARS] or reply.id
        yield event
    if withdraws and feed is None and reply.pieces:
        yield TextDelta(reply.text)  # again, as the reader discards all that came


def _next_text(text: str, before: str, *, is_first: bool, tools: Sequence[Tool]) -> str:
    """Return the text to add to the reply: the first text of a call begins a paragraph after the text `before`."""
    if not is_first:
        return text
    text = text.lstrip() if tools else text  # models that are about to call tools often begin with a line end
    return f"\n\n{text}" if text and before and not before.endswith("\n") else text
