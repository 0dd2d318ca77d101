"""What becomes of a message that the model server refuses in a turn: it is marked, and a later reply clears the mark.

The server reads the whole prompt and names no part of it.  What is new in the prompt is taken for the reason: without
it the session's last prompt was answered.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import null, select, update
from sqlalchemy.exc import SQLAlchemyError

from memory.access.owners import lock_session
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, ModelError
from memory.forgetting import forget_messages
from memory.hidden_messages import follow_shown
from memory.knowledge.fact_writes import delete_with_history
from memory.leases import RELEASE_TIMEOUT_SECONDS
from memory.ops import logs
from memory.sessions.refusals import mark_refused, reason_of
from memory.sessions.sessions import renaming
from memory.turn.values import Admitted
from models import FactRow, MessageRow, SessionRow, Transaction, retry_on_conflict
from models.messages import Message

if TYPE_CHECKING:
    from memory.engine import Engine

log = logging.getLogger(__name__)

LARGEST_SHARE = 0.5  # of the model's window: a longer message leaves too little room for all else


def mark_if_refused(engine: Engine, turn: Admitted, error: ModelError) -> bool:
    """Mark the new messages of a turn that ended with `error`, if that refuses them; return whether it does.

    The first call of the model failed before a word of the reply came.  Facts that were taken from the messages in an
    earlier try go, with what long-term memory has of them.
    """
    new = _new(turn.exchange)
    too_long = sum(message.tokens for message in new) > LARGEST_SHARE * (error.window or float("inf"))
    if error.code != CONTENT_REFUSED and not (error.code == CONTEXT_EXCEEDED and too_long):
        return False
    try:
        return _mark(engine, turn, [message.id for message in new], error.code, reason_of(error))
    except SQLAlchemyError as failure:  # the same words sent again are refused, and marked, once more
        log.error("a refused message could not be marked", extra=logs.fields(error=logs.safe_message(failure)))
        return False


@retry_on_conflict
def _mark(engine: Engine, turn: Admitted, ids: Sequence[int], code: str, reason: str) -> bool:
    assert turn.lease is not None
    with engine.database.write(RELEASE_TIMEOUT_SECONDS) as tx:
        row = lock_session(tx, turn.lease.row_id)
        if row is None or row.lease_token != turn.lease.token:
            return False  # erased, or another process took the turn
        now = engine.now()
        mark_refused(tx, ids, code, reason, now)
        delete_with_history(tx, tx.scalars(select(FactRow.id).where(FactRow.source_message_id.in_(ids))))
        forget_messages(tx, select(MessageRow.id).where(MessageRow.id.in_(ids)), now)
        engine.sessions.enqueue_follow_ups(tx, row, summarise=False)
        return True


def clear(tx: Transaction, engine: Engine, session: int, answered: Sequence[Message]) -> SessionRow:
    """Take the marks from messages that a model has `answered`; return the row of their session."""
    row = tx.get_one(SessionRow, session)
    ids = [message.id for message in answered if message.refused is not None]
    with renaming(tx, row):
        tx.execute(update(MessageRow).where(MessageRow.id.in_(ids)).values(refused=null(), indexed_in=None))
    if row.summary_version:
        since = min(message.refused.at for message in answered if message.refused is not None)
        positions = [message.position for message in answered if message.id in ids]
        follow_shown(tx, row, positions, since, engine.settings, engine.now())
    return row


def advice(turn: Admitted, session_id: str | None) -> str:
    """What the caller can do about a message that was marked."""
    if turn.request.client is not None:
        return (
            " What was refused is kept, and left out of later prompts: the conversation goes on without it. Put it in "
            "other words, or remove it."
        )
    return (
        f" Your message is kept in session {session_id}, and left out of later prompts: the conversation goes on "
        f"without it. Replace it (`replaces`: {turn.exchange[-1].id}), or erase it."
    )


def _new(exchange: Sequence[Message]) -> list[Message]:
    """The messages of an exchange that no model has answered yet: a question, or the results of tools."""
    last = max((place for place, message in enumerate(exchange) if message.role == "assistant"), default=-1)
    return list(exchange[last + 1 :])
