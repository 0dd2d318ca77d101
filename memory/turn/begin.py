"""Begin a turn: take its session and store its message, in one transaction.

One statement finds the session, takes its lease and makes room for the message.  What else a request may ask for comes
before it (the turn of an Idempotency-Key, the session of a transcript, a new session) or after it (a replacement, a
transcript's messages, a compaction), in the same transaction.

Invariants:
- An admitted message is stored before any model is called (test_chat_failures), and stored once: the same words sent
  again after a turn broke off, or with the same Idempotency-Key, take that turn up (test_turn_serialisation).
- A message that fits no prompt is not stored (test_fold).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, and_, bindparam, case, delete, exists, literal_column, or_, select, update

from memory import tokens
from memory.access.owners import find_session, get_session, lock_session
from memory.engine import Engine
from memory.errors import Conflict, InvalidRequest, NotFound
from memory.leases import LEASE_DURATION, Lease
from memory.message_versions import replace_messages
from memory.sessions.compaction import compact, is_compaction_due
from memory.sessions.messages import (
    CURRENT,
    INSERT_MESSAGE,
    RECENT_MESSAGES,
    find,
    message_values,
    require_message_size,
    title_from,
)
from memory.transcripts.matching import (
    find_resumable,
    find_session_of,
    is_another_conversation,
    is_auxiliary_request,
    sync_transcript,
)
from memory.turn import turns
from memory.turn.context import prompt_limit, read_session
from memory.turn.request import Turn, TurnRequest
from models import MessageRow, OwnerRow, SessionRow, Transaction, TurnRow, retry_on_conflict
from models.messages import UNREMEMBERED, Message, MessageDraft, is_kept_out
from models.owners import index_key
from models.sessions import STATE_COLUMNS, SessionState
from models.turns import INTERRUPTED

SURE_TO_FIT = 0.25  # of a prompt: whether a longer message fits is looked at before it is stored

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
    select(_M.id)  # SQLAlchemy names no tables in what SQLite returns, where `id` would be the message's
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
_TAKE_BY_NAME = _TAKE.where(_S.c.public_id == bindparam("named"))  # the session that `find_session` would find
_TAKE_OF_OWNER = _TAKE_BY_NAME.where(_OWN)
_TAKE_OF_ANYBODY = _TAKE_BY_NAME.where(_S.c.tenant == bindparam("of_tenant"), or_(~_ONE_OF_SEVERAL, _OWN))
_TAKE_BACK = (
    update(_S)
    .where(_S.c.id == bindparam("session"))
    .values(message_count=_S.c.message_count - 1, tokens=_S.c.tokens - bindparam("size"))
)


class _Taken(NamedTuple):
    """Session that was taken, as `turn.session`, its title, and the columns of the new message.

    turn: its request is without recall and to be forgotten, where the session or its person has turned the memory off.
    repeated_id: the session's last message, if that has the words of this request and no reply.
    """

    turn: Turn
    repeated_id: int | None
    title: str
    message: Mapping[str, Any]


@retry_on_conflict
def begin_turn(engine: Engine, request: TurnRequest, window: int | None = None) -> Turn | None:
    """Take the session and store the message; return None for a client's auxiliary request.

    window: of the model that will answer, which the message must fit.

    Waits for a turn in progress in the session.  Raises NotFound, InvalidRequest, TooLarge, LimitReached when the
    owner's day is spent, and Conflict when that other turn does not end soon or others wait for it already, the
    Idempotency-Key was another request's, or the message it began with has been replaced; then nothing was stored.
    """
    if request.temporary:
        return _begin_temporary(engine, request)
    started, arrived_at = time.monotonic(), engine.now()
    # A streamed reply begins before the turn is recorded, so what it answers must survive a power cut by then.
    transaction = partial(engine.database.begin, request.lock_timeout, durable=request.stream)
    other_ways = request.idempotency_key, request.replaces, request.transcript
    if request.session_id is not None and other_ways == (None, None, None):  # a message for a session that may be there
        with transaction() as tx:
            if (taken := _take(tx, engine, request)) is not None:
                return _go_on(tx, engine, taken, arrived_at, window)
    while True:  # in transactions of their own: that one may have locked the session, and the owner comes first
        with transaction() as tx:
            turn = _open(tx, engine, request, arrived_at, window)
        if not isinstance(turn, SessionRow):
            return turn
        engine.leases.wait_until_free(turn, started, "This message was not stored; send it again later.")


def bypass(engine: Engine, request: TurnRequest) -> Turn:
    """Return the turn of a client's request that is answered without memory.  Raises LimitReached."""
    engine.budgets.check_caller(request.caller, request.session_id)
    return Turn(request, session_id=request.session_id)


