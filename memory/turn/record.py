"""Record how a turn ended: store its reply, or say in the error what became of the message.

Invariants:
- A reply is stored only under the lease of its turn, in one transaction with its usage and its jobs (test_kill).
- An error says what became of the message (test_chat_failures).
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import String, and_, bindparam, case, cast, delete, func, literal_column, select, update
from sqlalchemy.exc import SQLAlchemyError

from memory.access.owners import lock_session
from memory.engine import Engine
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, Conflict, ModelError, RecapError, TooLarge, database_failed
from memory.hidden_messages import accept_messages
from memory.knowledge.forgetting import refuse_messages
from memory.leases import RELEASE_TIMEOUT_SECONDS
from memory.llm.openai_form import to_openai
from memory.ops import logs
from memory.sessions.messages import INSERT_MESSAGE, message_values, title_from
from memory.turn import turns
from memory.turn.answer import Reply
from memory.turn.request import Turn, TurnFinished
from models import JobRow, MessageRow, SessionRow, retry_on_conflict
from models.messages import MessageDraft
from models.sessions import STATE_COLUMNS, SessionState

log = logging.getLogger(__name__)

KEPT = " Your message is kept: send it again in session {}, and the turn is taken up where it broke off."
REFUSED = (
    " Your message is kept in session {}, and left out of later prompts: the conversation goes on without it. "
    "Replace it (`replaces`: {}), or erase it."
)
CLIENT_REFUSED = (
    " What was refused is kept, and left out of later prompts: the conversation goes on without it. Put it in other "
    "words, or remove it."
)
LARGEST_SHARE = 0.5  # of the model's window; a longer message counts as too long by itself


@retry_on_conflict
def store_reply(engine: Engine, turn: Turn, finished: TurnFinished, chosen: Mapping[str, Any]) -> int:
    """Store the reply, its usage and its jobs, release the lease, and return the reply's id.

    chosen: columns that keep this turn's choice for the prefix, see `Prefix`; they are dropped if the prefix is to show
    another summary now.  Raises Conflict when the lease was lost.
    """
    request = turn.request
    lease = turn.lease
    now = engine.now()
    assert lease is not None and turn.session is not None and turn.turn_id is not None
    extra: dict[str, Any] | None = {"tool_calls": list(map(to_openai, finished.calls))} if finished.calls else None
    text = finished.reply if request.transcript is None else request.transcript.conversation.whole(finished.reply)
    draft = MessageDraft("assistant", text, extra=extra)
    draft = draft if request.remember else draft.unremembered()
    if finished.started.memory.has_forgotten or turn.keeps_out:
        draft = draft.kept_out()
    values = message_values(draft, now)
    params = {"session": lease.row_id, "token": lease.token, "size": values["tokens"], "now": now}
    with engine.database.begin(request.lock_timeout) as tx:
        opening = request.next_opening(draft, finished.finish_reason) if request.is_client else None
        row = tx.execute(_END_TURN, {**params, "new_opening": opening}).first()
        if row is None:
            raise Conflict(
                "turn_lost",
                "The session was erased, or this process was suspended and another took its turn. "
                "The reply was not stored; read the session again.",
            )
        *columns, index_due, summary_due = row
        session = SessionState._make([*columns, turn.session.index_key])
        place = {"session_id": session.id, "owner_id": session.owner_id, "position": session.message_count}
        reply_id: int = tx.execute(INSERT_MESSAGE, {**values, **place}).scalar_one()
        turns.store_end(tx, turn.turn_id, reply_id, finished, now)
        shown_version = finished.started.memory.head_version
        if chosen and (session.head_facts, session.head_version) == (None, shown_version):
            tx.execute(update(_S).where(_S.c.id == session.id).values(chosen))
        if any(message.refused is not None for message in turn.new_messages):
            with engine.database.orm(tx) as rows:
                answered = rows.get_one(SessionRow, session.id)
                accept_messages(engine, rows, answered, turn.new_messages)
                rows.flush()
                session = SessionState.of(answered)
        engine.budgets.add_usage(tx, session.owner_id, [finished.usage.spent])
        if request.caller.space is not None:
            engine.budgets.add_acting_usage(tx, request.caller, finished.usage.spent)
        # A client's turn with calls of tools is summarised when its last reply is stored.
        engine.sessions.enqueue_follow_ups(
            tx,
            session,
            summarise=not finished.calls,
            prompt=request.summary_prompt,
            due={"index": index_due, "summary": summary_due},
        )
    engine.leases.forget(lease)
    return reply_id


def record_failure(engine: Engine, turn: Turn, reply: Reply, error: BaseException) -> BaseException:
    """Store what a failed turn leaves of its message; return the error to raise, which says so.

    A message that fits no prompt is deleted, and one that a model server refused is marked. Any other is kept.
    """
    if turn.lease is None:
        return error
    if isinstance(error, TooLarge):
        _withdraw(engine, turn)  # the error says that nothing was stored
        return error
    is_person = not turn.request.is_client
    kept = KEPT.format(turn.session_id) if is_person else ""  # the session may be new to the caller
    is_first_call = not reply.usages and not reply.has_words
    if isinstance(error, ModelError) and is_first_call and _mark_if_refused(engine, turn, error):
        error.add(REFUSED.format(turn.session_id, turn.new_messages[-1].id) if is_person else CLIENT_REFUSED)
    elif isinstance(error, ModelError) or (isinstance(error, RecapError) and error.code == "turn_stopped"):
        error.message += kept
    else:
        return database_failed(error, f"The reply was not stored.{kept}") or error
    return error


@retry_on_conflict
def _withdraw(engine: Engine, turn: Turn) -> None:
    """Delete the message that this turn stored: it fits no prompt, and the error says that nothing was stored."""
    if not turn.is_appended:
        return
    assert turn.lease is not None
    (message,) = turn.new_messages
    holding = _S.c.id == turn.lease.row_id, _S.c.lease_token == turn.lease.token
    with engine.database.begin(turn.request.lock_timeout) as tx:
        if turn.is_new_session:
            tx.execute(delete(_S).where(*holding))
            return
        counts = {"message_count": _S.c.message_count - 1, "tokens": _S.c.tokens - message.tokens}
        of_message = _S.c.message_count == 1, _S.c.title == title_from(turn.request.message or message.content)
        title = case((and_(*of_message), ""), else_=_S.c.title)
        if tx.execute(update(_S).where(*holding).values(**counts, title=title)).rowcount:
            tx.execute(delete(_M).where(_M.c.id == message.id))


def _mark_if_refused(engine: Engine, turn: Turn, error: ModelError) -> bool:
    """Mark the new messages of a turn as refused, if the `error` of its first model call says so; return whether.

    A server that refuses a prompt names no part of it.  The new messages must be the reason: the session's last prompt,
    without them, was answered.
    """
    last = max((place for place, message in enumerate(turn.new_messages) if message.role == "assistant"), default=-1)
    unanswered = turn.new_messages[last + 1 :]  # a message, or the results of tools
    is_too_long = sum(message.tokens for message in unanswered) > LARGEST_SHARE * (error.window or float("inf"))
    if error.code != CONTENT_REFUSED and not (error.code == CONTEXT_EXCEEDED and is_too_long):
        return False
    try:
        return _refuse(engine, turn, [message.id for message in unanswered], error)
    except SQLAlchemyError as failure:  # the same words sent again are refused, and marked, once more
        log.error("a refused message could not be marked", extra=logs.fields(error=logs.safe_message(failure)))
        return False


@retry_on_conflict
def _refuse(engine: Engine, turn: Turn, ids: Sequence[int], error: ModelError) -> bool:
    assert turn.lease is not None
    with engine.database.write(RELEASE_TIMEOUT_SECONDS) as tx:
        row = lock_session(tx, turn.lease.row_id)
        if row is None or row.lease_token != turn.lease.token:
            return False  # erased, or another process took the turn
        refuse_messages(tx, ids, error, engine.now())
        engine.sessions.enqueue_follow_ups(tx, row, summarise=False)
        return True


# -- statements: one ends the turn in its session

_S = SessionRow.__table__
_M = MessageRow.__table__
_J = JobRow.__table__.c


def _due(kind: str, key: str) -> Any:
    """Return a subquery for the time at which the session's pending job of this kind is due; NULL after a failed try.

    key: the column of the session whose value is the job's key.
    """
    # SQLAlchemy writes RETURNING without table names for SQLite: `id` would mean the job's.
    key_of_job = cast(literal_column(f"sessions.{key}"), String)
    is_its = _J.kind == kind, _J.key == key_of_job, _J.state == "pending", _J.attempts == 0
    return select(_J.run_at).where(*is_its).scalar_subquery()


_DUE = {"index": _due("index", "owner_id"), "summary": _due("summary", "id")}
_END_TURN = (
    update(_S)
    .where(_S.c.id == bindparam("session"), _S.c.lease_token == bindparam("token"))
    .values(
        message_count=_S.c.message_count + 1,
        tokens=_S.c.tokens + bindparam("size"),
        updated_at=case((_S.c.updated_at < bindparam("now"), bindparam("now")), else_=_S.c.updated_at),
        opening=func.coalesce(bindparam("new_opening"), _S.c.opening),
        lease_token=None,
        lease_until=None,
        stop_token=None,
    )
    .returning(*(_S.c[name] for name in STATE_COLUMNS), *_DUE.values())
)
