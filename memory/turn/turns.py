"""Store and list turns: which request each one answers, how it ended, and what it cost.

Invariants:
- A request with the Idempotency-Key of another request is refused; a retry finds its own turn (test_chat_stream).
- A turn belongs to the branch of its message: turns of replaced messages are kept, and not listed
  (test_message_versions).
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, and_, bindparam, insert, or_, select, update
from sqlalchemy.orm import aliased

from memory.access.owners import get_session
from memory.engine import Engine
from memory.errors import Conflict, NotFound
from memory.paging import Page, read_page
from memory.sessions.messages import CURRENT, MESSAGES, find, tombstone
from memory.transcripts.transcript import calls_of
from memory.turn.memory_report import MemoryReport, report_from_stored, report_to_stored
from memory.turn.request import Turn, TurnFinished, TurnRequest, TurnStarted, TurnUsage
from models import MessageRow, OwnerRow, Refusal, SessionRow, Transaction, TurnRow, as_value, for_update
from models.messages import Message
from models.owners import Caller
from models.turns import CUT_OFF, INTERRUPTED

INPUT_MAX = 1_000  # messages that a turn answers, as results of tools, that are read
_T = TurnRow.__table__
_INSERT = insert(_T).returning(_T.c.id)
_UPDATE = update(_T).where(_T.c.id == bindparam("turn"))
_BY_MESSAGE = select(_T.c.id).where(_T.c.user_message_id == bindparam("message"))
_PARTIAL = bindparam("text", type_=_T.c.so_far.type)
_SAVE_PARTIAL = _UPDATE.where(_T.c.lease_token == bindparam("token"), _T.c.so_far.is_distinct_from(_PARTIAL)).values(
    so_far=_PARTIAL
)


def find_keyed(tx: Transaction, request: TurnRequest) -> TurnRow | None:
    """Find the turn of the request's Idempotency-Key.  Raises Conflict when another request had the key."""
    assert request.idempotency_key is not None
    keys = [request.idempotency_key, tombstone(request.idempotency_key)]
    query = select(TurnRow).join(SessionRow, SessionRow.id == TurnRow.session_id).join(SessionRow.owner)
    query = query.where(TurnRow.tenant == request.caller.tenant, TurnRow.idempotency_key.in_(keys))
    turn = tx.scalar(for_update(tx, query, OwnerRow, SessionRow, TurnRow))
    if turn is not None and turn.fingerprint != request.fingerprint:
        raise Conflict(
            "idempotency_key_reused",
            "This Idempotency-Key was sent with a different request before, or with one of which something has "
            "been erased. Nothing was stored; use a new key for each message, and the same key only to send the "
            "same one again.",
        )
    return turn


def store_start(tx: Connection, turn: Turn, now: datetime, keyed: TurnRow | None) -> int:
    """Store the row of a turn that begins, and return its id.

    If the turn's last message has a row already, its turn broke off, and the row is used again.
    keyed: the turn that began with the request's Idempotency-Key; the key moves to the new turn.
    """
    request = turn.request
    session = turn.session
    message = turn.new_messages[-1]
    assert session is not None and turn.lease is not None
    values: dict[str, Any] = {"started_at": now, "lease_token": turn.lease.token, "so_far": None}
    if request.idempotency_key is not None:
        values["idempotency_key"] = request.idempotency_key
    if request.idempotency_key is not None or request.is_client:
        values["fingerprint"] = request.fingerprint
    turn_id = tx.scalar(_BY_MESSAGE, {"message": message.id}) if not turn.is_appended else None
    if keyed is not None and keyed.id != turn_id:  # its message was replaced by one with the same words
        tx.execute(_UPDATE, {"turn": keyed.id, "idempotency_key": None})
    if turn_id is not None:
        tx.execute(_UPDATE, {"turn": turn_id, **values})
        return int(turn_id)
    values |= {"tenant": session.tenant, "session_id": session.id, "user_message_id": message.id}
    return int(tx.execute(_INSERT, values).scalar_one())


