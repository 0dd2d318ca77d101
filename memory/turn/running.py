"""A turn while it runs: the model's answer as it comes, and the turn's course, from its lease to the log and metrics.

Guarantee: an answer ends in words or in a ModelError, or, when its call is stopped, in what was said until then.  A
model that fails in the middle of a reply leaves a person the words it said, and a client the error.  Every turn is
counted once, however it ends, and has at most one line in the log; neither holds a word of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memory import tokens
from memory.errors import Conflict, ModelError, RecapError, database_failed
from memory.llm import (
    Cancelled,
    LanguageModel,
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
from memory.turn import refusals, turns
from memory.turn.tools import Tools
from memory.turn.values import Admitted, RecallToolCall, TurnFinished, TurnRequest
from models.owners import Usage
from models.turns import CUT_OFF, INTERRUPTED

if TYPE_CHECKING:
    from memory.engine import Engine

log = logging.getLogger(__name__)

KEPT = " Your message is kept: send it again in session {}, and the turn is taken up where it broke off."


@dataclass
class Answer:
    """What the model has said of its answer so far; all of it when `pieces` are over.

    `said` are the words, of which the first came when they `began` (by `time.perf_counter`).  `spent` is what each call
    took, and `end` has the usage of all together.  `looked_back` are the model's looks back, `calls` are of a client's
    own tools, and `last` is a client's last chunk.  `rate` is how many tokens the model counts for one of our estimate.
    `substitute` is the model that answers instead of the one that was asked.  `failure` is why a reply was cut off.
    """

    said: str = ""
    began: float | None = None
    spent: list[Usage] = field(default_factory=list)
    looked_back: tuple[RecallToolCall, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    last: RawChunk | None = None
    rate: float = 1.0
    substitute: str | None = None
    failure: ModelError | None = None
    end: StreamEnd = field(init=False)

    def pieces(
        self, model: LanguageModel, request: ModelRequest, tools: Tools | None
    ) -> Iterator[TextDelta | Thought | Waiting | RawChunk]:
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
            except Cancelled:
                early = INTERRUPTED
            except ModelError as error:
                if request.client is not None or not self.said.strip():
                    raise
                log.warning("the model failed within a reply; what it said stays", extra=logs.fields(code=error.code))
                error.message += " What it had said is kept."
                early, self.failure = CUT_OFF, error
            if early:
                usage = Usage(estimate_prompt(request), tokens.estimate(self.said[already:]), estimated=True)
                self.end = StreamEnd(early, model.name, usage)
            if not self.spent:
                self.rate = self.end.usage.prompt_tokens / max(1, estimate_prompt(request))
            self.spent.append(self.end.usage)
            if early == INTERRUPTED and request.client is None and not self.said.strip():
                raise Conflict("turn_stopped", "The reply was stopped before its first word, and none was stored.")
            if not calls or tools is None:
                break
            request = tools.look_back(request, self.said[already:].strip(), calls, self.end.thoughts)
            self.looked_back = tools.reports
        self.calls = calls
        self.end = replace(self.end, usage=sum(self.spent, Usage(0, 0)))
        if early == INTERRUPTED and request.client is not None:  # a client is told of an end that it knows
            if request.stream and self.last is not None:
                yield RawChunk(last_chunk(self.last.data, "stop"))
            else:
                end = replace(self.end, reason="stop")
                yield from to_chunks([self.said], end, request.client, stream=request.stream)

    def _call(
        self, model: LanguageModel, request: ModelRequest
    ) -> Generator[TextDelta | Thought | Waiting | RawChunk, None, tuple[ToolCall, ...]]:
        """One call of the model: yields what it says, and returns the tools it calls.  Raises Cancelled."""
        calls, words, already = list[ToolCall](), "", len(self.said)
        if request.cancel.cancelled:
            raise Cancelled
        self._parts = model.answer(request)  # kept, so that nobody waits for what a server sends after the end
        for part in self._parts:
            if isinstance(part, StreamEnd):
                self.end = part
                break
            if request.cancel.cancelled:
                raise Cancelled
            if isinstance(part, TextDelta):
                # Models that are about to call tools often say a line end first.
                text = part.text if words or not request.tools else part.text.lstrip()
                if not text:
                    continue
                if not words and self.said and not self.said.endswith("\n"):
                    text = f"\n\n{text}"  # what was said before the tools were called is a paragraph of its own
                words += text
                self.began = self.began or time.perf_counter()
                self.said += text
                yield TextDelta(text)
            elif isinstance(part, Substitute):
                self.substitute = part.model
            elif isinstance(part, ToolCall):
                calls.append(part)
            else:
                if isinstance(part, RawChunk):
                    self.last = part
                elif isinstance(part, Thought) and part.withdraws:
                    self.said, words = self.said[:already], ""
                yield part
        return tuple(calls)


class Course(AbstractContextManager["Course"]):
    """One turn while it runs: its lease, the answer so far, and how long its phases take.

    As a context manager it counts the turn when it is over.  One that stored no reply gives its lease back and is
    charged for the model's calls; one that has not `finished` broke off.
    """

    def __init__(self, engine: Engine, request: TurnRequest) -> None:
        self.answer = Answer()
        self.ended: dict[str, float] = {}  # when each phase ended, by `time.perf_counter`
        self.finished: TurnFinished | None = None
        self._engine = engine
        self._request = request
        self._turn: Admitted | None = None
        self._began = time.perf_counter()

    def hold(self, turn: Admitted) -> None:
        """Renew the lease of the turn, which goes on, and note what is said in it."""
        self.ended["admit"] = time.perf_counter()
        self._turn = turn
        lease, turn_id = turn.lease, turn.turn_id
        if lease is not None and turn_id is not None:
            keep = self._engine.leases.hold
            keep(lease, turn.cancel.cancel, lambda tx: turns.note(tx, turn_id, lease, self.answer.said))

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        turn, finished, client = self._turn, self.finished, self._request.client
        shown = turn if finished is None else finished.started
        session_id = (shown.session_id if shown is not None else None) or self._request.session_id
        self._report(session_id, error)
        if turn is None or (finished is not None and finished.reply_message_id is not None):
            return
        self._engine.budgets.add_caller_usage_now(self._request.caller, turn.session_id, self.answer.spent)
        if turn.lease is None:
            return
        told = isinstance(error, ModelError) and self._tell_refusal(turn, session_id, error)
        self._engine.leases.release(turn.lease)
        if error is not None and client is None and not told:
            kept = KEPT.format(session_id)  # the caller may not know the session's id yet
            if isinstance(error, ModelError) or (isinstance(error, RecapError) and error.code == "turn_stopped"):
                error.message += kept
            elif failed := database_failed(error, f"The reply was not stored.{kept}"):
                raise failed from error

    def _tell_refusal(self, turn: Admitted, session_id: str | None, error: ModelError) -> bool:
        """Mark and tell a refusal of the message before the first word of the reply; return whether it is one."""
        if self.answer.spent or self.answer.said.strip() or not refusals.mark_if_refused(self._engine, turn, error):
            return False
        error.add(refusals.advice(turn, session_id))
        return True

    def _report(self, session_id: str | None, error: BaseException | None) -> None:
        """Count the turn, and write its line; of a refused one the request's line says all."""
        finished, metrics, outcome = self.finished, self._engine.metrics, self._outcome(error)
        api = "chat" if self._request.client is None else "completions"
        began = (self._began, *self.ended.values())
        phases = {phase: end - start for (phase, end), start in zip(self.ended.items(), began, strict=False)}
        heard = self.answer.began - self._began if self._request.stream and self.answer.began is not None else None
        metrics.count_turn(api, outcome, phases, heard, time.perf_counter() - self._began)
        told: dict[str, Any] = {"code": None if finished is not None or error is None else logs.safe_message(error)}
        if finished is not None and not finished.replayed:
            memory, usage, problem = finished.started.memory, finished.usage, finished.started.problem
            excerpts = len(memory.recalled.excerpts) + sum(one.excerpts for one in memory.calls)
            whole, mode = usage.full_history_tokens, memory.recalled.mode
            metrics.count_answer(usage.spent, whole, mode, excerpts, without_memory=problem is not None)
            told = {
                "prompt_tokens": usage.spent.prompt_tokens,
                "completion_tokens": usage.spent.completion_tokens,
                "saved_tokens": usage.saved_tokens,
                "recalled": excerpts,
                "problem": problem,
            }
        level = logging.WARNING if outcome == "failed" else logging.INFO
        if outcome != "refused" and log.isEnabledFor(level):
            tenant = self._request.caller.tenant
            session = logs.Pseudonym("session", tenant, session_id) if session_id is not None else None
            told |= {f"{phase}_ms": round(seconds * 1000, 1) for phase, seconds in phases.items()}
            log.log(level, "turn", extra=logs.fields(api=api, outcome=outcome, session=session, **told))

    def _outcome(self, error: BaseException | None) -> str:
        """How the turn ended, as one of `metrics.TURN_OUTCOMES`."""
        if self.finished is not None and self.finished.replayed:
            return "replayed"
        if self.finished is not None:
            return "interrupted" if self.finished.finish_reason in (INTERRUPTED, CUT_OFF) else "answered"
        if isinstance(error, RecapError) and error.status < 500:
            return "interrupted" if error.code == "turn_stopped" else "refused"
        return "failed"
