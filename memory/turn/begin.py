"""Begin a turn: take its session and store its message, in one transaction.

One statement takes the session (`_take_session`).  For an unusual request, more statements run in the same transaction:
before it to find the turn of an Idempotency-Key or the session of a transcript, or to create a session; after it to
replace messages, to store those of a transcript, or to compact the session.

Invariants:
- An admitted message is stored before any model is called (test_chat_failures), and stored once: the same words sent
  again after a turn broke off, or with the same Idempotency-Key, resume that turn (test_turn_serialisation).
- A message that fits no prompt is not stored (test_compaction).
- A session that somebody else has leased is not changed (test_turn_serialisation).
"""

import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, and_, bindparam, case, exists, func, literal_column, or_, select, update

from memory.access.owners import find_session, get_session, lock_session
from memory.engine import Engine
from memory.errors import Conflict, InvalidRequest, NotFound
from memory.leases import LEASE_DURATION, Lease
from memory.message_versions import replace_messages
from memory.sessions.compaction import compact, compacted_columns
from memory.sessions.messages import (
    CURRENT,
    INSERT_MESSAGE,
    RECENT_MESSAGES,
    find,
    message_of,
    message_values,
    require_message_size,
    title_from,
)
from memory.transcripts.auxiliary_requests import bypasses_memory
from memory.transcripts.matching import (
    find_resumable,
    find_session_of,
    is_another_conversation,
    is_superseded,
    supersedes,
    sync_transcript,
)
from memory.turn import turns
from memory.turn.context import read_session
from memory.turn.request import Turn, TurnRequest
from models import MessageRow, OwnerRow, SessionRow, Transaction, TurnRow, retry_on_conflict
from models.messages import UNREMEMBERED, Message, MessageDraft, is_kept_out
from models.owners import index_key
from models.sessions import STATE_COLUMNS, SessionState
from models.turns import INTERRUPTED

SURE_TO_FIT = 0.25  # of CONTEXT_TOKENS; a larger message is checked before it is stored


class _TakenSession(NamedTuple):
    """Session whose lease a turn has taken.

    request: of the turn; an unremembered one if the session or its person has turned memory off.
    values: the columns of the new message, with their values. title: of the session; empty before its first message.
    repeated_id: the id of the session's last message, if it has the words of this request and no reply.
    """

    request: TurnRequest
    session: SessionState
    lease: Lease
    values: Mapping[str, Any]
    title: str
    repeated_id: int | None

    def turn(self, *new_messages: Message, **more: Any) -> Turn:
        """Return the turn on these messages."""
        return Turn(self.request, self.session, new_messages, lease=self.lease)._replace(**more)


class _Busy(NamedTuple):
    """Session whose lease another turn has."""

    row: SessionRow


@retry_on_conflict
def begin_turn(engine: Engine, request: TurnRequest, model_window: int | None = None) -> Turn | None:
    """Take the session and store the message.  Wait while another turn of the session is in progress.

    model_window: tokens that the model can read; the message must fit.

    Returns None for a client's request that bypasses memory.
    Raises NotFound, InvalidRequest, TooLarge, and LimitReached when the owner's tokens of the day are spent.  Raises
    Conflict when the other turn does not end in time or too many requests wait for it, when another request had this
    Idempotency-Key, and when the message of that key has been replaced.  Then nothing was stored.
    """
    if request.temporary:
        return begin_temporary(engine, request)
    waited_since, arrived_at = time.monotonic(), engine.now()
    # A streamed reply is sent before the turn is recorded, and so is the error of a turn during which a server crashed.
    durable = request.stream or engine.database.is_server
    transaction = partial(engine.database.begin, request.lock_timeout, durable=durable)
    is_special = (request.idempotency_key, request.replaces, request.transcript) != (None, None, None)
    if request.session_id is not None and not is_special:  # one statement can find the session and take its lease
        with transaction() as tx:
            if (taken := _take_session(tx, engine, request)) is not None:
                return _begin_in(tx, engine, taken, arrived_at, model_window)
    while True:  # in new transactions: the first one may have locked the session, and rows of owners are locked first
        with transaction() as tx:
            begun = _find_and_begin(tx, engine, request, arrived_at, model_window)
        if not isinstance(begun, _Busy):
            return begun
        _stop_superseded(engine, request, begun.row)
        engine.leases.wait_until_free(begun.row, waited_since, "This message was not stored; send it again later.")


def _stop_superseded(engine: Engine, request: TurnRequest, row: SessionRow) -> None:
    """Stop the reply in progress if this request has more of what the person said: a program listens, and guesses."""
    if request.transcript is None or not request.stream:
        return
    with engine.database.read() as tx:
        says_more = supersedes(tx, row, request.transcript)
    if says_more:
        engine.leases.stop(lambda tx: tx.get_one(SessionRow, row.id))


