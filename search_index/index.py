"""SearchIndex: the one door to searching."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True)
class Document:
    """A message as the index sees it.  `session_id` and `message_id` are the caller's own integers."""

    message_id: int
    session_id: int
    role: str
    created_at: datetime
    content: str
    name: str | None = None


@dataclass(frozen=True)
class Query:
    """What to look for.  `text` is plain words, never query language.

    `after` is inclusive, `before` exclusive.  `session_id` and `role` narrow; `exclude` are message ids never wanted.
    """

    text: str
    limit: int = 10
    session_id: int | None = None
    role: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    exclude: Collection[int] = ()


@dataclass(frozen=True)
class Hit:
    """A found message.  `score` is higher for better; `why` are its parts, by name."""

    message_id: int
    session_id: int
    score: float
    why: dict[str, float] = field(default_factory=dict)


class SearchIndex:
    """All owners' indexes under one folder; safe to use from many threads and processes.

    `owner` is any string that names the owner; folders are named by its hash.
    """

    def __init__(self, root: Path) -> None: ...

    def search(self, owner: str, query: Query, pending: Callable[[str], Sequence[Document]]) -> list[Hit]:
        """The best `query.limit` messages, best first; ties go to the newer message (the higher id).

        `pending(generation)` must give every message of the owner that was not reported as held by that generation
        of the index (see `add`), narrowed in any way the query allows.  It is called at least once, and again when the index was damaged
        or replaced meanwhile, then with the new generation.  A message both in the index and in `pending` counts once.
        A text without any searchable word finds nothing.
        """
        ...

    def add(self, owner: str, documents: Iterable[Document]) -> str:
        """Index `documents` in one commit and return the generation that now holds them.

        Idempotent: what is there already is left alone.  Waits up to 10 s for another writer, then raises IndexBusy.
        """
        ...

    def remove(self, owner: str, *, message_ids: Iterable[int] = (), session_id: int | None = None) -> None:
        """Take out these messages, or all of a session's.  No error where there is nothing to take out."""
        ...

    def drop(self, owner: str) -> None:
        """Delete the owner's whole index from the disk."""
        ...

    def held(self, owner: str) -> tuple[str, set[int]]:
        """The index's generation and the ids of all messages it holds, for `verify`.  Opens every document once."""
        ...
