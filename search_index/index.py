"""SearchIndex: the one door to searching.

The database has the truth, the index is a faster copy of some of it, and every search looks at both.  The caller passes
in the messages that this generation of the index was not reported to hold; they and the indexed ones are ranked
together, by one formula over joint statistics.  So an index may lag, fail or vanish, and the same is found.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from time import time_ns
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine

from search_index.analysis import ENGLISH, Analysis
from search_index.arrays import (
    EMPTY,
    Candidates,
    Document,
    IndexedMessage,
    Segment,
    load_candidates,
    microseconds,
    term_hash,
)
from search_index.caches import ByteLRU, clear_all
from search_index.embeddings import NO_VECTOR, Embedder, EmbeddingUnavailable, WordLlamaEmbedder, quantize
from search_index.index_storage import FORMAT, NO_INDEX, IndexBusy, IndexLost, IndexStore, Snapshot
from search_index.nearness import Nearness
from search_index.operators import NONE, parsed
from search_index.postgres_store import PostgresStore
from search_index.query import PreparedQuery, Query
from search_index.ranking import ALONE, MEANING, WORDS, RankingProfile, ScoringContext, alone, found, rank
from search_index.whoosh_store import WhooshStore
from search_index.yardstick import Space

log = logging.getLogger(__name__)

ARRAYS_BYTES = 16 << 20  # of indexed messages in memory: some 30 owners with 500 each, or one with 20,000
ENTRIES_BYTES = 6 << 20  # of analysed messages that are not indexed yet: some 5,000
FOUND_BYTES = 4 << 20  # of what searches found, and of the vectors that a service made for them: some 300 searches
RANKED_WHOLE = 20_000  # messages of an owner that are all ranked; of more, the store chooses CANDIDATES
CANDIDATES = 2_000
WAIT_SECONDS = 0.5  # for a service that makes the vector of a query
_HIT_BYTES = 1_200  # what Python takes for a hit and its parts


class Hit(NamedTuple):
    """A found message.  `score` is higher for better; `why` are its parts, by name (see `ranking`).

    `fit`: how well it fits by itself, from 0 to 1, and at least as well as those that follow it.  `own` and `near` are
    what that is made of: its share of the query's words, and how near its meaning is.
    """

    message_id: int
    session_id: int
    score: float
    why: dict[str, float]
    fit: float = 0.0
    own: float = 0.0
    near: float = 0.0


class SearchIndex:
    """All owners' indexes, and searching in them; safe to use from many threads and processes."""

    def __init__(
        self,
        place: Path | Engine,
        busy_after: float = 10.0,
        *,
        profile: RankingProfile = WORDS,
        embedder: Embedder | None = None,
        analysis: Analysis = ENGLISH,
    ) -> None:
        """`place` is the folder of Whoosh's files, or the engine of a PostgreSQL database.

        `busy_after`: seconds a writer waits for another writer of the same owner before IndexBusy.

        Without an `embedder` messages are compared by their words alone.  An index that was made with another
        `analysis` or embedder counts as none and is replaced.
        """
        self._embedder = embedder
        self._analysis = analysis
        self._store: IndexStore = (
            WhooshStore(place, busy_after, self._made_with)
            if isinstance(place, Path)
            else PostgresStore(place, busy_after, self._made_with)
        )
        # These need nothing of the analysis or the ranking: see `IndexStore`.
        self.held, self.remove, self.drop = self._store.held, self._store.remove, self._store.drop
        self._profile, self._parts = profile, [part.name for part in profile.parts]
        self._by_age = profile.uses("age")
        # A service would take too long for texts without an index.  Messages that wait for theirs are compared by their
        # words, what stands alone by the local model.
        self._written = Space(embedder) if embedder is not None else None
        self._space = self._written if profile.uses("meaning") else None
        is_service = self._space is not None and not self._space.embedder.instant
        self._quick_space = None if is_service else self._space
        self._alone_space = Space(WordLlamaEmbedder()) if is_service else self._space
        self.nearness = Nearness(analysis, self._alone_space)
        self._snapshots, self._entries = ByteLRU(ARRAYS_BYTES), ByteLRU(ENTRIES_BYTES)
        self._found = ByteLRU(FOUND_BYTES)
        self._notice = ""  # when all processes last had to clear their caches

    def warm_up(self) -> None:
        """Load what the first search would have to wait for: a local model takes half a second.

        Raises SettingsError where no index can be had.
        """
        self._store.open()
        if self._quick_space is not None:
            self._quick_space.measure()
        elif self._space is not None:
            self._space.measure_soon()

    def generation(self, owner: str) -> str:
        """The generation of the owner's index; NO_INDEX where there is none, or none that can be read."""
        try:
            generation, notice = self._store.state(owner)
        except OSError as error:
            log.error("the search index can't be read; messages are searched without it: %s", error)
            return NO_INDEX
        if notice != self._notice:
            self._notice = notice
            clear_all()
        return generation

    def _made_with(self) -> str:
        """How the indexes are written (see `store.MadeWith`)."""
        if self._embedder is None:
            return f"{FORMAT} {self._analysis.language} no vectors"
        size = f"{self._embedder.dimensions}." if self._embedder.dimensions else ""
        return f"{FORMAT} {self._analysis.language} {self._embedder.name} {size}"

    def add(self, owner: str, documents: Iterable[Document]) -> str:
        """Analyse and index those of `documents` that are not there yet (see `IndexStore.add`)."""
        if self._written is not None:
            self._written.measure()
        return self._store.add(owner, documents, lambda new: self.analysed(new, self._written))

    def prepare(self, query: Query, owner: str = "") -> PreparedQuery:
        """The query, ready for `search`.  May call an embedding service; `search` never does.

        An owner's same query again has the vector that the service made before.
        """
        text, typed = parsed(query.text, self._analysis) if query.operators else (query.text, NONE)
        prepared = PreparedQuery(query, text, self._analysis.query_terms(text), typed)
        if self._space is None or self._space is self._quick_space or query.alone or not text.strip():
            return prepared
        key = owner, " ".join(text.split())
        try:
            vectors = self._found.get(key) or quantize(self._space.embedder, [text], WAIT_SECONDS)
            self._found.put(key, vectors, len(text) + _HIT_BYTES)
        except EmbeddingUnavailable as error:
            log.warning("searching by words alone: %s", error)
            return prepared._replace(failure=str(error))
        self._space.measure_soon()
        return prepared._replace(vector=vectors[0], content=vectors[0])

    def search(
        self,
        owner: str,
        prepared: PreparedQuery,
        generation: str,
        waiting: Sequence[Document],
        gone: Collection[int] = (),
        *,
        connection: Connection | None = None,
    ) -> list[Hit]:
        """The best `limit` messages, best first; ties go to the newer message (the higher id).

        `waiting` are all messages of the owner that were not reported as held by that `generation` of the index (see
        `add`); `gone` are the ids of messages that it may still hold and nobody may find.  Raises IndexLost when the
        index is of another generation by now, is damaged, or can't be read: then search again with NO_INDEX and all
        messages.

        connection: a transaction of the database, in whose snapshot an index in that database is read.

        The same query of the same owner is answered from memory until any of that, or a commit of the index, changes.
        """
        query, space = prepared.query, self._space_of(prepared)
        by_meaning = space is not None and (query.nearest or query.alone) and prepared.text.strip()
        if query.limit < 1 or not (prepared.terms or prepared.operators.required or by_meaning):  # exclusions alone
            return []
        asked = f"{' '.join(query.text.split())}\n{replace(query, text='')}"
        clock = time_ns() if self._by_age else 0  # then nothing is found twice
        try:
            indexed = self._snapshot(owner, generation, connection) if generation != NO_INDEX else None
            there = generation, indexed and indexed.commit, hash(tuple(waiting)), tuple(gone)
            measured = space is not None and space.yardstick is not None
            key = owner, there, asked, prepared.vector, clock, measured
            hits: list[Hit] | None = self._found.get(key)
            if hits is None:
                segments, accepted = (
                    self._segments(owner, generation, indexed, prepared, connection) if indexed else ([], set())
                )
                hits = self._ranked(prepared, segments, accepted, waiting, gone)
                self._found.put(key, hits, len(asked) + _HIT_BYTES * (len(hits) + 1))
        except (IndexBusy, OSError) as error:
            log.error("the search index can't be read; messages are searched without it: %s", error)
            raise IndexLost("the index can't be read") from error
        return list(hits)

    def _ranked(
        self,
        prepared: PreparedQuery,
        segments: Sequence[Segment],
        accepted: set[int],
        waiting: Sequence[Document],
        gone: Collection[int],
    ) -> list[Hit]:
        """Rank indexed and unindexed messages.  accepted: ids that pass the query's operators."""
        query, typed = prepared.query, prepared.operators
        exclude = {*query.exclude, *gone}
        entries, unindexed = list[IndexedMessage](), EMPTY
        if shown := [one for one in waiting if one.message_id not in exclude]:
            entries = self.analysed(shown, self._alone_space if query.alone else self._quick_space)
            columns = ([one.row for one in entries], [one.bag for one in entries], [one.vector for one in entries])
            unindexed = Segment.of(*columns)
        candidates = load_candidates(segments, unindexed, prepared.terms, exclude)
        if not len(candidates.rows):
            return []
        asked = self._asked(prepared, candidates)
        ranked = alone(asked) if query.alone else rank(asked, self._profile)
        eligible = filter_mask(query, candidates)
        if typed != NONE:
            accepted.difference_update(one.message_id for one in waiting)
            accepted.update(one.document.message_id for one in entries if typed.match(one.terms))
            eligible &= np.isin(candidates.rows["id"], np.fromiter(accepted, np.int64, len(accepted)))
        if not typed.required:
            eligible &= found(asked, self._profile, ranked.total)
        at, limit = eligible.nonzero()[0], min(query.limit, self._profile.most)
        if len(at) > limit:  # of thousands, only the best are worth sorting
            at = at[ranked.total[at] >= np.partition(ranked.total[at], -limit)[-limit]]
        at = at[np.lexsort((-candidates.rows["id"][at], -ranked.total[at]))[:limit]]
        names = ALONE if query.alone else self._parts
        why = [dict(zip(names, parts, strict=True)) for parts in ranked.parts.take(at, axis=1).T.tolist()]
        if prepared.failure is not None:
            why = [{name: value for name, value in parts.items() if name not in MEANING} for parts in why]
        fit = np.maximum.accumulate(asked.fit[at][::-1])[::-1]
        rows = candidates.rows[at]
        measures = rows["id"], rows["session"], ranked.total[at], fit, asked.own[at], asked.near[at]
        return [
            Hit(message_id, session_id, score, parts, *fitting)
            for (message_id, session_id, score, *fitting), parts in zip(
                zip(*[column.tolist() for column in measures], strict=True), why, strict=True
            )
        ]

    def _space_of(self, prepared: PreparedQuery) -> Space | None:
        """What compares the meaning of a query; None: nothing does, or its service gave no vector."""
        if prepared.query.alone:
            return self._alone_space
        return self._space if self._space is self._quick_space or prepared.content else None

    def _asked(self, prepared: PreparedQuery, candidates: Candidates) -> ScoringContext:
        """The query beside its candidates.  Local vectors leave out the speakers' names: they mean nothing."""
        query, vector, content = prepared.query, prepared.vector, prepared.content
        speakers = np.ascontiguousarray(candidates.rows["speaker"])
        named = [term for term in prepared.terms if (speakers == term_hash(term)).any()]
        space = self._space_of(prepared)
        if space is not None and space.embedder.instant:
            text = self._analysis.without(prepared.text, named) if named else prepared.text
            vector, content = quantize(space.embedder, [text, self._analysis.content(prepared.text, named)])
        yardstick = space.yardstick if space is not None and content else None
        return ScoringContext(
            candidates,
            candidates.cosine_similarity(vector),
            candidates.near(content, yardstick) if yardstick is not None else np.zeros(len(candidates.rows)),
            query.nearest,
            time_ns() // 1_000,
            [(microseconds(after), microseconds(before)) for after, before in query.times],
            term_hash(named[0]) if len(named) == 1 else 0,
            term_hash(query.about) if query.about else 0,
            query.linked,
        )

    def similar(self, prepared: PreparedQuery, texts: Sequence[str]) -> list[bool]:
        """Which of these texts ask for much the same as the query."""
        return self.nearness.similar(prepared.text, texts)

    def highlights(self, prepared: PreparedQuery, text: str) -> list[str]:
        """The words of `text` that a query looked for, as they are written there, in their order."""
        prefixes = tuple(part.prefix for part in prepared.operators.required if part.prefix)
        return self._analysis.highlights(text, prepared.terms, prefixes)

    def clear_caches(self) -> None:
        """Empty every cache of what people wrote: of this process now, of others that share the indexes before they
        next look into one."""
        clear_all()
        try:
            self._store.notify()
        except OSError as error:
            log.error("other processes could not be told to clear their caches: %s", error)

    def _segments(
        self,
        owner: str,
        generation: str,
        indexed: Snapshot,
        prepared: PreparedQuery,
        connection: Connection | None,
    ) -> tuple[list[Segment], set[int]]:
        """The indexed messages to rank; and if the query has operators, the ids that they leave.

        Raises IndexLost, and IndexBusy or OSError where it can't be read.
        """
        if indexed.segments is None:
            vector = prepared.vector
            if self._quick_space is not None:
                (vector,) = quantize(self._quick_space.embedder, [prepared.text])
            segment, ids = self._store.best(owner, generation, prepared, vector, CANDIDATES, connection)
            return [segment], ids
        typed = prepared.operators
        accepted = self._store.matching(owner, generation, typed, connection) if typed != NONE else set()
        return list(indexed.segments.values()), accepted

    def _snapshot(self, owner: str, generation: str, connection: Connection | None = None) -> Snapshot:
        """The latest commit of the index."""
        key = owner, generation
        known: Snapshot = self._snapshots.get(key) or Snapshot()
        snapshot = self._store.snapshot(owner, generation, known, RANKED_WHOLE, connection)
        if snapshot.nbytes > ARRAYS_BYTES:  # messages of books: to read them all for each search would take too long
            snapshot = snapshot._replace(segments=None)
        if snapshot is not known:
            self._snapshots.put(key, snapshot, snapshot.nbytes)
        return snapshot

    def analysed(self, documents: Sequence[Document], space: Space | None) -> list[IndexedMessage]:
        """The documents, analysed, with their vectors in `space`.

        The same ones wait search after search, and are then indexed: they are cached.
        """
        embedder = space.embedder if space is not None else None
        size = embedder.dimensions if embedder is not None else 0
        entries = [self._entries.get((one.message_id, size)) for one in documents]
        new = [
            at
            for at, entry in enumerate(entries)
            if entry is None or entry.document != documents[at] or len(entry.vector) not in (0, size)
        ]
        said = [documents[at].content for at in new]
        for at, vector in zip(new, quantize(embedder, said) if embedder else [NO_VECTOR] * len(new), strict=True):
            one = documents[at]
            name = self._analysis.terms(one.name or "")
            terms = self._analysis.terms(one.content, one.name, singles=True)
            entries[at] = entry = IndexedMessage.of(one, terms, vector, term_hash(name[0]) if name else 0)
            self._entries.put((one.message_id, size), entry, entry.nbytes)
        return entries


def filter_mask(query: Query, candidates: Candidates) -> NDArray[np.bool_]:
    """Which messages are what the query asks for beside its words."""
    rows = candidates.rows
    passing = np.ones(len(rows), bool)
    if query.session_id is not None:
        passing &= rows["session"] == query.session_id
    if query.role is not None:
        passing &= rows["role"] == term_hash(query.role)
    if query.after is not None:
        passing &= rows["created"] >= microseconds(query.after)
    if query.before is not None:
        passing &= rows["created"] < microseconds(query.before)
    return passing
