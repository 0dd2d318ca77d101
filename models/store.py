"""Store items, their earlier values and the messages that they rest on; the values of operations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId

# Ranges of names select what is below a prefix, so names are ordered by their code points on every database.
NAME = String(256).with_variant(String(256, collation="C"), "postgresql")


class ItemRow(Base):
    """JSON value under a namespace and a key.

    `namespace` has its parts joined with "."; no part has one.  The item is gone from `expires_at` on: `ttl_minutes`
    after it was written or, if it `refreshes`, after it was last read.  `index_paths`: see `Put.paths`.
    """

    __tablename__ = "items"
    __table_args__ = (
        UniqueConstraint("owner_id", "namespace", "key"),
        Index("ix_items_owner_updated", "owner_id", "updated_at", "id"),
        Index("ix_items_owner_expires", "owner_id", "expires_at"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    namespace: Mapped[str] = mapped_column(NAME)
    key: Mapped[str] = mapped_column(NAME)
    value: Mapped[Any] = mapped_column(JSON, nullable=False)
    index_paths: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    version: Mapped[int]
    ttl_minutes: Mapped[float | None]
    refreshes: Mapped[bool]
    expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class ItemVersionRow(Base):
    """Value that an item had from one version on, for kinds that keep their history.

    `author` is who wrote it: `model` or `person`.
    """

    __tablename__ = "item_versions"
    __table_args__ = (UniqueConstraint("item_id", "version"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id", ondelete="CASCADE"))
    version: Mapped[int]
    value: Mapped[Any] = mapped_column(JSON, nullable=False)
    author: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]


class ItemSourceRow(Base):
    """Message that an item, or an earlier value of it, rests on."""

    __tablename__ = "item_sources"

    item_id: Mapped[int] = mapped_column(ForeignKey("items.id", ondelete="CASCADE"), primary_key=True)
    message_id: Mapped[int] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True, index=True)


OWN = "recap"  # the first part of the namespaces that the engine writes and callers only read
FEEDBACK = (OWN, "feedback")  # the namespace of what people think of replies
MODEL = "model"  # the author of what the mini model wrote: prompts show it only after the prefix is chosen again
ANY_PART = "*"  # in a pattern of namespaces


Namespace = tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """Value under its namespace and key, as of `version`; versions count from 1.

    It is gone from `expires_at` on: `ttl` minutes after it was written or, if it `refreshes`, last read.  `score` says
    how well it answers a query.
    """

    id: int
    namespace: Namespace
    key: str
    value: Any
    version: int
    ttl: float | None
    refreshes: bool
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    paths: Sequence[str] | None = None
    score: float | None = None


@dataclass(frozen=True)
class ItemVersion:
    """Value that an item had from `created_at` on; version 0: none that anybody has written.

    author: `model`, `person`, `rollback`, `correction` or `erasure`.
    """

    version: int = 0
    value: Any = None
    author: str | None = None
    created_at: datetime | None = None

    def read(self, read: Callable[[Any], Any]) -> Self:
        """Return the version with its value as `read` returns it."""
        return replace(self, value=read(self.value))


@dataclass(frozen=True)
class Source:
    """Place of a message that an item rests on."""

    session_id: str
    position: int


@dataclass(frozen=True)
class Put:
    """Store a value.  With `version` only in the place of that version; 0: only where there is no item.

    paths: where queries look in this value; empty: nowhere; None: where the search says.
    """

    namespace: Namespace
    key: str
    value: Any
    version: int | None = None
    ttl: float | None = None
    refreshes: bool = False
    paths: Sequence[str] | None = None


@dataclass(frozen=True)
class Get:
    """Read an item.  One that refreshes lives on for another `ttl`, unless `refresh` is False."""

    namespace: Namespace
    key: str
    refresh: bool = True


@dataclass(frozen=True)
class Delete:
    """Erase an item, with `version` only that version of it."""

    namespace: Namespace
    key: str
    version: int | None = None


@dataclass(frozen=True)
class Search:
    """Find items at or below a namespace that meet the filter, newest first; with a `query` the best ones first.

    `paths` lead to what of a value the query is compared with, as `a[*].b` does; none: to all of its texts.  The paths
    of an item itself come first.
    """

    namespace: Namespace = ()
    filter: Mapping[str, Any] = field(default_factory=dict)
    query: str | None = None
    paths: tuple[str, ...] = ()
    limit: int = 10
    offset: int = 0
    refresh: bool = True


@dataclass(frozen=True)
class ListNamespaces:
    """List namespaces that begin with `prefix` and end with `suffix`, where ANY_PART matches any part.

    With `max_depth` they are cut to so many parts.
    """

    prefix: Namespace = ()
    suffix: Namespace = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Operation = Put | Get | Delete | Search | ListNamespaces
