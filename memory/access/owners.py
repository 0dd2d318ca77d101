"""Find owners and sessions on behalf of a caller. find_ returns None for nothing, get_ raises NotFound.

Invariants:
- Every read for a caller goes through one of these functions; another owner's data looks like data that does not exist
  (test_owners_apart).
- In a write transaction they lock the rows, so one write of an owner runs at a time (test_postgres).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Select, bindparam, select
from sqlalchemy.orm import contains_eager

from memory.errors import InvalidRequest, NotFound, user_not_found
from models import OwnerRow, SessionRow, Transaction, Upsert, for_update
from models.owners import Caller

_SESSIONS = select(SessionRow).join(SessionRow.owner).options(contains_eager(SessionRow.owner))
_BY_PUBLIC_ID = _SESSIONS.where(SessionRow.tenant == bindparam("tenant"), SessionRow.public_id == bindparam("id"))
_OWNERS = select(OwnerRow)
_INSERT = Upsert(OwnerRow, ("tenant", "kind", "name"), lambda _: {"created_at": OwnerRow.created_at})  # changes nothing

OWNER_AND_TENANT = select(bindparam("owner", type_=BigInteger())).union_all(
    select(OwnerRow.id).where(OwnerRow.tenant == bindparam("tenant"), OwnerRow.kind == "tenant")
)
"""The ids of an `owner` and of the `tenant` itself."""


def find_owner(tx: Transaction, caller: Caller) -> OwnerRow | None:
    """Return the owner row of the caller's user or, when no user is named, of the tenant itself."""
    return tx.scalar(for_update(tx, _OWNERS.filter_by(**_name(caller)), OwnerRow))


def find_or_make_owner(tx: Transaction, caller: Caller, now: datetime) -> OwnerRow:
    """Return the owner row of the caller's user, or without a user of the tenant itself, inserted if missing."""
    owner = find_owner(tx, caller)
    if owner is None:
        _INSERT.execute(tx, [{**_name(caller), "created_at": now}])
        owner = find_owner(tx, caller)  # another write may have inserted it first
        assert owner is not None
    return owner


def _name(caller: Caller) -> dict[str, Any]:
    kind, name = ("tenant", "") if caller.user_id is None else ("user", caller.user_id)
    return {"tenant": caller.tenant, "kind": kind, "name": name}


def lock_owner(tx: Transaction, owner_id: int | None) -> OwnerRow | None:
    """Lock the owner row of this id; return None when it was erased."""
    return tx.scalar(for_update(tx, _OWNERS.where(OwnerRow.id == owner_id), OwnerRow))


def get_user(tx: Transaction, caller: Caller) -> OwnerRow:
    """Return the owner row of the caller's user. Raises NotFound when nothing was ever stored, or all was erased."""
    owner = find_owner(tx, caller)
    if owner is None or caller.user_id is None:
        raise user_not_found(caller.user_id)
    return owner


def visible_to(query: Select[*tuple[Any, ...]], caller: Caller) -> Select[*tuple[Any, ...]]:
    """Narrow a query, which joins OwnerRow, to the rows that the caller may see."""
    query = query.where(OwnerRow.tenant == caller.tenant)
    if caller.user_id is not None:
        query = query.where(OwnerRow.kind == "user", OwnerRow.name == caller.user_id)
    return query


def find_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow | None:
    """Return the caller's session of this id. Raises NotFound when it is another owner's."""
    row = tx.scalar(for_update(tx, _BY_PUBLIC_ID, OwnerRow, SessionRow), {"tenant": caller.tenant, "id": session_id})
    is_own = caller.user_id is None or row is None or (row.owner.kind, row.owner.name) == ("user", caller.user_id)
    if not is_own:
        raise session_not_found(session_id)
    return row


def get_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow:
    """Return the caller's session of this id. Raises NotFound, also when it is another owner's."""
    row = find_session(tx, caller, session_id)
    if row is None:
        raise session_not_found(session_id)
    return row


def owner_and_session(
    tx: Transaction, caller: Caller, session_id: str | None
) -> tuple[OwnerRow | None, SessionRow | None]:
    """Return the owner of a session, and the session; or the caller's user (None: nothing was ever stored), and None.

    Raises NotFound for a session that is not the caller's, and InvalidRequest without a session and a user.
    """
    if session_id is not None:
        session = get_session(tx, caller, session_id)
        return session.owner, session
    if caller.user_id is None:
        raise InvalidRequest("owner_needed", "Say whose memory is meant: a user_id or a session_id.")
    return find_owner(tx, caller), None


def lock_session(tx: Transaction, row_id: int | None) -> SessionRow | None:
    """Lock the session's row of this id; return None when it was erased."""
    return tx.scalar(for_update(tx, _SESSIONS.where(SessionRow.id == row_id), OwnerRow, SessionRow))


def session_not_found(session_id: str) -> NotFound:
    return NotFound("session_not_found", f"There is no session {session_id!r}.", param="session_id")
