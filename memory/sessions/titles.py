"""Titles: what a session is called.

A session is named after the first words of its person, and after the topic of its first summary once there is one: the
mini model writes that anyway.  A title that equals neither was given by somebody.

Guarantee: a given title stays.  Any other goes with what it was taken from: when that is replaced, erased or refused by
a model server, the title is taken from what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import select

from memory.sessions.messages import QUOTABLE, title_from
from models import MessageRow, SessionRow, SummaryRow, Transaction


def name_after(tx: Transaction, row: SessionRow, topic: str) -> None:
    """Name the session after the topic of a new summary, unless an earlier summary or somebody has named it."""
    if topic and row.title in ("", _first_words(tx, row)):
        row.title = title_from(topic)


@contextmanager
def renaming(tx: Transaction, row: SessionRow) -> Iterator[None]:
    """Within, messages or summaries of the session are replaced or erased, or messages refused or accepted."""
    topics = select(_TOPIC).where(SummaryRow.session_id == row.id).order_by(SummaryRow.version)
    taken = row.title in ("", _first_words(tx, row), *map(title_from, tx.scalars(topics)))
    yield
    if taken:
        tx.flush()
        left = tx.scalar(topics.where(SummaryRow.branch == 0, _TOPIC != "").limit(1))
        row.title = title_from(left) if left else _first_words(tx, row)


_TOPIC = SummaryRow.sections["topic"].as_string()


def _first_words(tx: Transaction, row: SessionRow) -> str:
    said = select(MessageRow.content).where(MessageRow.session_id == row.id, *QUOTABLE, MessageRow.role == "user")
    return title_from(tx.scalar(said.order_by(MessageRow.position).limit(1)) or "")