def save_partial(tx: Transaction, turn: Turn, text: str) -> None:
    """Store the text of the reply so far, if it has grown and the lease still has the turn.

    Calls that list turns show it as `so_far`.
    """
    assert turn.lease is not None
    tx.execute(_SAVE_PARTIAL, {"turn": turn.turn_id, "token": turn.lease.token, "text": text or None})


def store_end(tx: Connection, turn_id: int, reply_id: int, finished: TurnFinished, now: datetime) -> None:
    """Store how a turn ended."""
    values = {
        "reply_message_id": reply_id,
        "so_far": None,
        "completion_id": finished.started.completion_id,
        "finish_reason": finished.finish_reason,
        "model": finished.model,
        "memory": report_to_stored(finished.started.memory),
        "usage": finished.usage.to_stored(),
        "started_at": finished.started.created_at,  # so that a retry shows the same time
        "finished_at": now,
    }
    tx.execute(_UPDATE, {"turn": turn_id, **values})


def find_started(tx: Transaction, message: Message) -> TurnStarted | None:
    """Find the turn that answered `message`; return its first event."""
    turn = tx.scalar(select(TurnRow).where(TurnRow.user_message_id == message.id))
    if turn is None or turn.memory is None:
        return None
    beside_prefix = {**turn.memory, "profile": [0, 0], "overview": [0, 0], "texts": []}  # the prefix is read anew
    return _first_event(turn, message.session_id, report_from_stored(tx, beside_prefix))


def _first_event(turn: TurnRow, session_id: str, memory: MemoryReport) -> TurnStarted:
    return TurnStarted(
        completion_id=turn.completion_id or "",
        session_id=session_id,
        user_message_id=turn.user_message_id,
        model=turn.model or "",
        created_at=turn.started_at,
        memory=memory,
    )


def read_answer(tx: Transaction, turn: TurnRow) -> TurnFinished:
    """Return the answer that a finished turn gave, for a retry of its request."""
    assert turn.usage is not None
    session = tx.get_one(SessionRow, turn.session_id)
    reply = tx.get_one(MessageRow, turn.reply_message_id)
    return TurnFinished(
        started=_first_event(turn, session.public_id, report_from_stored(tx, turn.memory or {})),
        reply=reply.content,
        reply_message_id=reply.id,
        finish_reason=turn.finish_reason or "stop",
        model=turn.model or "",
        usage=TurnUsage.from_stored(turn.usage),
        calls=calls_of(reply.extra),
    )


# -- turns of the past, on behalf of callers


@dataclass(frozen=True)
class TurnInfo:
    """Turn as the API lists it.

    state: `answering`; `finished`; `interrupted`: the reply has the text until then; `broken_off`: there is no reply,
    and the same message sent again resumes the turn; `refused`: there is no reply, because a model server refused the
    message. so_far: the text that a reply in progress had a few seconds ago. memory: only if a single turn is read.
    """

    user_message_id: int
    message_id: int | None
    state: str
    so_far: str | None
    model: str | None
    finish_reason: str | None
    usage: TurnUsage | None
    started_at: datetime
    finished_at: datetime | None
    memory: MemoryReport | None = None


def page(
    engine: Engine, caller: Caller, session_id: str, *, cursor: str | None, limit: int, newest_first: bool
) -> Page[TurnInfo]:
    """List a session's turns in the order of their messages, newest or oldest first.  Raises NotFound."""
    with engine.database.read() as tx:
        row = get_session(tx, caller, session_id)
        order = TurnRow.user_message_id
        page = read_page(tx, _active_turns(row), cursor, limit, order, newest_first=newest_first)
        return page.map(lambda turn: _info(engine, turn[0], turn[1], row))


