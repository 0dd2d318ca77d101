"""Record how a turn ended: its reply, or that a model server refused the message.

A server that refuses a prompt names no part of it.  The new messages are taken for the reason: without them the
session's last prompt was answered.  They are marked, and a later reply to the same words clears the mark.

Invariant: a reply is stored only under the lease of its turn, together with all that follows from it (test_kill).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, String, bindparam, case, cast, func, literal_column, null, select, update
from sqlalchemy.exc import SQLAlchemyError

from memory.access.owners import lock_session
from memory.engine import Engine
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, Conflict, ModelError
from memory.forgetting import forget_messages
from memory.hidden_messages import follow_shown
from memory.knowledge.fact_writes import delete_with_history
from memory.leases import RELEASE_TIMEOUT_SECONDS
from memory.llm.passthrough import to_openai
from memory.ops import logs
from memory.sessions.messages import INSERT_MESSAGE, message_values
from memory.sessions.refusals import mark_refused, reason_of
from memory.sessions.sessions import renaming
from memory.turn import turns
from memory.turn.context import Context
from memory.turn.request import Turn, TurnFinished
from models import FactRow, JobRow, MessageRow, SessionRow, retry_on_conflict
from models.messages import Message, MessageDraft
from models.sessions import STATE_COLUMNS, SessionState

log = logging.getLogger(__name__)

LARGEST_SHARE = 0.5  # of the model's window: a longer message leaves too little room for all else

_S, _J = SessionRow.__table__, JobRow.__table__.c


def _due(kind: str, key: str) -> Any:
    """Return when the session's job of this kind is due, if it waits and has not failed. key: a column."""
    # SQLAlchemy names no tables in what SQLite returns, where `id` would be the job's.
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
        opening=func.coalesce(bindparam("fingerprint"), _S.c.opening),
        lease_token=None,
        lease_until=None,
        stop_token=None,
    )
    .returning(*(_S.c[name] for name in STATE_COLUMNS), *_DUE.values())
)


@retry_on_conflict
def store_reply(engine: Engine, turn: Turn, finished: TurnFinished, context: Context | None) -> int:
    """Store the reply and what follows from it, give the lease back, and return the reply's id.

    context: what the prompt showed, if it showed memory.
    Raises Conflict when the lease was lost.
    """
    request, lease, now = turn.request, turn.lease, engine.now()
    assert lease is not None and turn.session is not None and turn.turn_id is not None
    extra: dict[str, Any] | None = {"tool_calls": list(map(to_openai, finished.calls))} if finished.calls else None
    draft = MessageDraft("assistant", finished.reply, extra=extra)
    draft = draft if request.remember else draft.unremembered()
    if finished.started.memory.forgets or any(message.is_kept_out for message in turn.new_messages):
        draft = draft.kept_out()
    values = message_values(draft, now)
    params = {"session": lease.row_id, "token": lease.token, "size": values["tokens"], "now": now}
    with engine.database.begin(request.lock_timeout) as tx:
        row = tx.execute(_END_TURN, {**params, "fingerprint": request.opening(draft)}).first()
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
        turns.finish(tx, turn.turn_id, reply_id, finished, now)
        choice = context.prefix.choice if context is not None else None
        if choice is not None and (session.head_facts, session.head_version) == (None, choice.version):
            chosen = {"head_facts": choice.fact_ids, "head_type": choice.type, "head_at": choice.at}
            tx.execute(update(_S).where(_S.c.id == session.id).values(chosen))
        if any(message.refused is not None for message in turn.new_messages):
            session = _clear_refusals(tx, engine, session, turn.new_messages)
        engine.budgets.add_usage(tx, session.owner_id, [finished.usage.spent])
        engine.budgets.add_acting_usage(tx, request.caller, finished.usage.spent)
        # A turn that goes on with calls of tools is summarised when it is over.
        engine.sessions.enqueue_follow_ups(
            tx,
            session,
            summarise=not finished.calls,
            prompt=request.summary_prompt,
            due={"index": index_due, "summary": summary_due},
        )
    engine.leases.forget(lease)
    return reply_id


# -- messages that a model server refuses


def mark_if_refused(engine: Engine, turn: Turn, error: ModelError) -> bool:
    """Mark the new messages of a turn that ended with `error`, if that refuses them; return whether it does.

    The first call of the model failed before a word of the reply came.  Facts that were taken from the messages in an
    earlier try go, with what long-term memory has of them.
    """
    last = max((place for place, message in enumerate(turn.new_messages) if message.role == "assistant"), default=-1)
    unanswered = turn.new_messages[last + 1 :]  # a question, or the results of tools
    is_too_long = sum(message.tokens for message in unanswered) > LARGEST_SHARE * (error.window or float("inf"))
    if error.code != CONTENT_REFUSED and not (error.code == CONTEXT_EXCEEDED and is_too_long):
        return False
    try:
        return _mark(engine, turn, [message.id for message in unanswered], error.code, reason_of(error))
    except SQLAlchemyError as failure:  # the same words sent again are refused, and marked, once more
        log.error("a refused message could not be marked", extra=logs.fields(error=logs.safe_message(failure)))
        return False


@retry_on_conflict
def _mark(engine: Engine, turn: Turn, ids: Sequence[int], code: str, reason: str) -> bool:
    assert turn.lease is not None
    with engine.database.write(RELEASE_TIMEOUT_SECONDS) as tx:
        row = lock_session(tx, turn.lease.row_id)
        if row is None or row.lease_token != turn.lease.token:
            return False  # erased, or another process took the turn
        now = engine.now()
        mark_refused(tx, ids, code, reason, now)
        facts = tx.scalars(select(FactRow.id).where(FactRow.source_message_id.in_(ids)))
        delete_with_history(tx, facts, now, "refused")
        forget_messages(tx, select(MessageRow.id).where(MessageRow.id.in_(ids)), now)
        engine.sessions.enqueue_follow_ups(tx, row, summarise=False)
        return True


def _clear_refusals(tx: Connection, engine: Engine, session: SessionState, answered: Sequence[Message]) -> SessionState:
    """Take the marks from messages that a model has answered; return how their session is then."""
    marked = {message.id: message for message in answered if message.refused is not None}
    with engine.database.orm(tx) as rows:
        row = rows.get_one(SessionRow, session.id)
        with renaming(rows, row):
            rows.execute(update(MessageRow).where(MessageRow.id.in_(marked)).values(refused=null(), indexed_in=None))
        if row.summary_version:
            since = min(message.refused.at for message in marked.values() if message.refused is not None)
            positions = [message.position for message in marked.values()]
            follow_shown(rows, row, positions, since, engine.settings, engine.now())
        rows.flush()
        return SessionState.of(row)
