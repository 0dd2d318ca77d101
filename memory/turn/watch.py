"""A turn as its operator sees it: one line in the log, and its place in the figures.

Guarantee: a turn that began is counted once, however it ends, and has one line; neither holds a word of it.
"""

from __future__ import annotations

import logging
import time

from memory.domain import INTERRUPTED, Caller
from memory.errors import RecapError
from memory.ops import logs
from memory.ops.metrics import Metrics, TurnFigures
from memory.turn.values import TurnFinished, TurnRequest

log = logging.getLogger(__name__)


class Watch:
    """Of one turn, from its making on."""

    def __init__(self, metrics: Metrics, caller: Caller, request: TurnRequest) -> None:
        self._metrics = metrics
        self._tenant = caller.tenant
        self._request = request
        self._api = "chat" if request.client is None else "completions"
        self._began = self._last = time.perf_counter()
        self._phases: dict[str, float] = {}
        self._first_text: float | None = None

    def lap(self, phase: str) -> None:
        """`phase` ends now."""
        now = time.perf_counter()
        self._phases[phase] = now - self._last
        self._last = now

    def text_came(self) -> None:
        """The model has begun to speak.  Of a reply that is not streamed that says nothing."""
        if self._request.stream:
            self._first_text = time.perf_counter() - self._began

    def replayed(self, finished: TurnFinished) -> None:
        """It was a retry of a turn that is over."""
        self._count("replayed")
        self._log(logging.INFO, "replayed", finished.started.session_id)

    def finished(self, finished: TurnFinished) -> None:
        """It came to its reply."""
        started, spent = finished.started, finished.usage.spent
        excerpts = len(started.memory.recalled.excerpts) + sum(call.excerpts for call in started.memory.calls)
        outcome = "interrupted" if finished.finish_reason == INTERRUPTED else "answered"
        figures = TurnFigures(
            self._api,
            outcome,
            self._phases,
            self._first_text,
            spent,
            finished.usage.full_history_tokens,
            mode=started.memory.recalled.mode,
            excerpts=excerpts,
            without_memory=started.problem is not None,
        )
        self._metrics.turn_over(figures)
        self._log(
            logging.INFO,
            outcome,
            started.session_id,
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            saved_tokens=finished.usage.saved_tokens,
            recalled=excerpts,
            problem=started.problem,
        )

    def broke_off(self, error: BaseException, session_id: str | None = None) -> None:
        """It came to none: refused, stopped before its first word, or failed."""
        stopped = isinstance(error, RecapError) and error.code == "turn_stopped"
        refused = isinstance(error, RecapError) and error.status < 500
        outcome = "interrupted" if stopped else "refused" if refused else "failed"
        self._count(outcome)
        if outcome != "refused":  # then the request's own line says all there is
            level = logging.WARNING if outcome == "failed" else logging.INFO
            self._log(level, outcome, session_id or self._request.session_id, code=logs.told(error))

    def _count(self, outcome: str) -> None:
        self._metrics.turn_over(TurnFigures(self._api, outcome, self._phases))

    def _log(self, level: int, outcome: str, session_id: str | None, **figures: object) -> None:
        if not log.isEnabledFor(level):
            return
        session = logs.Private("session", self._tenant, session_id) if session_id is not None else None
        phases = {f"{phase}_ms": round(seconds * 1000, 1) for phase, seconds in self._phases.items()}
        told = logs.fields(api=self._api, outcome=outcome, session=session, **figures, **phases)
        log.log(level, "turn", extra=told)
