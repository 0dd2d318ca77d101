"""Begin a turn: take its session and store its message, in one transaction.

One statement takes the session (`take_session`).  For an unusual request, more statements run in the same transaction:
before it to find the turn of an Idempotency-Key or the session of a transcript, or to create a session; after it to
replace messages, to store those of a transcript, or to compact the session.

Invariants:
- An admitted message is stored before any model is called (test_chat_failures), and stored once: the same words sent
  again after a turn broke off, or with the same Idempotency-Key, resume that turn (test_turn_serialisation).
- A message that fits no prompt is not stored (test_compaction).
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from memory import tokens
from memory.access.owners import find_session, get_session, lock_session
from memory.engine import Engine
from memory.errors import Conflict, InvalidRequest, NotFound
from memory.message_versions import replace_messages
from memory.sessions.compaction import compact
from memory.sessions.messages import INSERT_MESSAGE, RECENT_MESSAGES, find, require_message_size, title_from
from memory.transcripts.matching import (
    find_resumable,
    find_session_of,
    is_another_conversation,
    is_auxiliary_request,
    sync_transcript,
)
from memory.turn import turns
from memory.turn.context import read_session
from memory.turn.request import Turn, TurnRequest
from memory.turn.take_session import TakenSession, take_session, unremembered
from models import MessageRow, SessionRow, TurnRow, retry_on_conflict
from models.messages import Message, MessageDraft, is_kept_out
from models.sessions import SessionState
from models.turns import INTERRUPTED

SURE_TO_FIT = 0.25  # of CONTEXT_TOKENS; a larger message is checked before it is stored

_S, _M = SessionRow.__table__, MessageRow.__table__.c
_UNCOUNT = (
    update(_S)
    .where(_S.c.id == bindparam("session"))
    .values(message_count=_S.c.message_count - 1, tokens=_S.c.tokens - bindparam("size"))
)


@retry_on_conflict
def begin_turn(engine: Engine, request: TurnRequest, window: int | None = None) -> Turn:
    """Take the session and store the message.  Wait while another turn of the session is in progress.

    window: tokens that the model can read; the message must fit.

    Raises NotFound, InvalidRequest, TooLarge, and LimitReached when the owner's tokens of the day are spent.  Raises
    Conflict when the other turn does not end in time or too many requests wait for it, when another request had this
    Idempotency-Key, and when the message of that key has been replaced.  Then nothing was stored.
    """
    if request.temporary:
        return _begin_temporary(engine, request)
    waited_since, arrived_at = time.monotonic(), engine.now()
    # A streamed reply is sent before the turn is recorded, so the message must survive a power cut already now.
    transaction = partial(engine.database.begin, request.lock_timeout, durable=request.stream)
    is_special = request.idempotency_key or request.replaces or request.transcript
    if request.session_id is not None and not is_special:  # one statement can find the session and take its lease
        with transaction() as tx:
            if (taken := take_session(tx, engine, request)) is not None:
                return _begin(tx, engine, taken, arrived_at, window)
    while True:  # in new transactions: the first one may have locked the session, and rows of owners are locked first
        with transaction() as tx:
            begun = _find_and_begin(tx, engine, request, arrived_at, window)
        if begun is None:
            return bypass(engine, request)
        if isinstance(begun, Turn):
            return begun
        engine.leases.wait_until_free(begun, waited_since, "This message was not stored; send it again later.")


def bypass(engine: Engine, request: TurnRequest) -> Turn:
    """Return a turn that uses and stores no memory, for a client's request.  Raises LimitReached."""
    engine.budgets.check_caller(request.caller, request.session_id)
    return Turn(request, session_id=request.session_id)


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


@retry_on_conflict
def withdraw(engine: Engine, turn: Turn) -> None:
    """Delete the message that this turn stored: it fits no prompt, and the error says that nothing was stored."""
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


