"""Titles of sessions: the first words of the person, then the topic of the first summary.

A title that the person or a program gave stays.  One that words or a topic gave goes with them when they are replaced,
erased or kept out of memory [test_message_versions].
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import select

from memory.sessions.messages import INDEXED, title_from
from models import MessageRow, SessionRow, SummaryRow, Transaction

_TOPIC = SummaryRow.sections["topic"].as_string()


FIRST_MESSAGE = (
    select(MessageRow.content)
    .where(MessageRow.session_id == SessionRow.id, *INDEXED, MessageRow.role == "user")
    .order_by(MessageRow.position)
    .limit(1)
    .correlate(SessionRow.__table__)
    .scalar_subquery()
)
"""The person's first words in a session."""


def title_after(title: str, first_message: str | None, topic: str) -> str:
    """Return the title after a summary with this topic: the topic where only the first message gave one."""
    return title_from(topic) if topic and _is_taken_from(title, first_message) else title


def name_after(tx: Transaction, row: SessionRow, topic: str) -> None:
    """Give the session the title that it has after a summary with this topic."""
    if topic:
        row.title = title_after(row.title, _first_message(tx, row), topic)


@contextmanager
def title_taken_anew(tx: Transaction, row: SessionRow) -> Iterator[None]:
    """Take the title anew from what is left, if it was taken from words that change within.

    Within, messages or summaries of the session are replaced or erased, or messages refused, accepted or kept out.
    """
    topics = select(_TOPIC).where(SummaryRow.session_id == row.id).order_by(SummaryRow.version)
    is_taken = _is_taken_from(row.title, _first_message(tx, row), *tx.scalars(topics))
    yield
    if is_taken:
        tx.flush()
        left = tx.scalar(topics.where(SummaryRow.branch == 0, _TOPIC != "").limit(1))
        row.title = title_from(left or _first_message(tx, row) or "")


def _is_taken_from(title: str, *texts: str | None) -> bool:
    return title in ("", *(title_from(text) for text in texts if text))


def _first_message(tx: Transaction, row: SessionRow) -> str | None:
    return tx.scalar(select(FIRST_MESSAGE).where(SessionRow.id == row.id))
