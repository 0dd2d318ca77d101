"""SearchIndex: index and search the messages of owners.

The rows are the truth, and the index is a faster copy of most of them.  The caller of a search passes in the messages
that this generation of the index does not have.  They and the indexed messages are ranked together, by one formula over
joint statistics, so the result is the same when the index lags, fails or is lost.
"""

import logging
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, Engine

from search_index import ranking
from search_index.analysis import DEFAULT_ANALYSIS, Analysis
from search_index.arrays import Candidates, IndexedMessage, Ints, SearchableText, Segment, term_hash
from search_index.caches import ByteLRU, clear_all
from search_index.calibration import CalibratedEmbedder, Nearness, nearness_by_chance
from search_index.embeddings import NO_VECTOR, Embedder, EmbeddingUnavailable, WordLlamaEmbedder, quantize
from search_index.index_storage import FORMAT, NO_INDEX, IndexBusy, IndexLost, IndexStore, Snapshot, UnindexedMessages
from search_index.postgres_store import PostgresStore
from search_index.query import NONE, PreparedQuery, Query, parsed
from search_index.spelling import languages_of_script
from search_index.whoosh_store import WhooshStore

log = logging.getLogger(__name__)

ARRAYS_BYTES = 16 << 20  # of indexed messages in memory: some 30 owners with 500 each, or one with 20,000
ARRANGED_BYTES = 14 << 20  # of them as they are ranked: one or two arrangements for each owner, or one of 20,000
UNINDEXED_BYTES = 12 << 20  # of messages that are not indexed yet: some 20,000
UNINDEXED_SEGMENTS_MAX = 64  # of an owner's messages that are not indexed yet
ENTRIES_BYTES = 4 << 20  # of analysed texts: those that stand alone, and messages until they are indexed
VECTORS_BYTES = 1 << 20  # of queries, which a service made
# Messages of an owner that are all ranked.  Of more, the store chooses CANDIDATES.  Of more unindexed ones the newest
# are ranked: all would not stay in UNINDEXED_BYTES, and each search would analyse them.
RANKED_WHOLE = 20_000
CANDIDATES = 2_000
EMBEDDING_WAIT_SECONDS = 0.5  # for a service that makes the vector of a query
ALL_INDEXED = UnindexedMessages()
_KEY_BYTES = 400  # what Python takes for a vector and its key


class Hit(NamedTuple):
    """Message that a search found.

    score: higher is better; comparable within one search only. why: the parts of the score, by name (see `ranking`).
    fit: how well it fits the query, from 0 to 1; never less than the fit of a later hit. It is made of `own`, the share
    of the query's words that the message has, and of its nearness in meaning.
    near: that nearness, less what the nearest of so many messages reaches by chance.
    """

    message_id: int
    session_id: int
    score: float
    why: dict[str, float]
    fit: float = 0.0
    own: float = 0.0
    near: float = 0.0


