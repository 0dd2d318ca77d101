"""SearchIndex: the one door to searching.

The database has the truth, the index is a faster copy of some of it, and every search looks at both.  The caller passes
in the messages that this generation of the index was not reported to hold; they and the indexed ones are ranked
together, by one formula over joint statistics.  So an index may lag, fail or vanish, and the same is found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from whoosh.index import FileIndex
from whoosh.reading import IndexReader

from search_index.analysis import ENGLISH, Analysis
from search_index.arrays import Block, Candidates, Document, Entry, gather, microseconds, role_number
from search_index.caches import ClearNotice, SizedCache, clear_all
from search_index.directory import NO_INDEX, IndexBusy, sweep
from search_index.operators import Words
from search_index.ranking import FUZZY_LIMIT, Recipe, rank
from search_index.store import FORMAT, TEXT_FIELD, IndexLost, Store, best, blocks_of, matching
from search_index.vectors import NO_VECTOR, Embedder, EmbeddingUnavailable, packed

log = logging.getLogger(__name__)

ARRAYS_BYTES = 16 << 20  # of indexed messages in memory: some 30 owners with 500 each, or one with 20,000
ENTRIES_BYTES = 6 << 20  # of analysed messages that are not indexed yet: some 5,000
RANKED_WHOLE = 20_000  # messages of an owner that are all ranked; of more, Whoosh's postings choose CANDIDATES
CANDIDATES = 2_000
_INDEX_BYTES = 10_000  # what Python takes for an index beside its arrays


@dataclass(frozen=True)
class Query:
    """What to look for: plain words, or with `operators` also "phrases", -exclusions and prefixes*.

    `after` is inclusive, `before` exclusive.  `exclude` are ids of messages that count as not there: a question that
    was just asked would be its own best answer.  `times` are half-open ranges the text speaks of: what was said then is
    preferred, the rest is found all the same.
    """

    text: str
    limit: int = 10
    session_id: int | None = None
    role: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    exclude: Collection[int] = ()
    times: Sequence[tuple[datetime, datetime]] = ()
    operators: bool = False


@dataclass(frozen=True)
class Prepared:
    """A query, its words analysed, and its vector."""

    query: Query
    words: Words
    vector: bytes = NO_VECTOR


class Hit(NamedTuple):
    """A found message.  `score` is higher for better; `why` are its parts, by name (see `ranking`)."""

    message_id: int
    session_id: int
    score: float
    why: dict[str, float]


@dataclass(frozen=True, eq=False)
class _Snapshot:
    """An owner's index as it was read: which commit, and the blocks of its segments."""

    index: FileIndex
    commit: int = -1
    blocks: dict[Any, Block] | None = None
    """None where there are too many messages to keep them all."""

    @property
    def nbytes(self) -> int:
        return _INDEX_BYTES + sum(block.nbytes for block in (self.blocks or {}).values())


