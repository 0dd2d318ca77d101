"""Storage of analysed messages (`IndexStore`): `whoosh_store` in files, `postgres_store` in tables.

Each change of `add` or `remove` is durable when the call returns, or not made at all.  A generation is a random token
that is made and lost with an owner's index: the rows note it for each message that the index has.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection

from search_index.arrays import IndexedMessage, SearchableText, Segment
from search_index.query import Operators, PreparedQuery

FORMAT = 14  # how an index is written: one that was written otherwise counts as none
NO_INDEX = "none"  # the generation of an owner who has no index

_INDEX_BYTES = 10_000  # what Python takes for an index beside its arrays

Analysed = Callable[[list[SearchableText]], list[IndexedMessage]]
"""Returns texts as they are stored."""

MadeWith = Callable[[], str]
"""Returns how indexes are written, in one line: an index counts as none if its line does not begin so.

As long as the size of a service's vectors is not known, the line lacks it; nothing is written then.
"""

Best = tuple[Segment, set[int]]
"""Likeliest messages with their neighbours; and the ids of the likeliest."""


class IndexLost(Exception):
    """Raised when the index is of another generation, or can't be read."""


class IndexBusy(Exception):
    """Raised when another writer keeps the owner's index for too long.  Nothing was changed; try again later."""


class Snapshot(NamedTuple):
    """Commit of an owner's index, with its messages in segments, unless these are too many.

    `opened` is what the store reads it through, if it keeps something open.
    """

    commit: Hashable = None
    segments: dict[Any, Segment] | None = None
    opened: Any = None

    @property
    def nbytes(self) -> int:
        return _INDEX_BYTES + sum(segment.nbytes for segment in (self.segments or {}).values())


class UnindexedMessages(NamedTuple):
    """Messages that a generation of the index does not have.

    deleted_ids: replaced, erased or refused messages, which the index may still have, and no search may find.
    load: reads messages by their ids; a search calls it for messages that were not analysed before.
    is_lost: another generation had some of them, and no job is there to index them again.
    """

    ids: Sequence[int] = ()
    deleted_ids: Sequence[int] = ()
    load: Callable[[Sequence[int]], Sequence[SearchableText]] = lambda ids: ()
    is_lost: bool = False


class IndexStore(Protocol):
    """Owners' indexes; safe to use from many threads and processes.  `owner` is any string that names the owner.

    An index that was made with another analysis or embedder counts as none.  What reads a generation raises IndexLost
    when another is there by now or it was damaged, IndexBusy while another process mends it.  connection: a transaction
    with a snapshot, in which a store in that database reads; None: it takes one of its own.
    """

    def open(self) -> None:
        """Make what all indexes need, if it is missing.  Raises SettingsError where that can't be had."""

    def state(self, owner: str) -> tuple[str, str]:
        """Return the generation of the owner's index, NO_INDEX where there is none, and a notice.

        Processes must clear their caches when the notice is another than before.
        """

    def notify(self) -> None:
        """Change the notice that all processes see."""

    def held(self, owner: str) -> tuple[str, set[int]]:
        """Return the index's generation and the ids of all its messages; (NO_INDEX, set()) if there is none."""

    def add(self, owner: str, texts: Iterable[SearchableText], analysed: Analysed) -> str:
        """Index those of `texts` that are not there yet, in one commit, and return the index's generation.

        `texts` is read while other writers of the owner wait: a generator that loads its rows only then never
        brings back what a `remove` or `drop` has taken out.  An owner for whom there is nothing to hold gets no index.
        Raises IndexBusy, and OSError when the disk is full or forbidden.
        """

    def remove(
        self, owner: str, *, message_ids: Collection[int] = (), session_id: int | None = None, scrub: bool = True
    ) -> None:
        """Take out these messages, or all of a session's.  No error where there is nothing to take out.

        With `scrub` no byte of them stays in files; without, they may be only not found.  Raises IndexBusy.
        """

    def drop(self, owner: str) -> None:
        """Delete the owner's whole index, of whatever generation.  Raises IndexBusy."""

    def snapshot(
        self, owner: str, generation: str, known: Snapshot, most: int, connection: Connection | None
    ) -> Snapshot:
        """Return the latest commit, without segments if it has more than `most` messages.

        Segments of the `known` snapshot are not read again; `known` itself is returned when nothing has changed.
        """

    def matching(self, owner: str, generation: str, operators: Operators, connection: Connection | None) -> set[int]:
        """Return the ids of the messages that pass the operators."""

    def best(
        self, owner: str, generation: str, prepared: PreparedQuery, limit: int, connection: Connection | None
    ) -> Best:
        """Return about `limit` messages, chosen by words and, if the store can, by the query's vector.

        The likeliest pass the filters of the query; their neighbours need not.
        """
