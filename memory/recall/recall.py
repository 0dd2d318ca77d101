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

from sqlalchemy import and_, or_, select, true
from sqlalchemy.exc import SQLAlchemyError

from config import Settings
from memory.access.owners import find_session, find_user
from memory.domain import Caller, Excerpt, Message
from memory.errors import InvalidRequest
from memory.jobs.outbox import Outbox
from memory.languages import analysis_in
from memory.ops import logs
from memory.recall import triggers
from memory.recall.excerpts import Stored, fit, load, window
from memory.recall.indexing import waiting
from memory.recall.keywords import keywords
from memory.recall.times import TimeRange, time_ranges
from memory.sessions.messages import SAID
from models import Database, MessageRow, OwnerRow, Transaction
from search_index import NO_INDEX, Hit, IndexLost, Query, SearchIndex
from search_index.analysis import Analysis

log = logging.getLogger(__name__)

QUERY_CHARS = 2000  # of a message that are searched with; what somebody pastes after that is not a question
# Of RECALL_TOKENS, for a message that tells more than it asks: what it asks is looked for then, and not all it says,
# and on LoCoMo, after words of the same talk or of another, that finds more than all of them did.
ALSO_ASKED = 0.4
UNASKED = 1 / 6  # for one that asks for nothing: what is recalled may matter, and costs each time
RELEVANT_SHARE = 0.55  # of the best hit's score: on LoCoMo a 20th of the tokens less, and 0.2 points of the evidence


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
            times=_spans(time_ranges(search.text, now, search.zone)),
            operators=True,
        )
        query, hits, near = self._find(Past(owner.id, owner.index_key), query, reach=search.window)
        results = []
        for hit in hits:
            if found := near.get(hit.message_id):
                around = [one.message for one in window(found, near, search.window)] if search.window else []
                highlights = self._index.highlights(query, found.message.content)
                results.append(SearchResult(found.message, hit.score, hit.why, highlights, around))
        return results

    def look_back(
        self, past: Past, text: str, *, mode: str, before: Sequence[str], now: datetime, zone: tzinfo
    ) -> Recalled:
        """What `text` brings back from the past, within RECALL_TOKENS; nothing when it does not look back, less when it
        mostly tells, and least when it asks for nothing: what is recalled stands after the part of a prompt that
        providers bill as cached.  Of a text that also tells, what it asks is looked for, where that stands alone.

        `before` are the texts that stand before it in the prompt.  In mode `always` everything with words to look for
        is looked for.
        """
        if mode == "off" or not self._settings.recall_limit or not self._settings.recall_tokens:
            return Recalled(mode=mode, reason="recall is off")
        if self._settings.recall_scope == "session" and past.session_row_id is None:
            return Recalled(mode=mode, reason="recall keeps to the session, and this turn is in none")
        text = text[:QUERY_CHARS]
        trigger = triggers.read(text, before, self._analysis)
        times = time_ranges(text, now, zone) if trigger.kind != "small_talk" or mode == "always" else []
        reasons = [trigger.reason] if trigger.look_back or not times else []
        reasons += [f'speaks of "{time.phrase}"' for time in times]
        reason = ", ".join(reasons)
        if not (trigger.look_back or times or mode == "always"):
            return Recalled(mode=mode, reason=reason)
        asking = triggers.asking(text)
        only_times = bool(times) and not _beside(text, times, self._analysis)  # "what did we talk about yesterday?"
        of_past = only_times or trigger.kind == "reference" or any(time.phrase in asking for time in times)
        if of_past or mode == "always" or 2 * len(asking) >= len(text):
            share = 1.0
        else:
            share = ALSO_ASKED if asking else UNASKED
        budget = int(self._settings.recall_tokens * share)
        query = Query(text, self._settings.recall_limit, times=_spans(times))
        if only_times:
            found = self._recent(past, query.times, query.limit, budget)
        elif triggers.stands_alone(asking, self._analysis):
            found = self._excerpts(past, replace(query, text=asking), budget)
        elif self._analysis.query_terms(text):
            found = self._excerpts(past, query, budget)
        else:
            return Recalled(mode=mode, reason=f"{reason}, but has no words to look for")
        return Recalled(found, mode, reason if found else f"{reason}, but nothing earlier fits")

    def find(
        self, past: Past, text: str, *, after: datetime | None, before: datetime | None, limit: int, budget: int
    ) -> tuple[Excerpt, ...]:
        """Excerpts of `budget` tokens around the `limit` best messages for `text`, said from `after` until `before`.

        `text` may have "phrases", -exclusions and prefixes*.
        """
        query = Query(text[:QUERY_CHARS], limit, after=after, before=before, operators=True)
        return self._excerpts(past, query, budget)

    def recent(
        self, past: Past, *, after: datetime | None, before: datetime | None, limit: int, budget: int
    ) -> tuple[Excerpt, ...]:
        """The `limit` latest messages said from `after` until `before`, the latest session first."""
        return self._recent(past, [(after, before)], limit, budget)

    def _excerpts(self, past: Past, query: Query, budget: int) -> tuple[Excerpt, ...]:
        """Excerpts around the hits worth showing.  A good score is one near the best: it depends on the question."""
        query = replace(query, exclude=past.exclude, session_id=self._narrowed(past))
        _, hits, near = self._find(past, query, self._settings.recall_window, RELEVANT_SHARE)
        return fit(near, hits, budget=budget, reach=self._settings.recall_window, exclude=past.exclude)

    def _find(
        self, past: Past, query: Query, reach: int, share: float = 0.0
    ) -> tuple[Query, list[Hit], dict[int, Stored]]:
        """The prepared query, its hits with that `share` of the best score or more, and all messages within `reach`."""
        query = self._index.prepare(query)  # may call a service: no connection is held meanwhile
        with self._database.read() as tx:
            hits, lost = self._hits(tx, past, query)
            hits = [hit for hit in hits if hit.score >= share * hits[0].score]
            near = load(tx, past.owner_id, [hit.message_id for hit in hits], reach)
        if lost:
            self._index_again(past.owner_id)
        return query, hits, near

    def _hits(self, tx: Transaction, past: Past, query: Query) -> tuple[list[Hit], bool]:
        """What the index and the messages beside it give; and whether the index was lost and nobody makes it again."""
        if query.words is None or not query.words.searchable:
            return [], False
        generation, lost = self._index.generation(past.owner_key), False
        while True:
            found = waiting(tx, past.owner_id, generation)
            asked = replace(query, exclude={*query.exclude, *found.gone})  # the index may hold those that are gone
            try:
                return self._index.search(past.owner_key, asked, generation, found.messages), lost or found.lost
            except IndexLost:
                generation, lost = NO_INDEX, True

    def _narrowed(self, past: Past) -> int | None:
        """The session that recall keeps to, if it does; for a turn that is in none, one that is not there."""
        return (past.session_row_id or 0) if self._settings.recall_scope == "session" else None

    def _recent(
        self, past: Past, spans: Sequence[tuple[datetime | None, datetime | None]], limit: int, budget: int
    ) -> tuple[Excerpt, ...]:
        within = [
            and_(
                true() if after is None else MessageRow.created_at >= after,
                true() if before is None else MessageRow.created_at < before,
            )
            for after, before in spans
        ]
        query = select(MessageRow.id, MessageRow.session_id).where(
            MessageRow.owner_id == past.owner_id, *SAID, or_(*within)
        )
        session = self._narrowed(past)
        if session is not None:
            query = query.where(MessageRow.session_id == session)
        query = query.order_by(MessageRow.created_at.desc(), MessageRow.id.desc()).limit(limit + len(past.exclude))
        reach = self._settings.recall_window
        with self._database.read() as tx:
            latest = [(found, of) for found, of in tx.execute(query) if found not in past.exclude][:limit]
            hits = [Hit(found, of, 1 / rank, {"time": 1.0}) for rank, (found, of) in enumerate(latest, 1)]
            near = load(tx, past.owner_id, [hit.message_id for hit in hits], reach)
        return fit(near, hits, budget=budget, reach=reach, exclude=past.exclude)

    def _index_again(self, owner_id: int) -> None:
        try:
            with self._database.write() as tx:
                if tx.get(OwnerRow, owner_id) is not None:  # else they were erased a moment ago
                    self._outbox.enqueue(tx, "index", owner_id, owner_id=owner_id)
        except SQLAlchemyError as error:  # what was found is found; the next search asks again
            log.error("a lost index can't be made again yet", extra=logs.fields(error=logs.told(error)))
            return


def _spans(times: Sequence[TimeRange]) -> list[tuple[datetime, datetime]]:
    return [(time.after, time.before) for time in times]


def _beside(text: str, times: Sequence[TimeRange], analysis: Analysis) -> list[str]:
    """What a text speaks of beside the times it names."""
    for time in reversed(times):
        text = f"{text[: time.start]} {text[time.end :]}"
    return keywords(text, analysis)