def get(engine: Engine, caller: Caller, session_id: str, message_id: int) -> TurnInfo:
    """Return the turn of a message or reply, with its memory.  Raises NotFound."""
    with engine.database.read() as tx:
        row = get_session(tx, caller, session_id)
        turn, refused = _find_turn(tx, row, message_id)
        # Without other memories: not everybody who may read this session may read them.
        own = {**turn.memory, "others": ()} if turn.memory is not None else None
        memory = report_from_stored(tx, own) if own is not None else None
        return _info(engine, turn, refused, row, memory)


def get_answer(engine: Engine, caller: Caller, session_id: str, message_id: int) -> TurnFinished:
    """Return the answer to a message as it was given.  Raises NotFound, also while there is none."""
    with engine.database.read() as tx:
        turn, _ = _find_turn(tx, get_session(tx, caller, session_id), message_id)
        if turn.reply_message_id is None or find(tx, turn.reply_message_id) is None:
            raise _turn_not_found(session_id, message_id)
        return read_answer(tx, turn)


def get_input(engine: Engine, caller: Caller, session_id: str, message_id: int) -> list[Message]:
    """Return the messages that a turn answers: those after the reply before.  Raises NotFound."""
    with engine.database.read() as tx:
        row = get_session(tx, caller, session_id)
        last = select(MessageRow.position).where(MessageRow.id == message_id).scalar_subquery()
        query = MESSAGES.where(MessageRow.session_id == row.id, *CURRENT, MessageRow.position <= last)
        newest = map(Message._make, tx.execute(query.order_by(MessageRow.position.desc()).limit(INPUT_MAX)))
        return list(takewhile(lambda message: message.role != "assistant", newest))[::-1]


def stop(engine: Engine, caller: Caller, session_id: str) -> bool:
    """End the reply that is being written in a session; return whether there is one.  Raises NotFound."""
    return engine.leases.stop(lambda tx: get_session(tx, caller, session_id))


def _info(
    engine: Engine, turn: TurnRow, refused: Refusal | None, row: SessionRow, memory: MemoryReport | None = None
) -> TurnInfo:
    state = _state(engine, turn, refused, row)
    usage = TurnUsage.from_stored(turn.usage) if turn.usage is not None else None
    return as_value(TurnInfo, turn, message_id=turn.reply_message_id, state=state, usage=usage, memory=memory)


def _state(engine: Engine, turn: TurnRow, refused: Refusal | None, row: SessionRow) -> str:
    if turn.finished_at is not None:
        return "interrupted" if turn.finish_reason in (INTERRUPTED, CUT_OFF) else "finished"
    taken = turn.lease_token is not None and turn.lease_token == row.lease_token
    if taken and not engine.leases.is_free(row):
        return "answering"
    return "broken_off" if refused is None else "refused"


def _find_turn(tx: Transaction, row: SessionRow, message_id: int) -> tuple[TurnRow, Refusal | None]:
    either = or_(TurnRow.user_message_id == message_id, TurnRow.reply_message_id == message_id)
    found = tx.execute(_active_turns(row).where(either)).first()
    if found is None:
        raise _turn_not_found(row.public_id, message_id)
    turn, refused = found
    return turn, refused


def _turn_not_found(session_id: str, message_id: int) -> NotFound:
    return NotFound(
        "turn_not_found",
        f"Message {message_id} is of no turn in session {session_id!r}: it was not said there, or appended "
        "without a model, or it was replaced or erased.",
    )


def _active_turns(row: SessionRow) -> Any:
    """Select the turns of the active branch whose message or reply is not erased, and the refusal of the message."""
    message, reply = aliased(MessageRow), aliased(MessageRow)
    return (
        select(TurnRow, message.refused)
        .join(message, message.id == TurnRow.user_message_id)
        .outerjoin(reply, reply.id == TurnRow.reply_message_id)
        .where(TurnRow.session_id == row.id, message.branch == 0)
        .where(or_(message.erased_at.is_(None), and_(reply.id.is_not(None), reply.erased_at.is_(None))))
    )
