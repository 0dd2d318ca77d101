"""Owners: everything belongs to one."""

from __future__ import annotations

import hashlib
from datetime import datetime

from sqlalchemy import String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class OwnerRow(Base):
    """A tenant's user, or a session that was made without a user and so is its own owner.

    `kind` is `user` or `session`, `name` the user_id or the session's id: a session called `ada` and a user called
    `ada` are different owners.
    """

    __tablename__ = "owners"
    __table_args__ = (UniqueConstraint("tenant", "kind", "name"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(8))
    name: Mapped[str] = mapped_column(String(256))
    created_at: Mapped[datetime]

    @property
    def user_id(self) -> str | None:
        return self.name if self.kind == "user" else None

    @property
    def index_key(self) -> str:
        """The owner's name for the search index.

        The row's id and its time of making are in it, so that no owner inherits the index of an erased one, or of
        one in a database that was there before.
        """
        made = self.created_at.isoformat()
        return hashlib.sha256(f"{self.tenant}\0{self.kind}\0{self.name}\0{self.id}\0{made}".encode()).hexdigest()
