"""Store facts and their revisions, and hold them as values."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import JSON, Dialect, ForeignKey, Index, String, Text, TypeDecorator, false, text
from sqlalchemy.orm import Mapped, column_property, mapped_column

from models.base import NEVER_REUSED, Base, BigId

SELF = "user"
CATEGORY_CHARS_MAX = 32
_WITH_LINKS, _WAITING = text("links IS NOT NULL"), text("replaces IS NOT NULL")


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


class Relations(TypeDecorator[tuple[Relation, ...]]):
    """Relations as JSON; NULL for none."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Iterable[Relation] | None, dialect: Dialect) -> list[dict[str, str]] | None:
        return [vars(relation) for relation in value or ()] or None

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[Relation, ...]:
        return tuple(Relation(**relation) for relation in value or ())


class FactRow(Base):
    """Statement, valid from `valid_from` until `valid_to`; a correction invalidates it and names its successor.

    expires_at: when it ends by itself; a job closes it then. merged: it says the same as its successor. recalled_count:
    for how many messages it was of use. replaces: only of one that waits for review, the ids of the facts that it
    supersedes once it is accepted.
    """

    __tablename__ = "facts"
    __table_args__ = (
        Index("ix_facts_owner_valid", "owner_id", "valid_to"),
        Index("ix_facts_linked", "owner_id", sqlite_where=_WITH_LINKS, postgresql_where=_WITH_LINKS),
        Index("ix_facts_waiting", "owner_id", sqlite_where=_WAITING, postgresql_where=_WAITING),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    session_id: Mapped[int | None] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    source_message_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), index=True)
    text: Mapped[str] = mapped_column(Text)
    category: Mapped[str] = mapped_column(String(CATEGORY_CHARS_MAX))
    importance: Mapped[int]
    scope: Mapped[str] = mapped_column(String(8))
    quote: Mapped[str] = mapped_column(Text, default="")
    pinned: Mapped[bool] = mapped_column(default=False)
    recalled_count: Mapped[int] = mapped_column(default=0)
    valid_from: Mapped[datetime]
    valid_to: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    superseded_by: Mapped[int | None] = mapped_column(ForeignKey("facts.id", ondelete="SET NULL"), index=True)
    merged: Mapped[bool] = mapped_column(default=False, server_default=false())
    links: Mapped[tuple[Relation, ...]] = mapped_column(Relations, nullable=True)
    replaces: Mapped[list[int] | None] = mapped_column(JSON(none_as_null=True))
    waiting: Mapped[bool] = column_property(replaces.is_not(None))  # for review
    created_at: Mapped[datetime]


def columns_of_waiting(valid_from: datetime, supersedes: Iterable[int] = ()) -> dict[str, Any]:
    """Return the columns of a fact that waits for review: it ends as it begins, so it is never valid until accepted."""
    return {"valid_to": valid_from, "replaces": list(supersedes)}


class FactRevisionRow(Base):
    """Fact as it was after a change. `author` is `model` or `person`.

    `action` is `made`, `edited` or `superseded`; by consolidation `merged`, `contradicted` or `expired`, and `reopened`
    when that is undone, or its correction is deleted; `ended` at its `expires_at`; by rules `proposed` and then
    `accepted`, or `excluded`.
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
    """Statement with its source, valid from `valid_from` until `valid_to` (None: still), or until `expires_at`.

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
    expires_at: datetime | None = None
    waiting: bool = False
    score: FactScore = FactScore()
    merged_facts: tuple["Fact", ...] = ()


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
class FactDraft:
    """Fact as the mini model proposes it, not yet checked against its source.

    source: position of the message it rests on. supersedes: ids of the facts that it corrects.
    last_day: on which it is valid.
    """

    text: str
    source: int
    quote: str
    category: str = "other"
    importance: int = 3
    scope: str = "session"
    supersedes: tuple[int, ...] = ()
    links: tuple[Relation, ...] = ()
    last_day: date | None = None


class InstructionDraft(NamedTuple):
    """Hold what the person asks of every later reply, as the mini model proposes it, not yet checked.

    source: the position of the message.
    """

    text: str
    source: int
    quote: str
