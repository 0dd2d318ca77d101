"""Store who owns what is remembered, and the tokens a day of each owner."""

import hashlib
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import BigInteger, Date, ForeignKey, String, UniqueConstraint, true
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class OwnerRow(Base):
    """Owner: a tenant's user, a space that several users share, a session of neither, or the tenant itself.

    `kind` is `user`, `space`, `session` or `tenant`; `name` the user_id, the space's name, the session's id, or
    nothing: a session called `ada` and a user called `ada` are different owners.
    """

    __tablename__ = "owners"
    __table_args__ = (UniqueConstraint("tenant", "kind", "name"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(8))
    name: Mapped[str] = mapped_column(String(256))
    created_at: Mapped[datetime]
    remember: Mapped[bool] = mapped_column(default=True, server_default=true())  # if not, no turn uses the memory
    profile_through: Mapped[int] = mapped_column(BigId, default=0, server_default="0")  # the last fact it was made from
    consolidated_through: Mapped[int] = mapped_column(BigId, default=0, server_default="0")  # the last fact compared
    facts_revision: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")  # another after each change
    consolidated_at: Mapped[datetime | None]  # when the mini model was last asked for it
    listened_at: Mapped[datetime | None]  # of a tenant: when a stream of events was last opened

    @property
    def user_id(self) -> str | None:
        return self.name if self.kind == "user" else None

    @property
    def space(self) -> str | None:
        return self.name if self.kind == "space" else None

    @property
    def is_named(self) -> bool:
        """Return whether it is a user or a space, whose sessions share a memory."""
        return self.kind in ("user", "space")

    @property
    def caller(self) -> "Caller":
        """Return the caller who means this owner: a user, a space, or the tenant."""
        return Caller(self.tenant, self.user_id, self.space)

    @property
    def index_key(self) -> str:
        """Return the owner's name for the search index."""
        return index_key(self.tenant, self.kind, self.name, self.id, self.created_at)


def index_key(tenant: str, kind: str, name: str, owner_id: int, created_at: datetime) -> str:
    """Return an owner's name for the search index.

    It includes the row's id and creation time, so that no owner inherits the index of an erased owner, or of one in
    another database that was at this place before.
    """
    return hashlib.sha256(f"{tenant}\0{kind}\0{name}\0{owner_id}\0{created_at.isoformat()}".encode()).hexdigest()


class SpendingRow(Base):
    """Tokens of an owner's model calls on one day of UTC, the main model's and the mini model's."""

    __tablename__ = "spending"

    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    tokens: Mapped[int] = mapped_column(BigInteger, default=0)


@dataclass(frozen=True)
class Caller:
    """Caller: a tenant, and within it the user who acts, if the application named one.

    space: whose memory the call reads and writes, instead of the user's own.
    """

    tenant: str = "default"
    user_id: str | None = None
    space: str | None = None

    @property
    def owner(self) -> tuple[str, str] | None:
        """Return the kind and the name of the owner whose memory is meant; None: none is named."""
        if self.space is not None:
            return "space", self.space
        return None if self.user_id is None else ("user", self.user_id)


@dataclass(frozen=True)
class Usage:
    """Tokens of model calls, as the provider reports them; `estimated` when it reported none.

    `cached_tokens` are those of the prompt that the provider read from its cache, `reasoning_tokens` those of the
    completion that the model thought with, as far as it says so.
    """

    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
