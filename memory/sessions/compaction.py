"""The fold: when a prompt's tail gives way to the summary.

A prompt shows [head: system prompt, summary, facts][tail: every message after that summary, word for word].  Between
folds the head stays the same and the tail only grows at its end, so consecutive prompts share a long prefix, which
providers bill at a fraction.  When the tail has outgrown its limits, the head advances to the newest summary.

Guarantee: every message is in the summary or in the tail, but for hidden ones.  While there is no newer summary, the
tail keeps growing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, select

from config import Settings
from memory.sessions.messages import CURRENT
from models import JobRow, MessageRow, SessionRow, Transaction
from models.messages import Message
from models.sessions import SessionState

TURN = 2  # messages: a question and its answer

_M, _J = MessageRow.__table__.c, JobRow.__table__.c
_OF_SESSION = _M.session_id == bindparam("session")
_TOKENS = select(func.sum(_M.tokens)).where(_OF_SESSION, _M.branch == 0, _M.position <= bindparam("last"))
_LAST_QUESTION = select(func.max(_M.position)).where(
    _OF_SESSION,
    *CURRENT,
    _M.role == "user",
    _M.position.between(bindparam("first"), bindparam("last")),
)
_BEING_MADE = select(_J.id).where(_J.kind == "summary", _J.key == bindparam("session"), _J.state == "running")


def summary_is_urgent(tx: Transaction | Connection, session: SessionRow | SessionState, settings: Settings) -> bool:
    """Return whether the summary must be updated now, without waiting for a pause in the talk.

    So it is when one more turn makes the tail too long, and no newer summary is stored or being made.  Asked for one
    turn ahead, the summary is ready when the fold is due.
    """
    if session.summary_through > session.head_through:  # the next fold makes room already
        full = session.message_count - session.summary_through + TURN > settings.tail_messages_max
    else:
        messages, size = session.message_count - session.head_through, session.tokens - session.head_tokens
        another = size * TURN / max(messages, TURN)
        full = messages + TURN > settings.tail_messages_max or size + another > settings.tail_tokens_max
    return full and tx.scalar(_BEING_MADE, {"session": str(session.id)}) is None


def summary_state(row: SessionRow | SessionState, job_state: str | None) -> str:
    """Return how the newest summary stands while its job is in this state (None: there is no job)."""
    if job_state in ("failed", "running"):
        return "failed" if job_state == "failed" else "updating"
    if row.summary_through < row.message_count:
        return "pending"
    return "current" if row.summary_version else "none"


def is_compaction_due(row: SessionRow | SessionState, settings: Settings, new_messages: Sequence[Message]) -> bool:
    """Return whether the recent messages have outgrown their limits; the `new_messages` to answer do not count."""
    messages = row.message_count - row.head_through - len(new_messages)
    size = row.tokens - row.head_tokens - sum(message.tokens for message in new_messages)
    return messages > settings.tail_messages_max or size > settings.tail_tokens_max


def compact(
    tx: Transaction, row: SessionRow, settings: Settings, new_messages: Sequence[Message], *, force: bool = False
) -> bool:
    """Let the newest summary stand in for the start of the recent messages, before a turn on `new_messages`.

    Returns whether there is a summary for that.  force: also where the recent messages are within their limits.
    """
    if not (force or is_compaction_due(row, settings, new_messages)):
        return False
    through = _through(tx, row, settings, new_messages[0].position - 1)
    if through <= row.head_through:
        return False
    _use_newest_summary(tx, row, through)
    return True


def use_newest_summary(tx: Transaction, row: SessionRow, settings: Settings) -> None:
    """Let the prefix show the newest summary, and choose its facts anew."""
    _use_newest_summary(tx, row, _through(tx, row, settings, row.message_count))


def _use_newest_summary(tx: Transaction, row: SessionRow, through: int) -> None:
    row.head_through = through
    row.head_version = row.summary_version
    row.head_tokens = tx.scalar(_TOKENS, {"session": row.id, "last": row.head_through}) or 0
    row.head_facts = None


def _through(tx: Transaction, row: SessionRow, settings: Settings, before: int) -> int:
    """Return the last of the first `before` positions that the newest summary may stand in for.

    The last TAIL_MESSAGES_MIN messages stay in the tail even if the summary covers them.  The tail begins with a
    question of the person's, so that no answer stands without its question and no tool's result without its call.
    """
    through = min(row.summary_through, before - settings.tail_messages_min)
    if through <= 0:
        return 0
    onward = row.head_through if through > row.head_through else 0  # a version brought back may cover less
    begins = tx.scalar(_LAST_QUESTION, {"session": row.id, "first": onward + 2, "last": through + 1})
    # In one very long exchange there is no such question: a tail cut anywhere is better than one that never ends.
    return int(begins or through + 1) - 1