@retry_on_conflict
def compact_by_force(engine: Engine, turn: Turn) -> Turn | None:
    """Compact the session of a turn whose recent messages fit no prompt; return None where no newer summary helps."""
    assert turn.lease is not None
    with engine.database.write(turn.request.lock_timeout, durable=False) as tx:
        row = lock_session(tx, turn.lease.row_id)
        if row is None:
            return None
        session = compact(tx.connection(), SessionState.of(row), engine.settings, turn.new_messages)
    return replace(turn, session=session) if session is not None else None


@retry_on_conflict
def withdraw(engine: Engine, turn: Turn) -> None:
    """Delete the message that this turn stored: it fits no prompt, and the caller is told that nothing was stored."""
    if turn.lease is None or turn.session is None or not turn.is_appended:
        return
    (message,) = turn.new_messages
    holding = _S.c.id == turn.lease.row_id, _S.c.lease_token == turn.lease.token
    with engine.database.begin(turn.request.lock_timeout) as tx:
        if turn.is_new_session:
            tx.execute(delete(_S).where(*holding))
            return
        counts = {"message_count": _S.c.message_count - 1, "tokens": _S.c.tokens - message.tokens}
        if tx.execute(update(_S).where(*holding).values(counts)).rowcount:
            tx.execute(delete(MessageRow.__table__).where(_M.id == message.id))


def _open(
    tx: Connection, engine: Engine, request: TurnRequest, arrived_at: datetime, window: int | None
) -> Turn | SessionRow | None:
    """Find or create the session, take it, and begin the turn.

    Returns None for an auxiliary request, and the session's row while another turn goes on in it.
    """
    transcript, keyed = request.transcript, None
    with engine.database.orm(tx) as rows:
        if request.idempotency_key is not None:
            keyed = turns.find_keyed(rows, request)
            if keyed is not None and keyed.finished_at is not None:
                return Turn(request, finished=turns.replay(rows, keyed))
        if transcript is not None:
            if is_auxiliary_request(rows, request.caller, request.session_id, transcript):
                return None
            if is_another_conversation(rows, request.caller, request.session_id, transcript):
                request = replace(request, session_id=None)
        row = _find_session(rows, engine, request, keyed, arrived_at)
        if is_new := row is None:
            row = engine.sessions.make(rows, request.caller, request.session_id)
            row.opening = request.opening()
    appends = (keyed, request.replaces, transcript) == (None, None, None)
    taken = _take(tx, engine, request, row_id=row.id, appends=appends)
    if taken is None:
        return row
    return replace(_go_on(tx, engine, taken, arrived_at, window, keyed), is_new_session=is_new)


def _go_on(
    tx: Connection,
    engine: Engine,
    taken: _Taken,
    arrived_at: datetime,
    window: int | None,
    keyed: TurnRow | None = None,
) -> Turn:
    """Store the message, or find it stored by a turn that broke off, in the session that was taken."""
    turn, request = taken.turn, taken.turn.request
    assert turn.session is not None
    engine.budgets.check(tx, turn.session.owner_id)
    engine.budgets.check_acting(tx, request.caller)
    if request.summary_prompt is not None:  # a wrong name is told now, not in a job's log
        with engine.database.orm(tx) as rows:
            engine.prompts.find_summary(rows, request.caller, request.summary_prompt)
    if request.transcript is not None:
        turn = _sync(tx, engine, turn, keyed, arrived_at)
    else:
        turn = _store_message(tx, engine, taken, keyed)
    if turn.finished is not None:
        return turn
    turn = replace(turn, turn_id=turns.begin(tx, turn, engine.now(), keyed))
    if turn.session is not None and is_compaction_due(turn.session, engine.settings, turn.new_messages):
        compacted = compact(tx, turn.session, engine.settings, turn.new_messages)
        turn = replace(turn, session=compacted or turn.session)
    size = turn.new_messages[-1].tokens + request.attached_tokens
    if request.replaces is not None or size > SURE_TO_FIT * prompt_limit(engine, window):
        read_session(tx, engine, turn, window)  # raises TooLarge, and then all of this is rolled back
    return turn


