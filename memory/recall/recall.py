"""Recall: finding what was said before, and knowing when to look.

Guarantee: only the owner's own messages are found, and all of them can be (but replaced, erased and refused ones): rows
the index does not hold yet are searched by the same analysis.  What a search returns was read from the rows a moment
ago, never from the index, so nothing erased comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import chain, compress
from typing import Any, NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from config import Settings
from memory.access.owners import owner_and_session
from memory.jobs import JobQueue
from memory.knowledge.graph import sources_about
from memory.languages import analysis_in
from memory.llm.json_answers import MiniModel
from memory.ops import logs
from memory.recall import endings, reranking, triggers
from memory.recall.derived import MESSAGES_MAX, RANKED_MAX, facts_and_summaries
from memory.recall.excerpts import LocatedMessage, Spans, fit_budget, latest, load, windows
from memory.recall.gate import BY_MEANING, JUDGED, gate_for, relevant
from memory.recall.nearest_summary import nearest_summary, words_cost
from memory.recall.statements import empty_exchanges, statements
from memory.recall.times import time_ranges
from memory.recall.unhelpful import marks_on
from memory.recall.waiting import waiting
from models import Database, OwnerRow
from models.jobs import JobRequest
from models.messages import Excerpt, Message
from models.owners import Caller
from search_index import NO_INDEX, Hit, IndexLost, PreparedQuery, Query, SearchIndex

log = logging.getLogger(__name__)

QUERY_CHARS = 2000  # of a message that are searched with; what somebody pastes after that is not a question
UNHELPFUL = 0.5  # by which a hit's score is multiplied that did not help with a similar question
WORDS_ALONE = "words alone were compared, since the embedding server failed"
POINTING = ("reference", "implicit")  # kinds of messages that point at what the person said
VAGUE = "vague"  # of a message without content
LATEST, MISSING = "latest", "missing"  # kinds of what is recalled: ends of conversations; nothing, though referred to
SPARE = 10  # hits in whose place others may come then


class SearchResult(NamedTuple):
    """A message that was found: how well it matches and why, the words it was found by, and what was said around it.

    For a fact or a summary: the best message that it comes from, if it has any, and as `window` all that come with it.
    `text` is then its own, which the score and the highlights are of.
    """

    message: Message | None
    score: float
    why: Mapping[str, float]
    highlights: list[str]
    window: Sequence[Message]
    session_id: str | None
    title: str | None  # of the session
    kind: str = "message"
    text: str | None = None


@dataclass(frozen=True)
class SearchScope:
    """Whose scope a turn may look into: the owner's, or with RECALL_SCOPE=session only this session's.

    `exclude` are the ids of messages that the prompt shows anyway, or that are hidden or refused.  Without `links`, or
    `unhelpful` excerpts, the owner is known to have none.
    """

    owner_id: int
    owner_key: str
    session_row_id: int | None = None
    exclude: frozenset[int] = frozenset()
    links: bool = True
    unhelpful: bool = True
    summaries: bool = False


@dataclass(frozen=True)
class RecallResult:
    """Excerpts that a turn shows, best first, and why these or why none.

    kind: that of `triggers.RecallPlan`, LATEST, MISSING, "off", "session_only" or "asked" (the model searches itself).
    """

    excerpts: tuple[Excerpt, ...] = ()
    mode: str = "auto"
    reason: str = ""
    kind: str = ""


class Found(NamedTuple):
    """Excerpts, best first; and why they were found by words alone, if they were."""

    excerpts: tuple[Excerpt, ...]
    failure: str | None = None


class Recall:
    """Searches, for callers and for turns."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        index: SearchIndex,
        job_queue: JobQueue,
        mini: MiniModel | None = None,
    ) -> None:
        """With `mini`, that model re-ranks what a turn recalls."""
        self._settings = settings
        self._analysis = analysis_in(settings.search_language)
        self._database = database
        self._index = index
        self._job_queue = job_queue
        self._mini = mini

    def search(
        self,
        caller: Caller,
        now: datetime,
        *,
        text: str,
        zone: tzinfo = UTC,
        session_id: str | None = None,
        window: int = 0,
        kind: str = "message",
        **narrowed: Any,
    ) -> list[SearchResult]:
        """The best matching messages of the caller's user, or of one session, best first.

        Times that `text` speaks of are understood on the calendar of `zone`, and preferred, not demanded.  `window`
        counts messages on either side of a result; `narrowed` is the rest of a `Query`.  With the `kind` "fact" or
        "summary" these are found, with the messages that they come from.

        Raises NotFound for a session that is not the caller's, InvalidRequest when neither user nor session is named.
        """
        with self._database.read() as tx:
            owner, session = owner_and_session(tx, caller, session_id)
        if owner is None:
            return []
        times = [(time.after, time.before) for time in time_ranges(text, now, zone)]
        row_id = session.id if session is not None else None
        about = triggers.about(text)
        asked = Query(text, operators=True, nearest=True, alone=kind == "fact")
        query = replace(asked, session_id=row_id, times=times, about=about, **narrowed)
        prepared = self._index.prepare(query, owner.index_key)
        scope = SearchScope(owner.id, owner.index_key)
        if kind != "message":
            return self._derived(scope, prepared, kind)
        hits, near = self._find(scope, prepared, window)
        around = windows(near, [hit.message_id for hit in hits if hit.message_id in near], window)
        results = []
        for hit in hits:
            if (found := around.get(hit.message_id)) is not None:
                message = found[0].message
                beside = sorted((one.message for one in found), key=lambda one: one.position) if window else []
                highlights = self._index.highlights(prepared, message.content)
                told = highlights, beside, message.session_id, found[0].title
                results.append(SearchResult(message, hit.fit, hit.why, *told))
        return results

    def _derived(self, scope: SearchScope, prepared: PreparedQuery, kind: str) -> list[SearchResult]:
        """The best matching facts or summaries, by `kind`, and for each the messages that it comes from."""
        query = replace(prepared.query, role=None, about=None, alone=True)
        with self._database.read() as tx:
            made = {one.id: one for one in facts_and_summaries(tx, kind, scope.owner_id, query.session_id)}
        documents = [one.document for one in made.values()]
        hits = self._index.search(scope.owner_key, prepared._replace(query=query), NO_INDEX, documents)
        found = [made[hit.message_id] for hit in hits]
        if kind == "summary":
            of_session = replace(query, limit=RANKED_MAX, alone=False)
            ranked, near = self._find(scope, prepared._replace(query=of_session), 0)
            sources = [[hit.message_id for hit in ranked if hit.session_id == one.session_row_id] for one in found]
        else:
            sources = [[one.source] if one.source is not None else [] for one in found]
            with self._database.read() as tx:
                near = load(tx, scope.owner_id, list(chain(*sources)), 0)
        results = []
        for one, hit, source_ids in zip(found, hits, sources, strict=True):
            said = [near[id].message for id in source_ids[:MESSAGES_MAX] if id in near]
            told = self._index.highlights(prepared, one.text), said, one.session_id, one.title
            results.append(SearchResult(said[0] if said else None, hit.score, hit.why, *told, kind, one.text))
        return results

    def look_back(
        self,
        scope: SearchScope,
        text: str,
        *,
        mode: str,
        budget: int,
        before: Sequence[str],
        now: datetime,
        zone: tzinfo,
        asked: bool = False,
    ) -> RecallResult:
        """What `text` brings back from the scope, in at most `budget` tokens; `triggers` decides whether, and how much.

        `before` are the texts that stand before it in the prompt.  asked: the application asks for the nearest, however
        near they are; in a turn only what is near enough is shown, unless the mode is "always".
        """
        settings = self._settings
        if mode == "off" or not settings.recall_limit or not budget:
            return RecallResult(mode=mode, reason="recall is off", kind="off")
        if settings.recall_scope == "session" and scope.session_row_id is None:
            reason = "recall keeps to the session, and this turn is in none"
            return RecallResult(mode=mode, reason=reason, kind="session_only")
        wanted = triggers.plan_recall(text[:QUERY_CHARS], before, now, zone, self._analysis, always=mode == "always")
        if not wanted.share:
            return RecallResult(mode=mode, reason=wanted.reason, kind=wanted.kind)
        query = Query(wanted.text, settings.recall_limit, times=wanted.times, nearest=asked)
        unasked, most = None if asked or mode == "always" else wanted.kind, int(budget * wanted.share)
        unasked = VAGUE if wanted.latest else unasked
        searched = query.text or query.times
        found, failure = self.excerpts(scope, query, most, unasked) if searched else Found(())
        if wanted.latest and not any(map(_tells_of_oneself, found)):
            found = ()
        if query.text and scope.summaries and not wanted.latest and settings.recall_scope == "user":
            found += self._summary(scope, query, found, most)
        reason, kind = wanted.reason, wanted.kind
        if not found and wanted.latest and (found := self._endings(scope, min(budget, endings.TOKENS_MAX))):
            reason, kind = f"{reason}, so the latest conversations are shown", LATEST
        elif not found and wanted.dangling:
            reason, kind = f"{reason}, but nothing earlier fits, so the model is told to ask", MISSING
        elif not found:
            reason = f"{reason}, but nothing earlier fits"
        if failure is not None:
            reason += f"; {WORDS_ALONE}"
        return RecallResult(found, mode, reason, kind)

    def _summary(self, scope: SearchScope, query: Query, found: Sequence[Excerpt], budget: int) -> tuple[Excerpt, ...]:
        """Return the summary that fits best of a session that no excerpt is of, if the excerpts leave room for it."""
        excerpt = nearest_summary(
            self._database,
            self._index,
            self._index.prepare(query, scope.owner_key),
            (scope.owner_id, scope.owner_key),
            {scope.session_row_id or 0, *(one.session_id for one in found)},
            budget - sum(map(words_cost, found)),
        )
        return (excerpt,) if excerpt is not None else ()

    def _endings(self, scope: SearchScope, budget: int) -> tuple[Excerpt, ...]:
        """Return how the latest conversations ended that a turn may look into, but for what its prompt shows."""
        page, session = self._settings.public_url, scope.session_row_id or 0
        with self._database.read() as tx:
            if self._settings.recall_scope == "session":
                return endings.own_ending(tx, session, scope.exclude, budget, page)
            return endings.latest_endings(tx, scope.owner_id, session, budget, page)

    def idle(self, text: str, before: Sequence[str]) -> bool:
        """Whether `text` gives nothing to look for, such as small talk.  `before` as in `look_back`."""
        return not triggers.classify(text[:QUERY_CHARS], before, self._analysis).looks_back

    def excerpts(self, scope: SearchScope, query: Query, budget: int, unasked: str | None = None) -> Found:
        """Excerpts of `scope` around the best messages for `query` that are worth showing, in at most `budget` tokens.

        A query without text asks for the latest messages of its times.  A good score is one near the best: it depends
        on the question.  unasked: the kind of the message that a turn brings; then nothing is shown unless a hit is
        near enough (see `gate`), or the mini model says that one helps.
        """
        window_size, failure = self._settings.recall_window, None
        session = (scope.session_row_id or 0) if self._settings.recall_scope == "session" else None
        if query.text:
            spare, about = SPARE * (1 + scope.unhelpful), triggers.about(query.text)
            limit = max(query.limit + spare, reranking.MOST if self._mini else 0)
            wanted = replace(query, limit=limit, exclude=scope.exclude, session_id=session, about=about)
            prepared = self._index.prepare(wanted, scope.owner_key)
            failure = prepared.failure
            hits, near = self._find(scope, prepared, window_size)
        else:
            spans: Spans = query.times or [(query.after, query.before)]
            with self._database.read() as tx:
                ids = latest(tx, scope.owner_id, session, spans, query.limit, scope.exclude)
                near = load(tx, scope.owner_id, ids, window_size)
            hits = [Hit(one, 0, 1 / rank, {"time": 1.0}) for rank, one in enumerate(ids, 1)]
        near = {id: one for id, one in near.items() if one.message.remembered or one.session_id == scope.session_row_id}
        nothing = empty_exchanges(near)
        if query.text:
            hits = [hit for hit in hits if hit.message_id in near and hit.message_id not in nothing]
            hits = hits if unasked == "reference" else statements(hits, near)  # "what did I ask you?"
            hits = self._near_enough(scope, wanted, hits, near, unasked)
            if scope.unhelpful:
                hits = self._demote_unhelpful(scope, prepared, hits)
            hits = relevant(hits[: query.limit])
        return Found(
            fit_budget(near, hits, budget=budget, window_size=window_size, exclude=scope.exclude | nothing), failure
        )

    def _near_enough(
        self, scope: SearchScope, query: Query, hits: list[Hit], near: Mapping[int, LocatedMessage], unasked: str | None
    ) -> list[Hit]:
        """The hits, best first, re-ranked by the mini model if there is one; none if none is near enough."""
        judged = None
        if self._mini is not None and len(hits) > 1 and (unasked is None or JUDGED.is_open(hits)):
            judged = reranking.rerank(self._mini, scope.owner_id, query.text, hits, near)
        if unasked is None:
            return judged or hits
        if judged is not None:
            return judged
        if unasked == VAGUE:
            return hits if BY_MEANING.is_open(hits) else []
        is_personal = query.about is not None or unasked in POINTING
        return hits if gate_for(hits, is_personal=is_personal).is_open(hits) else []

    def _demote_unhelpful(self, scope: SearchScope, prepared: PreparedQuery, hits: list[Hit]) -> list[Hit]:
        """The hits, best first, of which those count less that did not help with a similar question."""
        with self._database.read() as tx:
            marks = marks_on(tx, scope.owner_id, [hit.message_id for hit in hits])
        if not marks:
            return hits
        questions = [mark.question for mark in marks]
        asked = [
            triggers.plan_recall(one.content, (), one.created_at, UTC, self._analysis, always=True).text
            for one in questions
        ]
        similar = compress(marks, self._index.similar(prepared, asked))
        unhelpful = {message.id for mark in similar for message in mark.messages}
        judged = [
            hit._replace(score=hit.score * UNHELPFUL, why={**hit.why, "unhelpful": hit.score * (UNHELPFUL - 1)})
            if hit.message_id in unhelpful
            else hit
            for hit in hits
        ]
        return sorted(judged, key=lambda hit: -hit.score)

    def _find(
        self, scope: SearchScope, prepared: PreparedQuery, window_size: int
    ) -> tuple[list[Hit], dict[int, LocatedMessage]]:
        """The hits, and all messages within `window_size` of them.

        Messages about the neighbours of whoever the query names count as hits.

        No connection is held while the query is prepared, which may call a service, nor while the index is searched,
        which may need one.
        """
        generation = self._index.generation(scope.owner_key)
        with self._database.read() as tx:
            unindexed = waiting(tx, scope.owner_id, generation)
            linked = sources_about(tx, scope.owner_id, prepared.text) if scope.links else {}
        prepared = prepared._replace(query=replace(prepared.query, linked=linked))
        lost = unindexed.lost
        try:
            hits = self._index.search(scope.owner_key, prepared, generation, unindexed.messages, unindexed.gone)
        except IndexLost:
            lost = True
            with self._database.read() as tx:
                unindexed = waiting(tx, scope.owner_id, NO_INDEX)
            hits = self._index.search(scope.owner_key, prepared, NO_INDEX, unindexed.messages)
        if lost:
            self._index_again(scope.owner_id)
        if not hits:
            return [], {}
        with self._database.read() as tx:
            return hits, load(tx, scope.owner_id, [hit.message_id for hit in hits], window_size)

    def _index_again(self, owner_id: int) -> None:
        """Ask for the owner's index to be made again."""
        try:
            with self._database.write() as tx:
                owner = tx.get(OwnerRow, owner_id)
                if owner is not None:  # else they were erased a moment ago
                    self._job_queue.enqueue(tx, JobRequest("index", owner_id, owner.tenant, owner_id))
        except SQLAlchemyError as error:  # what was found is found; the next search asks again
            log.error("a lost index can't be made again yet", extra=logs.fields(error=logs.safe_message(error)))


def _tells_of_oneself(excerpt: Excerpt) -> bool:
    """Return whether a message that was found is the person's and about themselves, as "where do I live" asks for."""
    hits = (message for message in excerpt.messages if message.id in excerpt.hits)
    return any(message.role == "user" and triggers.about(message.content) for message in hits)
