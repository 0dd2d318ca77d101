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
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sys import getsizeof
from typing import NamedTuple

import numpy as np

from search_index.analysis import ENGLISH, Analysis
from search_index.collection import Collection
from search_index.held import NOTHING, Held, Snapshot
from search_index.postings import Damaged, Entry, Packed, role_number
from search_index.ranking import FUZZY_LIMIT, Recipe, rank
from search_index.remembered import Kept, Notice, forget_texts
from search_index.vectors import Embedder, EmbeddingUnavailable, packed
from search_index.whoosh_index import NO_INDEX, IndexBusy, WhooshIndex, sweep

log = logging.getLogger(__name__)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROUNDS = 5

HELD_BYTES = 12 << 20
"""Of indexes that are kept as they were read: of some 30 owners with 500 messages each, or of one with 15,000.  Who
comes back after others is read anew, in some 3 ms."""

ANALYSED_BYTES = 6 << 20
"""Of messages that are not indexed yet, and were analysed for a search: some 5,000, as many as wait in a burst.  With
the caches of words (see `analysis` and `postings`) all caches of searching take up less than 30 MB of a worker."""

_OBJECT_BYTES = 800  # what Python takes for a document and its parts, beside their texts


class Document(NamedTuple):
    """A message as the index sees it.  `session_id` and `message_id` are the caller's own integers, of 64 bits.

    `created_at` is exact to the microsecond; without a zone it is UTC.  A tuple, since a search may be handed hundreds,
    to be compared with those of the last one.
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


class _Analysed(NamedTuple):
    """A document as it is searched; `embedded` with its vector, if it can have one."""

    document: Document
    packed: Packed
    embedded: bool

    def embeds(self, document: Document) -> bool:
        """Whether it has the vector of what is said in `document`."""
        return self.embedded and self.document == document

    @property
    def bytes(self) -> int:
        """What it takes up."""
        return _OBJECT_BYTES + getsizeof(self.document.content) + sum(map(len, self.packed))


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
        self._held: Kept[str, tuple[Snapshot, Held]] = Kept(HELD_BYTES)
        self._analysed: Kept[int, _Analysed] = Kept(ANALYSED_BYTES)
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
        # First of all, since it may come from far: `pending` may begin a transaction of the caller's.
        vector = self._meant(query.text) if self._embedder is not None and self._recipe.meaning else None
        hits: list[Hit] | None = None
        problem = ""
        try:
            hits = self._through_index(self._of(owner), wanted, vector, query, pending)
        except OSError as error:
            problem = str(error)
            if problem != self._unreadable:
                log.error("the search index can't be read or healed; messages are searched without it: %s", problem)
        self._unreadable = problem
        return self._best(wanted, vector, query, pending(NO_INDEX), NOTHING) if hits is None else hits

    def _through_index(
        self,
        index: WhooshIndex,
        wanted: list[str],
        vector: bytes | None,
        query: Query,
        pending: Callable[[str], Sequence[Document]],
    ) -> list[Hit] | None:
        """None when it is being replaced over and over, or is damaged while someone holds on to it."""
        for _ in range(_ROUNDS):
            generation = index.generation()
            # In this order: what moves into the index between the two is then seen twice rather than never.
            documents = pending(generation)
            try:
                held = index.held(generation, self._held, wanted)
            except Damaged:
                try:
                    index.heal(generation)
                except IndexBusy:
                    return None
                continue
            if index.generation() == generation:
                return self._best(wanted, vector, query, documents, held)
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
            vectors = self._vectors(fresh)
            return [_entry(self._analysis, *one) for one in zip(fresh, vectors, strict=True)]

        return self._of(owner).add(entries)

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
        made_with = f"{self._analysis.language} {self._embedder.name if self._embedder else 'no vectors'}"
        return WhooshIndex(self._root, owner, self._busy_after, made_with)

    def _vectors(self, documents: Sequence[Document]) -> list[bytes]:
        """The documents' packed vectors, of what is said and who says it; of those searched before they are known."""
        if self._embedder is None:
            return [b""] * len(documents)
        kept = zip(documents, self._analysed.get_all([one.message_id for one in documents]), strict=True)
        known = {
            _spoken(one): before.packed.vector for one, before in kept if before is not None and before.embeds(one)
        }
        new = list(dict.fromkeys(text for text in map(_spoken, documents) if text not in known))
        if new:
            known.update(zip(new, packed(self._embedder, new), strict=True))
        return [known[_spoken(document)] for document in documents]

    def _packed(self, documents: Sequence[Document], embed: bool) -> list[Packed]:
        """The documents as they are searched.  The same ones wait turn after turn: they are compared with what was
        analysed before, and only what is new or has changed is worked on."""
        kept = self._analysed.get_all([one.message_id for one in documents])
        found: dict[int, Packed] = {
            at: before.packed
            for at, (one, before) in enumerate(zip(documents, kept, strict=True))
            if before is not None and before.document == one and before.embedded is embed
        }
        if len(found) < len(documents):
            new = [at for at in range(len(documents)) if at not in found]
            fresh = [documents[at] for at in new]
            vectors = self._vectors(fresh) if embed else [b""] * len(fresh)
            for at, document, vector in zip(new, fresh, vectors, strict=True):
                found[at] = made = _entry(self._analysis, document, vector).packed()
                self._analysed.keep(document.message_id, (one := _Analysed(document, made, embed)), one.bytes)
        return [found[at] for at in range(len(documents))]

    def _meant(self, text: str) -> bytes:
        """The packed vector of a query; none when it can't be had, and then the words decide."""
        assert self._embedder is not None
        try:
            return packed(self._embedder, [text])[0]
        except EmbeddingUnavailable as error:
            log.warning("searching by words alone: %s", error)
            return b""

    def _best(
        self, wanted: list[str], vector: bytes | None, query: Query, pending: Sequence[Document], held: Held
    ) -> list[Hit]:
        """Rank the union of `pending` and `held` by `wanted`, the query's terms, and its vector; None: by words."""
        exclude = query.exclude if isinstance(query.exclude, AbstractSet) else frozenset(query.exclude)
        latest = {document.message_id: document for document in pending if document.message_id not in exclude}
        embed = vector is not None and self._embedder is not None and self._embedder.instant
        entries = self._packed(list(latest.values()), embed)
        collection = Collection.of(held, entries, wanted, without=exclude)
        times = [(_microseconds(after), _microseconds(before)) for after, before in query.times]
        ranked = rank(collection, vector or b"", self._recipe, _microseconds(datetime.now(UTC)), times)
        candidates = np.flatnonzero(ranked.eligible & _passing(query, collection))
        limit = min(query.limit, FUZZY_LIMIT) if self._recipe.formula == "fuzzy" else query.limit
        at = candidates[np.lexsort((-collection.ids[candidates], -ranked.total[candidates]))[:limit]]
        columns = [part[at].tolist() for part in ranked.parts.values()]
        parts = [dict(zip(ranked.parts, scores, strict=True)) for scores in zip(*columns, strict=True)]
        found = (collection.ids[at], collection.sessions[at], ranked.total[at])
        return list(map(Hit, *(column.tolist() for column in found), parts))


def _microseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _spoken(document: Document) -> str:
    return f"{document.name}: {document.content}" if document.name else document.content


def _entry(analysis: Analysis, document: Document, vector: bytes) -> Entry:
    """The document, analysed."""
    counts = Counter(analysis.terms(document.content, document.name, singles=True))
    squares = sum([count * count for count in counts.values()])
    created, role = _microseconds(document.created_at), role_number(document.role)
    return Entry(document.message_id, document.session_id, created, role, counts.total(), squares, counts, vector)


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
