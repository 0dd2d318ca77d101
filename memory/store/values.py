"""Items and what can be done with them, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

OWN = "recap"  # the first part of the namespaces that the engine writes and callers only read
MODEL = "model"  # the author of what the mini model wrote: it waits until the head of a prompt is chosen again
ANY_PART = "*"  # in a pattern of namespaces

Namespace = tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """A value under its namespace and key, as of `version`; versions count from 1.

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
    score: float | None = None


@dataclass(frozen=True)
class ItemVersion:
    """The value that an item had from `created_at` on."""

    version: int
    value: Any
    author: str
    created_at: datetime


@dataclass(frozen=True)
class Source:
    """The place of a message that an item rests on."""

    session_id: str
    position: int


@dataclass(frozen=True)
class Put:
    """Store a value.  With `version` only in the place of that version; 0: only where there is no item."""

    namespace: Namespace
    key: str
    value: Any
    version: int | None = None
    ttl: float | None = None
    refreshes: bool = False


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
    """Items at or below a namespace that meet the filter, newest first; with a `query` the best ones first.

    `paths` lead to what of a value the query is compared with, as `a[*].b` does; none: to all of its texts.
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
    """Namespaces in their order that begin with `prefix` and end with `suffix`, where ANY_PART matches any part.

    With `max_depth` they are cut to so many parts.
    """

    prefix: Namespace = ()
    suffix: Namespace = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Operation = Put | Get | Delete | Search | ListNamespaces
