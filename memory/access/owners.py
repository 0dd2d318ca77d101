"""Owners: whose data a caller may see.

Guarantee: every read on behalf of a caller goes through one of these functions, and what belongs to another owner
looks the same as what does not exist.  In a write they lock what they find (see `models.database`), so that one write
of an owner runs at a time.  Where there is nothing, `find_...` raises NotFound and `..._or_none` gives None.
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
_NAMED = _SESSIONS.where(SessionRow.tenant == bindparam("tenant"), SessionRow.public_id == bindparam("id"))
_OWNERS = select(OwnerRow)
_MAKE = Upsert(OwnerRow, ("tenant", "kind", "name"), lambda _: {"created_at": OwnerRow.created_at})  # keeps it as it is

OWNER_AND_TENANT = select(bindparam("owner", type_=BigInteger())).union_all(
    select(OwnerRow.id).where(OwnerRow.tenant == bindparam("tenant"), OwnerRow.kind == "tenant")
)
"""The ids of an `owner` and of the `tenant` itself."""


def find_owner(tx: Transaction, caller: Caller) -> OwnerRow | None:
    """The owner row of the caller's user or, when no user is named, of the tenant itself; None if there is none yet."""
    return tx.scalar(for_update(tx, _OWNERS.filter_by(**_named(caller)), OwnerRow))


def find_or_make_owner(tx: Transaction, caller: Caller, now: datetime) -> OwnerRow:
    """The owner row of the caller's user or, when no user is named, of the tenant itself; made if there is none."""
    owner = find_owner(tx, caller)
    if owner is None:
        _MAKE.execute(tx, [{**_named(caller), "created_at": now}])
        owner = find_owner(tx, caller)  # another write may have made it first
        assert owner is not None
    return owner


def _named(caller: Caller) -> dict[str, Any]:
    kind, name = ("tenant", "") if caller.user_id is None else ("user", caller.user_id)
    return {"tenant": caller.tenant, "kind": kind, "name": name}


def lock_owner(tx: Transaction, owner_id: int | None) -> OwnerRow | None:
    """The owner row of this id, in a write; None when it was erased."""
    return tx.scalar(for_update(tx, _OWNERS.where(OwnerRow.id == owner_id), OwnerRow))


def get_user(tx: Transaction, caller: Caller) -> OwnerRow:
    """The owner row of the caller's user.  Raises NotFound when nothing was ever stored, or all was erased."""
    owner = find_owner(tx, caller)
    if owner is None or caller.user_id is None:
        raise user_not_found(caller.user_id)
    return owner


def visible_to(query: Select[*tuple[Any, ...]], caller: Caller) -> Select[*tuple[Any, ...]]:
    """`query`, which joins OwnerRow, narrowed to what the caller may see."""
    query = query.where(OwnerRow.tenant == caller.tenant)
    if caller.user_id is not None:
        query = query.where(OwnerRow.kind == "user", OwnerRow.name == caller.user_id)
    return query


def find_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow | None:
    """The caller's session of this id, if there is one.  Raises NotFound when it is someone else's."""
    row = tx.scalar(for_update(tx, _NAMED, OwnerRow, SessionRow), {"tenant": caller.tenant, "id": session_id})
    theirs = caller.user_id is None or row is None or (row.owner.kind, row.owner.name) == ("user", caller.user_id)
    if not theirs:
        raise session_not_found(session_id)
    return row


def get_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow:
    """The caller's session.  Raises NotFound, also when it is someone else's."""
    row = find_session(tx, caller, session_id)
    if row is None:
        raise session_not_found(session_id)
    return row


def owner_and_session(
    tx: Transaction, caller: Caller, session_id: str | None
) -> tuple[OwnerRow | None, SessionRow | None]:
    """The owner of a session, and the session; or the caller's user (None: nothing was ever stored), and None.

    Raises NotFound for a session that is not the caller's, and InvalidRequest when neither a session nor a user is
    named.
    """
    if session_id is not None:
        session = get_session(tx, caller, session_id)
        return session.owner, session
    if caller.user_id is None:
        raise InvalidRequest("owner_needed", "Say whose memory is meant: a user_id or a session_id.")
    return find_owner(tx, caller), None


def lock_session(tx: Transaction, row_id: int | None) -> SessionRow | None:
    """The session's row of this id, in a write; None when it was erased."""
    return tx.scalar(for_update(tx, _SESSIONS.where(SessionRow.id == row_id), OwnerRow, SessionRow))


def session_not_found(session_id: str) -> NotFound:
    return NotFound("session_not_found", f"There is no session {session_id!r}.", param="session_id")
