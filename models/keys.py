"""Store the API keys that operators made."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId

CHAT, READ, ADMIN = "chat", "read", "admin"
WRITE = "write"
SPACE_RIGHTS = {READ: "look at what the space remembers", WRITE: "also take turns in it, and change it"}


SCOPES = {
    CHAT: "take turns: chat, the OpenAI protocol, make sessions, append messages; with one person's key also all that "
    "concerns this person's own memory: read, change, export, erase",
    READ: "look at what is remembered",
    ADMIN: "everything else: change, erase, export, import, prompts, jobs",
}


class KeyRow(Base):
    """API key that the operator made.

    Only a digest of the key is stored; `hint` is its beginning, to tell keys apart.  A key with a `user_id` speaks for
    that person alone, one with `spaces` and no person for these spaces alone, and one with neither for every user and
    space of its tenant.  `scopes` are words separated by spaces, `spaces` the rights by the names of spaces.  A revoked
    key of an erased person has the `user_id` "", which nobody has.
    """

    __tablename__ = "keys"
    __table_args__ = NEVER_REUSED

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    user_id: Mapped[str | None] = mapped_column(String(256))
    scopes: Mapped[str] = mapped_column(String(64))
    spaces: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    label: Mapped[str] = mapped_column(String(200), default="")
    hint: Mapped[str] = mapped_column(String(16))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
