"""Read the reply of the main model as it comes, over as many calls as it takes to search with tools.

Invariants:
- A reply ends in words or in a ModelError or, when it is cancelled, in the words so far (test_stop).
- A model that fails in the middle of a reply leaves a person the words it said, and a client the error
  (test_chat_failures, test_openai_failing_open).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

from memory import tokens
from memory.errors import Conflict, ModelError
from memory.llm import (
    Cancelled,
    LanguageModel,
    ModelEvent,
    ModelRequest,
    RawChunk,
    StreamEnd,
    Substitute,
    TextDelta,
    Thought,
    ToolCall,
    Waiting,
    estimate_prompt,
)
from memory.llm.passthrough import last_chunk, to_chunks
from memory.ops import logs
from memory.turn.prompt import Prompt
from memory.turn.request import RecallToolCall
from models.owners import Usage
from models.turns import CUT_OFF, INTERRUPTED

log = logging.getLogger(__name__)

ReplyEvent = TextDelta | Thought | Waiting | RawChunk


@dataclass
class Reply:
    """What the model has said so far; complete when `read_reply` is exhausted.

    first_word_at: by `time.perf_counter`. usages: what each call took; `end` has the sum of all.
    searches: the model's own. tool_calls: of a client's tools. last_chunk: a client's.
    token_rate: how many tokens the model counts for one of our estimate. failure: why the reply was cut off.
    substitute: the model that answers instead of the one that was asked.
    """

    text: str = ""
    first_word_at: float | None = None
    usages: list[Usage] = field(default_factory=list)
    searches: tuple[RecallToolCall, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    last_chunk: RawChunk | None = None
    token_rate: float = 1.0
    substitute: str | None = None
    failure: ModelError | None = None
    end: StreamEnd = field(init=False)
    model_events: Iterator[ModelEvent] = field(init=False, repr=False)

    @property
    def is_empty(self) -> bool:
        """A client may get a reply without words."""
        return not self.text.strip() and not self.tool_calls


def read_reply(model: LanguageModel, prompt: Prompt, reply: Reply) -> Iterator[ReplyEvent]:
    """Yield what the model says, and fill the `reply`.

    Raises ModelError, and Conflict when a person's turn was stopped before a word was said.
    """
    request, tools = prompt.request, prompt.tools
    while True:
        if tools is not None:
            request = tools.offer(request)
        start, reason = len(reply.text), ""
        calls: tuple[ToolCall, ...] = ()
        try:
            calls = yield from _call_model(model, request, reply)
        except Cancelled:
            reason = INTERRUPTED
        except ModelError as error:
            if request.client is not None or not reply.text.strip():
                raise
            log.warning("the model failed within a reply; what it said stays", extra=logs.fields(code=error.code))
            error.message += " What it had said is kept."
            reason, reply.failure = CUT_OFF, error
        if reason:
            usage = Usage(estimate_prompt(request), tokens.estimate(reply.text[start:]), estimated=True)
            reply.end = StreamEnd(reason, model.name, usage)
        if not reply.usages:
            reply.token_rate = reply.end.usage.prompt_tokens / max(1, estimate_prompt(request))
        reply.usages.append(reply.end.usage)
        if reason == INTERRUPTED and request.client is None and not reply.text.strip():
            raise Conflict("turn_stopped", "The reply was stopped before its first word, and none was stored.")
        if not calls or tools is None:
            break
        request = tools.search(request, reply.text[start:].strip(), calls, reply.end.thoughts)
        reply.searches = tools.reports
    reply.tool_calls = calls
    reply.end = replace(reply.end, usage=sum(reply.usages, Usage(0, 0)))
    if reason == INTERRUPTED and request.client is not None:  # a client is told of an end that it knows
        if request.stream and reply.last_chunk is not None:
            yield RawChunk(last_chunk(reply.last_chunk.data, "stop"))
        else:
            end = replace(reply.end, reason="stop")
            yield from to_chunks([reply.text], end, request.client, stream=request.stream)


def _call_model(
    model: LanguageModel, request: ModelRequest, reply: Reply
) -> Generator[ReplyEvent, None, tuple[ToolCall, ...]]:
    """Call the model once: yield what it says, and return the tools it calls.  Raises Cancelled."""
    calls, text_of_call, start = list[ToolCall](), "", len(reply.text)
    if request.cancel.cancelled:
        raise Cancelled
    reply.model_events = model.answer(request)  # kept, so that nobody waits for what a server sends after the end
    for part in reply.model_events:
        if isinstance(part, StreamEnd):
            reply.end = part
            break
        if request.cancel.cancelled:
            raise Cancelled
        if isinstance(part, TextDelta):
            # Models that are about to call tools often say a line end first.
            text = part.text if text_of_call or not request.tools else part.text.lstrip()
            if not text:
                continue
            if not text_of_call and reply.text and not reply.text.endswith("\n"):
                text = f"\n\n{text}"  # the words before the calls of tools are a paragraph of their own
            text_of_call += text
            reply.first_word_at = reply.first_word_at or time.perf_counter()
            reply.text += text
            yield TextDelta(text)
        elif isinstance(part, Substitute):
            reply.substitute = part.model
        elif isinstance(part, ToolCall):
            calls.append(part)
        else:
            if isinstance(part, RawChunk):
                reply.last_chunk = part
            elif isinstance(part, Thought) and part.withdraws:
                reply.text, text_of_call = reply.text[:start], ""
            yield part
    return tuple(calls)