@retry_on_conflict
def compact_by_force(engine: Engine, turn: Turn) -> Turn | None:
    """Compact the session of a turn whose recent messages do not fit; return None if there is no newer summary."""
    assert turn.lease is not None
    with engine.database.write(turn.request.lock_timeout, durable=False) as tx:
        row = lock_session(tx, turn.lease.row_id)
        if row is None:
            return None
        session = compact(tx.connection(), SessionState.of(row), engine.settings, turn.new_messages, by_force=True)
    return turn._replace(session=session) if session is not None else None


def _find_and_begin(
    tx: Connection, engine: Engine, request: TurnRequest, arrived_at: datetime, model_window: int | None
) -> Turn | _Busy | None:
    """Find or create the session, take it, and begin the turn.  None: a client's request that bypasses memory."""
    transcript = request.transcript
    keyed = None  # the turn that began with the request's Idempotency-Key
    with engine.database.orm(tx) as rows:
        if request.idempotency_key is not None:
            keyed = turns.find_keyed(rows, request)
            if keyed is not None and keyed.finished_at is not None:
                return Turn(request, earlier_answer=turns.read_answer(rows, keyed))
        if transcript is not None:
            if bypasses_memory(rows, request.caller, request.session_id, transcript):
                return None
            if is_another_conversation(rows, request.caller, request.session_id, transcript):
                request = replace(request, session_id=None)
        row = _find_row(rows, engine, request, keyed, arrived_at)
        if (
            transcript is not None
            and row is not None
            and keyed is None
            and is_superseded(rows, row, transcript, arrived_at)
        ):
            return None
        if is_new := row is None:
            row = engine.sessions.make(rows, request.caller, request.session_id)
            row.opening = request.next_opening()
    appends = keyed is None and request.replaces is None and not request.is_client
    taken = _take_session(tx, engine, request, row_id=row.id, appends=appends)
    if taken is None:
        return _Busy(row)
    return _begin_in(tx, engine, taken, arrived_at, model_window, keyed)._replace(is_new_session=is_new)


def _find_row(
    rows: Transaction, engine: Engine, request: TurnRequest, keyed: TurnRow | None, arrived_at: datetime
) -> SessionRow | None:
    if keyed is not None:
        return rows.get_one(SessionRow, keyed.session_id)
    if request.session_id is not None:
        read = get_session if request.replaces is not None else find_session  # a new one has nothing to replace
        return read(rows, request.caller, request.session_id)
    if request.transcript is not None:
        return find_session_of(rows, request.caller, request.transcript, engine.leases, arrived_at)
    return None


def _take_session(
    tx: Connection, engine: Engine, request: TurnRequest, *, row_id: int | None = None, appends: bool = True
) -> _TakenSession | None:
    """Take the lease of a session: the one with this `row_id`, or the caller's session that the request names.

    appends: add the new message to the session's counts.  `_store_message` takes it from them again if the session
    has that message already.
    Returns None if another turn has the lease, or the session does not exist.
    """
    now = engine.now()
    token = secrets.token_hex(16)
    values = message_values(request.draft, now)
    params = {
        "now": now,
        "token": token,
        "until": now + LEASE_DURATION,
        "new": int(appends),
        "size": values["tokens"] if appends else 0,
        "content": values["content"],
        "zone": str(request.timezone) if request.timezone is not None else None,
    }
    if row_id is not None:
        row = tx.execute(_TAKE_BY_ID, {**params, "session": row_id}).first()
    else:
        session_id = request.session_id
        owner = request.caller.owner
        take, (kind, name) = (_TAKE_OF_ANYBODY, ("session", session_id)) if owner is None else (_TAKE_OF_OWNER, owner)
        of_caller = {"of_tenant": request.caller.tenant, "kind": kind, "name": name, "session_id": session_id}
        row = tx.execute(take, {**params, **of_caller}).first()
    if row is None:
        return None
    key = index_key(row.tenant, row.owner_kind, row.owner_name, row.owner_id, row.owner_created_at)
    session = SessionState._make([*row[: len(STATE_COLUMNS)], key])
    if not (request.remember and session.remember and row.owner_remember):
        request = _unremembered(request)
        values = {**values, "extra": {**UNREMEMBERED, **(values["extra"] or {})}}
    return _TakenSession(request, session, Lease(SessionRow, row.id, token), values, row.title, row.repeated_id)


