"""API keys."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class KeyRow(Base):
    """A key that was made by the operator: whom it opens the door to, and for what.

    Only a digest of the key is kept; `hint` is its beginning, to tell keys apart.  `user_id` is the one person it
    speaks for, None for any of the tenant's.  `scopes` are words with spaces between.
    """

    __tablename__ = "keys"
    __table_args__ = NEVER_REUSED

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    user_id: Mapped[str | None] = mapped_column(String(256))
    scopes: Mapped[str] = mapped_column(String(64))
    label: Mapped[str] = mapped_column(String(200), default="")
    hint: Mapped[str] = mapped_column(String(16))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
