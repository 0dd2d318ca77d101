"""The rows of links: what facts tie together."""

from __future__ import annotations

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class LinkRow(Base):
    """A relation between two entities, each known by its name and its kind.

    A link belongs to a fact: it rests on the same words, holds for the same time, and goes with it.
    """

    __tablename__ = "links"
    __table_args__ = NEVER_REUSED

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), index=True)
    fact_id: Mapped[int] = mapped_column(ForeignKey("facts.id", ondelete="CASCADE"), index=True)
    subject: Mapped[str] = mapped_column(String(100))
    relation: Mapped[str] = mapped_column(String(100))
    object: Mapped[str] = mapped_column(String(100))
    subject_kind: Mapped[str] = mapped_column(String(16))
    object_kind: Mapped[str] = mapped_column(String(16))
