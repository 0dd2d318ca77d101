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
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from search_index.analysis import ENGLISH, Analysis
from search_index.collection import Collection
from search_index.postings import Damaged, Entry, Segment, role_number
from search_index.ranking import FUZZY_LIMIT, Recipe, rank
from search_index.remembered import Notice, forget_texts, remembered
from search_index.vectors import Embedder, EmbeddingUnavailable, packed
from search_index.whoosh_index import NO_INDEX, IndexBusy, WhooshIndex, sweep

log = logging.getLogger(__name__)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROUNDS = 5
_CACHED_CHARACTERS = 4_000
_REMEMBERED = 4_096


@dataclass(frozen=True)
class Document:
    """A message as the index sees it.  `session_id` and `message_id` are the caller's own integers, of 64 bits.

    `created_at` is exact to the microsecond; without a zone it is UTC.
    """

    message_id: int
    session_id: int
    role: str
    created_at: datetime
    content: str
    name: str | None = None


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


@dataclass(frozen=True)
class Hit:
    """A found message.  `score` is higher for better; `why` are its parts, by name (see `ranking`)."""

    message_id: int
    session_id: int
    score: float
    why: dict[str, float] = field(default_factory=dict)


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
        self._remembered: dict[str, bytes] = {}
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

    def search(self, owner: str, query: Query, pending: Callable[[str], Sequence[Document]]) -> list[Hit]:
        """The best `query.limit` messages, best first; ties go to the newer message (the higher id).

        `pending(generation)` must give every message of the owner that was not reported as held by that generation
        of the index (see `add`), narrowed in any way the query allows.  It is called at least once, and again when
        the index was damaged or replaced meanwhile, then with the new generation.  A message both in the index and
        in `pending` counts once, as `pending` has it.
        A text without any searchable word finds nothing, and `pending` is not asked.  An index that can't be read
        (files that are forbidden, a disk that fails) is done without, and the log says so once.
        """
        wanted = self._analysis.query_terms(query.text)
        if not wanted or query.limit < 1:
            return []
        hits: list[Hit] | None = None
        problem = ""
        try:
            hits = self._through_index(self._of(owner), wanted, query, pending)
        except OSError as error:
            problem = str(error)
            if problem != self._unreadable:
                log.error("the search index can't be read or healed; messages are searched without it: %s", problem)
        self._unreadable = problem
        return self._best(wanted, query, pending(NO_INDEX), []) if hits is None else hits

    def _through_index(
        self, index: WhooshIndex, wanted: list[str], query: Query, pending: Callable[[str], Sequence[Document]]
    ) -> list[Hit] | None:
        """None when it is being replaced over and over, or is damaged while someone holds on to it."""
        for _ in range(_ROUNDS):
            generation = index.generation()
            # In this order: what moves into the index between the two is then seen twice rather than never.
            best = partial(self._best, wanted, query, pending(generation))
            try:
                hits = index.read(generation, best)
            except Damaged:
                try:
                    index.heal(generation)
                except IndexBusy:
                    return None
                continue
            if index.generation() == generation:
                return hits
        return None

    def add(self, owner: str, documents: Iterable[Document]) -> str:
        """Index `documents` in one commit and return the generation that now holds them.

        Idempotent: what is there already is left alone.  Waits up to 10 s for another writer, then raises IndexBusy.
        What is in the index when this returns is on the disk.  `documents` is read while the owner's lock is held:
        a generator that loads its rows only then never brings back what a `remove` or `drop` has taken out.
        Raises OSError when the disk is full or forbidden; nothing is changed then.
        """
        given: list[Document] | None = None

        def entries(held: Container[int]) -> list[Entry]:
            nonlocal given
            if given is None:  # asked again after damage
                given = list({document.message_id: document for document in documents}.values())
            fresh = [document for document in given if document.message_id not in held]
            vectors = self._vectors(fresh) if self._embedder else [b""] * len(fresh)
            return _entries(fresh, vectors, self._analysis)

        return self._of(owner).add(entries)

    def remove(self, owner: str, *, message_ids: Iterable[int] = (), session_id: int | None = None) -> None:
        """Take out these messages, or all of a session's.  No error where there is nothing to take out.

        No byte of them stays in the files.  Raises IndexBusy as `add` does.
        """
        self._of(owner).remove(frozenset(message_ids), session_id)

    def drop(self, owner: str) -> None:
        """Delete the owner's whole index from the disk.  Raises IndexBusy as `add` does."""
        self._of(owner).drop()

    def forget_texts(self) -> None:
        """Empty every cache whose keys are texts, whoever wrote them: of this process now, of others that share the
        folder before they next look into an index.  They fill again by themselves."""
        self._empty_caches()
        try:
            self._notice.post()
        except OSError as error:
            log.error("other processes could not be told to forget texts, and do so when they end: %s", error)

    def _empty_caches(self) -> None:
        self._remembered = {}
        forget_texts()

    def held(self, owner: str) -> tuple[str, set[int]]:
        """The index's generation and the ids of all messages it holds, for `verify`.

        A damaged index is put away first, as in `search`; one that is not there is ("none", set()).
        """
        index = self._of(owner)
        while True:
            generation = index.generation()
            try:
                ids = index.read(generation, _ids)
            except Damaged:
                index.heal(generation)
                continue
            if index.generation() == generation:
                return generation, ids

    def _of(self, owner: str) -> WhooshIndex:
        if self._notice.is_new():
            self._empty_caches()
        made_with = f"{self._analysis.language} {self._embedder.name if self._embedder else 'no vectors'}"
        return WhooshIndex(self._root, owner, self._busy_after, made_with)

    def _vectors(self, documents: Sequence[Document]) -> list[bytes]:
        """The documents' packed vectors, of what is said and who says it; those made before are remembered."""
        assert self._embedder is not None
        spoken = [f"{d.name}: {d.content}" if d.name else d.content for d in documents]
        known = self._remembered  # other threads may put another in its place meanwhile
        new = [text for text in dict.fromkeys(spoken) if text not in known]
        made = dict(zip(new, packed(self._embedder, new), strict=True)) if new else {}
        short = {text: vector for text, vector in made.items() if len(text) <= _CACHED_CHARACTERS}
        if short:
            self._remembered = {**known, **short} if len(known) < _REMEMBERED else short
        return [made[text] if text in made else known[text] for text in spoken]

    def _meant(self, text: str) -> bytes:
        """The packed vector of a query; none when it can't be had, and then the words decide."""
        assert self._embedder is not None
        try:
            return packed(self._embedder, [text])[0]
        except EmbeddingUnavailable as error:
            log.warning("searching by words alone: %s", error)
            return b""

    def _best(self, wanted: list[str], query: Query, pending: Sequence[Document], segments: list[Segment]) -> list[Hit]:
        """Rank the union of `pending` and `segments` by `wanted`, the query's terms."""
        meant = self._embedder if self._recipe.meaning else None
        latest = list({document.message_id: document for document in pending}.values())
        instant = meant is not None and meant.instant
        vectors = self._vectors(latest) if instant else [b""] * len(latest)
        entries = _entries(latest, vectors, self._analysis)
        collection = Collection.of(segments, entries, wanted, vectors=meant is not None, without=query.exclude)
        vector = self._meant(query.text) if meant is not None else b""
        times = [(_microseconds(after), _microseconds(before)) for after, before in query.times]
        ranked = rank(collection, vector, self._recipe, _microseconds(datetime.now(UTC)), times)
        candidates = np.flatnonzero(ranked.eligible & _passing(query, collection))
        limit = min(query.limit, FUZZY_LIMIT) if self._recipe.formula == "fuzzy" else query.limit
        order = np.lexsort((-collection.ids[candidates], -ranked.total[candidates]))[:limit]
        return [
            Hit(
                int(collection.ids[at]),
                int(collection.sessions[at]),
                float(ranked.total[at]),
                {name: float(part[at]) for name, part in ranked.parts.items()},
            )
            for at in candidates[order]
        ]


