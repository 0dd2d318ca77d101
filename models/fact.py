"""Facts, and what was changed about them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class FactRow(Base):
    """One statement.  It holds from `valid_from` until `valid_to`; a correction closes it and names its successor."""

    __tablename__ = "facts"
    __table_args__ = (Index("ix_facts_owner_valid", "owner_id", "valid_to"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    session_id: Mapped[int | None] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    source_message_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), index=True)
    text: Mapped[str] = mapped_column(Text)
    category: Mapped[str] = mapped_column(String(32))
    importance: Mapped[int]
    scope: Mapped[str] = mapped_column(String(8))
    quote: Mapped[str] = mapped_column(Text, default="")
    pinned: Mapped[bool] = mapped_column(default=False)
    recalled_count: Mapped[int] = mapped_column(default=0)
    valid_from: Mapped[datetime]
    valid_to: Mapped[datetime | None]
    superseded_by: Mapped[int | None] = mapped_column(ForeignKey("facts.id", ondelete="SET NULL"), index=True)
    created_at: Mapped[datetime]


class FactRevisionRow(Base):
    """A fact as it was after a change.  `action` is `made`, `edited` or `superseded`; `author` `model` or `person`."""

    __tablename__ = "fact_revisions"
    __table_args__ = NEVER_REUSED

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    fact_id: Mapped[int] = mapped_column(ForeignKey("facts.id", ondelete="CASCADE"), index=True)
    action: Mapped[str] = mapped_column(String(16))
    author: Mapped[str] = mapped_column(String(8))
    text: Mapped[str] = mapped_column(Text)
    category: Mapped[str] = mapped_column(String(32))
    importance: Mapped[int]
    pinned: Mapped[bool]
    at: Mapped[datetime]
