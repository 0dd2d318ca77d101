"""The session of a turn, from its beginning to its end: whose it is, and whether the turn has it still."""

from __future__ import annotations

from memory.access.owners import known_session
from memory.domain import Caller
from memory.leases.leases import Lease, Leases
from models import SessionRow, Transaction


def begun_in(tx: Transaction, caller: Caller, session_id: str) -> SessionRow | None:
    """The caller's session of this id, if there is one.  Raises NotFound when it is someone else's."""
    return known_session(tx, caller, session_id)


def leased(tx: Transaction, lease: Lease) -> SessionRow | None:
    """The session that a turn was begun in, if it has it still."""
    row = tx.get(SessionRow, lease.row_id)
    return row if row is not None and row.lease_token == lease.token else None


def give_back(tx: Transaction, row: SessionRow, leases: Leases) -> None:
    """Write what the turn changed, and give its lease back."""
    leases.give_back(row)
    if row.stop_token is not None:
        row.stop_token = None
    tx.flush()
