"""Sessions, their messages and their turns."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from models.base import NEVER_REUSED, Base, BigId
from models.owner import OwnerRow


class SessionRow(Base):
    """A thread of messages, what its prompt's head shows, and who is taking a turn in it.

    The head shows summary version `head_version` (0: none yet) and the facts `head_facts`; the tail is every message
    after position `head_through`.  They change together, when the tail folds.  All figures are of the current line.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        UniqueConstraint("tenant", "public_id"),
        Index("ix_sessions_tenant_updated", "tenant", "updated_at", "id"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    public_id: Mapped[str] = mapped_column(String(128))
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), index=True)
    title: Mapped[str] = mapped_column(String(200), default="")
    system_prompt: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    message_count: Mapped[int] = mapped_column(default=0)  # also the last message's position
    tokens: Mapped[int] = mapped_column(default=0)  # of all messages
    summary_version: Mapped[int] = mapped_column(default=0)  # the newest; 0: none yet
    summary_through: Mapped[int] = mapped_column(default=0)  # the last position the newest version covers
    facts_through: Mapped[int] = mapped_column(default=0)  # the last position facts were taken from
    head_version: Mapped[int] = mapped_column(default=0)
    head_through: Mapped[int] = mapped_column(default=0)
    head_tokens: Mapped[int] = mapped_column(default=0)  # of all messages up to head_through
    head_facts: Mapped[list[int] | None] = mapped_column(default=None)  # None: not chosen yet

    lease_token: Mapped[str | None] = mapped_column(String(64))
    lease_until: Mapped[datetime | None]
    stop_token: Mapped[str | None] = mapped_column(String(64))  # the lease whose turn is to end now

    owner: Mapped[OwnerRow] = relationship(lazy="joined", innerjoin=True)


REVISED = ""  # no generation of an index; NULL is a message that no index was ever told of


class MessageRow(Base):
    """One message, kept as it was said.

    `branch` is 0 on the session's current line.  A message that was replaced is on a branch of its session with those
    that were replaced with it, under the position it had.  `indexed_in` is the index generation that took note of it:
    holds it, or if it was replaced or erased holds it no more; None when none did, and REVISED when none has since it
    was replaced or erased.  Of an erased message (`erased_at`) only its place is kept, without words: positions stay as
    they were.
    """

    __tablename__ = "messages"
    __table_args__ = (
        UniqueConstraint("session_id", "branch", "position"),
        Index("uq_messages_session_external", "session_id", "external_id", unique=True),
        Index("ix_messages_owner_indexed", "owner_id", "indexed_in"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"))
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    branch: Mapped[int] = mapped_column(default=0, server_default="0")
    position: Mapped[int]
    role: Mapped[str] = mapped_column(String(16))
    name: Mapped[str | None] = mapped_column(String(128))
    content: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    external_id: Mapped[str | None] = mapped_column(String(256))
    tokens: Mapped[int]
    extra: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))  # beside its words, as calls of tools
    indexed_in: Mapped[str | None] = mapped_column(String(32))
    erased_at: Mapped[datetime | None]


class TurnRow(Base):
    """A user message and its reply: how the prompt was made, what it cost, and the key a retry is known by.

    `lease_token` is the session's lease under which it was last taken: while that is held, it is being answered.
    """

    __tablename__ = "turns"
    __table_args__ = (UniqueConstraint("tenant", "idempotency_key"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    user_message_id: Mapped[int] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), unique=True)
    reply_message_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), unique=True)
    idempotency_key: Mapped[str | None] = mapped_column(String(256))
    fingerprint: Mapped[str | None] = mapped_column(String(64))  # of the request the key came with
    lease_token: Mapped[str | None] = mapped_column(String(64))
    completion_id: Mapped[str | None] = mapped_column(String(64))
    finish_reason: Mapped[str | None] = mapped_column(String(32))
    model: Mapped[str | None] = mapped_column(String(128))
    memory: Mapped[dict[str, Any] | None]
    usage: Mapped[dict[str, Any] | None]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
