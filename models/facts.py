"""Store facts and their revisions, and hold them as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text, false, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId

SELF = "user"
_WITH_LINKS = text("links IS NOT NULL")


class FactRow(Base):
    """Statement, valid from `valid_from` until `valid_to`; a correction invalidates it and names its successor.

    merged: it says the same as its successor. links: the fields of each Relation that it has.
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
    """Fact as it was after a change. `author` is `model` or `person`.

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


FACT_CATEGORIES = (
    *("identity", "preference", "plan", "event", "requirement", "constraint"),
    *("relationship", "work", "other"),
)


ENTITY_KINDS = ("person", "place", "organisation", "thing")


@dataclass(frozen=True)
class FactScore:
    """Rank of a fact: the weighted parts and their sum. Pinned facts come before all others."""

    total: float = 0.0
    importance: float = 0.0
    recency: float = 0.0
    use: float = 0.0
    relevance: float = 0.0


@dataclass(frozen=True)
class Fact:
    """Statement with its source, valid from `valid_from` until `valid_to` (None: still).

    merged: it says the same as its successor, and is one of the successor's `merged_facts` (where these are read).
    """

    id: int
    text: str
    valid_from: datetime
    created_at: datetime
    category: str = "other"
    importance: int = 3
    scope: str = "session"
    session_id: str | None = None
    source_message_id: int | None = None
    quote: str = ""
    pinned: bool = False
    recalled_count: int = 0
    valid_to: datetime | None = None
    superseded_by: int | None = None
    merged: bool = False
    score: FactScore = FactScore()
    merged_facts: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class FactRevision:
    """Fact as it was after one change."""

    fact_id: int
    action: str
    author: str
    text: str
    category: str
    importance: int
    pinned: bool
    at: datetime


@dataclass(frozen=True)
class Relation:
    """Relation of a fact between two entities, known by their names (see `knowledge.entities`)."""

    subject: str
    relation: str
    object: str
    subject_kind: str = "thing"
    object_kind: str = "thing"

    def __str__(self) -> str:
        return f"{self.subject} {self.relation} {self.object}"


@dataclass(frozen=True)
class FactDraft:
    """Fact as the mini model proposes it, not yet checked against its source.

    source: position of the message it rests on. supersedes: ids of the facts that it corrects.
    """

    text: str
    source: int
    quote: str
    category: str = "other"
    importance: int = 3
    scope: str = "session"
    supersedes: tuple[int, ...] = ()
    links: tuple[Relation, ...] = ()
