"""Take the session of a turn: one statement finds it, takes its lease and makes room for the message.

Invariant: a session that somebody else has leased is not changed (test_turn_serialisation).
"""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, and_, bindparam, case, exists, literal_column, or_, select, update

from memory.engine import Engine
from memory.leases import LEASE_DURATION, Lease
from memory.sessions.messages import CURRENT, message_values
from memory.turn.request import TurnRequest
from models import MessageRow, OwnerRow, SessionRow
from models.messages import UNREMEMBERED
from models.owners import index_key
from models.sessions import STATE_COLUMNS, SessionState

_S, _M, _O = SessionRow.__table__, MessageRow.__table__.c, OwnerRow.__table__.c
_OWNER = [
    select(_O[name]).where(_O.id == _S.c.owner_id).scalar_subquery()
    for name in ("kind", "name", "created_at", "remember")
]
_OF_KIND = select(_O.id).where(_O.tenant == bindparam("of_tenant"), _O.kind == bindparam("kind"))
_OWN = _S.c.owner_id == _OF_KIND.where(_O.name == bindparam("name")).scalar_subquery()
_OTHER = SessionRow.__table__.alias("other").c
_ONE_OF_SEVERAL = exists().where(_OTHER.tenant == _S.c.tenant, _OTHER.public_id == _S.c.public_id, _OTHER.id != _S.c.id)
_REPEATED = (
    select(_M.id)  # SQLAlchemy writes RETURNING without table names for SQLite: `id` would mean the message's
    .where(_M.session_id == literal_column("sessions.id"), *CURRENT, _M.hidden_at.is_(None), _M.role == "user")
    .where(_M.position == _S.c.message_count - bindparam("new"), _M.content == bindparam("content", type_=Text()))
    .correlate(_S)
    .scalar_subquery()
)
_TAKE = (
    update(_S)
    .where(or_(_S.c.lease_token.is_(None), _S.c.lease_until.is_(None), _S.c.lease_until <= bindparam("now")))
    .values(
        lease_token=bindparam("token"),
        lease_until=bindparam("until"),
        message_count=_S.c.message_count + bindparam("new"),
        tokens=_S.c.tokens + bindparam("size"),
        updated_at=case(
            (and_(bindparam("new") == 1, _S.c.updated_at < bindparam("now")), bindparam("now")), else_=_S.c.updated_at
        ),
    )
    .returning(*(_S.c[name] for name in STATE_COLUMNS), *_OWNER, _REPEATED, _S.c.title)
)
_TAKE_BY_ID = _TAKE.where(_S.c.id == bindparam("session"))
_TAKE_BY_NAME = _TAKE.where(_S.c.public_id == bindparam("session_id"))  # the session that `find_session` would find
_TAKE_OF_OWNER = _TAKE_BY_NAME.where(_OWN)
_TAKE_OF_ANYBODY = _TAKE_BY_NAME.where(_S.c.tenant == bindparam("of_tenant"), or_(~_ONE_OF_SEVERAL, _OWN))


class TakenSession(NamedTuple):
    """Session whose lease this turn has taken.

    request: the request; `unremembered` if the session or its person has turned memory off.
    values: the columns of the new message, with their values. title: of the session; empty before its first message.
    repeated_id: the id of the session's last message, if it has the words of this request and no reply.
    """

    request: TurnRequest
    session: SessionState
    lease: Lease
    values: Mapping[str, Any]
    title: str
    repeated_id: int | None


def take_session(
    tx: Connection, engine: Engine, request: TurnRequest, *, row_id: int | None = None, appends: bool = True
) -> TakenSession | None:
    """Take the lease of a session: the one with this `row_id`, or the caller's session that the request names.

    appends: add the new message to the session's counts.
    Returns None if another turn has the lease, or the session does not exist.
    """
    now, token = engine.now(), secrets.token_hex(16)
    values = message_values(request.draft, now)
    params = {
        "now": now,
        "token": token,
        "until": now + LEASE_DURATION,
        "new": int(appends),
        "size": values["tokens"] if appends else 0,
        "content": values["content"],
    }
    if row_id is not None:
        row = tx.execute(_TAKE_BY_ID, {**params, "session": row_id}).first()
    else:
        session_id, owner = request.session_id, request.caller.owner
        take, (kind, name) = (_TAKE_OF_ANYBODY, ("session", session_id)) if owner is None else (_TAKE_OF_OWNER, owner)
        of_caller = {"of_tenant": request.caller.tenant, "kind": kind, "name": name, "session_id": session_id}
        row = tx.execute(take, {**params, **of_caller}).first()
    if row is None:
        return None
    *columns, kind, name, created_at, is_remembered, repeated_id, title = row
    key = index_key(row.tenant, kind, name, row.owner_id, created_at)
    session = SessionState._make([*columns, key])
    if not (request.remember and session.remember and is_remembered):
        request, values = unremembered(request), {**values, "extra": {**UNREMEMBERED, **(values["extra"] or {})}}
    return TakenSession(request, session, Lease(SessionRow, row.id, token), values, title, repeated_id)


def unremembered(request: TurnRequest) -> TurnRequest:
    """Return the request for a turn that reads its session alone, and whose messages no other session recalls."""
    return replace(request, remember=False, recall="off", also=())
