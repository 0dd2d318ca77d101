"""Store the versions of summaries."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint, and_
from sqlalchemy.orm import Mapped, mapped_column

from models.base import MODEL_NAME_CHARS, NEVER_REUSED, Base, BigId
from models.sessions import SessionRow


class SummaryRow(Base):
    """Version of a session's summary. It covers the messages up to position `through`.

    `author` is `model`, `person` (an edit), `correction` (the new words of a fact that the person edited), or
    `rollback`, `replacement` or `erasure`: a copy of version `restores`, or an empty summary without it.  A replacement
    or an erasure takes the place of a version that covered messages which were replaced or erased.  `branch` is 0, or
    the branch of the replaced messages that the version covers.
    """

    __tablename__ = "summaries"
    __table_args__ = (UniqueConstraint("session_id", "version"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"))
    version: Mapped[int]
    branch: Mapped[int] = mapped_column(default=0, server_default="0")
    sections: Mapped[dict[str, Any]]
    through: Mapped[int]
    tokens: Mapped[int]
    author: Mapped[str] = mapped_column(String(16))
    model: Mapped[str | None] = mapped_column(String(MODEL_NAME_CHARS))
    prompt: Mapped[str | None] = mapped_column(String(80))  # name@version
    usage: Mapped[dict[str, Any] | None]
    restores: Mapped[int | None]
    created_at: Mapped[datetime]


IS_NEWEST_SUMMARY = and_(SummaryRow.session_id == SessionRow.id, SummaryRow.version == SessionRow.summary_version)
"""True of a session with the newest version of its summary."""

_VERSIONS_IN_USE = SessionRow.summary_version, SessionRow.head_version
IS_SUMMARY_IN_USE = and_(SummaryRow.session_id == SessionRow.id, SummaryRow.version.in_(_VERSIONS_IN_USE))
"""True of a session with the newest version of its summary, and with the one that its prompts show."""