def _find_and_begin(
    tx: Connection, engine: Engine, request: TurnRequest, arrived_at: datetime, window: int | None
) -> Turn | SessionRow | None:
    """Find or create the session, take it, and begin the turn.

    Returns the session's row while another turn has its lease, and None for a client's auxiliary request.
    """
    transcript, keyed = request.transcript, None  # keyed: the turn that began with the request's Idempotency-Key
    with engine.database.orm(tx) as rows:
        if request.idempotency_key is not None:
            keyed = turns.find_keyed(rows, request)
            if keyed is not None and keyed.finished_at is not None:
                return Turn(request, earlier_answer=turns.read_answer(rows, keyed))
        if transcript is not None:
            if is_auxiliary_request(rows, request.caller, request.session_id, transcript):
                return None
            if is_another_conversation(rows, request.caller, request.session_id, transcript):
                request = replace(request, session_id=None)
        if keyed is not None:
            row: SessionRow | None = rows.get_one(SessionRow, keyed.session_id)
        elif request.session_id is not None:
            read = get_session if request.replaces is not None else find_session  # a new one has nothing to replace
            row = read(rows, request.caller, request.session_id)
        elif transcript is not None:
            row = find_session_of(rows, request.caller, transcript, engine.leases, arrived_at)
        else:
            row = None
        if is_new := row is None:
            row = engine.sessions.make(rows, request.caller, request.session_id)
            row.opening = request.opening()
    appends = keyed is None and request.replaces is None and transcript is None
    taken = take_session(tx, engine, request, row_id=row.id, appends=appends)
    begun = None if taken is None else _begin(tx, engine, taken, arrived_at, window, keyed)
    return row if begun is None else begun._replace(is_new_session=is_new)


