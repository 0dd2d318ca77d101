"""The outbox."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class JobRow(Base):
    """Work to do after a reply.  One row a piece of work (`kind`, `key`); done means deleted.

    `state` is `pending`, `running` or `failed`.  `revision` counts the requests for it, so that one which arrives
    while the job runs is not lost when it ends.  Work that outlives its owner (clearing their index) has no owner_id.
    """

    __tablename__ = "jobs"
    __table_args__ = (UniqueConstraint("kind", "key"), Index("ix_jobs_due", "kind", "state", "run_at"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    key: Mapped[str] = mapped_column(String(64))
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), index=True)
    session_id: Mapped[int | None] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    payload: Mapped[dict[str, Any] | None]
    state: Mapped[str] = mapped_column(String(8))
    revision: Mapped[int] = mapped_column(default=1)
    attempts: Mapped[int] = mapped_column(default=0)
    run_at: Mapped[datetime]
    lease_token: Mapped[str | None] = mapped_column(String(64))
    lease_until: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
