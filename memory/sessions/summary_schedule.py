"""When a session's summary is updated: after a pause in the talk, or at once where the next compaction needs it."""

from sqlalchemy import Connection, bindparam, select

from config import Settings
from memory.sessions.compaction import TURN
from models import JobRow, SessionRow, Transaction
from models.jobs import JobRequest
from models.sessions import SessionState

_J = JobRow.__table__.c
_BEING_MADE = select(_J.id).where(_J.kind == "summary", _J.key == bindparam("session"), _J.state == "running")


def summary_request(
    tx: Transaction | Connection, session: SessionRow | SessionState, settings: Settings, prompt: str | None = None
) -> JobRequest | None:
    """Return the request for the job that updates the summary, by this `prompt`; None while too little is new.

    The update is urgent when one more turn makes the recent messages too many, and no newer summary is stored or being
    made.  Asked for one turn ahead, the summary is ready when the compaction is due.
    """
    waiting = session.message_count - session.summary_through
    if session.summary_through > session.head_through:  # the next compaction makes room already
        full = waiting + TURN > settings.tail_messages_max
    else:
        messages, size = session.message_count - session.head_through, session.tokens - session.head_tokens
        another = size * TURN / max(messages, TURN)
        full = messages + TURN > settings.tail_messages_max or size + another > settings.tail_tokens_max
    is_urgent = full and tx.scalar(_BEING_MADE, {"session": str(session.id)}) is None
    if not is_urgent and waiting < 2 * settings.summary_every - 1:
        return None
    debounce, payload = 0.0 if is_urgent else settings.summary_debounce, {"prompt": prompt} if prompt else None
    of_session = session.id, session.tenant, session.owner_id, session.id
    return JobRequest("summary", *of_session, debounce, debounce=True, payload=payload)


def summary_state(row: SessionRow | SessionState, job_state: str | None) -> str:
    """Return the state of the newest summary while its job has this state (None: there is no job)."""
    if job_state in ("failed", "running"):
        return "failed" if job_state == "failed" else "updating"
    if row.summary_through < row.message_count:
        return "pending"
    return "current" if row.summary_version else "none"
