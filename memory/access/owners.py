"""Owners: whose data a caller may see.

Guarantee: every read on behalf of a caller goes through one of these functions, and what belongs to another owner
looks the same as what does not exist.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Select, bindparam, select

from memory.domain import Caller
from memory.errors import NotFound, user_not_found
from models import OwnerRow, SessionRow, Transaction

_NAMED = select(SessionRow).where(SessionRow.tenant == bindparam("tenant"), SessionRow.public_id == bindparam("id"))

WHOSE = select(bindparam("owner", type_=BigInteger())).union_all(
    select(OwnerRow.id).where(OwnerRow.tenant == bindparam("tenant"), OwnerRow.kind == "tenant")
)
"""The ids of an `owner` and of the `tenant` itself."""


def find_user(tx: Transaction, caller: Caller) -> OwnerRow | None:
    """The owner row of the caller's user; None when nothing was ever stored for them, or no user is named."""
    return tx.scalar(
        select(OwnerRow).where(
            OwnerRow.tenant == caller.tenant, OwnerRow.kind == "user", OwnerRow.name == caller.user_id
        )
    )


def find_owner(tx: Transaction, caller: Caller) -> OwnerRow | None:
    """The owner row of the caller's user or, when no user is named, of the tenant itself; None if there is none yet."""
    if caller.user_id is not None:
        return find_user(tx, caller)
    return tx.scalar(select(OwnerRow).where(OwnerRow.tenant == caller.tenant, OwnerRow.kind == "tenant"))


def make_owner(tx: Transaction, caller: Caller, now: datetime) -> OwnerRow:
    """The owner row that `find_owner` did not find."""
    kind, name = ("tenant", "") if caller.user_id is None else ("user", caller.user_id)
    owner = OwnerRow(tenant=caller.tenant, kind=kind, name=name, created_at=now)
    tx.add(owner)
    tx.flush()
    return owner


def known_user(tx: Transaction, caller: Caller) -> OwnerRow:
    """The owner row of the caller's user.  Raises NotFound when nothing was ever stored, or all was erased."""
    owner = find_user(tx, caller)
    if owner is None:
        raise user_not_found(caller.user_id)
    return owner


def owned(query: Select[*tuple[Any, ...]], caller: Caller) -> Select[*tuple[Any, ...]]:
    """`query`, which joins OwnerRow, narrowed to what the caller may see."""
    query = query.where(OwnerRow.tenant == caller.tenant)
    if caller.user_id is not None:
        query = query.where(OwnerRow.kind == "user", OwnerRow.name == caller.user_id)
    return query


def known_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow | None:
    """The caller's session of this id, if there is one.  Raises NotFound when it is someone else's."""
    row = tx.scalar(_NAMED, {"tenant": caller.tenant, "id": session_id})
    theirs = caller.user_id is None or row is None or (row.owner.kind, row.owner.name) == ("user", caller.user_id)
    if not theirs:
        raise session_not_found(session_id)
    return row


def find_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow:
    """The caller's session.  Raises NotFound, also when it is someone else's."""
    row = known_session(tx, caller, session_id)
    if row is None:
        raise session_not_found(session_id)
    return row


def session_not_found(session_id: str) -> NotFound:
    return NotFound("session_not_found", f"There is no session {session_id!r}.", param="session_id")