class SearchIndex:
    """Owners' indexes, and the search in them; safe to use from many threads and processes."""

    def __init__(
        self,
        place: Path | Engine,
        busy_after: float = 10.0,
        *,
        profile: ranking.RankingProfile = ranking.WORDS,
        embedder: Embedder | None = None,
        analysis: Analysis = DEFAULT_ANALYSIS,
    ) -> None:
        """Open the indexes at a place.  An index that was made with another analysis or embedder is replaced.

        place: the folder of Whoosh's files, or the engine of a PostgreSQL database.
        busy_after: seconds that a writer waits for another writer of the same owner before IndexBusy.
        embedder: compares meanings; None: messages are compared by their words alone.
        """
        self._analysis = analysis
        self._store: IndexStore = (
            WhooshStore(place, busy_after, self._made_with)
            if isinstance(place, Path)
            else PostgresStore(place, busy_after, self._made_with)
        )
        # These need nothing of the analysis or the ranking: see `IndexStore`.
        self.held, self.remove, self.drop = self._store.held, self._store.remove, self._store.drop
        self._profile = profile
        self._embedder = CalibratedEmbedder(embedder) if embedder is not None else None
        # A service would take too long for texts without an index: unindexed messages are compared by their words, what
        # stands alone by the local model.
        is_service = embedder is not None and not embedder.instant
        self._unindexed_embedder = None if is_service else self._embedder
        self._text_embedder = CalibratedEmbedder(WordLlamaEmbedder()) if is_service else self._embedder
        self.nearness = Nearness(analysis, self._text_embedder)
        self._snapshots = ByteLRU(ARRAYS_BYTES)
        self._arranged = ByteLRU(ARRANGED_BYTES)
        self._unindexed = ByteLRU(UNINDEXED_BYTES)
        self._entries = ByteLRU(ENTRIES_BYTES)
        self._vectors = ByteLRU(VECTORS_BYTES)
        self._notice = ""  # when all processes last had to clear their caches

    def warm_up(self) -> None:
        """Load the local model, half a second, so that the first search need not wait.

        Raises SettingsError if the indexes can't be opened.
        """
        self._store.open()
        if self._unindexed_embedder is not None:
            self._unindexed_embedder.calibrate()
        elif self._embedder is not None:
            self._embedder.calibrate_soon()

    def generation(self, owner: str) -> str:
        """Return the generation of the owner's index; NO_INDEX if there is none, or it can't be read."""
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
        """Return how the indexes are written (see `index_storage.MadeWith`)."""
        if self._embedder is None:
            return f"{FORMAT} {self._analysis.language} no vectors"
        embedder = self._embedder.embedder
        size = f"{embedder.dimensions}." if embedder.dimensions else ""
        return f"{FORMAT} {self._analysis.language} {embedder.name} {size}"

    def add(self, owner: str, texts: Iterable[SearchableText]) -> str:
        """Analyse and index those of `texts` that are not there yet (see `IndexStore.add`)."""
        if self._embedder is not None:
            self._embedder.calibrate()
        return self._store.add(owner, texts, self._analysed_for_index)

    def prepare(self, query: Query, owner: str = "", *, around: str = "") -> PreparedQuery:
        """Return the query, ready for `search`.  May call an embedding service; `search` never does.

        The service's vector is cached for the owner's same query.
        around: the text that the query's is a part of. What fits it counts AROUND_WEIGHT times as much beside.
        """
        prepared, text = self._read(query)
        if around:
            prepared = prepared._replace(around=self._read(replace(query, text=around))[0])
        service = self._embedder
        if service is None or service is self._unindexed_embedder or query.alone or not text.strip():
            return prepared
        key = owner, " ".join(text.split())
        try:
            vectors = self._vectors.get(key) or quantize(service.embedder, [text], EMBEDDING_WAIT_SECONDS)
            self._vectors.put(key, vectors, len(text) + _KEY_BYTES)
        except EmbeddingUnavailable as error:
            log.warning("searching by words alone: %s", error)
            return prepared._replace(failure=str(error))
        service.calibrate_soon()
        return prepared._replace(vector=vectors[0], content=vectors[0], is_foreign=False)

    def _read(self, query: Query) -> tuple[PreparedQuery, str]:
        """Return the query with its terms, and its plain text."""
        text, typed = parsed(query.text, self._analysis) if query.operators else (query.text, NONE)
        bare = self._analysis.without_function_words(text)
        terms = self._analysis.query_terms(bare)
        forms = {}
        is_foreign = bare != text or self._analysis.likely_languages(text) != [self._analysis.language]
        if is_foreign or self._analysis.joins:
            found = self._analysis.forms(text, bare)
            terms = list(found)
            forms = {form: term for term, others in found.items() for form in others}
        return PreparedQuery(query, bare if terms else text, terms, typed, is_foreign=is_foreign, forms=forms), text

    def search(
        self,
        owner: str,
        prepared: PreparedQuery,
        generation: str,
        unindexed: UnindexedMessages = ALL_INDEXED,
        *,
        connection: Connection | None = None,
    ) -> list[Hit]:
        """Return the best `limit` messages, best first; ties go to the newer message (the higher id).

        unindexed: all messages of the owner that were not reported as held by that `generation` of the index. Of more
        than RANKED_WHOLE, the newest are searched.
        connection: a transaction of the database, in whose snapshot an index in that database is read.

        Raises IndexLost when the index is of another generation by now, is damaged, or can't be read: then search again
        with NO_INDEX and all messages.
        """
        query = prepared.query
        by_meaning = self._embedder_for(prepared) is not None and query.nearest and prepared.text.strip()
        if query.limit < 1 or not (prepared.terms or prepared.operators.required or by_meaning):  # exclusions alone
            return []
        exclude = {*query.exclude}
        unindexed_ids = np.array([message_id for message_id in unindexed.ids if message_id not in exclude], np.int64)
        unindexed_ids = np.sort(unindexed_ids)[-RANKED_WHOLE:]
        try:
            segments, commit, accepted = self._indexed(owner, generation, prepared, connection)
        except (IndexBusy, OSError) as error:
            log.error("the search index can't be read; messages are searched without it: %s", error)
            raise IndexLost("the index can't be read") from error
        gone = frozenset(exclude.union(unindexed.deleted_ids))
        candidates = self._candidates(owner, (generation, commit), segments, unindexed_ids, gone, unindexed)
        if candidates is None:
            return []
        if accepted is not None and len(unindexed_ids):
            accepted.difference_update(unindexed_ids.tolist())
            for text in unindexed.load(unindexed_ids.tolist()):
                if prepared.operators.match(self._analysis.terms(text.content, text.name, is_indexed=True)):
                    accepted.add(text.message_id)
        return self._best(prepared, candidates, accepted)

    def rank_texts(self, prepared: PreparedQuery, texts: Sequence[SearchableText]) -> list[Hit]:
        """Return the best `limit` of texts that stand alone, such as facts: by how well they fit, best first."""
        alone = prepared.with_fields(alone=True)
        query = alone.query
        if query.limit < 1 or not texts or not (prepared.text.strip() or prepared.operators.required):
            return []
        analysed = self.analysed(texts, self._text_embedder)
        candidates = Candidates.of([Segment.of_messages(analysed)], np.zeros(len(texts), bool))
        accepted = None
        if alone.operators != NONE:
            accepted = {entry.text.message_id for entry in analysed if alone.operators.match(entry.terms)}
        return self._best(alone, candidates, accepted)

    def _unindexed_segments(self, owner: str, unindexed_ids: Ints, unindexed: UnindexedMessages) -> Sequence[Segment]:
        """Return the analysed messages that the index lacks, among others maybe.

        Messages that came since the last search make one more segment, and segments whose messages are indexed by now
        go. Of many segments all are made anew.
        """
        segments: Sequence[Segment] = self._unindexed.get(owner) or ()
        new = np.setdiff1d(unindexed_ids, _ids(segments), assume_unique=True)
        if len(new):
            lacking = {*unindexed_ids.tolist()}
            segments = [segment for segment in segments if not lacking.isdisjoint(segment.rows["id"].tolist())]
            if len(segments) >= UNINDEXED_SEGMENTS_MAX:
                segments = []
                new = unindexed_ids
            # A message that was erased or replaced a moment ago is not loaded any more.
            if entries := self.analysed(unindexed.load(new.tolist()), self._unindexed_embedder):
                segments = [*segments, Segment.of_messages(entries)]
            self._unindexed.put(owner, segments, sum(segment.nbytes for segment in segments))
        return segments

    def analysable(self, owner: str, unindexed: UnindexedMessages, most: int | None) -> tuple[UnindexedMessages, int]:
        """Return `unindexed` without all but the newest `most` (None: all) that no search has analysed yet.

        Return also how many are left out.
        """
        if most is None or len(unindexed.ids) <= most:
            return unindexed, 0
        analysed = {*_ids(self._unindexed.get(owner) or ()).tolist()}
        left_out = {*sorted(message_id for message_id in unindexed.ids if message_id not in analysed)[:-most]}
        ids = [message_id for message_id in unindexed.ids if message_id not in left_out]
        return unindexed._replace(ids=ids), len(left_out)

    def _candidates(
        self,
        owner: str,
        commit: Hashable,
        segments: Sequence[Segment],
        unindexed_ids: Ints,
        gone: frozenset[int],
        unindexed: UnindexedMessages,
    ) -> Candidates | None:
        """Return indexed and unindexed messages but those that are `gone`; what is in both counts once.

        commit: of the index, with its generation. None: there are none.
        """
        # A turn leaves out what it shows, of which most is not indexed yet.
        indexed_ids = _ids(segments)
        gone = gone.intersection(indexed_ids.tolist())
        version = commit, tuple(map(id, segments)), unindexed_ids.tobytes(), gone
        key = owner, not gone  # turns leave out what they show, and a person's own searches nothing
        last_version, candidates = self._arranged.get(key) or (None, None)
        if last_version == version:
            return candidates
        more = self._unindexed_segments(owner, unindexed_ids, unindexed) if len(unindexed_ids) else ()
        if not (segments or more):
            return None
        hidden = np.isin(indexed_ids, [*unindexed_ids.tolist(), *gone])
        candidates = Candidates.of([*segments, *more], np.append(hidden, ~np.isin(_ids(more), unindexed_ids)))
        self._arranged.put(key, (version, candidates), candidates.nbytes)
        return candidates

    def _best(self, prepared: PreparedQuery, candidates: Candidates, accepted: set[int] | None) -> list[Hit]:
        """Rank candidates.  accepted: ids that pass the query's operators; None: it has none."""
        if not len(candidates.ids):
            return []
        query = prepared.query
        context = self._context(prepared, candidates)
        scores = ranking.rank_alone(context) if query.alone else ranking.rank(context, self._profile)
        around = None
        if prepared.around is not None and not query.alone:
            around = self._context(prepared.around._replace(query=query), candidates)
            scores = scores.plus(ranking.rank(around, self._profile), ranking.AROUND_WEIGHT)
        total = scores.total
        mask = query.filters.match(candidates.session, candidates.role, candidates.created)
        if accepted is not None:
            mask &= np.isin(candidates.ids, np.fromiter(accepted, np.int64, len(accepted)))
        if not prepared.operators.required:
            found = ranking.is_found(context, self._profile, total)
            mask &= found if around is None else found | ranking.is_found(around, self._profile, total)
        at = mask.nonzero()[0]
        limit = min(query.limit, self._profile.most)
        if len(at) > limit:  # of thousands, only the best are worth sorting
            scores_found = total[at]
            at = at[scores_found >= np.partition(scores_found, len(at) - limit)[len(at) - limit]]
        at = at[np.lexsort((-candidates.ids[at], -total[at]))[:limit]]
        own = context.own[at]
        near = context.near(at)
        if around is not None:
            own = np.maximum(own, around.own[at])
            near = np.maximum(near, around.near(at))
        fits = np.maximum.accumulate(ranking.fit(own, near)[::-1])[::-1]
        near = near - nearness_by_chance(candidates.vectors.number)
        parts = scores.why(at)
        if prepared.failure is not None:  # nothing was compared by meaning
            parts = [{name: part[name] for name in part if name not in ranking.BY_MEANING} for part in parts]
        ids = candidates.ids[at].tolist()
        sessions = candidates.session[at].tolist()
        rows = zip(ids, sessions, total[at].tolist(), parts, fits.tolist(), own.tolist(), near.tolist(), strict=True)
        return [Hit(*row) for row in rows]  # in the order of its fields

    def _embedder_for(self, prepared: PreparedQuery) -> CalibratedEmbedder | None:
        """Return what compares the meaning of a query; None: nothing does, or its service gave no vector."""
        if prepared.query.alone:
            return self._text_embedder
        if self._embedder is self._unindexed_embedder:
            # Models that run here are English: they know a language in Latin letters a little, and others not at all.
            return self._embedder if languages_of_script(prepared.text) is None else None
        return self._embedder if prepared.content else None

    def _context(self, prepared: PreparedQuery, candidates: Candidates) -> ranking.ScoringContext:
        """Return the query beside its candidates.  Local vectors leave out the speakers' names: they mean nothing."""
        terms = (*prepared.terms, *prepared.forms)
        named = candidates.speakers
        speakers = [term for term in terms if named and term_hash(term) in named]
        calibrated = self._embedder_for(prepared)
        if calibrated is not None and calibrated.embedder.instant:
            text = self._analysis.without(prepared.text, speakers) if speakers else prepared.text
            vector, content = quantize(calibrated.embedder, [text, self._analysis.content(text)])
            prepared = prepared._replace(vector=vector, content=content)
        return ranking.ScoringContext(
            candidates,
            prepared,
            calibrated.calibration if calibrated is not None and prepared.content else None,
            speaker=term_hash(speakers[0]) if len(speakers) == 1 else 0,
            has_windows=not prepared.query.alone and any(feature.looks_around for feature in self._profile.features),
        )

    def highlights(self, prepared: PreparedQuery, text: str) -> list[str]:
        """Return the words of `text` that a query looked for, as they are written there, in their order."""
        prefixes = tuple(part.prefix for part in prepared.operators.required if part.prefix)
        return self._analysis.highlights(text, {*prepared.terms, *prepared.forms}, prefixes)

    def clear_caches(self) -> None:
        """Empty every cache of people's words: in this process now, in other processes before their next search."""
        clear_all()
        try:
            self._store.notify()
        except OSError as error:
            log.error("other processes could not be told to clear their caches: %s", error)

    def _indexed(
        self, owner: str, generation: str, prepared: PreparedQuery, connection: Connection | None
    ) -> tuple[Sequence[Segment], Hashable, set[int] | None]:
        """Return the indexed messages to rank and their commit; for a query with operators, the ids that they leave.

        Raises IndexLost, and IndexBusy or OSError where it can't be read.
        """
        operators = prepared.operators
        if generation == NO_INDEX:
            return (), None, set() if operators != NONE else None
        snapshot = self._snapshot(owner, generation, connection)
        if snapshot.segments is None:
            if self._unindexed_embedder is not None:
                prepared = prepared._replace(vector=quantize(self._unindexed_embedder.embedder, [prepared.text])[0])
            segment, ids = self._store.best(owner, generation, prepared, CANDIDATES, connection)
            # Another query has other ones, so they are cached under no commit.
            return [segment], object(), ids if operators != NONE else None
        accepted = self._store.matching(owner, generation, operators, connection) if operators != NONE else None
        return list(snapshot.segments.values()), snapshot.commit, accepted

    def _snapshot(self, owner: str, generation: str, connection: Connection | None = None) -> Snapshot:
        """Return the latest commit of the index."""
        key = owner, generation
        known: Snapshot = self._snapshots.get(key) or Snapshot()
        snapshot = self._store.snapshot(owner, generation, known, RANKED_WHOLE, connection)
        if snapshot is not known:
            if snapshot.nbytes > ARRAYS_BYTES:  # messages of books: to read all for each search would take too long
                snapshot = snapshot._replace(segments=None)
            self._snapshots.put(key, snapshot, snapshot.nbytes)
        return snapshot

    def analysed(self, texts: Sequence[SearchableText], calibrated: CalibratedEmbedder | None) -> list[IndexedMessage]:
        """Return texts analysed, with their vectors by `calibrated`.  They are cached."""
        size = calibrated.embedder.dimensions if calibrated is not None else 0
        entries = [self._entries.get((text, size)) for text in texts]
        new = [at for at, entry in enumerate(entries) if entry is None]
        contents = [texts[at].content for at in new]
        vectors = quantize(calibrated.embedder, contents) if calibrated is not None else [NO_VECTOR] * len(new)
        for at, vector in zip(new, vectors, strict=True):
            text = texts[at]
            name = self._analysis.terms(text.name or "")
            terms = self._analysis.terms(text.content, text.name, is_indexed=True)
            entries[at] = entry = IndexedMessage.of(text, terms, vector, term_hash(name[0]) if name else 0)
            self._entries.put((text, size), entry, entry.nbytes)
        return entries

    def analyse_ahead(self, texts: Iterable[SearchableText]) -> None:
        """Analyse messages that are not indexed yet, so that the first search which needs them does not wait for it."""
        self.analysed(list(texts), self._unindexed_embedder)

    def _analysed_for_index(self, texts: Sequence[SearchableText]) -> list[IndexedMessage]:
        """Return messages analysed.  The index has them from then on, so the cache gives them up."""
        entries = self.analysed(texts, self._embedder)
        for text in texts:
            self._entries.drop((text, self._embedder.embedder.dimensions if self._embedder is not None else 0))
        return entries


def _ids(segments: Sequence[Segment]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *(segment.rows["id"] for segment in segments)])
