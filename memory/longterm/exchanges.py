"""The exchange that a person judges: what they said, and the reply to it."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import or_, select

from memory.access.owners import find_session
from memory.errors import InvalidRequest, NotFound
from memory.sessions.messages import MESSAGES, QUOTABLE, SAID
from models import MessageRow, SessionRow, Transaction, TurnRow
from models.messages import Message
from models.owners import Caller


class Exchange(NamedTuple):
    """The person's last message before a reply, the reply, and their session."""

    session: SessionRow
    message: Message
    reply: Message

    @property
    def ids(self) -> tuple[int, int]:
        return self.message.id, self.reply.id

    @property
    def key(self) -> str:
        """The key of the one example, and of the one piece of feedback, that there is of it."""
        return f"{self.session.public_id}/{self.reply.created_at.isoformat()}"


def find_exchange(tx: Transaction, caller: Caller, session_id: str, message_id: int) -> Exchange:
    """The exchange of a turn, which its message or its reply names.

    Raises NotFound, and InvalidRequest for a turn that is not to be remembered.
    """
    row = find_session(tx, caller, session_id)
    either = or_(TurnRow.user_message_id == message_id, TurnRow.reply_message_id == message_id)
    answer = select(TurnRow.reply_message_id).where(TurnRow.session_id == row.id, either).scalar_subquery()
    reply = tx.execute(MESSAGES.where(MessageRow.id == answer, *QUOTABLE)).first()
    question = None
    if reply is not None:
        said = (MessageRow.session_id == row.id, MessageRow.role == "user", MessageRow.position < reply.position, *SAID)
        question = tx.execute(MESSAGES.where(*said).order_by(MessageRow.position.desc()).limit(1)).first()
    if reply is None or question is None or question.refused is not None:
        raise NotFound(
            "exchange_not_found",
            f"Message {message_id} is of no exchange in session {session_id!r}: it has no reply, or no model made it, "
            "or it was replaced, erased or refused by a model server. Nothing was stored.",
            param="message_id",
        )
    found = Exchange(row, Message._make(question), Message._make(reply))
    if not (found.message.remembered and found.reply.remembered):
        raise InvalidRequest(
            "not_remembered",
            "This exchange is not to be remembered, so nothing can be made of it. Nothing was stored.",
            param="message_id",
        )
    return found
