"""Recall for a turn: plan the search, find messages in one snapshot, select excerpts that are worth their tokens.

    plan     read the message, prepare its query and vector; no transaction is open
    find     search and load messages, inside the caller's read transaction
    select   re-rank, keep what is near enough, fit the token budget; no transaction is open

The invariants of `search` hold here too.

Invariants:
- No message is recalled that the prompt shows anyway (test_recall).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import compress
from typing import NamedTuple

from sqlalchemy import Connection

from memory.engine import Engine
from memory.languages import analysis_in
from memory.llm.mini_model import MiniModel
from memory.recall import other_sessions, reranking, triggers
from memory.recall.excerpts import LocatedMessage, Spans, find_latest, fit_budget, load_windows
from memory.recall.relevance import (
    BY_MEANING,
    FOREIGN_PASSAGE,
    JUDGED,
    PERSONAL,
    empty_exchanges,
    gate_for,
    relevant,
    statements,
)
from memory.recall.search import ALL_KINDS, Matches, SearchFlags, SearchScope, find_matches, index_again
from memory.recall.triggers import UNASKED, MessageReading, RecallPlan
from memory.recall.unhelpful import UnhelpfulExcerpt, marks_on
from models.messages import Excerpt
from search_index import Hit, PreparedQuery, Query

QUERY_CHARS = 2000  # of a message that make its query; text that somebody pastes after that is not a question
UNHELPFUL = 0.5  # factor for the score of a hit that did not help with a similar question
WORDS_ALONE = "words alone were compared, since the embedding server failed"
POINTING = ("reference", "implicit")  # kinds of messages that point at earlier ones
VAGUE = "vague"  # kind of a message without content
LATEST, MISSING = "latest", "missing"  # kinds of a result: how the latest conversations ended; nothing, though wanted
SPARE = 10  # more hits than the limit, to replace those that `_select` leaves out


@dataclass(frozen=True)
class RecallResult:
    """Excerpts that a turn shows, best first, and why these or why none.

    kind: that of `triggers.RecallPlan`, LATEST, MISSING, "off", "session_only" or "asked" (the model searches itself).
    """

    excerpts: tuple[Excerpt, ...] = ()
    mode: str = "auto"
    reason: str = ""
    kind: str = ""


@dataclass(frozen=True)
class PreparedPlan:
    """Plan of a turn's recall: the message, read, and its query, prepared.  Without a budget recall is off.

    budget: the most tokens of all excerpts.
    nearest: show the nearest messages, however near (a memory block); else only those near enough (a turn).
    """

    mode: str
    budget: int = 0
    nearest: bool = False
    reading: MessageReading | None = None
    prepared: PreparedQuery | None = None

    def is_idle(self, visible_texts: Sequence[str]) -> bool:
        """Return whether the message has nothing to look for, such as small talk."""
        return self.reading is None or not self.reading.trigger(visible_texts).looks_back


class Findings(NamedTuple):
    """Rows of one snapshot that a turn may show, and the plan they were found by.

    scope: where they were searched; None: recall does not look back. query: of the search; None: none was made.
    marks: marks of unhelpful excerpts that have some of the hits. summaries, endings: of other conversations.
    """

    plan: RecallPlan
    scope: SearchScope | None = None
    query: PreparedQuery | None = None
    matches: Matches = Matches()
    marks: Sequence[UnhelpfulExcerpt] = ()
    summaries: Sequence[Excerpt] = ()
    endings: tuple[Excerpt, ...] = ()


@dataclass(frozen=True)
class Recall:
    """Recalls messages for turns."""

    engine: Engine

    @property
    def mini(self) -> MiniModel | None:
        """Return the model that re-ranks hits; None unless RERANK=model."""
        return self.engine.mini if self.engine.settings.rerank == "model" else None

    def plan(  # noqa: PLR0913 - each is one thing that a plan depends on
        self,
        text: str,
        owner_key: str,
        now: datetime,
        zone: tzinfo,
        *,
        mode: str,
        budget: int,
        nearest: bool = False,
    ) -> PreparedPlan:
        """Read a message, and prepare its query if it may look back.  May call an embedding service.

        mode: one of RECALL_MODES; in mode `tools` no query is prepared: the model searches by itself.
        zone: in which the person's days begin.
        Call it with no transaction open.
        """
        settings = self.engine.settings
        analysis = analysis_in(settings.search_language)
        reading = MessageReading(text[:QUERY_CHARS], now, zone, analysis)
        if mode in ("off", "tools") or not settings.recall_limit or not budget:
            return PreparedPlan(mode, reading=reading)
        plan, prepared = reading.plan((), always=mode == "always"), None
        if plan.share and plan.text:
            query = Query(plan.text, settings.recall_limit, about=triggers.about(plan.text), nearest=nearest)
            prepared = self.engine.index.prepare(query, owner_key)
        return PreparedPlan(mode, budget, nearest, reading, prepared)

    def find(
        self,
        tx: Connection,
        scope: SearchScope,
        plan: PreparedPlan,
        generation: str,
        flags: SearchFlags = ALL_KINDS,
    ) -> Findings:
        """Find the messages, summaries and endings that the plan asks for, in the snapshot of `tx`.

        generation: of the owner's index, read before the transaction began, so that no message is missed.
        flags: kinds of rows that the owner may have.
        """
        if not plan.budget or plan.reading is None:
            return Findings(RecallPlan("off", "recall is off"))
        by_session = self.engine.settings.recall_scope == "session"
        if by_session and scope.session_row_id is None:
            return Findings(RecallPlan("session_only", "recall keeps to the session, and this turn is in none"))
        final = plan.reading.plan(scope.visible_texts, always=plan.mode == "always")
        if not final.share:
            return Findings(final)
        findings = Findings(final, scope)
        query = Query(final.text, self.engine.settings.recall_limit, times=final.times)
        if final.text and plan.prepared is not None:
            query = replace(plan.prepared.query, times=final.times)
            unasked = _unasked(plan, final)
            prepared = plan.prepared._replace(query=query)
            findings = self._find(tx, scope, prepared, generation, flags, unasked)
        elif final.times:
            findings = self._find_latest(tx, scope, query)
        findings = findings._replace(plan=final)
        if final.latest:
            findings = findings._replace(
                endings=self._find_endings(tx, scope, min(plan.budget, other_sessions.ENDINGS_TOKENS_MAX), final.latest)
            )
        elif findings.query is not None and flags.summaries and not by_session:
            limit = self.engine.settings.recall_limit + 1  # so that one is of a session without an excerpt
            summaries = other_sessions.find_summaries(tx, self.engine.index, scope, findings.query, limit)
            findings = findings._replace(summaries=summaries)
        return findings

    def select(self, findings: Findings, plan: PreparedPlan) -> RecallResult:
        """Select excerpts within the budget, and say why.  May call the mini model.

        Call it with no transaction open.
        """
        final, scope = findings.plan, findings.scope
        if scope is None:
            return RecallResult((), plan.mode, final.reason, final.kind)
        most = int(plan.budget * final.share)
        excerpts = self._select(findings, scope, most, _unasked(plan, final))
        if final.latest and not any(map(_tells_of_oneself, excerpts)):
            excerpts = ()
        excerpts += other_sessions.nearest_summary(findings.summaries, excerpts, most)
        reason, kind = final.reason, final.kind
        if not excerpts and findings.endings:
            excerpts, reason, kind = findings.endings, f"{reason}, so the latest conversations are shown", LATEST
        elif not excerpts and final.dangling:
            reason, kind = f"{reason}, but nothing earlier fits, so the model is told to ask", MISSING
        elif not excerpts:
            reason = f"{reason}, but nothing earlier fits"
        if findings.query is not None and findings.query.failure is not None:
            reason += f"; {WORDS_ALONE}"
        if findings.matches.left_out:
            reason += f"; {findings.matches.left_out:,} older messages are still being indexed and were not searched"
        return RecallResult(excerpts, plan.mode, reason, kind)

    def search_now(
        self, scope: SearchScope, query: Query, budget: int, flags: SearchFlags = ALL_KINDS
    ) -> tuple[Excerpt, ...]:
        """Return excerpts around the best messages for a model's own query, in at most `budget` tokens.

        A query without text finds the latest messages of its times.
        """
        index, scope = self.engine.index, replace(scope, analysed_max=None)  # what is left out would not be told
        prepared = index.prepare(replace(query, about=triggers.about(query.text)), scope.owner_key)
        generation = index.generation(scope.owner_key)
        with self.engine.database.connect() as tx:
            findings = (
                self._find(tx, scope, prepared, generation, flags)
                if query.text
                else self._find_latest(tx, scope, query)
            )
        return self._select(findings, scope, budget, None)

    def _find(
        self,
        tx: Connection,
        scope: SearchScope,
        prepared: PreparedQuery,
        generation: str,
        flags: SearchFlags,
        unasked: str | None = None,
    ) -> Findings:
        """Search, and load the windows and marks of the hits; load nothing if no hit can be near enough.

        unasked: as in `_select`.
        """
        widest = FOREIGN_PASSAGE if prepared.is_foreign else PERSONAL
        gate = None if unasked is None or self.mini is not None else BY_MEANING if unasked == VAGUE else widest
        spare = SPARE * (1 + flags.unhelpful)
        limit = max(prepared.query.limit + spare, reranking.MOST if self.mini else 0)
        query = replace(prepared.query, limit=limit, exclude=scope.exclude, session_id=self._session_of(scope))
        matches = find_matches(
            tx,
            self.engine.index,
            scope,
            prepared._replace(query=query),
            generation,
            self.engine.settings.recall_window,
            flags,
            gate.is_open if gate is not None else bool,
        )
        hit_ids = [hit.message_id for hit in matches.hits]
        marks = marks_on(tx, scope.owner_id, hit_ids) if flags.unhelpful and hit_ids else ()
        return Findings(RecallPlan("", ""), scope, prepared, matches, marks)

    def _find_latest(self, tx: Connection, scope: SearchScope, query: Query) -> Findings:
        """Load the latest messages of the query's times."""
        spans: Spans = query.times or [(query.after, query.before)]
        session = self._session_of(scope)
        ids = find_latest(tx, scope.owner_id, session, spans, query.limit, scope.exclude)
        hits = [Hit(message_id, 0, 1 / rank, {"time": 1.0}) for rank, message_id in enumerate(ids, 1)]
        window = load_windows(tx, scope.owner_id, ids, self.engine.settings.recall_window)
        return Findings(RecallPlan("", ""), scope, None, Matches(hits, window))

    def _find_endings(self, tx: Connection, scope: SearchScope, budget: int, place: int) -> tuple[Excerpt, ...]:
        """Return how the latest conversations in the scope ended, without messages that the prompt shows anyway.

        place: of the first of them, counted from the newest.
        """
        page, session = self.engine.settings.public_url, scope.session_row_id or 0
        if self.engine.settings.recall_scope == "session":
            return other_sessions.own_ending(tx, session, scope.exclude, budget, page)
        return other_sessions.latest_endings(tx, scope.owner_id, session, budget, page, place)

    def _session_of(self, scope: SearchScope) -> int | None:
        return (scope.session_row_id or 0) if self.engine.settings.recall_scope == "session" else None

    def _select(self, findings: Findings, scope: SearchScope, budget: int, unasked: str | None) -> tuple[Excerpt, ...]:
        """Return excerpts around the relevant hits, in at most `budget` tokens.

        unasked: the kind of a message that did not ask for a search. Then nothing is shown unless a hit is near enough
        (see `relevance`), or the mini model says that one helps. None: the best hits are shown.
        """
        matches, window_size = findings.matches, self.engine.settings.recall_window
        if matches.index_lost:
            index_again(self.engine, scope.owner_id)
        window = {
            message_id: located
            for message_id, located in matches.window.items()
            if located.message.remembered
            or (located.session_id == scope.session_row_id and not located.message.is_kept_out)
        }
        hits, empty = list(matches.hits), empty_exchanges(window)
        if findings.query is not None:
            hits = [hit for hit in hits if hit.message_id in window and hit.message_id not in empty]
            hits = hits if unasked == "reference" else statements(hits, window)  # "what did I ask you?"
            asks = findings.plan.share > UNASKED
            hits = self._near_enough(scope, findings.query, hits, window, unasked, is_question=asks)
            hits = self._demote_unhelpful(findings.query, findings.marks, hits)
            hits = relevant(hits[: findings.query.query.limit])
        exclude = scope.exclude | empty
        return fit_budget(window, hits, budget=budget, window_size=window_size, exclude=exclude)

    def _near_enough(
        self,
        scope: SearchScope,
        prepared: PreparedQuery,
        hits: list[Hit],
        window: Mapping[int, LocatedMessage],
        unasked: str | None,
        *,
        is_question: bool,
    ) -> list[Hit]:
        """Return the hits, re-ranked by the mini model if there is one; none if none is near enough."""
        judged = None
        if self.mini is not None and len(hits) > 1 and (unasked is None or JUDGED.is_open(hits)):
            judged = reranking.rerank(self.mini, scope.owner_id, prepared.query.text, hits, window)
        if unasked is None:
            return judged or hits
        if judged is not None:
            return judged
        if unasked == VAGUE or not hits:
            return hits if BY_MEANING.is_open(hits) else []
        gate = gate_for(
            hits,
            is_personal=prepared.query.about is not None or unasked in POINTING,
            is_question=is_question,
            is_passage=window[hits[0].message_id].message.is_passage,
            is_foreign=prepared.is_foreign,
        )
        return hits if gate.is_open(hits) else []

    def _demote_unhelpful(
        self, prepared: PreparedQuery, marks: Sequence[UnhelpfulExcerpt], hits: list[Hit]
    ) -> list[Hit]:
        """Return the hits in their new order: hits that did not help with a similar question score less."""
        if not marks or not hits:
            return hits
        analysis = analysis_in(self.engine.settings.search_language)
        questions = [
            MessageReading(mark.question.content, mark.question.created_at, UTC, analysis).plan((), always=True).text
            for mark in marks
        ]
        similar = compress(marks, self.engine.index.similar(prepared, questions))
        unhelpful = {message.id for mark in similar for message in mark.messages}
        demoted = [
            hit._replace(score=hit.score * UNHELPFUL, why={**hit.why, "unhelpful": hit.score * (UNHELPFUL - 1)})
            if hit.message_id in unhelpful
            else hit
            for hit in hits
        ]
        return sorted(demoted, key=lambda hit: -hit.score)


def _unasked(plan: PreparedPlan, final: RecallPlan) -> str | None:
    """Return the kind of a message that did not ask for a search, or VAGUE; None if the best hits are shown anyway."""
    return None if plan.nearest or plan.mode == "always" else VAGUE if final.latest else final.kind


def _tells_of_oneself(excerpt: Excerpt) -> bool:
    """Return whether a hit is a message of the person about themselves, the answer to "where do I live"."""
    hits = (message for message in excerpt.messages if message.id in excerpt.hits)
    return any(message.role == "user" and triggers.about(message.content) for message in hits)
