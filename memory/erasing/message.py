"""Erasing one message from its session.

Its row stays as a place: id, position, role and time.  So positions stay without gaps, and a client that sends its
whole conversation again has not changed it.  Of the message's external ids a digest stays (see `messages.tombstone`),
so the same message sent again is not stored again.

Guarantee: in one transaction everything made from its words goes with them: the facts taken from it (what they alone
corrected holds again), what long-term memory has of it, every version of the summary that was made from it or
from such a version, also those that the person edited, and what its turn noted.  The newest version without it is in
use again, and the summary goes on from there.  A title that was taken from it is taken from what is left.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from sqlalchemy import func, or_, select, update

from config import Settings
from memory.forgetting import forget_messages
from memory.knowledge.fact_writes import delete_with_history
from memory.knowledge.summaries import use_newest_left
from memory.sessions.compaction import use_newest_summary
from memory.sessions.messages import skip_unread, tombstone
from memory.sessions.sessions import renaming
from models import (
    REVISED,
    FactRevisionRow,
    FactRow,
    JobRow,
    MessageRow,
    SessionRow,
    SummaryRow,
    Transaction,
    TurnRow,
)


def erase_message(
    tx: Transaction, row: SessionRow, message: MessageRow, settings: Settings, now: datetime
) -> Counter[str]:
    """Erase a message of the session, replaced or not, and count what went.  No turn may run in the session."""
    facts = tx.scalars(select(FactRow.id).where(FactRow.source_message_id == message.id)).all()
    revisions = tx.scalar(select(func.count()).where(FactRevisionRow.fact_id.in_(facts))) or 0
    indexed = int(message.branch == 0 and message.indexed_in is not None)
    erased = Counter(messages=1, index_documents=indexed, facts=len(facts), fact_revisions=revisions)
    delete_with_history(tx, facts)
    erased += forget_messages(tx, select(MessageRow.id).where(MessageRow.id == message.id), now)
    erased["turns"] = _empty_turn(tx, message)
    summaries = _made_from(tx, row, message)
    if not message.branch:
        row.tokens -= message.tokens
        row.head_tokens -= message.tokens if message.position <= row.head_through else 0
    with renaming(tx, row):
        _empty(message, now)
        for version in summaries:
            tx.delete(version)
        tx.flush()
        versions = {version.version for version in summaries}
        if row.summary_version in versions:
            use_newest_left(tx, row, now, author="erasure")
    if row.head_version in versions:
        use_newest_summary(tx, row, settings)
    row.summary_through = skip_unread(tx, row, row.summary_through)
    erased["summaries"] = len(summaries)
    erased["edited_summaries"] = sum(version.author == "person" for version in summaries)
    tx.execute(update(JobRow).where(JobRow.session_id == row.id).values(error=None))  # it may name its words
    return erased


def _empty(message: MessageRow, now: datetime) -> None:
    """Leave of the message its place alone."""
    message.erased_at = now
    message.content = ""
    message.name = message.extra = message.refused = None
    message.external_id = tombstone(message.external_id) if message.external_id else None
    message.tokens = 0
    message.indexed_in = REVISED  # until it is taken out of the index


def _empty_turn(tx: Transaction, message: MessageRow) -> int:
    """Leave nothing of the message's turn that could answer a retry.  The user's message takes along what was noted of
    its prompt; returns how many such notes went."""
    either = or_(TurnRow.user_message_id == message.id, TurnRow.reply_message_id == message.id)
    turn = tx.scalar(select(TurnRow).where(either))
    if turn is None:
        return 0
    turn.fingerprint = turn.so_far = None
    turn.idempotency_key = tombstone(turn.idempotency_key) if turn.idempotency_key else None
    if turn.reply_message_id == message.id:
        return 0
    turn.memory = None
    return 1


def _made_from(tx: Transaction, row: SessionRow, message: MessageRow) -> list[SummaryRow]:
    """The versions of the summary that may repeat what the message said."""
    branches = select(MessageRow.branch, func.min(MessageRow.position)).where(MessageRow.session_id == row.id)
    begins = {branch: first for branch, first in tx.execute(branches.group_by(MessageRow.branch)) if branch}
    query = select(SummaryRow).where(SummaryRow.session_id == row.id).order_by(SummaryRow.version)
    found: dict[int | None, SummaryRow] = {}
    before: int | None = None
    for one in tx.scalars(query):
        # A branch's versions also cover what was said before the branch was cut off.
        older = not message.branch or one.branch < message.branch
        beneath = one.branch and older and message.position < begins.get(one.branch, 0)
        read = message.refused is None or one.created_at < message.refused.at
        covers = read and one.through >= message.position and (one.branch == message.branch or beneath)
        # A person's summary stays on the current line when the messages that it covered are replaced.
        first_words = before is None and one.author == "person" and message.branch
        went_on_from = one.restores if one.author in ("rollback", "replacement", "erasure") else before
        if covers or first_words or went_on_from in found:
            found[one.version] = one
        before = one.version
    return list(found.values())