def _begin_in(
    tx: Connection,
    engine: Engine,
    taken: _TakenSession,
    arrived_at: datetime,
    model_window: int | None,
    keyed: TurnRow | None = None,
) -> Turn:
    """Begin the turn in the session that was taken: store the message, or resume a turn that broke off.

    keyed: the turn that began with the request's Idempotency-Key.
    """
    request = taken.request
    engine.budgets.check(tx, taken.session.owner_id, request.caller)
    if request.summary_prompt is not None:  # raises now for an unknown name; the job would only log it
        with engine.database.orm(tx) as rows:
            engine.prompts.find_summary(rows, request.caller, request.summary_prompt)
    store = _store_message if not request.is_client else partial(_store_transcript, arrived_at=arrived_at)
    turn = store(tx, engine, taken, keyed)
    if turn.session is None:  # a retry, which was answered before
        return turn
    if compacted := compact(tx, turn.session, engine.settings, turn.new_messages):
        turn = turn._replace(session=compacted)
    turn = turn._replace(turn_id=turns.store_start(tx, turn, engine.now(), keyed))
    is_large = turn.new_messages[-1].tokens > SURE_TO_FIT * engine.settings.context_tokens
    # What `record` could not take back is checked here: read_session raises TooLarge, which rolls the transaction back.
    if is_large or request.sent is not None or request.replaces is not None:
        read_session(tx, engine, turn, model_window)
    return turn


def _store_message(tx: Connection, engine: Engine, taken: _TakenSession, keyed: TurnRow | None) -> Turn:
    """Store a person's message, or find the same message that a turn which broke off has stored."""
    request, session, _, values, title, repeated_id = taken
    require_message_size(request.message, "message")
    if keyed is not None:
        message = find(tx, keyed.user_message_id)
        if message is None:
            raise Conflict(
                "message_replaced",
                "The message this Idempotency-Key was first sent with got no reply and has been replaced since. "
                "Nothing was stored; send a new message, with a key of its own.",
            )
        return taken.turn(message)
    repeated = find(tx, repeated_id) if repeated_id is not None else None
    if repeated is not None and (repeated.extra or {}).get("attachments") != (values["extra"] or {}).get("attachments"):
        repeated = None  # the words are the same, the attachments are not
    if request.replaces is not None:
        return _replace_message(tx, engine, taken, request.replaces, repeated)
    if repeated is not None:  # `_take_session` has counted the message, which is stored already
        size = values["tokens"]
        tx.execute(_UNCOUNT, {"session": session.id, "size": size})
        counts = {"message_count": session.message_count - 1, "tokens": session.tokens - size}
        return taken.turn(repeated, session=session._replace(**counts))
    place = {"session_id": session.id, "owner_id": session.owner_id, "position": session.message_count}
    values = {**values, **place}
    message_id = tx.execute(INSERT_MESSAGE, values).scalar_one()
    if not title and not is_kept_out(values["extra"]):
        title = title_from(request.message or values["content"])
        tx.execute(update(_S).where(_S.c.id == session.id).values(title=title))
    message = message_of(message_id, session.public_id, values)
    return taken.turn(message, is_appended=True)


def _replace_message(
    tx: Connection, engine: Engine, taken: _TakenSession, message_id: int, repeated: Message | None
) -> Turn:
    """Replace a user message, and all after it, by the new message.  Raises NotFound, InvalidRequest.

    repeated: the session's last message, if it has the same words and no reply.
    """
    session, values = taken.session, taken.values
    query = select(_M.role, _M.position, _M.branch).where(_M.session_id == session.id, _M.erased_at.is_(None))
    replaced = tx.execute(query.where(_M.id == message_id)).first()
    if replaced is None:
        raise NotFound(
            "message_not_found",
            f"There is no message {message_id} in session {session.public_id!r}, or it was erased. Nothing was stored.",
            param="replaces",
        )
    if replaced.role != "user":
        raise InvalidRequest(
            "not_a_user_message",
            f"Message {message_id} is not the person's own, so a message can't take its place. For another reply, "
            "replace the message it answers. Nothing was stored.",
            param="replaces",
        )
    if repeated is not None and replaced.position == session.message_count:  # it was replaced, and the turn broke off
        return taken.turn(repeated)
    if replaced.branch:
        raise InvalidRequest(
            "already_replaced",
            f"Message {message_id} has been replaced already. Nothing was changed; read the session again.",
            param="replaces",
        )
    draft = MessageDraft("user", values["content"], values["name"], extra=values["extra"])
    with engine.database.orm(tx) as rows:
        row = rows.get_one(SessionRow, session.id)
        message = replace_messages(engine, rows, row, replaced.position, draft)
        rows.flush()
        return taken.turn(message, session=SessionState.of(row))