def _take(
    tx: Connection, engine: Engine, request: TurnRequest, *, row_id: int | None = None, appends: bool = True
) -> _Taken | None:
    """Take the lease of the session: of this row, or the one of the caller's that the request names.

    appends: count the message, which does not take another's place. Returns None while somebody else has the lease, or
    where there is no such session.
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
        named, owner = request.session_id, request.caller.owner
        take, (kind, name) = (_TAKE_OF_ANYBODY, ("session", named)) if owner is None else (_TAKE_OF_OWNER, owner)
        of_caller = {"of_tenant": request.caller.tenant, "kind": kind, "name": name, "named": named}
        row = tx.execute(take, {**params, **of_caller}).first()
    if row is None:
        return None
    *columns, kind, name, created_at, is_remembered, repeated_id, title = row
    key = index_key(row.tenant, kind, name, row.owner_id, created_at)
    session = SessionState._make([*columns, key])
    if not (request.remember and session.remember and is_remembered):
        request, values = forgotten(request), {**values, "extra": {**UNREMEMBERED, **(values["extra"] or {})}}
    turn = Turn(request, session, session.public_id, lease=Lease(SessionRow, row.id, token))
    return _Taken(turn, repeated_id, title, values)


def forgotten(request: TurnRequest) -> TurnRequest:
    """Return the request as one that looks at its session alone, and of which no other session learns."""
    return replace(request, remember=False, recall="off", also=())


def _find_session(
    tx: Transaction, engine: Engine, request: TurnRequest, keyed: TurnRow | None, arrived_at: datetime
) -> SessionRow | None:
    """Return the session of the turn, None if it is new.  Raises NotFound for a replacement in no session."""
    if keyed is not None:
        return tx.get_one(SessionRow, keyed.session_id)
    if request.session_id is not None:
        found = get_session if request.replaces is not None else find_session  # a new one has nothing to replace
        return found(tx, request.caller, request.session_id)
    if request.transcript is not None:
        return find_session_of(tx, request.caller, request.transcript, engine.leases, arrived_at)
    return None


# -- the message


def _store_message(tx: Connection, engine: Engine, taken: _Taken, keyed: TurnRow | None) -> Turn:
    """Return the turn with its message, which a turn that broke off may have stored."""
    turn, repeated_id, title, values = taken
    request, session = turn.request, turn.session
    assert session is not None
    require_message_size(request.message, "message")
    if keyed is not None:
        message = find(tx, keyed.user_message_id)
        if message is None:
            raise Conflict(
                "message_replaced",
                "The message this Idempotency-Key was first sent with got no reply and has been replaced since. "
                "Nothing was stored; send a new message, with a key of its own.",
            )
        return replace(turn, new_messages=(message,))
    repeated = find(tx, repeated_id) if repeated_id is not None else None
    if repeated is not None and _attachments(repeated.extra) != _attachments(values["extra"]):
        repeated = None  # another image, with the same words
    if request.replaces is not None:
        position, branch = _find_replaced(tx, session, request.replaces)
        if repeated is None or position != session.message_count:
            if branch:
                raise InvalidRequest(
                    "already_replaced",
                    f"Message {request.replaces} has been replaced already. Nothing was changed; read the session "
                    "again.",
                    param="replaces",
                )
            return _replace(tx, engine, turn, position, values)
    elif repeated is not None:
        size = values["tokens"]
        tx.execute(_TAKE_BACK, {"session": session.id, "size": size})
        session = session._replace(message_count=session.message_count - 1, tokens=session.tokens - size)
    if repeated is not None:
        return replace(turn, session=session, new_messages=(repeated,))
    place = {"session_id": session.id, "owner_id": session.owner_id, "position": session.message_count}
    message_id = tx.execute(INSERT_MESSAGE, {**values, **place}).scalar_one()
    if not title and not is_kept_out(values["extra"]):
        title = title_from(request.message or values["content"])
        tx.execute(update(_S).where(_S.c.id == session.id).values(title=title))
    named = {name: values[name] for name in Message._fields[3:]}
    message = Message(message_id, session.public_id, session.message_count, **named)
    return replace(turn, new_messages=(message,), is_appended=True)


def _attachments(extra: Mapping[str, Any] | None) -> Any:
    return (extra or {}).get("attachments")


def _replace(tx: Connection, engine: Engine, turn: Turn, position: int, values: Mapping[str, Any]) -> Turn:
    """Store the message in the place of the one at `position` and of all after it."""
    assert turn.session is not None
    draft = MessageDraft("user", values["content"], values["name"], extra=values["extra"])
    with engine.database.orm(tx) as rows:
        row = rows.get_one(SessionRow, turn.session.id)
        message = replace_messages(rows, row, position, draft, engine.settings, engine.now())
        rows.flush()
        return replace(turn, session=SessionState.of(row), new_messages=(message,))


def _find_replaced(tx: Connection, session: SessionState, message_id: int) -> tuple[int, int]:
    """Return the position and branch of the session's user message of this id.  Raises NotFound, InvalidRequest."""
    query = select(_M.role, _M.position, _M.branch).where(_M.session_id == session.id, _M.erased_at.is_(None))
    row = tx.execute(query.where(_M.id == message_id)).first()
    if row is None:
        raise NotFound(
            "message_not_found",
            f"There is no message {message_id} in session {session.public_id!r}, or it was erased. Nothing was stored.",
            param="replaces",
        )
    if row.role != "user":
        raise InvalidRequest(
            "not_a_user_message",
            f"Message {message_id} is not the person's own, so a message can't take its place. For another reply, "
            "replace the message it answers. Nothing was stored.",
            param="replaces",
        )
    return row.position, row.branch


