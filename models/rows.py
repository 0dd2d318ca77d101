"""The rows, one class a table.

Alembic makes the tables (see migrations); nothing here makes a schema by itself.
"""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Date, ForeignKey, Index, String, Text, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from models.base import NEVER_REUSED, Base, BigId, Refusal


class OwnerRow(Base):
    """A tenant's user, a session that was made without a user and so is its own owner, or the tenant itself.

    `kind` is `user`, `session` or `tenant`, `name` the user_id, the session's id, or nothing: a session called `ada`
    and a user called `ada` are different owners.
    """

    __tablename__ = "owners"
    __table_args__ = (UniqueConstraint("tenant", "kind", "name"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(8))
    name: Mapped[str] = mapped_column(String(256))
    created_at: Mapped[datetime]
    profile_through: Mapped[int] = mapped_column(BigId, default=0, server_default="0")  # the last fact it was made from
    consolidated_through: Mapped[int] = mapped_column(BigId, default=0, server_default="0")  # the last fact compared
    consolidated_at: Mapped[datetime | None]  # when the mini model was last asked for it

    @property
    def user_id(self) -> str | None:
        return self.name if self.kind == "user" else None

    @property
    def index_key(self) -> str:
        """The owner's name for the search index.

        It includes the row's id and creation time, so that no owner inherits the index of an erased owner, or of
        one in another database that was at this place before.
        """
        made = self.created_at.isoformat()
        return hashlib.sha256(f"{self.tenant}\0{self.kind}\0{self.name}\0{self.id}\0{made}".encode()).hexdigest()


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
    pinned: Mapped[bool] = mapped_column(default=False)
    archived: Mapped[bool] = mapped_column(default=False)
    type: Mapped[str | None] = mapped_column(String(64))  # of conversation, as it was given
    recognised_type: Mapped[str | None] = mapped_column(String(64))  # by the mini model; "": none fits, None: not asked
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    imported_at: Mapped[datetime | None]  # when messages of it were last imported; theirs is when they were said
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

    lease_token: Mapped[str | None] = mapped_column(String(64))
    lease_until: Mapped[datetime | None]
    stop_token: Mapped[str | None] = mapped_column(String(64))  # the lease whose turn is to end now

    owner: Mapped[OwnerRow] = relationship(lazy="joined", innerjoin=True)


_UNSHOWN = text("hidden_at IS NOT NULL OR refused IS NOT NULL")
REVISED = ""  # no generation of an index; NULL is a message that no index was ever told of


class MessageRow(Base):
    """One message, kept as it was said.

    `branch` is 0 on the session's current line.  Messages that were replaced together share a branch of their own and
    keep their positions; `replaced_after` of the first one is the id of the message before it, 0 if there is none.
    `indexed_in` is the index generation that knows the message: that holds it, or has removed it
    after it was replaced or erased.  It is None for a message that no index knows, and REVISED for a replaced or erased
    one that the index still has to remove.  An erased message (`erased_at`) keeps its position and loses its words.  A
    hidden one (`hidden_at`) keeps everything, and stays out of its session's prompts; a `refused` one stays out of
    every prompt, and of the index.
    """

    __tablename__ = "messages"
    __table_args__ = (
        UniqueConstraint("session_id", "branch", "position"),
        Index("uq_messages_session_external", "session_id", "external_id", unique=True),
        Index("ix_messages_owner_indexed", "owner_id", "indexed_in"),
        Index("ix_messages_unshown", "session_id", "branch", sqlite_where=_UNSHOWN, postgresql_where=_UNSHOWN),
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
    replaced_after: Mapped[int | None] = mapped_column(BigId)
    erased_at: Mapped[datetime | None]
    hidden_at: Mapped[datetime | None]
    refused: Mapped[Refusal | None]


class TurnRow(Base):
    """A user message and its reply: how the prompt was made, what it cost, and the idempotency key of the request.

    `lease_token` is the session's lease under which the turn was last taken: while the session has that lease, the
    turn is being answered.  `so_far` is what the model had said when the lease was last renewed; None when the reply is
    there.
    """

    __tablename__ = "turns"
    __table_args__ = (UniqueConstraint("tenant", "idempotency_key"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    user_message_id: Mapped[int] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), unique=True)
    reply_message_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), unique=True)
    idempotency_key: Mapped[str | None] = mapped_column(String(256))
    fingerprint: Mapped[str | None] = mapped_column(String(64), index=True)  # of the request that began it
    lease_token: Mapped[str | None] = mapped_column(String(64))
    so_far: Mapped[str | None] = mapped_column(Text)
    completion_id: Mapped[str | None] = mapped_column(String(64))
    finish_reason: Mapped[str | None] = mapped_column(String(32))
    model: Mapped[str | None] = mapped_column(String(128))
    memory: Mapped[dict[str, Any] | None]
    usage: Mapped[dict[str, Any] | None]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class SummaryRow(Base):
    """One version of a session's summary.  It covers the messages up to position `through`.

    `author` is `model`, `person` (an edit), `correction` (the new words of a fact that the person edited), or
    `rollback`, `replacement` or `erasure`: a copy of version `restores`, or an empty summary without it.  A replacement
    or an erasure takes the place of a version that covered messages which were replaced or erased.  `branch` is 0, or
    the branch of the replaced messages that the version covers.
    """

    __tablename__ = "summaries"
    __table_args__ = (UniqueConstraint("session_id", "version"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"))
    version: Mapped[int]
    branch: Mapped[int] = mapped_column(default=0, server_default="0")
    sections: Mapped[dict[str, Any]]
    through: Mapped[int]
    tokens: Mapped[int]
    author: Mapped[str] = mapped_column(String(16))
    model: Mapped[str | None] = mapped_column(String(128))
    prompt: Mapped[str | None] = mapped_column(String(80))  # name@version
    usage: Mapped[dict[str, Any] | None]
    restores: Mapped[int | None]
    created_at: Mapped[datetime]


_WITH_LINKS = text("links IS NOT NULL")


class FactRow(Base):
    """One statement.  It holds from `valid_from` until `valid_to`; a correction closes it and names its successor.

    One that was `merged` says the same as its successor.  `links` are what it ties together, each as the fields of a
    `Link`.
    """

    __tablename__ = "facts"
    __table_args__ = (
        Index("ix_facts_owner_valid", "owner_id", "valid_to"),
        Index("ix_facts_linked", "owner_id", sqlite_where=_WITH_LINKS, postgresql_where=_WITH_LINKS),
        NEVER_REUSED,
    )

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
    merged: Mapped[bool] = mapped_column(default=False, server_default=false())
    links: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]


class FactRevisionRow(Base):
    """A fact as it was after a change.  `author` is `model` or `person`.

    `action` is `made`, `edited` or `superseded`; by consolidation `merged`, `contradicted` or `expired`, and `reopened`
    when that is undone.
    """

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


class JobRow(Base):
    """A job: background work, one row for each `kind` and `key`.  The row of a finished job is deleted.

    `state` is `pending`, `running` or `failed`.  `revision` counts the requests for the job, so that a request which
    arrives while the job runs is not lost when it ends.  A job that outlives its owner has no `owner_id`.  `round` is
    its place in the tenant's queue (see `memory.jobs.order`).
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("kind", "key"),
        Index("ix_jobs_due", "kind", "state", "run_at"),
        Index("ix_jobs_queue", "kind", "state", "tenant", "round", "run_at", "id", "updated_at"),
        Index("ix_jobs_owner_kind", "owner_id", "kind", "round"),
        Index("ix_jobs_tenant", "tenant", "id"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    key: Mapped[str] = mapped_column(String(64))
    tenant: Mapped[str] = mapped_column(String(64))
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    session_id: Mapped[int | None] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    payload: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    state: Mapped[str] = mapped_column(String(8))
    revision: Mapped[int] = mapped_column(default=1)
    attempts: Mapped[int] = mapped_column(default=0)
    round: Mapped[int] = mapped_column(default=0)
    run_at: Mapped[datetime]
    lease_token: Mapped[str | None] = mapped_column(String(64))
    lease_until: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class QueueRow(Base):
    """A tenant's jobs of one kind: the highest `round` that one was taken of, and when that was.

    `served` counts the jobs of that kind taken of all tenants, up to this tenant's last one; a clock may be put back.
    """

    __tablename__ = "queues"

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64), primary_key=True)
    served: Mapped[int] = mapped_column(BigInteger)
    round: Mapped[int]


class PromptRow(Base):
    """One version of a named prompt; the highest is in use."""

    __tablename__ = "prompts"
    __table_args__ = (UniqueConstraint("tenant", "name", "version"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(64))
    version: Mapped[int]
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class KeyRow(Base):
    """An API key that the operator made.

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


class ModelServerRow(Base):
    """The model server that an administrator set; there is one row or none.  `api_key` is encrypted."""

    __tablename__ = "model_server"

    id: Mapped[int] = mapped_column(primary_key=True)
    base_url: Mapped[str] = mapped_column(Text)
    api_key: Mapped[str] = mapped_column(Text)
    main: Mapped[str] = mapped_column(String(256))
    mini: Mapped[str] = mapped_column(String(256))
    updated_at: Mapped[datetime]


class SpendingRow(Base):
    """The tokens an owner's model calls took on one day of UTC, the main model's and the mini model's."""

    __tablename__ = "spending"

    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    tokens: Mapped[int] = mapped_column(BigInteger, default=0)
