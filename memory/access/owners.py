"""Find owners and sessions on behalf of a caller. find_ returns None for nothing, get_ raises NotFound.

A caller means the owner that `Caller.owner` names: a space, else a user. Here "the caller's" is what that owner has.

Invariants:
- Every read for a caller goes through one of these functions; another owner's data looks like data that does not exist
  (test_owners_apart).
- In a write transaction they lock the rows, so one write of an owner runs at a time (test_postgres).
"""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, and_, bindparam, select
from sqlalchemy.orm import contains_eager

from config import Settings
from memory.errors import Forbidden, InvalidRequest, NotFound, owner_not_found
from models import OwnerRow, SessionRow, Transaction, Upsert, for_update
from models.owners import Caller

_SESSIONS = (  # of documents nothing but `memory.passages` knows them
    select(SessionRow)
    .where(SessionRow.is_document.is_(False))
    .join(SessionRow.owner)
    .options(contains_eager(SessionRow.owner))
)
_BY_PUBLIC_ID = _SESSIONS.where(OwnerRow.tenant == bindparam("tenant"), SessionRow.public_id == bindparam("id"))
_OWN = _BY_PUBLIC_ID.where(OwnerRow.kind == bindparam("kind"), OwnerRow.name == bindparam("name"))
_ANYBODYS = (  # a session of nobody first: `session` comes before `user`
    _BY_PUBLIC_ID.where(SessionRow.tenant == bindparam("tenant")).order_by(OwnerRow.kind, SessionRow.id).limit(2)
)
_OWNERS = select(OwnerRow)
_O = OwnerRow.__table__.c
_INSERT = Upsert(OwnerRow, ("tenant", "kind", "name"), lambda _: {"created_at": OwnerRow.created_at})  # changes nothing

OWNER_AND_TENANT = select(bindparam("owner", type_=BigInteger())).union_all(
    select(OwnerRow.id).where(OwnerRow.tenant == bindparam("tenant"), OwnerRow.kind == "tenant")
)
"""The ids of an `owner` and of the `tenant` itself."""


def find_owner(tx: Transaction, caller: Caller) -> OwnerRow | None:
    """Return the owner row that the caller means or, when none is named, that of the tenant itself."""
    return tx.scalar(for_update(tx, _OWNERS.filter_by(**_name(caller)), OwnerRow))


def find_or_make_owner(tx: Transaction, caller: Caller, now: datetime) -> OwnerRow:
    """Return the owner row that the caller means, else that of the tenant itself, inserted if missing."""
    owner = find_owner(tx, caller)
    if owner is None:
        _INSERT.execute(tx, [{**_name(caller), "created_at": now}])
        owner = find_owner(tx, caller)  # another write may have inserted it first
        assert owner is not None
    return owner


def _name(caller: Caller) -> dict[str, Any]:
    kind, name = caller.owner or ("tenant", "")
    return {"tenant": caller.tenant, "kind": kind, "name": name}


def lock_owner(tx: Transaction, owner_id: int | None) -> OwnerRow | None:
    """Lock the owner row of this id; return None when it was erased."""
    return tx.scalar(for_update(tx, _OWNERS.where(OwnerRow.id == owner_id), OwnerRow))


def require_memory(tx: Transaction, caller: Caller) -> None:
    """Raise Forbidden when the caller's user has turned their memory off."""
    owner = find_owner(tx, caller)
    if owner is not None and not owner.remember:
        raise Forbidden(
            "memory_off",
            "The person has turned their memory off, so nothing was read or stored. Go on without it; they turn it on "
            "again in the settings of Recap.",
        )


def get_user(tx: Transaction, caller: Caller) -> OwnerRow:
    """Return the owner row of the caller's user or space. Raises NotFound when nothing is stored, or all was erased."""
    owner = find_owner(tx, caller)
    if owner is None or caller.owner is None:
        raise owner_not_found(caller.user_id, caller.space)
    return owner


def latest_timezone(tx: Transaction, owner_id: int) -> str | None:
    """Return the name of the time zone of the owner's latest session that has one: a new session begins with it."""
    named = select(SessionRow.timezone).where(SessionRow.owner_id == owner_id, SessionRow.timezone.is_not(None))
    return tx.scalar(named.order_by(SessionRow.updated_at.desc(), SessionRow.id.desc()).limit(1))


