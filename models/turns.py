"""Store turns: how each ended and what it cost."""

from datetime import datetime
from typing import Any, get_args

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from config import RecallMode
from models.base import MODEL_NAME_CHARS, NEVER_REUSED, Base, BigId

IDEMPOTENCY_KEY_CHARS = 256  # at most


class TurnRow(Base):
    """Turn: a user message and its reply, how the prompt was made, what it cost, and the request's idempotency key.

    `lease_token` is the session's lease under which the turn was last taken: while the session has that lease, the
    turn is being answered.  `so_far` is what the model had said when the lease was last renewed; None when the reply is
    there.
    """

    __tablename__ = "turns"
    __table_args__ = (UniqueConstraint("tenant", "idempotency_key"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    user_message_id: Mapped[int] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), unique=True)
    reply_message_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), unique=True)
    idempotency_key: Mapped[str | None] = mapped_column(String(IDEMPOTENCY_KEY_CHARS))
    fingerprint: Mapped[str | None] = mapped_column(String(64), index=True)  # of the request that began it
    lease_token: Mapped[str | None] = mapped_column(String(64))
    so_far: Mapped[str | None] = mapped_column(Text)
    completion_id: Mapped[str | None] = mapped_column(String(64))
    finish_reason: Mapped[str | None] = mapped_column(String(32))
    model: Mapped[str | None] = mapped_column(String(MODEL_NAME_CHARS))
    memory: Mapped[dict[str, Any] | None]
    usage: Mapped[dict[str, Any] | None]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


INTERRUPTED = "interrupted"  # the finish_reason of a reply that was stopped, or whose client left
CUT_OFF = "cut_off"  # that of a reply in whose middle the model failed
RECALL_MODES = get_args(RecallMode)
