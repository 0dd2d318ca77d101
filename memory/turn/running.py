"""Turns while they run: stopping one from outside, and its place in the log and the metrics when it is over.

Whoever stops a reply notes the turn's lease in the session's row.  Where the turn is taken, one thread looks for such
notes every LOOK_SECONDS, with one query for all turns of its process, and stops their model calls.

Guarantee: only the turn that was running is stopped, since the note names its lease and no other turn ever has that.
Every turn is counted once, however it ends, and has at most one line in the log; neither holds a word of it.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.exc import SQLAlchemyError

from memory.access.budgets import Budgets
from memory.access.owners import find_session
from memory.domain import INTERRUPTED, Caller, Usage
from memory.errors import ModelError, RecapError
from memory.leases import Lease, Leases
from memory.llm import Call
from memory.ops import logs
from memory.ops.database_errors import database_failed
from memory.ops.metrics import Metrics, TurnFigures
from memory.turn.values import Admitted, TurnFinished, TurnRequest
from models import Database, SessionRow

log = logging.getLogger(__name__)

KEPT = " Your message is kept: send it again in session {}, and the turn is taken up where it broke off."
LOOK_SECONDS = 0.25

_S = SessionRow.__table__.c
_NOTED = select(_S.stop_token).where(_S.id.in_(bindparam("rows", expanding=True)), _S.stop_token.is_not(None))


class Running:
    """The turns of this process.  Thread-safe."""

    def __init__(self, database: Database, leases: Leases, budgets: Budgets, metrics: Metrics) -> None:
        self.leases = leases
        self.budgets = budgets
        self.metrics = metrics
        self._database = database
        self._calls: dict[Lease, Call] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None

    def stop(self, caller: Caller, session_id: str) -> bool:
        """End the reply that is being written in a session; whether there is one.  Raises NotFound."""
        with self._database.write() as tx:
            row = find_session(tx, caller, session_id)
            if self.leases.free(row):
                return False
            row.stop_token = token = row.lease_token
        with self._lock:
            here = [call for lease, call in self._calls.items() if lease.token == token]
        for call in here:  # another process finds the note
            call.stop()
        return True

    def watch(self, lease: Lease, call: Call) -> None:
        """Stop `call` when somebody asks for it, until `unwatch`."""
        with self._lock:
            self._calls[lease] = call
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch_forever, name="recap-stops", daemon=True)
                self._watcher.start()

    def unwatch(self, lease: Lease) -> None:
        with self._lock:
            self._calls.pop(lease, None)

    def close(self) -> None:
        """Stop looking for notes."""
        self._closed.set()

    def _watch_forever(self) -> None:
        seen: set[Lease] = set()  # a turn that is over before the second look costs no query
        while not self._closed.wait(LOOK_SECONDS):
            with self._lock:
                calls = {lease: call for lease, call in self._calls.items() if lease in seen}
                seen = set(self._calls)
            try:
                if calls:
                    self._look(calls)
            except SQLAlchemyError as error:
                told = logs.fields(seconds=LOOK_SECONDS, error=logs.told(error))
                log.error("looking for replies to stop failed; looking again", extra=told)

    def _look(self, calls: dict[Lease, Call]) -> None:
        with self._database.read() as tx:
            noted = set(tx.scalars(_NOTED, {"rows": [lease.row_id for lease in calls]}))
        for lease, call in calls.items():
            if lease.token in noted:
                call.stop()


class Course:
    """One turn while it runs: how long its phases take, and what is done when it ends.

    As a context manager it ends a turn that breaks off: the lease goes back, and the model's calls are charged.
    """

    def __init__(self, running: Running, caller: Caller, request: TurnRequest) -> None:
        self.spent: list[Usage] = []  # by each call of the model
        self.ended: dict[str, float] = {}  # when each phase ended, by `time.perf_counter`
        self.first_text: float | None = None  # when the first text of a streamed reply was there
        self._running = running
        self._caller = caller
        self._request = request
        self._turn: Admitted | None = None
        self._over = False
        self._began = time.perf_counter()

    def __enter__(self) -> Course:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        turn, lease = self._turn, self._turn.lease if self._turn is not None else None
        if lease is not None:
            self._running.unwatch(lease)
        if error is None or self._over:
            return
        outcome = "failed"
        if isinstance(error, RecapError) and error.status < 500:
            outcome = "interrupted" if error.code == "turn_stopped" else "refused"
        session_id = (turn.session_id if turn is not None else None) or self._request.session_id
        self._report(outcome, session_id, error=error)
        self.give_up()
        if lease is not None and self._request.client is None:
            _tell_kept(error, KEPT.format(session_id))  # the caller may not know the session's id yet

    def admitted(self, turn: Admitted, call: Call) -> None:
        """The turn goes on.  A stop ends its `call` of the model."""
        self.ended["admit"] = time.perf_counter()
        self._turn = turn
        if turn.lease is not None:
            self._running.watch(turn.lease, call)

    def give_up(self) -> None:
        """Give the lease back, and charge for the calls of a turn that stores no reply."""
        budgets, turn = self._running.budgets, self._turn
        if turn is None:
            return
        if turn.memory.owner_id:
            budgets.charge(turn.memory.owner_id, self.spent)
        else:
            budgets.charge_caller(self._caller, turn.session_id, self.spent)
        if turn.lease is not None:
            self._running.leases.release(turn.lease)

    def finished(self, finished: TurnFinished) -> None:
        """The turn came to its reply, or had come to it before."""
        if finished.replayed:
            self._report("replayed", finished.started.session_id)
        else:
            outcome = "interrupted" if finished.finish_reason == INTERRUPTED else "answered"
            self._report(outcome, finished.started.session_id, finished)

    def _report(
        self,
        outcome: str,
        session_id: str | None,
        finished: TurnFinished | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Count the turn, and write its line; of a refused one the request's line says all."""
        self._over = True
        api = "chat" if self._request.client is None else "completions"
        began = (self._began, *self.ended.values())
        phases = {phase: end - start for (phase, end), start in zip(self.ended.items(), began, strict=False)}
        figures = TurnFigures(api, outcome, phases)
        if finished is not None:
            memory = finished.started.memory
            figures = replace(
                figures,
                first_text=self.first_text - self._began if self.first_text is not None else None,
                spent=finished.usage.spent,
                full_history_tokens=finished.usage.full_history_tokens,
                mode=memory.recalled.mode,
                excerpts=len(memory.recalled.excerpts) + sum(one.excerpts for one in memory.calls),
                without_memory=finished.started.problem is not None,
            )
        self._running.metrics.turn_over(figures)
        level = logging.WARNING if outcome == "failed" else logging.INFO
        if outcome != "refused" and log.isEnabledFor(level):
            told: dict[str, Any] = {"code": logs.told(error) if error is not None else None}
            if finished is not None:
                told = {
                    "prompt_tokens": finished.usage.spent.prompt_tokens,
                    "completion_tokens": finished.usage.spent.completion_tokens,
                    "saved_tokens": finished.usage.saved_tokens,
                    "recalled": figures.excerpts,
                    "problem": finished.started.problem,
                }
            session = logs.Private("session", self._caller.tenant, session_id) if session_id is not None else None
            told |= {f"{phase}_ms": round(seconds * 1000, 1) for phase, seconds in phases.items()}
            log.log(level, "turn", extra=logs.fields(api=api, outcome=outcome, session=session, **told))


def _tell_kept(error: BaseException, kept: str) -> None:
    """Say with a failure of the model or the database that the message is there.  Raises DatabaseFailed."""
    if isinstance(error, ModelError) or (isinstance(error, RecapError) and error.code == "turn_stopped"):
        error.message += kept
    elif failed := database_failed(error, f"The reply was not stored.{kept}"):
        raise failed from error
