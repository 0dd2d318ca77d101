"""What the mini model reads for a summary.

Guarantee: the messages are the session's current line after the summary the model goes on from, in order and without
a gap (but for erased ones), and a small model can read them in one call.  The message of a turn in progress is left
for later.
"""

from __future__ import annotations

from sqlalchemy import func, select

from memory import tokens
from memory.domain import Message
from memory.facts.facts import Facts
from memory.leases import Leases
from memory.llm import DigestMaterial
from memory.sections import Sections
from memory.sessions.messages import LINE_AFTER, of_columns
from models import MessageRow, SessionRow, SummaryRow, Transaction

BATCH_TOKENS = 6000  # of messages in one call
_BATCH_MESSAGES = BATCH_TOKENS // tokens.MESSAGE_OVERHEAD


def material_since(
    tx: Transaction, row: SessionRow, version: SummaryRow | None, facts: Facts, leases: Leases
) -> DigestMaterial | None:
    """`version` (None: no summary yet), the next batch of messages that it does not cover, and the known facts.

    None when there are no such messages.
    """
    messages = _batch(tx, row, version.through if version else 0)
    if messages and messages[-1].role == "user" and not leases.free(row):
        messages.pop()
    if not messages:
        return None
    return DigestMaterial(
        previous=Sections.from_dict(version.sections) if version else Sections(),
        messages=tuple(messages),
        known_facts=facts.for_digest(tx, row, messages),
    )


def _batch(tx: Transaction, row: SessionRow, through: int) -> list[Message]:
    """The messages after `through`, BATCH_TOKENS of them at most; a larger message is a batch by itself."""
    batch: list[Message] = []
    budget = BATCH_TOKENS
    following = tx.execute(LINE_AFTER.limit(_BATCH_MESSAGES), {"session": row.id, "after": through})
    for message in map(of_columns, following):
        if batch and message.tokens > budget:
            break
        budget -= message.tokens
        batch.append(message)
    return batch


def starting_point(tx: Transaction, row: SessionRow) -> SummaryRow | None:
    """The earliest version of the summary (None: the beginning) after which one call can read all messages since.

    Where there is no such version, the last one that does not cover everything.
    """
    if row.tokens <= BATCH_TOKENS:
        return None
    left = select(func.sum(MessageRow.tokens)).where(
        MessageRow.session_id == row.id, MessageRow.branch == 0, MessageRow.position > SummaryRow.through
    )
    partial = select(SummaryRow).where(
        SummaryRow.session_id == row.id, SummaryRow.branch == 0, SummaryRow.through < row.message_count
    )
    fitting = partial.where(left.scalar_subquery() <= BATCH_TOKENS).order_by(
        SummaryRow.through, SummaryRow.version.desc()
    )
    last = partial.order_by(SummaryRow.through.desc(), SummaryRow.version.desc())
    return tx.scalar(fitting.limit(1)) or tx.scalar(last.limit(1))