def _begin(
    tx: Connection,
    engine: Engine,
    taken: TakenSession,
    arrived_at: datetime,
    window: int | None,
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
    store = _store_message if request.transcript is None else partial(_sync, arrived_at=arrived_at)
    turn = store(tx, engine, taken, keyed)
    if turn.session is None:  # a retry, which was answered before
        return turn
    if compacted := compact(tx, turn.session, engine.settings, turn.new_messages):
        turn = turn._replace(session=compacted)
    turn = turn._replace(turn_id=turns.begin(tx, turn, engine.now(), keyed))
    is_large = turn.new_messages[-1].tokens > SURE_TO_FIT * engine.settings.context_tokens
    if is_large or request.sent is not None or request.replaces is not None:
        read_session(tx, engine, turn, window)  # raises TooLarge, which rolls the transaction back
    return turn


def _store_message(tx: Connection, engine: Engine, taken: TakenSession, keyed: TurnRow | None) -> Turn:
    """Store a person's message, or find the same message that a turn which broke off has stored."""
    request, session, values, repeated_id = taken.request, taken.session, taken.values, taken.repeated_id
    turn = Turn(request, session, session.public_id, lease=taken.lease)
    require_message_size(request.message, "message")
    if keyed is not None:
        message = find(tx, keyed.user_message_id)
        if message is None:
            raise Conflict(
                "message_replaced",
                "The message this Idempotency-Key was first sent with got no reply and has been replaced since. "
                "Nothing was stored; send a new message, with a key of its own.",
            )
        return turn._replace(new_messages=(message,))
    repeated = find(tx, repeated_id) if repeated_id is not None else None
    if repeated is not None and (repeated.extra or {}).get("attachments") != (values["extra"] or {}).get("attachments"):
        repeated = None  # the words are the same, the attachments are not
    if request.replaces is not None:
        position, branch = _find_replaced(tx, session, request.replaces)
        if repeated is not None and position == session.message_count:
            return turn._replace(new_messages=(repeated,))
        if branch:
            raise InvalidRequest(
                "already_replaced",
                f"Message {request.replaces} has been replaced already. Nothing was changed; read the session again.",
                param="replaces",
            )
        return _replace(tx, engine, turn, values, position)
    if repeated is not None:  # `take_session` has counted the message, which is stored already
        size = values["tokens"]
        tx.execute(_UNCOUNT, {"session": session.id, "size": size})
        counts = {"message_count": session.message_count - 1, "tokens": session.tokens - size}
        return turn._replace(session=session._replace(**counts), new_messages=(repeated,))
    place = {"session_id": session.id, "owner_id": session.owner_id, "position": session.message_count}
    message_id = tx.execute(INSERT_MESSAGE, {**values, **place}).scalar_one()
    if not taken.title and not is_kept_out(values["extra"]):
        title = title_from(request.message or values["content"])
        tx.execute(update(_S).where(_S.c.id == session.id).values(title=title))
    columns = {name: values[name] for name in Message._fields[3:]}
    message = Message(message_id, session.public_id, session.message_count, **columns)
    return turn._replace(new_messages=(message,), is_appended=True)


def _replace(tx: Connection, engine: Engine, turn: Turn, values: Mapping[str, Any], position: int) -> Turn:
    """Replace the message at `position`, and all after it, by the new message with these `values`."""
    assert turn.session is not None
    draft = MessageDraft("user", values["content"], values["name"], extra=values["extra"])
    with engine.database.orm(tx) as rows:
        row = rows.get_one(SessionRow, turn.session.id)
        message = replace_messages(rows, row, position, draft, engine.settings, engine.now())
        rows.flush()
        return turn._replace(session=SessionState.of(row), new_messages=(message,))


def _find_replaced(tx: Connection, session: SessionState, message_id: int) -> tuple[int, int]:
    """Return the position and the branch of the user message to replace.  Raises NotFound, InvalidRequest."""
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


def _sync(tx: Connection, engine: Engine, taken: TakenSession, keyed: TurnRow | None, *, arrived_at: datetime) -> Turn:
    """Store the transcript's messages that the session lacks.  For a retry that was answered, return that answer."""
    request, transcript = taken.request, taken.request.transcript
    assert transcript is not None
    with engine.database.orm(tx) as rows:
        row = rows.get_one(SessionRow, taken.session.id)
        resumed = keyed or find_resumable(rows, row, transcript, arrived_at)
        if resumed is not None and transcript.is_declared_retry and resumed.finish_reason not in (None, INTERRUPTED):
            row.lease_token = row.lease_until = None
            return Turn(request, earlier_answer=turns.read_answer(rows, resumed))
        is_retry = resumed is not None
        last, as_sent = sync_transcript(rows, row, transcript, engine.settings, engine.now(), is_retry=is_retry)
        rows.flush()
        after = {"session": row.id, "after": min(row.head_through, row.message_count - 1)}
        recent = map(Message._make, tx.execute(RECENT_MESSAGES, after))
        until_last = [*(message for message in recent if message.position < last.position), last]  # it may be hidden
        question = max((at for at, message in enumerate(until_last) if message.role == "user"), default=-1)
        new = tuple(until_last[question:])
        continued = turns.find_started(rows, new[0]) if len(new) > 1 else None
        session = SessionState.of(row)
        turn = Turn(request, session, session.public_id, new, lease=taken.lease)
        return turn._replace(as_sent=as_sent, continued_turn=continued)


def _begin_temporary(engine: Engine, request: TurnRequest) -> Turn:
    """Begin a turn that stores nothing.  It reads the memory of the session or person that the request names.

    A memory block may be for the first message of a session that does not exist yet.
    """
    drafts = (*request.history, request.draft)
    read = get_session if request.block_tokens is None else find_session
    with engine.database.read() as tx:
        stored = read(tx, request.caller, request.session_id) if request.session_id is not None else None
        row = stored or engine.sessions.unstored(tx, request.caller)
        session, request = SessionState.of(row), request if row.is_remembered else unremembered(request)
        engine.budgets.check(tx, session.owner_id, request.caller)
    *history, message = (
        Message(
            *(0, session.public_id, position, draft.role, draft.content, engine.now()),
            tokens.estimate_message(draft.content),
            draft.name,
        )
        for position, draft in enumerate(drafts, session.message_count + 1)
    )
    session_id = session.public_id if stored is not None else None
    return Turn(request, session, session_id, (message,), history=tuple(history))
