"""The rows of the store: items, their earlier values, and the messages that they rest on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId

# Ranges of names select what is below a prefix, so names are ordered by their code points on every database.
NAME = String(256).with_variant(String(256, collation="C"), "postgresql")


class ItemRow(Base):
    """A JSON value under a namespace and a key.

    `namespace` has its parts joined with "."; no part has one.  The item is gone from `expires_at` on: `ttl_minutes`
    after it was written or, if it `refreshes`, after it was last read.
    """

    __tablename__ = "items"
    __table_args__ = (
        UniqueConstraint("owner_id", "namespace", "key"),
        Index("ix_items_owner_updated", "owner_id", "updated_at", "id"),
        Index("ix_items_owner_expires", "owner_id", "expires_at"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    namespace: Mapped[str] = mapped_column(NAME)
    key: Mapped[str] = mapped_column(NAME)
    value: Mapped[Any] = mapped_column(JSON, nullable=False)
    version: Mapped[int]
    ttl_minutes: Mapped[float | None]
    refreshes: Mapped[bool]
    expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class ItemVersionRow(Base):
    """The value that an item had from one version on, for kinds that keep their history.

    `author` is who wrote it: `model` or `person`.
    """

    __tablename__ = "item_versions"
    __table_args__ = (UniqueConstraint("item_id", "version"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id", ondelete="CASCADE"))
    version: Mapped[int]
    value: Mapped[Any] = mapped_column(JSON, nullable=False)
    author: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]


class ItemSourceRow(Base):
    """A message that an item, or an earlier value of it, rests on."""

    __tablename__ = "item_sources"

    item_id: Mapped[int] = mapped_column(ForeignKey("items.id", ondelete="CASCADE"), primary_key=True)
    message_id: Mapped[int] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True, index=True)