class SearchIndex:
    """All owners' indexes under one folder; safe to use from many threads and processes.

    `owner` is any string that names the owner; folders are named by its hash.
    """

    def __init__(
        self,
        root: Path,
        busy_after: float = 10.0,
        *,
        recipe: Recipe = Recipe(),  # noqa: B008 - frozen
        embedder: Embedder | None = None,
        analysis: Analysis = ENGLISH,
    ) -> None:
        """`busy_after`: seconds a writer waits for another writer of the same owner before IndexBusy.

        `recipe` says what counts in the ranking.  Without an `embedder` messages are compared by their words alone.  An
        index that was made with another `analysis` or embedder counts as none and is replaced.
        """
        self._root = root
        self._busy_after = busy_after
        self._recipe = recipe
        self._embedder = embedder
        self._analysis = analysis
        # A service would take too long for messages that wait: they are compared by their words.
        self._quick_embedder = embedder if embedder is not None and embedder.instant and recipe.meaning else None
        self._made_with = f"{FORMAT} {analysis.language} {embedder.name if embedder else 'no vectors'}"
        self._snapshots: SizedCache[_Snapshot] = SizedCache(ARRAYS_BYTES)
        self._entries: SizedCache[Entry] = SizedCache(ENTRIES_BYTES)
        self._notice = ClearNotice(root / ".forget")
        try:
            sweep(root)
        except OSError as error:  # a folder that can't be written can still be searched
            log.error("leftovers of the search index can't be cleared away: %s", error)

    def warm_up(self) -> None:
        """Load what the first search would have to wait for: a local model takes half a second."""
        if self._embedder is not None and self._embedder.instant:
            self._embedder.embed(["warm up"])

    def generation(self, owner: str) -> str:
        """The generation of the owner's index; NO_INDEX where there is none, or none that can be read."""
        if self._notice.is_new():
            clear_all()
        try:
            return self._store(owner).generation()
        except OSError as error:
            log.error("the search index can't be read; messages are searched without it: %s", error)
            return NO_INDEX

    def prepare(self, query: Query) -> Prepared:
        """The query, ready for `search`.  May call an embedding service; `search` never does."""
        words = (Words.parsed if query.operators else Words.plain)(query.text, self._analysis)
        vector = NO_VECTOR
        if self._embedder is not None and self._recipe.meaning and words.searchable:
            try:
                (vector,) = packed(self._embedder, [words.text])
            except EmbeddingUnavailable as error:
                log.warning("searching by words alone: %s", error)
        return Prepared(query, words, vector)

    def search(
        self,
        owner: str,
        prepared: Prepared,
        generation: str,
        waiting: Sequence[Document],
        gone: Collection[int] = (),
    ) -> list[Hit]:
        """The best `limit` messages, best first; ties go to the newer message (the higher id).

        `waiting` are all messages of the owner that were not reported as held by that `generation` of the index (see
        `add`); of a message that is both there and in the index the waiting one counts.  `gone` are the ids of messages
        that the index may still hold and nobody may find.  With NO_INDEX the waiting ones alone are searched.  Raises
        IndexLost when the index is of another generation by now, is damaged, or can't be read: then search again with
        NO_INDEX and all messages.
        """
        query, words = prepared.query, prepared.words
        if not words.searchable or query.limit < 1:
            return []
        exclude = {*query.exclude, *gone}
        entries = self._analysed([one for one in waiting if one.message_id not in exclude], self._quick_embedder)
        columns = ([one.row for one in entries], [one.bag for one in entries], [one.vector for one in entries])
        blocks, matching = self._indexed(owner, generation, words) if generation != NO_INDEX else ([], set())
        candidates = gather(blocks, Block.of(*columns), words.terms, prepared.vector, exclude)
        times = [(microseconds(after), microseconds(before)) for after, before in query.times]
        ranked = rank(candidates, self._recipe, time_ns() // 1_000, times)
        eligible = _passing(query, candidates)
        if words.restricts:
            matching.difference_update(one.message_id for one in waiting)
            matching.update(one.document.message_id for one in entries if words.match(one.terms))
            eligible &= np.isin(candidates.rows["id"], np.fromiter(matching, np.int64, len(matching)))
        if not words.required:
            eligible &= ranked.eligible
        at = eligible.nonzero()[0]
        limit = min(query.limit, FUZZY_LIMIT) if self._recipe.formula == "fuzzy" else query.limit
        if len(at) > limit:  # of thousands, only the best are worth sorting
            at = at[ranked.total[at] >= np.partition(ranked.total[at], -limit)[-limit]]
        at = at[np.lexsort((-candidates.rows["id"][at], -ranked.total[at]))[:limit]]
        why = [dict(zip(ranked.names, parts, strict=True)) for parts in ranked.parts.take(at, axis=1).T.tolist()]
        found = candidates.rows["id"][at], candidates.rows["session"][at], ranked.total[at]
        return list(map(Hit, *[column.tolist() for column in found], why))

    def highlights(self, prepared: Prepared, text: str) -> list[str]:
        """The words of `text` that a query looked for, as they are written there, in their order."""
        return self._analysis.highlights(text, prepared.words.terms, prepared.words.prefixes)

    def add(self, owner: str, documents: Iterable[Document]) -> str:
        """Index `documents` in one commit and return the generation that now holds them.

        Idempotent: what is there already is left alone.  What is in the index when this returns is on the disk.
        `documents` is read while the owner's lock is held: a generator that loads its rows only then never brings back
        what a `remove` or `drop` has taken out.  Raises IndexBusy when another writer holds the lock for too long, and
        OSError when the disk is full or forbidden; nothing is changed then.
        """
        given: dict[int, Document] | None = None

        def fresh(is_held: Callable[[int], bool]) -> list[Entry]:
            nonlocal given
            if given is None:  # called again after damage
                given = {document.message_id: document for document in documents}
            return self._analysed([one for one in given.values() if not is_held(one.message_id)], self._embedder)

        return self._store(owner).add(fresh)

    def remove(
        self, owner: str, *, message_ids: Collection[int] = (), session_id: int | None = None, scrub: bool = True
    ) -> None:
        """Take out these messages, or all of a session's.  No error where there is nothing to take out.

        With `scrub` no byte of them stays in the files; without, they are only not found.  Raises IndexBusy like `add`.
        """
        self._store(owner).remove(message_ids, session_id, scrub=scrub)

    def drop(self, owner: str) -> None:
        """Delete the owner's whole index from the disk.  Raises IndexBusy as `add` does."""
        self._store(owner).drop()

    def clear_caches(self) -> None:
        """Empty every cache of what people wrote: of this process now, of others that share the folder before they next
        look into an index.  Caches fill again by themselves."""
        clear_all()
        try:
            self._notice.post()
        except OSError as error:
            log.error("other processes could not be told to clear their caches: %s", error)

    def held(self, owner: str) -> tuple[str, set[int]]:
        """The index's generation and the ids of all messages it holds, read from the disk.

        A damaged index is put away first, as in `search`; one that is not there is (NO_INDEX, set()).
        """
        store = self._store(owner)
        while (generation := store.generation()) != NO_INDEX:
            with suppress(IndexLost):
                blocks = store.read(store.open(generation), generation, lambda reader: blocks_of(reader, {}))
                return generation, {message_id for block in blocks.values() for message_id in block.rows["id"].tolist()}
        return NO_INDEX, set()

    def is_current(self) -> bool:
        """Whether the last `mark_current` was by an index of this format, analysis and embedder."""
        try:
            return (self._root / ".made-with").read_text("utf-8") == self._made_with
        except OSError:
            return False

    def mark_current(self) -> None:
        """Note for the next start that the indexes of this way of making them were asked for."""
        self._root.mkdir(parents=True, exist_ok=True)
        (self._root / ".made-with").write_text(self._made_with, "utf-8")

    def _store(self, owner: str) -> Store:
        return Store(self._root, owner, self._busy_after, self._made_with)

    def _indexed(self, owner: str, generation: str, words: Words) -> tuple[list[Block], set[int]]:
        """The indexed messages to rank; and if the words restrict what is found, the ids that they leave.

        Raises IndexLost.
        """
        store = self._store(owner)
        try:
            snapshot = self._snapshot(store, (owner, generation))
            if snapshot.blocks is None:
                query = words.query(TEXT_FIELD, any_term=True)
                block, ids = store.read(snapshot.index, generation, lambda reader: best(reader, query, CANDIDATES))
                return [block], ids
            ids = set()
            if words.restricts:
                query = words.query(TEXT_FIELD)
                ids = store.read(snapshot.index, generation, lambda reader: matching(reader, query))
            return list(snapshot.blocks.values()), ids
        except (IndexBusy, OSError) as error:
            log.error("the search index can't be read; messages are searched without it: %s", error)
            raise IndexLost("the index can't be read") from error

    def _snapshot(self, store: Store, key: tuple[str, str]) -> _Snapshot:
        """The latest commit of the index; segments that were read before are not read again."""
        _, generation = key
        known = self._snapshots.get(key) or _Snapshot(store.open(generation))
        commit = known.index.latest_generation()  # a commit between this and the read is read once more next time
        if commit == known.commit:
            return known

        def read(reader: IndexReader) -> dict[Any, Block] | None:
            return blocks_of(reader, known.blocks or {}) if reader.doc_count() <= RANKED_WHOLE else None

        snapshot = _Snapshot(known.index, commit, store.read(known.index, generation, read))
        if snapshot.nbytes > ARRAYS_BYTES:  # messages of books: to read them all for each search would take too long
            snapshot = replace(snapshot, blocks=None)
        self._snapshots.put(key, snapshot)
        return snapshot

    def _analysed(self, documents: Sequence[Document], embedder: Embedder | None) -> list[Entry]:
        """The documents, analysed.  The same ones wait search after search, and are then indexed: they are cached."""
        entries = {one: self._entries.get((one, embedder is not None)) for one in documents}
        new = [one for one, entry in entries.items() if entry is None]
        spoken = list({one.spoken: None for one in new})
        vectors = dict(zip(spoken, packed(embedder, spoken), strict=True)) if embedder is not None else {}
        for one in new:
            terms = self._analysis.terms(one.content, one.name, singles=True)
            entries[one] = entry = Entry.of(one, terms, vectors.get(one.spoken, NO_VECTOR))
            self._entries.put((one, embedder is not None), entry)
        return [entry for entry in entries.values() if entry is not None]


def _passing(query: Query, candidates: Candidates) -> NDArray[np.bool_]:
    """Which messages are what the query asks for beside its words."""
    rows = candidates.rows
    passing = np.ones(len(rows), bool)
    if query.session_id is not None:
        passing &= rows["session"] == query.session_id
    if query.role is not None:
        passing &= rows["role"] == role_number(query.role)
    if query.after is not None:
        passing &= rows["created"] >= microseconds(query.after)
    if query.before is not None:
        passing &= rows["created"] < microseconds(query.before)
    return passing
