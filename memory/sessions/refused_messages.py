"""Messages that a model server refused, which no prompt shows again.

A refused message stays stored, listed and exported, with the reason.  No prompt, summary, search or excerpt has it (see
`messages.QUOTABLE`), and the index loses it.  The same words sent again are tried again: a reply takes the mark away.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import case, null, select, update

from memory import tokens
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, ModelError
from memory.sessions.messages import QUOTABLE, covered_position
from memory.sessions.titles import title_taken_anew
from models import REVISED, MessageRow, Refusal, SessionRow, Transaction

REASON_TOKENS = 150
_REASONS = {
    CONTENT_REFUSED: "The content filter of the model server refused it",
    CONTEXT_EXCEEDED: "It is longer than the model can read in one piece",
}


def mark_refused(tx: Transaction, message_ids: Collection[int], error: ModelError, now: datetime) -> None:
    """Mark messages, of any role, as refused by a model server, with a sentence for the person that says why.

    Messages that were replaced, erased or marked before stay as they are.  The caller holds the session's lock, and
    asks for the job that takes the messages out of the index.  Facts taken from them before stay.
    """
    which = MessageRow.id.in_(message_ids), *QUOTABLE
    affected = select(MessageRow.session_id).where(*which)
    sessions = tx.scalars(select(SessionRow).where(SessionRow.id.in_(affected))).all()
    unknown = MessageRow.indexed_in.is_(None)  # to every index, so none has to remove it
    reason = ": ".join(filter(None, [_REASONS[error.code], error.quoted]))
    refusal = Refusal(error.code, tokens.truncate(f"{reason}.", REASON_TOKENS), now)
    change = update(MessageRow).values(refused=refusal, indexed_in=case((unknown, null()), else_=REVISED))
    for row in sessions:
        with title_taken_anew(tx, row):
            tx.execute(change.where(MessageRow.session_id == row.id, *which))
        if row.summary_version:
            row.summary_through = covered_position(tx, row, row.summary_through)
