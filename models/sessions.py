"""Store sessions, and hold what a turn reads of one."""

from datetime import datetime
from typing import Any, NamedTuple, Self

from sqlalchemy import JSON, ForeignKey, Index, String, Text, UniqueConstraint, false, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from models.base import NEVER_REUSED, Base, BigId
from models.owners import OwnerRow


class SessionRow(Base):
    """Session: a thread of messages, what the prefix of its prompts shows, and who is taking a turn in it.

    `public_id` is its owner's: two persons of a tenant may both have a session `main`.

    Positions of the active branch, up to which messages were read: `summary_through` for the newest summary version,
    and `facts_through` for facts, which does not fall when a version is taken back.  `head_through` is where the prefix
    ends: it shows summary version `head_version` (0: none yet) and the facts `head_facts`, and the recent messages
    follow it word for word.  These change together, at a compaction.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        UniqueConstraint("owner_id", "public_id"),
        Index("ix_sessions_tenant_public_id", "tenant", "public_id"),
        Index("ix_sessions_tenant_updated", "tenant", "updated_at", "id"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    public_id: Mapped[str] = mapped_column(String(128))
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    title: Mapped[str] = mapped_column(String(200), default="")
    system_prompt: Mapped[str | None] = mapped_column(Text)
    pinned: Mapped[bool] = mapped_column(default=False)
    archived: Mapped[bool] = mapped_column(default=False)
    remember: Mapped[bool] = mapped_column(default=True, server_default=true())  # if not, its turns use no memory
    is_document: Mapped[bool] = mapped_column(default=False, server_default=false())  # its messages are passages
    type: Mapped[str | None] = mapped_column(String(64))  # of conversation, as it was given
    recognised_type: Mapped[str | None] = mapped_column(String(64))  # by the mini model; "": none fits, None: not asked
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    imported_at: Mapped[datetime | None]  # when messages of it were last imported; theirs is when they were said
    client_metadata: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))  # of a client's own
    opening: Mapped[str | None] = mapped_column(String(64), index=True)  # a conversation whose client names no session

    message_count: Mapped[int] = mapped_column(default=0)  # also the last message's position
    tokens: Mapped[int] = mapped_column(default=0)  # of all messages
    summary_version: Mapped[int] = mapped_column(default=0)  # the newest; 0: none yet
    summary_through: Mapped[int] = mapped_column(default=0)  # the last position the newest version covers
    facts_through: Mapped[int] = mapped_column(default=0)  # the last position facts were taken from
    head_version: Mapped[int] = mapped_column(default=0)
    head_through: Mapped[int] = mapped_column(default=0)
    head_tokens: Mapped[int] = mapped_column(default=0)  # of all messages up to head_through
    head_facts: Mapped[list[int] | None] = mapped_column(default=None)  # None: not chosen yet
    head_type: Mapped[str | None] = mapped_column(String(64))  # of conversation, as it was then
    head_at: Mapped[datetime | None]  # when they were chosen, and with them the documents of long-term memory

    timezone: Mapped[str | None] = mapped_column(String(64))  # of the person, as the last turn said that named one

    lease_token: Mapped[str | None] = mapped_column(String(64))
    lease_until: Mapped[datetime | None]
    stop_token: Mapped[str | None] = mapped_column(String(64))  # the lease whose turn is to end now

    owner: Mapped[OwnerRow] = relationship(lazy="joined", innerjoin=True)

    @property
    def is_remembered(self) -> bool:
        """Return whether its turns use the memory: neither the session nor its person has turned it off."""
        return self.remember and self.owner.remember


class SessionState(NamedTuple):
    """Columns of a session that a turn reads, as they were at one moment, and its owner's `index_key`.

    A temporary turn may have a session that is not stored: its `id` is 0, and so is the `owner_id` of a new person.
    """

    id: int
    tenant: str
    public_id: str
    owner_id: int
    system_prompt: str | None
    remember: bool
    timezone: str | None
    type: str | None
    recognised_type: str | None
    message_count: int
    tokens: int
    summary_version: int
    summary_through: int
    head_version: int
    head_through: int
    head_tokens: int
    head_facts: list[int] | None
    head_type: str | None
    head_at: datetime | None
    index_key: str

    @classmethod
    def of(cls, row: SessionRow) -> Self:
        columns = {name: getattr(row, name) for name in STATE_COLUMNS}
        columns |= {"id": row.id or 0, "owner_id": row.owner_id or 0}
        return cls(**columns, index_key=row.owner.index_key)


STATE_COLUMNS = SessionState._fields[:-1]