def _store_transcript(
    tx: Connection, engine: Engine, taken: _TakenSession, keyed: TurnRow | None, *, arrived_at: datetime
) -> Turn:
    """Store the transcript's messages that the session lacks.  For a retry that was answered, return that answer."""
    transcript = taken.request.transcript
    assert transcript is not None
    with engine.database.orm(tx) as rows:
        row = rows.get_one(SessionRow, taken.session.id)
        resumed = keyed or find_resumable(rows, row, transcript, arrived_at)
        if resumed is not None and transcript.is_declared_retry and resumed.finish_reason not in (None, INTERRUPTED):
            row.lease_token = row.lease_until = None
            return Turn(taken.request, earlier_answer=turns.read_answer(rows, resumed))
        is_retry = resumed is not None
        last, as_sent = sync_transcript(engine, rows, row, transcript, taken.request.caller, is_retry=is_retry)
        rows.flush()
        after = {"session": row.id, "after": min(row.head_through, row.message_count - 1)}
        recent = map(Message._make, tx.execute(RECENT_MESSAGES, after))
        until_last = [*(message for message in recent if message.position < last.position), last]  # it may be hidden
        question_at = max((at for at, message in enumerate(until_last) if message.role == "user"), default=-1)
        new = until_last[question_at:]
        continued = turns.find_started(rows, new[0]) if len(new) > 1 else None
        return taken.turn(*new, session=SessionState.of(row), as_sent=as_sent, continued_turn=continued)


def begin_temporary(engine: Engine, request: TurnRequest) -> Turn:
    """Begin a turn that stores nothing.  It reads the memory of the session or person that the request names.

    A memory block may be for the first message of a session that does not exist yet.
    """
    drafts = (*request.history, request.draft)
    read = get_session if request.block_tokens is None else find_session
    with engine.database.read() as tx:
        row = read(tx, request.caller, request.session_id) if request.session_id is not None else None
        row = row or engine.sessions.unstored(tx, request.caller)
        session = SessionState.of(row)
        if not (request.remember and row.is_remembered):
            request = _unremembered(request)
        if request.block_tokens is None or engine.reranker is not None:  # else no model is called
            engine.budgets.check(tx, session.owner_id, request.caller)
        session = session._replace(**compacted_columns(tx.connection(), session, engine.settings))
    now = engine.now()
    *history, message = (
        message_of(0, session.public_id, {**message_values(draft, now), "position": position})
        for position, draft in enumerate(drafts, session.message_count + 1)
    )
    return Turn(request, session, (message,), history=tuple(history))


def _unremembered(request: TurnRequest) -> TurnRequest:
    """Return the request for a turn that reads its session alone, and whose messages no other session recalls."""
    return replace(request, remember=False, recall="off", also=())


# -- statements: one takes the session

_S = SessionRow.__table__
_M = MessageRow.__table__.c
_O = OwnerRow.__table__.c
_OWNER = [
    select(_O[name]).where(_O.id == _S.c.owner_id).scalar_subquery().label(f"owner_{name}")
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
    .label("repeated_id")
)
_TAKE = (
    update(_S)
    .where(or_(_S.c.lease_token.is_(None), _S.c.lease_until.is_(None), _S.c.lease_until <= bindparam("now")))
    .values(
        lease_token=bindparam("token"),
        lease_until=bindparam("until"),
        message_count=_S.c.message_count + bindparam("new"),
        tokens=_S.c.tokens + bindparam("size"),
        timezone=func.coalesce(bindparam("zone", type_=_S.c.timezone.type), _S.c.timezone),
        updated_at=case(
            (and_(bindparam("new") == 1, _S.c.updated_at < bindparam("now")), bindparam("now")), else_=_S.c.updated_at
        ),
    )
    .returning(*(_S.c[name] for name in STATE_COLUMNS), *_OWNER, _REPEATED, _S.c.title)
)
_TAKE_BY_ID = _TAKE.where(_S.c.id == bindparam("session"))
# As `find_session`: a caller who names nobody means a session of nobody, or the only one of that name in the tenant.
_TAKE_BY_NAME = _TAKE.where(_S.c.public_id == bindparam("session_id"), _S.c.is_document.is_(False))
_TAKE_OF_OWNER = _TAKE_BY_NAME.where(_OWN)
_TAKE_OF_ANYBODY = _TAKE_BY_NAME.where(_S.c.tenant == bindparam("of_tenant"), or_(~_ONE_OF_SEVERAL, _OWN))
_UNCOUNT = (
    update(_S)
    .where(_S.c.id == bindparam("session"))
    .values(message_count=_S.c.message_count - 1, tokens=_S.c.tokens - bindparam("size"))
)
