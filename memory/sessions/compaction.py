"""Compaction: when the recent messages of a prompt give way to the summary, and when that is updated.

A prompt shows [prefix: system prompt, summary, facts][recent messages, word for word].  Between compactions the prefix
stays the same and the recent messages only grow at their end, so consecutive prompts share a long beginning, which
providers bill at a fraction.  The summary is updated after a pause in the talk, or at once where the next compaction
needs it.

Invariants:
- Every message that is not hidden or refused is in the summary or among the recent messages (test_compaction); so it is
  for a program that only appends, and sends the recent ones itself (test_recall_block).
- While there is no newer summary, the recent messages keep growing (test_compaction).
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from config import Settings
from memory.sessions.messages import CURRENT
from models import JobRow, MessageRow, SessionRow, Transaction
from models.jobs import JobRequest
from models.messages import Message
from models.sessions import SessionState

TURN = 2  # messages: a question and its answer

_J, _M, _S = JobRow.__table__.c, MessageRow.__table__.c, SessionRow.__table__.c
_OF_SESSION = _M.session_id == bindparam("session")
_TOKENS = select(func.sum(_M.tokens)).where(_OF_SESSION, _M.branch == 0, _M.position <= bindparam("last"))
_BEING_MADE = select(_J.id).where(_J.kind == "summary", _J.key == bindparam("session"), _J.state == "running")
_LAST_QUESTION = select(func.max(_M.position)).where(
    _OF_SESSION,
    *CURRENT,
    _M.role == "user",
    _M.position.between(bindparam("first"), bindparam("last")),
)


def compact(
    tx: Connection,
    session: SessionState,
    settings: Settings,
    new_messages: Sequence[Message],
    *,
    by_force: bool = False,
) -> SessionState | None:
    """Let the newest summary stand in for the start of the recent messages, before a turn on `new_messages`.

    Returns the session as it is afterwards, or None if nothing has changed.  The caller holds its lock.
    """
    columns = compacted_columns(tx, session, settings, new_messages, by_force=by_force)
    if not columns:
        return None
    tx.execute(update(SessionRow.__table__).where(_S.id == session.id).values(columns))
    return session._replace(**columns)


def compacted_columns(
    tx: Connection,
    session: SessionState,
    settings: Settings,
    new_messages: Sequence[Message] = (),
    *,
    by_force: bool = False,
) -> dict[str, Any]:
    """Return the columns that a compaction changes: none as long as there is no need or no newer summary.

    new_messages: those of the session that the prompt is for.
    by_force: also if the recent messages, without the `new_messages`, have not outgrown their limits.
    """
    before = session.message_count - len(new_messages)
    messages = before - session.head_through
    size = session.tokens - session.head_tokens - sum(message.tokens for message in new_messages)
    if messages <= settings.tail_messages_max and size <= settings.tail_tokens_max and not by_force:
        return {}
    if min(session.summary_through, before - settings.tail_messages_min) <= session.head_through:
        return {}
    through = _through(tx, session, settings, before)
    return _show_newest(tx, session, through) if through > session.head_through else {}


def use_newest_summary(tx: Transaction, row: SessionRow, settings: Settings) -> None:
    """Let the prefix show the newest summary, and choose its facts anew."""
    for name, value in _show_newest(tx, row, _through(tx, row, settings, row.message_count)).items():
        setattr(row, name, value)


def _show_newest(tx: Transaction | Connection, session: SessionRow | SessionState, through: int) -> dict[str, Any]:
    """Return the columns of a session whose prefix stands for the messages up to `through`."""
    size: int = tx.scalar(_TOKENS, {"session": session.id, "last": through}) or 0
    return {
        "head_through": through,
        "head_version": session.summary_version,
        "head_tokens": size,
        "head_facts": None,  # the next turn chooses them (`memory.turn.prefix`), and stores them with its reply
    }


def _through(tx: Transaction | Connection, row: SessionRow | SessionState, settings: Settings, before: int) -> int:
    """Return the last of the first `before` positions that the newest summary may stand in for.

    The last TAIL_MESSAGES_MIN messages stay among the recent ones even if the summary covers them.  The recent ones
    begin with a question of the person's, so that no answer stands without its question and no tool's result without
    its call.
    """
    through = min(row.summary_through, before - settings.tail_messages_min)
    if through <= 0:
        return 0
    onward = row.head_through if through > row.head_through else 0  # a version brought back may cover less
    begins = tx.scalar(_LAST_QUESTION, {"session": row.id, "first": onward + 2, "last": through + 1})
    # In one very long turn there is no such question: a cut anywhere is better than none.
    return int(begins or through + 1) - 1


def summary_request(
    tx: Transaction | Connection, session: SessionRow | SessionState, settings: Settings, prompt: str | None = None
) -> JobRequest | None:
    """Return the request for the job that updates the summary, by this `prompt`; None while too little is new.

    The update is urgent when one more turn makes the recent messages too many, and no newer summary is stored or being
    made.  Asked for one turn ahead, the summary is ready when the compaction is due.
    """
    unread = session.message_count - session.summary_through
    if session.summary_through > session.head_through:  # the next compaction makes room already
        full = unread + TURN > settings.tail_messages_max
    else:
        messages = session.message_count - session.head_through
        size = session.tokens - session.head_tokens
        another = size * TURN / max(messages, TURN)
        full = messages + TURN > settings.tail_messages_max or size + another > settings.tail_tokens_max
    is_urgent = full and tx.scalar(_BEING_MADE, {"session": str(session.id)}) is None
    if not is_urgent and unread < 2 * settings.summary_every - 1:
        return None
    delay = 0.0 if is_urgent else settings.summary_debounce
    payload = {"prompt": prompt} if prompt else None
    return JobRequest(
        "summary", session.id, session.tenant, session.owner_id, session.id, delay, debounce=True, payload=payload
    )


def summary_state(row: SessionRow | SessionState, job_state: str | None) -> str:
    """Return the state of the newest summary while its job has this state (None: there is no job)."""
    if job_state == "failed":
        return "failed"
    if job_state == "running":
        return "updating"
    if row.summary_through < row.message_count:
        return "pending"
    return "current" if row.summary_version else "none"
