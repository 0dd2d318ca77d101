"""The model's answer: one call, or with tools several, and looks back in between.

Guarantee: an answer ends in words or in a ModelError, or, when its call is stopped, in what was said until then.  A
model that fails in the middle of a reply leaves a person the words it said, and a client the error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

from memory import tokens
from memory.domain import CUT_OFF, INTERRUPTED, Usage
from memory.errors import Conflict, ModelError
from memory.llm import Chunk, Finish, Interrupted, LanguageModel, ModelRequest, Piece, ToolCall, estimate_prompt
from memory.llm.passing import in_chunks, last_chunk
from memory.ops import logs
from memory.turn.tools import Tools
from memory.turn.values import RecallCall

log = logging.getLogger(__name__)


@dataclass
class Answer:
    """What the model has said of its answer so far; all of it when `pieces` are over.

    `said` are the words, of which the first came when they `began` (by `time.perf_counter`).  `spent` is what each call
    took, and `end` has the usage of all together.  `looked_back` are the model's looks back, `calls` are of a client's
    own tools, and `last` is a client's last chunk.  `rate` is how many tokens the model counts for one of our estimate.
    """

    said: str = ""
    began: float | None = None
    spent: list[Usage] = field(default_factory=list)
    looked_back: tuple[RecallCall, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    last: Chunk | None = None
    rate: float = 1.0
    end: Finish = field(init=False)

    def pieces(self, model: LanguageModel, request: ModelRequest, tools: Tools | None) -> Iterator[Piece | Chunk]:
        """Take the answer to `request` from `model`: yields the words, and a client's chunks, as the model says them.

        Raises ModelError, and Conflict when a person's turn was stopped before a word was said.
        """
        while True:
            if tools is not None:
                request = tools.offer(request)
            already, early = len(self.said), ""
            calls: tuple[ToolCall, ...] = ()
            try:
                calls = yield from self._call(model, request)
            except Interrupted:
                early = INTERRUPTED
            except ModelError as error:
                if request.client is not None or not self.said.strip():
                    raise
                log.warning("the model failed within a reply; what it said stays", extra=logs.fields(code=error.code))
                early = CUT_OFF
            if early:
                usage = Usage(estimate_prompt(request), tokens.estimate(self.said[already:]), estimated=True)
                self.end = Finish(early, model.name, usage)
            if not self.spent:
                self.rate = self.end.usage.prompt_tokens / max(1, estimate_prompt(request))
            self.spent.append(self.end.usage)
            if early == INTERRUPTED and request.client is None and not self.said.strip():
                raise Conflict("turn_stopped", "The reply was stopped before its first word, and none was stored.")
            if not calls or tools is None:
                break
            request = tools.look_back(request, self.said[already:].strip(), calls)
            self.looked_back = tools.reports
        self.calls = calls
        self.end = replace(self.end, usage=sum(self.spent, Usage(0, 0)))
        if early == INTERRUPTED and request.client is not None:  # a client is told of an end that it knows
            if request.stream and self.last is not None:
                yield Chunk(last_chunk(self.last.data, "stop"))
            else:
                end = replace(self.end, reason="stop")
                yield from in_chunks([self.said], end, request.client, stream=request.stream)

    def _call(
        self, model: LanguageModel, request: ModelRequest
    ) -> Generator[Piece | Chunk, None, tuple[ToolCall, ...]]:
        """One call of the model: yields what it says, and returns the tools it calls.  Raises Interrupted."""
        calls, words = list[ToolCall](), ""
        if request.call.stopped:
            raise Interrupted
        self._parts = model.answer(request)  # kept, so that nobody waits for what a server sends after the end
        for part in self._parts:
            if isinstance(part, Finish):
                self.end = part
                break
            if request.call.stopped:
                raise Interrupted
            if isinstance(part, Piece):
                # Models that are about to call tools often say a line end first.
                text = part.text if words or not request.tools else part.text.lstrip()
                if not text:
                    continue
                if not words and self.said and not self.said.endswith("\n"):
                    text = f"\n\n{text}"  # what was said before the tools were called is a paragraph of its own
                words += text
                self.began = self.began or time.perf_counter()
                self.said += text
                yield Piece(text)
            elif isinstance(part, Chunk):
                self.last = part
                yield part
            else:
                calls.append(part)
        return tuple(calls)
