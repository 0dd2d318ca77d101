"""Refused messages: what goes with a message that a model server refused, and what comes back when one answers it.

The marks and their reasons are in `sessions.refusals`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import null, select, update

from config import Settings
from memory.errors import ModelError
from memory.forgetting import forget_messages
from memory.hidden_messages import follow_shown
from memory.knowledge.fact_writes import delete_with_history
from memory.sessions.refusals import mark_refused, reason_of
from memory.sessions.sessions import renaming
from models import FactRow, MessageRow, SessionRow, Transaction
from models.messages import Message


def refuse_messages(tx: Transaction, ids: Collection[int], error: ModelError, now: datetime) -> None:
    """Mark messages as refused, and delete the facts that an earlier try took from them.

    The caller holds the session's lock, and asks for the job that takes the messages out of the index.
    """
    mark_refused(tx, ids, error.code, reason_of(error), now)
    delete_with_history(tx, tx.scalars(select(FactRow.id).where(FactRow.source_message_id.in_(ids))), now, "refused")
    forget_messages(tx, select(MessageRow.id).where(MessageRow.id.in_(ids)), now)


def accept_messages(
    tx: Transaction, row: SessionRow, answered: Sequence[Message], settings: Settings, now: datetime
) -> None:
    """Take the marks from messages that a model has answered; the summary reads them again."""
    marked = [message for message in answered if message.refused is not None]
    with renaming(tx, row):
        ids = [message.id for message in marked]
        tx.execute(update(MessageRow).where(MessageRow.id.in_(ids)).values(refused=null(), indexed_in=None))
    if row.summary_version:
        since = min(message.refused.at for message in marked if message.refused is not None)
        follow_shown(tx, row, [message.position for message in marked], since, settings, now)
