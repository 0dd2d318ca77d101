"""SearchIndex: the one door to searching.

The idea: the database has the truth, the index is a faster copy of some of it, and every search looks at both.  The
caller hands in as `pending` what this generation of the index was not reported to hold; the two are ranked as one
collection, by one formula over joint statistics.  So an index may lag, fail or vanish, and nobody sees a difference
in what is found, only in how long it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from heapq import nsmallest
from pathlib import Path

from search_index.analysis import query_terms, terms
from search_index.postings import Damaged, Entry, Segment, role_number
from search_index.ranking import Bag, Scorer, Statistics
from search_index.whoosh_index import NO_INDEX, IndexBusy, WhooshIndex, sweep

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROUNDS = 5
_CACHED_CHARACTERS = 4_000


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
    """A found message.  `score` is higher for better; `why` are its parts, by name: `words` is BM25."""

    message_id: int
    session_id: int
    score: float
    why: dict[str, float] = field(default_factory=dict)


class SearchIndex:
    """All owners' indexes under one folder; safe to use from many threads and processes.

    `owner` is any string that names the owner; folders are named by its hash.
    """

    def __init__(self, root: Path, busy_after: float = 10.0) -> None:
        """`busy_after`: seconds a writer waits for another writer of the same owner before IndexBusy."""
        self._root = root
        self._busy_after = busy_after
        sweep(root)

    def search(self, owner: str, query: Query, pending: Callable[[str], Sequence[Document]]) -> list[Hit]:
        """The best `query.limit` messages, best first; ties go to the newer message (the higher id).

        `pending(generation)` must give every message of the owner that was not reported as held by that generation
        of the index (see `add`), narrowed in any way the query allows.  It is called at least once, and again when
        the index was damaged or replaced meanwhile, then with the new generation.  A message both in the index and
        in `pending` counts once, as `pending` has it.
        A text without any searchable word finds nothing, and `pending` is not asked.
        """
        wanted = query_terms(query.text)
        if not wanted or query.limit < 1:
            return []
        index = self._of(owner)
        for _ in range(_ROUNDS):
            generation = index.generation()
            # In this order: what moves into the index between the two is then seen twice rather than never.
            rank = partial(_best, wanted, query, pending(generation))
            try:
                hits = index.read(generation, rank)
            except Damaged:
                try:
                    index.heal(generation)
                except IndexBusy:
                    break
                continue
            if index.generation() == generation:
                return hits
        # It is being replaced over and over, or is damaged while someone holds on to it: do without.
        return _best(wanted, query, pending(NO_INDEX), [])

    def add(self, owner: str, documents: Iterable[Document]) -> str:
        """Index `documents` in one commit and return the generation that now holds them.

        Idempotent: what is there already is left alone.  Waits up to 10 s for another writer, then raises IndexBusy.
        What is in the index when this returns is on the disk.  `documents` is read while the owner's lock is held:
        a generator that loads its rows only then never brings back what a `remove` or `drop` has taken out.
        Raises OSError when the disk is full or forbidden; nothing is changed then.
        """
        given: list[Document] | None = None

        def entries(held: Collection[int]) -> list[Entry]:
            nonlocal given
            if given is None:  # asked again after damage
                given = list({document.message_id: document for document in documents}.values())
            return [_entry(document) for document in given if document.message_id not in held]

        return self._of(owner).add(entries)

    def remove(self, owner: str, *, message_ids: Iterable[int] = (), session_id: int | None = None) -> None:
        """Take out these messages, or all of a session's.  No error where there is nothing to take out.

        No byte of them stays in the files.  Raises IndexBusy as `add` does.
        """
        self._of(owner).remove(frozenset(message_ids), session_id)

    def drop(self, owner: str) -> None:
        """Delete the owner's whole index from the disk.  Raises IndexBusy as `add` does."""
        self._of(owner).drop()

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
        return WhooshIndex(self._root, owner, self._busy_after)


def _microseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _analysed(content: str, name: str | None) -> Bag:
    return Bag.of(terms(content, name, singles=True))


_analysed_before = lru_cache(maxsize=4096)(_analysed)


def _bag(document: Document) -> Bag:
    """The document's terms.  The same pending rows are searched turn after turn, so the short ones are remembered."""
    analyse = _analysed_before if len(document.content) <= _CACHED_CHARACTERS else _analysed
    return analyse(document.content, document.name)


def _entry(document: Document) -> Entry:
    bag = _bag(document)
    created, role = _microseconds(document.created_at), role_number(document.role)
    return Entry(document.message_id, document.session_id, created, role, bag.length, bag.counts)


def _ids(segments: list[Segment]) -> set[int]:
    return {message_id for segment in segments for message_id in segment.ids}


class _Filter:
    """What the query asks of a message beside its words; used for index and pending alike."""

    def __init__(self, query: Query) -> None:
        self._session = query.session_id
        self._role = None if query.role is None else role_number(query.role)
        self._after = None if query.after is None else _microseconds(query.after)
        self._before = None if query.before is None else _microseconds(query.before)
        self._exclude = frozenset(query.exclude)

    def passes(self, message_id: int, session_id: int, created: int, role: int) -> bool:
        return (
            (self._session is None or session_id == self._session)
            and (self._role is None or role == self._role)
            and (self._after is None or created >= self._after)
            and (self._before is None or created < self._before)
            and message_id not in self._exclude
        )


def _best(wanted: list[str], query: Query, pending: Sequence[Document], segments: list[Segment]) -> list[Hit]:
    """Rank the union of `pending` and `segments` by `wanted`, the query's terms."""
    bags = {document.message_id: _bag(document) for document in pending}
    twice = bags.keys() & _ids(segments) if bags else frozenset()
    statistics = Statistics.of([bag for message_id, bag in bags.items() if message_id not in twice], wanted)
    for segment in segments:
        frequencies = {term: segment.frequency(term) for term in wanted}
        statistics += Statistics(len(segment.ids), sum(segment.lengths), frequencies)
    scorer = Scorer(wanted, statistics)
    passes = _Filter(query).passes

    found: list[tuple[float, int, int]] = []  # negative score, negative id: the order of the answer
    for segment in segments:
        ids, sessions, created, roles = segment.ids, segment.sessions, segment.created, segment.roles
        for at, score in _scores(segment, scorer).items():
            if passes(ids[at], sessions[at], created[at], roles[at]) and ids[at] not in twice:
                found.append((-score, -ids[at], sessions[at]))
    for document in {document.message_id: document for document in pending}.values():
        score = scorer.score(bags[document.message_id])
        if score and passes(
            document.message_id, document.session_id, _microseconds(document.created_at), role_number(document.role)
        ):
            found.append((-score, -document.message_id, document.session_id))
    return [Hit(-id_, session, -score, {"words": -score}) for score, id_, session in nsmallest(query.limit, found)]


def _scores(segment: Segment, scorer: Scorer) -> dict[int, float]:
    """BM25 by position, of every message of the segment that has any of the terms."""
    scores: dict[int, float] = {}
    lengths = segment.lengths
    norms: dict[int, float] = {}
    for term in scorer.terms:
        factor = scorer.factor(term)
        for at, count in segment.postings(term):
            norm = norms.get(at)
            if norm is None:
                norm = norms[at] = scorer.norm(lengths[at])
            scores[at] = scores.get(at, 0.0) + factor * count / (count + norm)
    return scores
