"""Branches: what becomes of messages that the person takes back.

Who edits a message, or asks for another reply to it, replaces it and all that came after it.  The replaced messages
are kept word for word, on a branch of their session and under their old positions, with their turns; the session's
current line (branch 0) goes on in their place.

Guarantee: all in one transaction, and from then on a session is what it would be had they never been said.  They are
in no tail, figure, summary, search or recall.  A summary version that covers one of them can't come back; the newest
that covers only what stays is in use again.  A summary the person wrote stays theirs.  Facts taken from them are gone,
and what only those facts corrected holds again.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, func, select, update

from config import Settings
from memory.domain import Message
from memory.facts.corrections import withdraw
from memory.sessions.head import show_newest
from memory.sessions.messages import MessageDraft, append
from memory.sessions.titles import renaming
from memory.summary.summaries import use_newest_left
from models import REVISED, FactRow, MessageRow, SessionRow, SummaryRow, Transaction


def replace_from(
    tx: Transaction, row: SessionRow, position: int, draft: MessageDraft, settings: Settings, now: datetime
) -> Message:
    """Replace the session's messages from `position` on by `draft`, and return that.

    The caller holds the session's lease, and asks for the new message to be indexed: the same job takes the replaced
    ones out of the index.  Facts taken from the first replaced message stay if `draft` is the same words again.
    """
    first = _of_line(tx, row, MessageRow.position == position)
    assert first is not None, "there is nothing to replace"
    same = (draft.role, draft.content) == (first.role, first.content)
    with renaming(tx, row):
        branch = _branch_off(tx, row, position)
        row.facts_through = min(row.facts_through, position if same else position - 1)
        if row.summary_version:
            _take_back_summary(tx, row, position, branch, settings, now)
        (message,) = append(tx, row, [draft], now)
    if same:
        tx.execute(update(FactRow).where(FactRow.source_message_id == first.id).values(source_message_id=message.id))
    replaced = select(MessageRow.id).where(MessageRow.session_id == row.id, MessageRow.branch == branch)
    withdraw(tx, tx.scalars(select(FactRow.id).where(FactRow.source_message_id.in_(replaced))))
    return message


def _branch_off(tx: Transaction, row: SessionRow, position: int) -> int:
    """Move the messages to a branch of their own, and its number; the session's figures are of what stays."""
    of_session = MessageRow.session_id == row.id
    branch = 1 + (tx.scalar(select(func.max(MessageRow.branch)).where(of_session)) or 0)
    tx.execute(
        update(MessageRow)
        .where(of_session, MessageRow.branch == 0, MessageRow.position >= position)
        .values(branch=branch, indexed_in=REVISED)
    )
    gone = tx.scalar(select(func.sum(MessageRow.tokens)).where(of_session, MessageRow.branch == branch)) or 0
    row.message_count = position - 1
    row.tokens -= gone
    return branch


def _of_line(tx: Transaction, row: SessionRow, which: ColumnElement[bool]) -> MessageRow | None:
    """The first message of the session's current line that is so."""
    query = select(MessageRow).where(MessageRow.session_id == row.id, MessageRow.branch == 0, which)
    return tx.scalar(query.order_by(MessageRow.position).limit(1))


def _take_back_summary(
    tx: Transaction, row: SessionRow, position: int, branch: int, settings: Settings, now: datetime
) -> None:
    """Put the newest version that covers only what stays in the place of those that cover more."""
    current = (SummaryRow.session_id == row.id, SummaryRow.branch == 0)
    too_far = (*current, SummaryRow.through >= position)
    tx.execute(update(SummaryRow).where(*too_far, SummaryRow.author == "person").values(through=position - 1))
    tx.execute(update(SummaryRow).where(*too_far).values(branch=branch))
    use_newest_left(tx, row, now, author="replacement")
    shown = select(SummaryRow.id).where(*current, SummaryRow.version == row.head_version)
    if row.head_version and (tx.scalar(shown) is None or row.head_through >= position):
        show_newest(tx, row, settings)
