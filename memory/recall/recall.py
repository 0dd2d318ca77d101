"""Recall: finding what was said before, and knowing when to look.

Guarantee: only the owner's own messages are found, and all of them can be (but replaced and erased ones): rows the
index does not hold yet are searched by the same analysis.  What a search returns was read from the rows a moment ago,
never from the index, so nothing erased comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from sqlalchemy.exc import SQLAlchemyError

from config import Settings
from memory.access.owners import find_session, find_user
from memory.domain import Caller, Excerpt, Message
from memory.errors import InvalidRequest
from memory.jobs.outbox import Outbox
from memory.languages import analysis_in
from memory.ops import logs
from memory.recall import triggers
from memory.recall.excerpts import Stored, fit, latest, load, window
from memory.recall.indexing import waiting
from memory.recall.times import time_ranges
from models import Database, OwnerRow
from search_index import NO_INDEX, Hit, IndexLost, Prepared, Query, SearchIndex

log = logging.getLogger(__name__)

QUERY_CHARS = 2000  # of a message that are searched with; what somebody pastes after that is not a question
RELEVANT_SHARE = 0.55  # of the best hit's score: on LoCoMo a 20th of the tokens less, and 0.2 points of the evidence
Spans = Sequence[tuple[datetime | None, datetime | None]]


@dataclass(frozen=True)
class SearchResult:
    """A message that was found: how well it matches and why, the words it was found by, and what was said around it."""

    message: Message
    score: float
    why: Mapping[str, float]
    highlights: list[str]
    window: Sequence[Message]


@dataclass(frozen=True)
class Past:
    """Whose past a turn may look into: the owner's, or with RECALL_SCOPE=session only this session's.

    `exclude` are the ids of messages that the prompt shows anyway.
    """

    owner_id: int
    owner_key: str
    session_row_id: int | None = None
    exclude: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Recalled:
    """What a turn recalls: excerpts, best first, the mode asked for, and in words why these or why none."""

    excerpts: tuple[Excerpt, ...] = ()
    mode: str = "auto"
    reason: str = ""


@dataclass(frozen=True)
class Search:
    """A search on behalf of a caller.  `after` is inclusive, `before` exclusive; `window` counts messages each side.

    Times that `text` speaks of are understood on the calendar of `zone`, and preferred, not demanded.
    """

    text: str
    session_id: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    role: str | None = None
    limit: int = 10
    window: int = 0
    zone: tzinfo = UTC


class Recall:
    """Searches, for callers and for turns."""

    def __init__(self, settings: Settings, database: Database, index: SearchIndex, outbox: Outbox) -> None:
        self._settings = settings
        self._analysis = analysis_in(settings.search_language)
        self._database = database
        self._index = index
        self._outbox = outbox

    def search(self, caller: Caller, search: Search, now: datetime) -> list[SearchResult]:
        """The best matching messages of the caller's user, or of one session, best first.

        Raises NotFound for a session that is not the caller's, InvalidRequest when neither user nor session is named.
        """
        with self._database.read() as tx:
            session = find_session(tx, caller, search.session_id) if search.session_id is not None else None
            if session is None and caller.user_id is None:
                raise InvalidRequest("owner_needed", "Say whose messages to search: a user_id or a session_id.")
            owner = session.owner if session is not None else find_user(tx, caller)
        if owner is None:
            return []
        query = Query(
            text=search.text,
            limit=search.limit,
            session_id=session.id if session is not None else None,
            role=search.role,
            after=search.after,
            before=search.before,
            times=[(time.after, time.before) for time in time_ranges(search.text, now, search.zone)],
            operators=True,
        )
        prepared = self._index.prepare(query)
        hits, near = self._find(Past(owner.id, owner.index_key), prepared, reach=search.window)
        results = []
        for hit in hits:
            if found := near.get(hit.message_id):
                around = [one.message for one in window(found, near, search.window)] if search.window else []
                highlights = self._index.highlights(prepared, found.message.content)
                results.append(SearchResult(found.message, hit.score, hit.why, highlights, around))
        return results

    def look_back(
        self, past: Past, text: str, *, mode: str, before: Sequence[str], now: datetime, zone: tzinfo
    ) -> Recalled:
        """What `text` brings back from the past, within RECALL_TOKENS; `triggers` decides whether, and how much.

        `before` are the texts that stand before it in the prompt.
        """
        settings = self._settings
        if mode == "off" or not settings.recall_limit or not settings.recall_tokens:
            return Recalled(mode=mode, reason="recall is off")
        if settings.recall_scope == "session" and past.session_row_id is None:
            return Recalled(mode=mode, reason="recall keeps to the session, and this turn is in none")
        wanted = triggers.decide(text[:QUERY_CHARS], before, now, zone, self._analysis, always=mode == "always")
        if not wanted.share:
            return Recalled(mode=mode, reason=wanted.reason)
        budget = int(settings.recall_tokens * wanted.share)
        if wanted.text:
            found = self._excerpts(past, Query(wanted.text, settings.recall_limit, times=wanted.times), budget)
        else:
            found = self._latest(past, wanted.times, settings.recall_limit, budget)
        return Recalled(found, mode, wanted.reason if found else f"{wanted.reason}, but nothing earlier fits")

    def find(
        self,
        past: Past,
        text: str,
        *,
        after: datetime | None,
        before: datetime | None,
        limit: int,
        budget: int | None = None,
    ) -> tuple[Excerpt, ...]:
        """Excerpts around the `limit` best messages for `text`, said from `after` until `before`.

        `text` may have "phrases", -exclusions and prefixes*.  Without a `budget` they take RECALL_TOKENS.
        """
        query = Query(text[:QUERY_CHARS], limit, after=after, before=before, operators=True)
        return self._excerpts(past, query, budget or self._settings.recall_tokens)

    def recent(
        self, past: Past, *, after: datetime | None, before: datetime | None, limit: int, budget: int | None = None
    ) -> tuple[Excerpt, ...]:
        """The `limit` latest messages said from `after` until `before`, the latest session first."""
        return self._latest(past, [(after, before)], limit, budget or self._settings.recall_tokens)

    def _excerpts(self, past: Past, query: Query, budget: int) -> tuple[Excerpt, ...]:
        """Excerpts around the hits worth showing.  A good score is one near the best: it depends on the question."""
        reach = self._settings.recall_window
        query = replace(query, exclude=past.exclude, session_id=self._session_of(past))
        hits, near = self._find(past, self._index.prepare(query), reach, RELEVANT_SHARE)
        return fit(near, hits, budget=budget, reach=reach, exclude=past.exclude)

    def _find(
        self, past: Past, prepared: Prepared, reach: int, share: float = 0.0
    ) -> tuple[list[Hit], dict[int, Stored]]:
        """The hits with that `share` of the best score or more, and all messages within `reach` of them.

        The query is prepared before, since that may call a service: no connection is held meanwhile.
        """
        generation = self._index.generation(past.owner_key)
        with self._database.read() as tx:
            unindexed = waiting(tx, past.owner_id, generation)
            lost = unindexed.lost
            try:
                hits = self._index.search(past.owner_key, prepared, generation, unindexed.messages, unindexed.gone)
            except IndexLost:
                lost = True
                unindexed = waiting(tx, past.owner_id, NO_INDEX)
                hits = self._index.search(past.owner_key, prepared, NO_INDEX, unindexed.messages)
            hits = [hit for hit in hits if hit.score >= share * hits[0].score]
            near = load(tx, past.owner_id, [hit.message_id for hit in hits], reach)
        if lost:
            self._index_again(past.owner_id)
        return hits, near

    def _session_of(self, past: Past) -> int | None:
        """The session that recall keeps to, if it does; for a turn that is in none, one that is not there."""
        return (past.session_row_id or 0) if self._settings.recall_scope == "session" else None

    def _latest(self, past: Past, spans: Spans, limit: int, budget: int) -> tuple[Excerpt, ...]:
        """The latest messages said in any of the `spans`."""
        reach, session = self._settings.recall_window, self._session_of(past)
        with self._database.read() as tx:
            ids = latest(tx, past.owner_id, session, spans, limit, past.exclude)
            near = load(tx, past.owner_id, ids, reach)
        hits = [
            Hit(one, near[one].session_id, 1 / rank, {"time": 1.0}) for rank, one in enumerate(ids, 1) if one in near
        ]
        return fit(near, hits, budget=budget, reach=reach, exclude=past.exclude)

    def _index_again(self, owner_id: int) -> None:
        """Ask for the owner's index to be made again."""
        try:
            with self._database.write() as tx:
                if tx.get(OwnerRow, owner_id) is not None:  # else they were erased a moment ago
                    self._outbox.ask(tx, "index", owner_id, owner_id)
        except SQLAlchemyError as error:  # what was found is found; the next search asks again
            log.error("a lost index can't be made again yet", extra=logs.fields(error=logs.told(error)))
