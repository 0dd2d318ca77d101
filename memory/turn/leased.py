"""The session of a turn that ends, read and written as columns.

What the end of a turn changes of its session is known beforehand, so a row that can be changed in any way, at some
five times the cost, is not needed for it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from memory.leases.leases import Lease
from models import SessionRow, table_of


@dataclass
class LeasedSession:
    """A session's row as the end of a turn needs it: its figures, which messages change, and the lease on it."""

    id: int
    public_id: str
    owner_id: int
    title: str
    created_at: datetime
    updated_at: datetime
    message_count: int
    tokens: int
    summary_through: int
    head_through: int
    head_tokens: int
    lease_token: str | None


_SESSIONS = table_of(SessionRow)
_THIS = _SESSIONS.c.id == bindparam("session")
_LEASED = select(*(_SESSIONS.c[field.name] for field in fields(LeasedSession))).where(_THIS)
_GIVE_BACK = update(_SESSIONS).where(_THIS).values(lease_token=None, lease_until=None, stop_token=None)


def leased(tx: Session, lease: Lease) -> LeasedSession | None:
    """The session that a turn was begun in, if it has it still."""
    found = tx.execute(_LEASED, {"session": lease.row_id}).first()
    session = LeasedSession(*found) if found is not None else None
    return session if session is not None and session.lease_token == lease.token else None


def give_back(tx: Session, session: LeasedSession) -> None:
    """Write what the turn's messages changed, and give its lease back."""
    figures = {name: getattr(session, name) for name in ("message_count", "tokens", "created_at", "updated_at")}
    tx.execute(_GIVE_BACK, {"session": session.id, **figures})