def owner_zone(tx: Transaction, owner_id: int, settings: Settings) -> tzinfo:
    """Return the time zone of the owner's latest session that has one; where none does, that of the settings."""
    return settings.zone(latest_timezone(tx, owner_id))


def visible_to(query: Select[*tuple[Any, ...]], caller: Caller) -> Select[*tuple[Any, ...]]:
    """Narrow a query, which joins OwnerRow, to the rows that the caller may see."""
    return query.where(of_caller(caller))


def of_caller(caller: Caller) -> ColumnElement[bool]:
    """Return the condition for the owners that a caller means: a person or a space, or all of the tenant."""
    of_tenant = _O.tenant == caller.tenant
    if caller.owner is None:
        return of_tenant
    kind, name = caller.owner
    return and_(of_tenant, _O.kind == kind, _O.name == name)


def get_row(tx: Transaction, query: Select[*tuple[Any, ...]], missing: NotFound, *locked: Any) -> Any:
    """Return the only row of a query; a write locks its rows of these tables. Raises `missing` where there is none."""
    row = tx.execute(for_update(tx, query, *locked) if locked else query).first()
    if row is None:
        raise missing
    return row


def find_own_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow | None:
    """Return the session of this id that is the caller's or, when no owner is named, nobody's."""
    kind, name = caller.owner or ("session", session_id)
    params = {"tenant": caller.tenant, "id": session_id, "kind": kind, "name": name}
    return tx.scalar(for_update(tx, _OWN, OwnerRow, SessionRow), params)


def sessions_named(tx: Transaction, caller: Caller, session_id: str) -> Sequence[SessionRow]:
    """Return the sessions that an id of the caller's may mean: one, none, or two of several owners.

    When no owner is named, it is nobody's or else the one that a person or a space of the tenant has.
    """
    if caller.owner is not None:
        own = find_own_session(tx, caller, session_id)
        return () if own is None else (own,)
    query = for_update(tx, _ANYBODYS, OwnerRow, SessionRow)
    rows = tx.scalars(query, {"tenant": caller.tenant, "id": session_id}).all()
    return rows[:1] if rows and rows[0].owner.kind == "session" else rows


def find_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow | None:
    """Return the caller's session of this id. Raises InvalidRequest when it can't be told whose is meant."""
    rows = sessions_named(tx, caller, session_id)
    if len(rows) > 1:
        raise InvalidRequest(
            "session_ambiguous",
            f"More than one person or space has a session {session_id!r}, and the request names none. Nothing was "
            "done; name the user or the space whose session is meant.",
            param="user_id",
        )
    return rows[0] if rows else None


def get_session(tx: Transaction, caller: Caller, session_id: str) -> SessionRow:
    """Return the caller's session of this id, as `find_session` does. Raises NotFound when there is none."""
    row = find_session(tx, caller, session_id)
    if row is None:
        raise session_not_found(session_id)
    return row


def owner_and_session(
    tx: Transaction, caller: Caller, session_id: str | None
) -> tuple[OwnerRow | None, SessionRow | None]:
    """Return the owner of a session, and the session; or whom the caller means (None: nothing is stored), and None.

    Raises NotFound for a session that is not the caller's, and InvalidRequest when it can't be told whose is meant.
    """
    if session_id is not None:
        session = get_session(tx, caller, session_id)
        return session.owner, session
    if caller.owner is None:
        raise InvalidRequest("owner_needed", "Say whose memory is meant: a user_id, a space or a session_id.")
    return find_owner(tx, caller), None


def lock_session(tx: Transaction, row_id: int | None) -> SessionRow | None:
    """Lock the session's row of this id; return None when it was erased."""
    return tx.scalar(for_update(tx, _SESSIONS.where(SessionRow.id == row_id), OwnerRow, SessionRow))


def session_not_found(session_id: str) -> NotFound:
    return NotFound("session_not_found", f"There is no session {session_id!r}.", param="session_id")
