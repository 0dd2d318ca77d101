"""What one message leaves in its session when it goes.

Its row stays as a place: id, position, role and time, so that positions stay without gaps, and a client that sends its
whole conversation again is not taken for having changed it.  Of the ids it was known by a digest stays (see
`messages.remains`): the same sent again is known, and not stored again.

Guarantee: in one transaction all that was made from its words goes with them: the facts taken from it (what only they
corrected holds again), every version of the summary that was made from it or from such a version, the person's own
edits among them, and what its turn noted of it.  The newest version without it is in use again, and the summary goes on
from there.  The session's title is made anew if it was made from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, func, or_, select, update

from config import Settings
from memory.facts.corrections import withdraw
from memory.sessions.head import show_newest
from memory.sessions.messages import SAID, remains, title_from
from memory.summary.summaries import skip_erased, use_newest_left
from models import REVISED, FactRevisionRow, FactRow, JobRow, MessageRow, SessionRow, SummaryRow, Transaction, TurnRow


def erase_message(
    tx: Transaction, row: SessionRow, message: MessageRow, settings: Settings, now: datetime
) -> Counter[str]:
    """Erase a message of the session, replaced or not, and say how much went.  Nobody takes a turn in it meanwhile."""
    erased = Counter(messages=1)
    erased += _facts(tx, message)
    erased += _turns(tx, message)
    made_from_it = _made_from(tx, row, message)
    named_after = title_from(message.content)
    if not message.branch:
        row.tokens -= message.tokens
        row.head_tokens -= message.tokens if message.position <= row.head_through else 0
    _empty(message, now)
    tx.flush()
    erased += _summaries(tx, row, made_from_it, settings, now)
    row.summary_through = skip_erased(tx, row, row.summary_through)
    if message.role == "user" and row.title == named_after:
        row.title = title_from(_first_words(tx, row))
    tx.execute(update(JobRow).where(JobRow.session_id == row.id).values(error=None))  # it may tell what it tripped over
    return erased


def _empty(message: MessageRow, now: datetime) -> None:
    message.erased_at = now
    message.content = ""
    message.name = message.extra = None
    message.external_id = remains(message.external_id) if message.external_id else None
    message.tokens = 0
    message.indexed_in = REVISED  # until the index was told to hold it no more


def _facts(tx: Transaction, message: MessageRow) -> Counter[str]:
    taken = tx.scalars(select(FactRow.id).where(FactRow.source_message_id == message.id)).all()
    revisions = tx.scalar(select(func.count()).where(FactRevisionRow.fact_id.in_(taken))) or 0
    withdraw(tx, taken)
    return Counter(facts=len(taken), fact_revisions=revisions)


def _turns(tx: Transaction, message: MessageRow) -> Counter[str]:
    """Of the turn that the message began or ended nothing stays that a retry could be answered from; what its prompt
    showed, and why, goes with the message that asked for it."""
    either = or_(TurnRow.user_message_id == message.id, TurnRow.reply_message_id == message.id)
    turn = tx.scalar(select(TurnRow).where(either))
    if turn is None:
        return Counter()
    turn.fingerprint = None
    turn.idempotency_key = remains(turn.idempotency_key) if turn.idempotency_key else None
    if turn.reply_message_id == message.id:
        return Counter()
    turn.memory = None
    return Counter(turns=1)


def _summaries(
    tx: Transaction, row: SessionRow, versions: Collection[int], settings: Settings, now: datetime
) -> Counter[str]:
    """Erase these versions; if the newest is one of them, the newest of those that stay is in use again."""
    which = (SummaryRow.session_id == row.id, SummaryRow.version.in_(versions))
    by_person = tx.scalar(select(func.count()).where(*which, SummaryRow.author == "person")) or 0
    tx.execute(delete(SummaryRow).where(*which))
    if row.summary_version in versions:
        use_newest_left(tx, row, now, author="erasure")
    if row.head_version in versions:
        show_newest(tx, row, settings)
    return Counter(summaries=len(versions), edited_summaries=by_person)


def _made_from(tx: Transaction, row: SessionRow, message: MessageRow) -> set[int]:
    """The versions of the summary that may hold what the message said."""
    branches = select(MessageRow.branch, func.min(MessageRow.position)).where(MessageRow.session_id == row.id)
    begins = {branch: first for branch, first in tx.execute(branches.group_by(MessageRow.branch)) if branch}
    versions = tx.execute(
        select(SummaryRow.version, SummaryRow.branch, SummaryRow.through, SummaryRow.author, SummaryRow.restores)
        .where(SummaryRow.session_id == row.id)
        .order_by(SummaryRow.version)
    )
    found: set[int] = set()
    before: int | None = None
    for version, branch, through, author, restores in versions:
        # What a branch's versions cover of the line before it was said before the branch was cut off.
        beneath = (
            branch and (not message.branch or branch < message.branch) and message.position < begins.get(branch, 0)
        )
        covers = through >= message.position and (branch == message.branch or beneath)
        # A summary the person wrote stays on the line when what it covered is replaced.
        first_words = before is None and author == "person" and message.branch
        went_on_from = restores if author in ("rollback", "replacement", "erasure") else before
        if covers or first_words or went_on_from in found:
            found.add(version)
        before = version
    return found


def _first_words(tx: Transaction, row: SessionRow) -> str:
    said = select(MessageRow.content).where(MessageRow.session_id == row.id, *SAID, MessageRow.role == "user")
    return tx.scalar(said.order_by(MessageRow.position).limit(1)) or ""
