"""Log and metrics of a turn: how it ended, in figures and one line for operators.

Invariants:
- Every turn is counted once, however it ends.  It has at most one line in the log, without words of a conversation
  (test_logs).
"""

import logging
from time import perf_counter
from typing import Any

from memory.engine import Engine
from memory.errors import RecapError, code_of
from memory.ops import logs
from memory.turn.answer import Reply
from memory.turn.request import Turn, TurnFinished
from models.turns import CUT_OFF, INTERRUPTED

log = logging.getLogger("memory.turn.turn")  # the name that docs/operations.md gives


class Stopwatch:
    """Measures the phases of a turn."""

    def __init__(self) -> None:
        self.started_at = self._last = perf_counter()
        self.seconds: dict[str, float] = {}  # by phase

    def mark(self, phase: str) -> None:
        """End a phase.  It began when the phase before it ended."""
        now = perf_counter()
        self.seconds[phase] = now - self._last
        self._last = now


def count_turn(
    engine: Engine,
    turn: Turn,
    finished: TurnFinished | None,
    reply: Reply,
    watch: Stopwatch,
    error: BaseException | None,
) -> None:
    """Count the turn and log its line.  A refused turn has no line: that of its request says all."""
    request = turn.request
    api = "completions" if turn.request.is_client else "chat"
    outcome = _outcome(turn, finished, error)
    seconds = perf_counter() - watch.started_at
    first_word = None
    if request.stream and reply.first_word_at is not None:
        first_word = reply.first_word_at - watch.started_at
    engine.metrics.count_turn(api, outcome, watch.seconds, first_word, seconds)
    reported: dict[str, Any] = {"code": code_of(error) if finished is None and error is not None else None}
    if finished is not None and turn.earlier_answer is None:
        memory = finished.started.memory
        usage = finished.usage
        problem = finished.started.problem
        excerpts = len(memory.recalled.excerpts) + sum(call.excerpts for call in memory.calls)
        full = usage.full_history_tokens
        mode = memory.recalled.mode
        engine.metrics.count_answer(usage.spent, full, mode, excerpts, without_memory=problem is not None)
        reported = {
            "prompt_tokens": usage.spent.prompt_tokens,
            "completion_tokens": usage.spent.completion_tokens,
            "saved_tokens": usage.saved_tokens,
            "recalled": excerpts,
            "problem": problem,
        }
    level = logging.WARNING if outcome == "failed" else logging.INFO
    if outcome != "refused" and log.isEnabledFor(level):
        session_id = turn.session_id if finished is None else finished.started.session_id
        session = logs.Pseudonym("session", request.caller.tenant, session_id) if session_id is not None else None
        reported |= {f"{phase}_ms": round(seconds * 1000, 1) for phase, seconds in watch.seconds.items()}
        log.log(level, "turn", extra=logs.fields(api=api, outcome=outcome, session=session, **reported))


def _outcome(turn: Turn, finished: TurnFinished | None, error: BaseException | None) -> str:
    """Return how the turn ended, as one of `metrics.TURN_OUTCOMES`."""
    if turn.earlier_answer is not None:
        return "replayed"
    if finished is not None:
        return "interrupted" if finished.finish_reason in (INTERRUPTED, CUT_OFF) else "answered"
    if isinstance(error, RecapError) and error.status < 500:
        return "interrupted" if error.code == "turn_stopped" else "refused"
    return "failed"