def _sync(tx: Connection, engine: Engine, turn: Turn, keyed: TurnRow | None, arrived_at: datetime) -> Turn:
    """Return the turn on the messages to answer, once the session has the messages of the transcript."""
    session, transcript = turn.session, turn.request.transcript
    assert session is not None and transcript is not None
    with engine.database.orm(tx) as rows:
        row = rows.get_one(SessionRow, session.id)
        resumed = keyed or find_resumable(rows, row, transcript, arrived_at)
        if resumed is not None and transcript.is_declared_retry and resumed.finish_reason not in (None, INTERRUPTED):
            row.lease_token = row.lease_until = None
            return replace(turn, finished=turns.replay(rows, resumed))
        is_retry = resumed is not None
        last, sent = sync_transcript(rows, row, transcript, engine.settings, engine.now(), is_retry=is_retry)
        rows.flush()
        after = {"session": row.id, "after": min(row.head_through, row.message_count - 1)}
        recent = map(Message._make, tx.execute(RECENT_MESSAGES, after))
        until = [*(message for message in recent if message.position < last.position), last]  # which may be hidden
        first = max((place for place, message in enumerate(until) if message.role == "user"), default=-1)
        new = tuple(until[first:])
        continued = turns.find_started(rows, new[0]) if len(new) > 1 else None
        state = SessionState.of(row)
    return replace(turn, session=state, new_messages=new, as_sent=sent, continued_turn=continued)


def _begin_temporary(engine: Engine, request: TurnRequest) -> Turn:
    """Begin a turn that reads what is remembered, if a session or a user is named, and stores nothing."""
    drafts = (*request.history, request.draft)
    with engine.database.read() as tx:
        known = get_session(tx, request.caller, request.session_id) if request.session_id is not None else None
        row = known or engine.sessions.unstored(tx, request.caller)
        session, request = SessionState.of(row), request if row.is_remembered else forgotten(request)
        engine.budgets.check(tx, session.owner_id)
        engine.budgets.check_acting(tx, request.caller)
    *history, message = (
        Message(
            *(0, session.public_id, position, draft.role, draft.content, engine.now()),
            tokens.estimate_message(draft.content),
            draft.name,
        )
        for position, draft in enumerate(drafts, session.message_count + 1)
    )
    session_id = session.public_id if known is not None else None
    return Turn(request, session, session_id, (message,), history=tuple(history))
