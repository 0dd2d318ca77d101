"""Store the API keys that operators made."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId

CHAT, READ, ADMIN = "chat", "read", "admin"


SCOPES = {
    CHAT: "take turns: chat, the OpenAI protocol, make sessions, append messages; with one person's key also all that "
    "concerns this person's own memory: read, change, export, erase",
    READ: "look at what is remembered",
    ADMIN: "everything else: change, erase, export, import, prompts, jobs",
}


class KeyRow(Base):
    """API key that the operator made.

    Only a digest of the key is stored; `hint` is its beginning, to tell keys apart.  A key with a `user_id` speaks for
    that person alone, one without for every user of its tenant.  `scopes` are words separated by spaces.
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
