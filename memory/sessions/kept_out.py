"""Tell which messages the person wants kept out of memory, and which ask to forget something said before.

A message that says "don't remember this" is answered, and stays in its chat until it leaves the prompt.  No summary,
fact, index or other chat has it, nor its reply (tests/test_kept_out.py).  Of requests to forget, the mini model says
which facts they mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import select

from memory.languages import TextPattern, alternatives
from models import REVISED, MessageRow, Transaction
from models.messages import KEPT_OUT, Message

KEPT_OUT_TEXT = "[The person asked not to remember this message.]"
READ_CHARS_MAX = 1_000  # at each end of a message; what stands between them is pasted rather than said

_KEEP_OUT = TextPattern(alternatives(lambda language: language.keep_out))
_FORGET = TextPattern(alternatives(lambda language: language.forget))


def asks_to_keep_out(text: str) -> bool:
    """Return whether a person's message asks not to be remembered itself."""
    return _KEEP_OUT.search(_ends(text)) is not None


def asks_to_forget(text: str) -> bool:
    """Return whether a person's message asks to forget something said before."""
    return _FORGET.search(_ends(text)) is not None


def without_kept_out(messages: Iterable[Message]) -> list[Message]:
    """Return the messages as a mini model may read them: those that are kept out without their words."""
    return [
        message._replace(content=KEPT_OUT_TEXT, name=None, extra=KEPT_OUT) if message.is_kept_out else message
        for message in messages
    ]


def keep_out(tx: Transaction, message_ids: Collection[int]) -> None:
    """Keep stored messages, and the replies to them, out of memory; the caller asks for the index job."""
    for message in tx.scalars(select(MessageRow).where(MessageRow.id.in_(message_ids))).all():
        reply = select(MessageRow).where(
            MessageRow.session_id == message.session_id,
            MessageRow.branch == message.branch,
            MessageRow.position == message.position + 1,
            MessageRow.role == "assistant",
        )
        for row in (message, *tx.scalars(reply)):
            row.extra = {**(row.extra or {}), **KEPT_OUT}
            row.indexed_in = row.indexed_in and REVISED


def _ends(text: str) -> str:
    return text if len(text) <= 2 * READ_CHARS_MAX else f"{text[:READ_CHARS_MAX]}\n{text[-READ_CHARS_MAX:]}"
