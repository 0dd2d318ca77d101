"""SearchIndex: the one door to searching.

The idea: the database has the truth, the index is a faster copy of some of it, and every search looks at both.  The
caller hands in as `pending` what this generation of the index was not reported to hold; the two are ranked as one
collection, by one formula over joint statistics.  So an index may lag, fail or vanish, and nobody sees a difference
in what is found, only in how long it takes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Collection as Container
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.analysis import ENGLISH, Analysis
from search_index.collection import Collection
from search_index.held import NOTHING, Held, Snapshot
from search_index.pending import NOTHING_WAITS, Document, Pending, Told, microseconds
from search_index.postings import Columns, Damaged, Entry, role_number
from search_index.ranking import FUZZY_LIMIT, Recipe, rank
from search_index.remembered import Kept, Notice, forget_texts
from search_index.vectors import Embedder, EmbeddingUnavailable, packed
from search_index.whoosh_index import NO_INDEX, IndexBusy, WhooshIndex, sweep

log = logging.getLogger(__name__)

_ROUNDS = 5

HELD_BYTES = 12 << 20
"""Of indexes that are kept as they were read: of some 30 owners with 500 messages each, or of one with 15,000.  Who
comes back after others is read anew, in some 3 ms."""

ANALYSED_BYTES = 6 << 20
"""Of messages that are not indexed yet, and were analysed for a search: some 5,000, as many as wait in a burst, by
owner.  With the caches of words (see `analysis`, `postings` and `vectors`) all caches of searching take up less than
30 MB of a worker."""

Ask = Callable[[str, Any], Told]
"""`pending` of a search, see there."""


@dataclass(frozen=True)
class Query:
    """What to look for.  `text` is plain words, never query language.

    `after` is inclusive, `before` exclusive.  `session_id` and `role` narrow.
    `exclude` are message ids that count as not there: a question just asked would else be its own best answer, and its
    session the best of all.
    `times` are half-open ranges the text speaks of: what was said then is preferred, the rest is found all the same.
    """

    text: str
    limit: int = 10
    session_id: int | None = None
    role: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    exclude: Container[int] = ()
    times: Sequence[tuple[datetime, datetime]] = ()


class Hit(NamedTuple):
    """A found message.  `score` is higher for better; `why` are its parts, by name (see `ranking`)."""

    message_id: int
    session_id: int
    score: float
    why: dict[str, float]


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

        `recipe` says what counts in the ranking; without an `embedder` nothing has a meaning, only words.  `analysis`
        says what a word is; an index made with another, or with another embedder, counts as none and is replaced.
        """
        self._root = root
        self._busy_after = busy_after
        self._recipe = recipe
        self._embedder = embedder
        self._analysis = analysis
        self._made_with = f"{analysis.language} {embedder.name if embedder else 'no vectors'}"
        self._held: Kept[str, tuple[Snapshot, Held]] = Kept(HELD_BYTES)
        self._pending: Kept[str, Pending] = Kept(ANALYSED_BYTES)
        self._notice = Notice(root / ".forget")
        self._unreadable = ""
        try:
            sweep(root)
        except OSError as error:  # a folder that can't be written can still be searched
            log.error("leftovers of the search index can't be cleared away: %s", error)

    def warm_up(self) -> None:
        """Load what the first search would have to wait for: a local model takes half a second."""
        if self._embedder is not None and self._embedder.instant:
            self._embedder.embed(["warm up"])

    def search(self, owner: str, query: Query, pending: Ask) -> list[Hit]:
        """The best `query.limit` messages, best first; ties go to the newer message (the higher id).

        `pending(generation, as_of)` must tell of every message of the owner that was not reported as held by that
        generation of the index (see `add`), but may leave out what it told before: `as_of` is the moment that it told
        an earlier search, or None (see `Told`).  It is called at least once, and again, with the new generation, when
        the index was damaged or replaced meanwhile.  A message both in the index and in `pending` counts once, as
        `pending` has it.  A text without any searchable word finds nothing, and `pending` is not asked.  An index that
        can't be read (files that are forbidden, a disk that fails) is done without, and the log says so once.
        """
        wanted = self._analysis.query_terms(query.text)
        if not wanted or query.limit < 1:
            return []
        # First of all, since it may come from far: `pending` may begin a transaction of the caller's.
        vector = self._meant(query.text) if self._embedder is not None and self._recipe.meaning else b""
        hits: list[Hit] | None = None
        problem = ""
        try:
            hits = self._through_index(owner, wanted, vector, query, pending)
        except OSError as error:
            problem = str(error)
            if problem != self._unreadable:
                log.error("the search index can't be read or healed; messages are searched without it: %s", problem)
        self._unreadable = problem
        if hits is None:
            hits = self._best(wanted, vector, query, self._waiting(owner, NO_INDEX, query, pending), NOTHING)
        return hits

    def _through_index(
        self,
        owner: str,
        wanted: list[str],
        vector: bytes,
        query: Query,
        pending: Ask,
    ) -> list[Hit] | None:
        """None when it is being replaced over and over, or is damaged while someone holds on to it."""
        index = self._of(owner)
        for _ in range(_ROUNDS):
            generation = index.generation()
            # In this order: what moves into the index between the two is then seen twice rather than never.
            waiting = self._waiting(owner, generation, query, pending)
            try:
                held = index.held(generation, self._held, wanted)
            except Damaged:
                try:
                    index.heal(generation)
                except IndexBusy:
                    return None
                continue
            if held is not None:
                return self._best(wanted, vector, query, waiting, held)
        return None

    def _waiting(self, owner: str, generation: str, query: Query, pending: Ask) -> Pending:
        """What is not indexed yet.  The same messages wait search after search: only new ones are analysed, once they
        are not excluded any more."""
        kept = self._pending.get(owner) or NOTHING_WAITS
        told = pending(generation, kept.as_of)
        if told.since:
            missing = [*kept.aside, *told.documents]
        else:
            missing = list({one.message_id: one for one in kept.missing(told.documents)}.values())
            stays = {one.message_id for one in told.documents}.difference([one.message_id for one in missing])
            kept = kept.without(kept.marks.keys() - stays)
        new = [one for one in missing if one.message_id not in query.exclude]
        if new:
            kept = kept.with_new(new, self._columns(new, self._embedder if self._embeds_waiting() else None))
        aside = [one for one in missing if one.message_id in query.exclude]
        kept = replace(kept, aside=aside, as_of=told.as_of)
        self._pending.keep(owner, kept, kept.nbytes)
        return kept

    def _embeds_waiting(self) -> bool:
        """Whether what is not indexed yet has vectors: not those of a service, which takes its time."""
        return self._embedder is not None and self._embedder.instant and bool(self._recipe.meaning)

    def add(self, owner: str, documents: Iterable[Document]) -> str:
        """Index `documents` in one commit and return the generation that now holds them.

        Idempotent: what is there already is left alone.  Waits up to 10 s for another writer, then raises IndexBusy.
        What is in the index when this returns is on the disk.  `documents` is read while the owner's lock is held:
        a generator that loads its rows only then never brings back what a `remove` or `drop` has taken out.
        Raises OSError when the disk is full or forbidden; nothing is changed then.
        """
        given: dict[int, Document] | None = None

        def columns(held: Container[int]) -> list[Columns]:
            nonlocal given
            if given is None:  # asked again after damage
                given = {document.message_id: document for document in documents}
            fresh = {message_id: one for message_id, one in given.items() if message_id not in held}
            kept = self._pending.get(owner) if self._embedder is None or self._embeds_waiting() else None
            if kept is None:
                return [self._columns(list(fresh.values()), self._embedder)]
            missing = kept.missing(list(fresh.values()))  # the others were analysed for a search
            analysed = kept.columns(fresh.keys() - {one.message_id for one in missing})
            return [analysed, self._columns(missing, self._embedder)]

        generation = self._of(owner).add(columns)
        kept = self._pending.get(owner)
        if kept is not None and given:
            left = kept.without(kept.marks.keys() & given.keys())  # else it would stay until the owner comes back
            self._pending.keep(owner, left, left.nbytes)
        return generation

    def remove(self, owner: str, *, message_ids: Iterable[int] = (), session_id: int | None = None) -> None:
        """Take out these messages, or all of a session's.  No error where there is nothing to take out.

        No byte of them stays in the files.  Raises IndexBusy as `add` does.
        """
        self._of(owner).remove(frozenset(message_ids), session_id)

    def drop(self, owner: str) -> None:
        """Delete the owner's whole index from the disk.  Raises IndexBusy as `add` does."""
        self._of(owner).drop()

    def generation(self, owner: str) -> str:
        """The generation of the owner's index, or NO_INDEX."""
        return self._of(owner).generation()

    def forget_texts(self) -> None:
        """Empty every cache of texts and of what was made of them, whoever wrote them: of this process now, of others
        that share the folder before they next look into an index.  They fill again by themselves."""
        forget_texts()
        try:
            self._notice.post()
        except OSError as error:
            log.error("other processes could not be told to forget texts, and do so when they end: %s", error)

    def held(self, owner: str) -> tuple[str, set[int]]:
        """The index's generation and the ids of all messages it holds, for `verify`.

        A damaged index is put away first, as in `search`; one that is not there is ("none", set()).
        """
        index = self._of(owner)
        while True:
            generation = index.generation()
            try:
                ids = index.ids(generation)
            except Damaged:
                index.heal(generation)
                continue
            if index.generation() == generation:
                return generation, ids

    def _of(self, owner: str) -> WhooshIndex:
        if self._notice.is_new():
            forget_texts()
        return WhooshIndex(self._root, owner, self._busy_after, self._made_with)

    def _columns(self, documents: Sequence[Document], embedder: Embedder | None) -> Columns:
        """The documents, analysed, with the vectors of what is said and who says it."""
        vectors = {}
        if embedder is not None:
            spoken = list(dict.fromkeys([one.spoken for one in documents]))
            vectors = dict(zip(spoken, packed(embedder, spoken), strict=True))
        return Columns.of([self._entry(one, vectors.get(one.spoken, b"")) for one in documents])

    def _entry(self, document: Document, vector: bytes) -> Entry:
        """The document, analysed."""
        counts = Counter(self._analysis.terms(document.content, document.name, singles=True))
        squares = sum([count * count for count in counts.values()])
        created, role = microseconds(document.created_at), role_number(document.role)
        return Entry(document.message_id, document.session_id, created, role, counts.total(), squares, counts, vector)

    def _meant(self, text: str) -> bytes:
        """The packed vector of a query; none when it can't be had, and then the words decide."""
        assert self._embedder is not None
        try:
            return packed(self._embedder, [text])[0]
        except EmbeddingUnavailable as error:
            log.warning("searching by words alone: %s", error)
            return b""

    def _best(self, wanted: list[str], vector: bytes, query: Query, waiting: Pending, held: Held) -> list[Hit]:
        """Rank the union of `waiting` and `held` by `wanted`, the query's terms, and its vector, if it has one."""
        collection = Collection.of(held, waiting, wanted, without=query.exclude)
        times = [(microseconds(after), microseconds(before)) for after, before in query.times]
        ranked = rank(collection, vector, self._recipe, time_ns() // 1_000, times)
        limit = min(query.limit, FUZZY_LIMIT) if self._recipe.formula == "fuzzy" else query.limit
        at = _passing(query, collection, ranked.eligible).nonzero()[0]
        if len(at) > limit:  # to sort all of them takes longer than to find the best
            scores = ranked.total[at]
            at = at[scores >= np.partition(scores, -limit)[-limit]]
        at = at[np.lexsort((-collection.ids[at], -ranked.total[at]))[:limit]]
        why = [dict(zip(ranked.names, parts, strict=True)) for parts in ranked.parts.take(at, axis=1).T.tolist()]
        found = collection.ids[at], collection.sessions[at], ranked.total[at]
        return list(map(Hit, *[column.tolist() for column in found], why))


def _passing(query: Query, collection: Collection, eligible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the `eligible` messages are what the query asks for beside its words."""
    if query.session_id is not None:
        eligible = eligible & (collection.sessions == query.session_id)
    if query.role is not None:
        eligible = eligible & (collection.roles == role_number(query.role))
    if query.after is not None:
        eligible = eligible & (collection.created >= microseconds(query.after))
    if query.before is not None:
        eligible = eligible & (collection.created < microseconds(query.before))
    return eligible
