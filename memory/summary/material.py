"""What the mini model is given for a summary, gathered as one consistent reading of the rows.

Guarantee: it is the session's current line after the summary it goes on from, in order and without a gap (but for what
was erased), no more than a small model can read in one call; and a turn that is being taken is left for later.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import select

from memory import tokens
from memory.domain import Message, Sections
from memory.facts.facts import Facts
from memory.leases.leases import Leases
from memory.llm import DigestMaterial
from memory.sessions.messages import LINE_AFTER, of_columns
from models import MessageRow, SessionRow, SummaryRow, Transaction

BATCH_TOKENS = 6000  # of messages in one call: an import of any length is summarised in steps a small model can read
KNOWN_FACT_TOKENS = 600  # of facts shown to the mini model, so that it can say which of them changed

_SINCE = LINE_AFTER.limit(BATCH_TOKENS // tokens.MESSAGE_OVERHEAD)


class Materials:
    """Gathers what goes on from a version of a session's summary."""

    def __init__(self, facts: Facts, leases: Leases, now: Callable[[], datetime]) -> None:
        self._facts = facts
        self._leases = leases
        self._now = now

    def since(self, tx: Transaction, row: SessionRow, version: SummaryRow | None) -> DigestMaterial | None:
        """`version` (None: nothing yet), the next messages that it does not cover, BATCH_TOKENS of them at most, and
        the facts known; None when there are no such messages."""
        messages = self._next(tx, row, version.through if version else 0)
        if not messages:
            return None
        said = " ".join(message.content for message in messages)
        return DigestMaterial(
            previous=Sections.from_dict(version.sections) if version else Sections(),
            messages=tuple(messages),
            known_facts=self._facts.ranking.prioritise(
                self._facts.current(tx, row), KNOWN_FACT_TOKENS, message=said, now=self._now()
            ),
        )

    def _next(self, tx: Transaction, row: SessionRow, through: int) -> list[Message]:
        batch: list[Message] = []
        budget = BATCH_TOKENS
        for message in map(of_columns, tx.execute(_SINCE, {"session": row.id, "after": through}).all()):
            if batch and message.tokens > budget:
                return batch
            budget -= message.tokens
            batch.append(message)
        if batch and batch[-1].role == "user" and not self._leases.free(row):
            batch.pop()
        return batch


def starting_point(tx: Transaction, row: SessionRow) -> SummaryRow | None:
    """The earliest version of the summary (None: before any) after which one call can read all that was said since;
    where there is no such version, the last that does not cover everything."""
    sizes = tx.execute(
        select(MessageRow.position, MessageRow.tokens)
        .where(MessageRow.session_id == row.id, MessageRow.branch == 0)
        .order_by(MessageRow.position.desc())
        .limit(BATCH_TOKENS // tokens.MESSAGE_OVERHEAD)
    ).all()
    budget, reach = BATCH_TOKENS, row.message_count - 1
    for position, size in sizes:
        budget -= size
        if budget < 0:
            break
        reach = position - 1
    if reach <= 0:
        return None
    partial = select(SummaryRow).where(
        SummaryRow.session_id == row.id, SummaryRow.branch == 0, SummaryRow.through < row.message_count
    )
    from_there = partial.where(SummaryRow.through >= reach).order_by(SummaryRow.through, SummaryRow.version.desc())
    last = partial.order_by(SummaryRow.through.desc(), SummaryRow.version.desc())
    return tx.scalar(from_there.limit(1)) or tx.scalar(last.limit(1))
