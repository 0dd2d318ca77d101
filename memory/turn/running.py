"""A turn while it runs: what it holds and spends, and its place in the log and the metrics when it is over.

Guarantee: every turn is counted once, however it ends, and has at most one line in the log; neither holds a word of it.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager
from typing import Any

from memory.domain import CUT_OFF, INTERRUPTED
from memory.errors import ModelError, RecapError
from memory.llm import Call
from memory.ops import logs
from memory.ops.database_errors import database_failed
from memory.turn import turns
from memory.turn.answer import Answer
from memory.turn.parts import Parts
from memory.turn.values import Admitted, TurnFinished, TurnRequest

log = logging.getLogger(__name__)

KEPT = " Your message is kept: send it again in session {}, and the turn is taken up where it broke off."


class Course(AbstractContextManager["Course"]):
    """One turn while it runs: its lease, the answer so far, and how long its phases take.

    As a context manager it counts the turn when it is over.  One that stored no reply gives its lease back and is
    charged for the model's calls; one that has not `finished` broke off.
    """

    def __init__(self, parts: Parts, request: TurnRequest) -> None:
        self.call = Call()  # a stop ends it
        self.answer = Answer()
        self.ended: dict[str, float] = {}  # when each phase ended, by `time.perf_counter`
        self.finished: TurnFinished | None = None
        self._parts = parts
        self._request = request
        self._turn: Admitted | None = None
        self._began = time.perf_counter()

    def hold(self, turn: Admitted) -> None:
        """Renew the lease of the turn, which goes on, and note what is said in it."""
        self.ended["admit"] = time.perf_counter()
        self._turn = turn
        lease, turn_id = turn.lease, turn.turn_id
        if lease is not None and turn_id is not None:
            keep = self._parts.leases.keep
            keep(lease, self.call.stop, lambda tx: turns.note(tx, turn_id, lease, self.answer.said))

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        turn, finished, client = self._turn, self.finished, self._request.client
        shown = turn if finished is None else finished.started
        session_id = (shown.session_id if shown is not None else None) or self._request.session_id
        self._report(session_id, error)
        if turn is None or (finished is not None and finished.reply_message_id is not None):
            return
        self._parts.budgets.charge_caller(self._request.caller, turn.session_id, self.answer.spent)
        if turn.lease is None:
            return
        self._parts.leases.release(turn.lease)
        if error is not None and client is None:
            kept = KEPT.format(session_id)  # the caller may not know the session's id yet
            if isinstance(error, ModelError) or (isinstance(error, RecapError) and error.code == "turn_stopped"):
                error.message += kept
            elif failed := database_failed(error, f"The reply was not stored.{kept}"):
                raise failed from error

    def _report(self, session_id: str | None, error: BaseException | None) -> None:
        """Count the turn, and write its line; of a refused one the request's line says all."""
        finished, metrics, outcome = self.finished, self._parts.metrics, self._outcome(error)
        api = "chat" if self._request.client is None else "completions"
        began = (self._began, *self.ended.values())
        phases = {phase: end - start for (phase, end), start in zip(self.ended.items(), began, strict=False)}
        heard = self.answer.began - self._began if self._request.stream and self.answer.began is not None else None
        metrics.turn_over(api, outcome, phases, heard, time.perf_counter() - self._began)
        told: dict[str, Any] = {"code": None if finished is not None or error is None else logs.told(error)}
        if finished is not None and not finished.replayed:
            memory, usage, problem = finished.started.memory, finished.usage, finished.started.problem
            excerpts = len(memory.recalled.excerpts) + sum(one.excerpts for one in memory.calls)
            whole, mode = usage.full_history_tokens, memory.recalled.mode
            metrics.answered(usage.spent, whole, mode, excerpts, without_memory=problem is not None)
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
            session = logs.Private("session", tenant, session_id) if session_id is not None else None
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