def _microseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _counted(analysis: Analysis, content: str, name: str | None) -> Counter[str]:
    return Counter(analysis.terms(content, name, singles=True))


_counted_before = remembered(4096)(_counted)


def _entries(documents: Sequence[Document], vectors: Sequence[bytes], analysis: Analysis) -> list[Entry]:
    """The documents, analysed.  The same pending rows are searched turn after turn, so short ones are remembered."""
    entries = []
    for document, vector in zip(documents, vectors, strict=True):
        count = _counted_before if len(document.content) <= _CACHED_CHARACTERS else _counted
        counts = count(analysis, document.content, document.name)
        created, role = _microseconds(document.created_at), role_number(document.role)
        squares = sum(count * count for count in counts.values())
        entries.append(
            Entry(document.message_id, document.session_id, created, role, counts.total(), squares, counts, vector)
        )
    return entries


def _ids(segments: list[Segment]) -> set[int]:
    return {message_id for segment in segments for message_id in segment.ids}


def _passing(query: Query, collection: Collection) -> np.ndarray:
    """Which messages are what the query asks for beside its words."""
    passing = np.ones(len(collection), bool)
    if query.session_id is not None:
        passing &= collection.sessions == query.session_id
    if query.role is not None:
        passing &= collection.roles == role_number(query.role)
    if query.after is not None:
        passing &= collection.created >= _microseconds(query.after)
    if query.before is not None:
        passing &= collection.created < _microseconds(query.before)
    return passing
