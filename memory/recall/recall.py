"""Recall for a turn: plan the search, find messages in one snapshot, choose excerpts that are worth their tokens.

Three steps, each with the value that it returns.  In the first and the last, which may wait for servers, no transaction
is open:

    prepare_recall       PreparedRecall   the message, read (MessageReading), and its query with the vector
    search_in_snapshot   Findings         the SearchPlan, made beside the visible messages, and the rows that it found
    choose_excerpts      RecallResult     the excerpts: near enough, re-ranked, within the token budget; and why these

The invariants of `search` hold here too.

Invariants:
- No message is recalled that the prompt shows anyway (test_recall).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import compress
from typing import Final, Literal, NamedTuple

from sqlalchemy import Connection

from memory.engine import Engine
from memory.knowledge.supersession import Corrections, find_corrections
from memory.languages import analysis_in
from memory.recall import other_sessions, relevance, reranking, triggers
from memory.recall.excerpts import LocatedMessage, Spans, find_in_spans, make_excerpts, messages_of
from memory.recall.other_sessions import OtherSessions
from memory.recall.search import Matches, SearchFlags, SearchScope, find_matches, index_again
from memory.recall.triggers import ALL, Kind, MessageReading, SearchPlan
from memory.recall.unhelpful import UnhelpfulExcerpt, marks_on
from models.facts import Fact
from models.messages import Excerpt, is_kept_out
from search_index import Hit, PreparedQuery, Query

AROUND_CHARS_MAX = 1_000  # of a message that is searched whole beside the part that asks
UNHELPFUL = 0.5  # factor for the score of a hit that did not help with a similar question
WORDS_ALONE = "words alone were compared, since the embedding server failed"
LATEST: Final = "latest"  # kind of a result: how the latest conversations ended
MISSING: Final = "missing"  # kind of a result: nothing, though the message refers to something
SPARE = 10  # more hits than the limit, to replace those that are left out


@dataclass(frozen=True)
class RecallResult:
    """Excerpts that a turn shows, best first, and why these or why none.

    corrections: facts that hold now in place of what the excerpts say.
    mode: that was asked for. Where another one is in force (`PreparedRecall.mode`), the reason says so.
    kind: that of the plan; or what became of the plan: "off", "session_only" (the turn is in no session), "asked" (the
    model searches by itself), LATEST, MISSING; "": what fits stands in another memory.
    """

    excerpts: tuple[Excerpt, ...] = ()
    mode: str = "auto"
    reason: str = ""
    kind: Kind | Literal[""] = ""
    corrections: Sequence[Fact] = ()


@dataclass(frozen=True)
class PreparedRecall:
    """Message that was read, and its query, before anything is known of the session.

    mode: in force. budget: the most tokens of all excerpts; 0: recall is off.
    """

    mode: str
    reading: MessageReading
    budget: int = 0
    prepared_query: PreparedQuery | None = None

    def plan(self, visible_texts: Sequence[str]) -> SearchPlan:
        """Plan the search. visible_texts: of the messages that the prompt shows before the new one."""
        return self.reading.plan(visible_texts, always=self.mode == "always")


class Findings(NamedTuple):
    """Rows of one snapshot that a turn may show, and the plan they were found by.

    scope: where they were searched. budget: the most tokens of all excerpts.
    prepared_query: of the search; None: none was made, so the hits are those of a time.
    marks: marks of unhelpful excerpts that have some of the hits.
    corrections: facts that hold in place of what the loaded messages say, and the summaries shown in full.
    """

    plan: SearchPlan
    scope: SearchScope
    budget: int = 0
    prepared_query: PreparedQuery | None = None
    matches: Matches = Matches()
    marks: Sequence[UnhelpfulExcerpt] = ()
    other_sessions: OtherSessions = OtherSessions()
    corrections: Corrections = Corrections()


def prepare_recall(  # noqa: PLR0913 - each is one thing that a plan depends on
    engine: Engine,
    text: str,
    owner_key: str,
    now: datetime,
    zone: tzinfo,
    *,
    mode: str,
    budget: int,
    has_attachments: bool = False,
) -> PreparedRecall:
    """Read a message, and prepare its query if it may look back.  May call an embedding service.

    mode: one of RECALL_MODES; in mode `tools` no query is prepared: the model searches by itself. In mode `always` the
        nearest messages are shown, however near; else only those near enough.
    zone: in which the person's days begin.
    Call it with no transaction open.
    """
    settings = engine.settings
    reading = MessageReading(text, now, zone, analysis_in(settings.search_language), has_attachments=has_attachments)
    if mode in ("off", "tools") or not settings.recall_limit or not budget:
        return PreparedRecall(mode, reading)
    prepared_recall = PreparedRecall(mode, reading, budget)
    plan = prepared_recall.plan(())  # as if nothing were visible: no other text is searched
    if not (plan.budget_share and plan.text):
        return prepared_recall
    about = triggers.role_meant(plan.text)
    query = Query(plan.text, settings.recall_limit, about=about, nearest=plan.shows_nearest)
    # "I'm getting a new laptop. What should I know before buying one?"
    is_part = plan.text == reading.search_text and plan.text != reading.content
    around = reading.content if is_part and len(reading.content) <= AROUND_CHARS_MAX else ""
    return replace(prepared_recall, prepared_query=engine.index.prepare(query, owner_key, around=around))


def search_in_snapshot(
    engine: Engine,
    tx: Connection,
    scope: SearchScope,
    prepared_recall: PreparedRecall,
    visible_texts: Sequence[str],
) -> Findings:
    """Plan the search, and find messages, summaries and endings, in the snapshot of `tx`.

    visible_texts: of the messages that the prompt shows before the new one, the newest last.
    """
    if not prepared_recall.budget:
        return Findings(SearchPlan("off", "recall is off"), scope)
    if scope.only_session and scope.session_row_id is None:
        return Findings(SearchPlan("session_only", "recall keeps to the session, and this turn is in none"), scope)
    plan = prepared_recall.plan(visible_texts)
    if not plan.budget_share:
        return Findings(plan, scope)
    found = Findings(plan, scope, int(prepared_recall.budget * plan.budget_share))
    if plan.times_first and plan.times:
        latest = _load_in_spans(engine, tx, scope, plan.times, engine.settings.recall_limit)
        found = found._replace(matches=latest)
    if plan.text and prepared_recall.prepared_query is not None and not found.matches.hits:
        prepared = prepared_recall.prepared_query.with_fields(times=plan.times)
        found = _search(engine, tx, found, prepared)
    found = found._replace(other_sessions=_find_other_sessions(engine, tx, found))
    loaded = found.matches.loaded
    in_full = found.other_sessions.in_full
    if scope.flags.corrected and (loaded or in_full):
        corrections = find_corrections(engine, tx, scope.owner_id, messages_of(loaded), sessions=in_full)
        found = found._replace(corrections=corrections)
    return found


def choose_excerpts(engine: Engine, findings: Findings) -> RecallResult:
    """Choose excerpts within the budget, and say why.  May call the mini model.  A lost index is made again.

    Call it with no transaction open.
    """
    plan = findings.plan
    reason = plan.reason
    kind = plan.kind
    if not plan.budget_share:  # recall does not look back
        return RecallResult(reason=reason, kind=kind)
    if findings.matches.index_lost:
        index_again(engine, findings.scope.owner_id)
    excerpts = _relevant_excerpts(engine, findings)
    if plan.conversation_place and not any(map(_tells_of_oneself, excerpts)):
        excerpts = ()
    if findings.other_sessions.summaries:
        excerpts += other_sessions.nearest_summary(findings.other_sessions.summaries, excerpts, findings.budget)
    if not excerpts and findings.other_sessions.endings:
        excerpts = findings.other_sessions.endings
        reason += ", so the latest conversations are shown"
        kind = kind if plan.is_list_question else LATEST
    elif not excerpts:
        reason += ", but nothing earlier fits"
        if plan.dangling:
            reason += ", so the model is told to ask"
            kind = MISSING
    if findings.prepared_query is not None and findings.prepared_query.failure is not None:
        reason += f"; {WORDS_ALONE}"
    if findings.matches.left_out:
        reason += f"; {findings.matches.left_out:,} older messages are still being indexed and were not searched"
    return RecallResult(excerpts, reason=reason, kind=kind, corrections=_corrections_of(excerpts, findings.corrections))


def search_now(engine: Engine, scope: SearchScope, query: Query, budget: int) -> RecallResult:
    """Return excerpts around the best messages for a model's own query, in at most `budget` tokens, with corrections.

    A query without text finds the latest messages between its times.
    """
    prepared = engine.index.prepare(replace(query, about=triggers.role_meant(query.text)), scope.owner_key)
    # All messages are analysed, since what is left out would not be told; more may be stored since the prompt was made.
    generation = engine.index.generation(scope.owner_key)
    scope = replace(scope, generation=generation, unindexed=None, flags=SearchFlags(), analysed_max=None)
    findings = Findings(SearchPlan("always", "", ALL, shows_nearest=True), scope, budget)
    with engine.database.connect() as tx:
        if query.text:
            findings = _search(engine, tx, findings, prepared)
        else:
            spans = [(query.after, query.before)]
            findings = findings._replace(matches=_load_in_spans(engine, tx, scope, spans, query.limit))
        corrections = find_corrections(engine, tx, scope.owner_id, messages_of(findings.matches.loaded))
    return choose_excerpts(engine, findings._replace(corrections=corrections))


def _corrections_of(excerpts: Sequence[Excerpt], corrections: Corrections) -> tuple[Fact, ...]:
    """Return the facts that hold in place of what these excerpts say."""
    facts: dict[int, Fact] = {}
    for excerpt in excerpts:
        gist = excerpt.gist
        session = gist.session_row_id if gist is not None and gist.in_full else None
        found = corrections.of((message.id for message in excerpt.messages), session)
        facts |= {fact.id: fact for fact in found}
    return tuple(facts.values())


def _search(engine: Engine, tx: Connection, findings: Findings, prepared: PreparedQuery) -> Findings:
    """Return the findings with those of a query.  Nothing is loaded if no hit can be near enough."""
    plan, scope, settings = findings.plan, findings.scope, engine.settings
    limit = max(
        prepared.query.limit + (2 * SPARE if scope.flags.unhelpful else SPARE),
        reranking.MOST if engine.reranker else 0,
    )
    searched = prepared.with_fields(limit=limit, exclude=scope.exclude, session_id=scope.searched_session)
    matches = find_matches(tx, engine.index, scope, searched)
    if not plan.shows_nearest and engine.reranker is None:
        gates = relevance.possible_gates(plan, is_foreign=prepared.is_foreign)
        if not any(gate.is_open(matches.hits) for gate in gates):
            matches = matches._replace(hits=())
    hit_ids = [hit.message_id for hit in matches.hits]
    marks = marks_on(tx, scope.owner_id, hit_ids) if scope.flags.unhelpful and hit_ids else ()
    matches = matches.load(tx, scope.owner_id, settings.recall_window)
    return findings._replace(prepared_query=prepared, matches=matches, marks=marks)


def _find_other_sessions(engine: Engine, tx: Connection, findings: Findings) -> OtherSessions:
    """Return how the latest conversations ended, if the message means one; else the summaries that fit the query."""
    plan, scope, settings = findings.plan, findings.scope, engine.settings
    if plan.conversation_place:
        budget = min(findings.budget, other_sessions.ENDINGS_TOKENS_MAX)
        page = settings.public_url
        if scope.only_session:
            return OtherSessions(endings=other_sessions.own_ending(tx, scope, budget, page))
        if plan.is_list_question:
            return OtherSessions(endings=other_sessions.latest_lines(tx, scope, findings.budget, page))
        return OtherSessions(endings=other_sessions.latest_endings(tx, scope, budget, page, plan.conversation_place))
    if scope.only_session or not scope.flags.summaries or findings.prepared_query is None:
        return OtherSessions()
    limit = settings.recall_limit + 1  # so that one is of a session without an excerpt
    summaries = other_sessions.find_summaries(tx, engine.index, scope, findings.prepared_query, limit)
    is_of_few = plan.points_back and not plan.is_list_question
    sessions = {hit.session_id for hit in findings.matches.hits} - {scope.session_row_id} if is_of_few else ()
    return OtherSessions(summaries, other_sessions.read_summaries(tx, sessions) if sessions else {})


def _load_in_spans(engine: Engine, tx: Connection, scope: SearchScope, spans: Spans, limit: int) -> Matches:
    """Load the latest messages in any of the spans."""
    ids = find_in_spans(tx, scope.owner_id, scope.searched_session, spans, limit, scope.exclude)
    # Of session 0: no summary is shown beside messages that were found by their time alone.
    hits = [Hit(message_id, 0, 1 / rank, {"time": 1.0}) for rank, message_id in enumerate(ids, 1)]
    return Matches(hits).load(tx, scope.owner_id, engine.settings.recall_window)


def _relevant_excerpts(engine: Engine, findings: Findings) -> tuple[Excerpt, ...]:
    """Return excerpts around the relevant hits, within the budget."""
    matches, scope = findings.matches, findings.scope
    if not matches.hits:
        return ()
    loaded = {
        message_id: located
        for message_id, located in matches.loaded.items()
        if located.message.remembered
        or (located.session_row_id == scope.session_row_id and not is_kept_out(located.message.extra))
    }
    hits = list(matches.hits)
    empty = relevance.empty_exchanges(loaded)
    prepared = findings.prepared_query
    if prepared is not None:
        hits = [hit for hit in hits if hit.message_id in loaded and hit.message_id not in empty]
        hits = relevance.without_bare_replies(hits, loaded)
        if findings.plan.kind != "reference":  # "what did I ask you?"
            hits = relevance.without_questions(hits, loaded)
        hits = _near_enough(engine, findings, prepared, hits, loaded)
        if findings.marks:
            hits = _demote_unhelpful(engine, prepared, findings.marks, hits)
        hits = relevance.relevant(hits[: prepared.query.limit], is_foreign=prepared.is_foreign)
    of_hits = findings.other_sessions.of_hits
    summaries, budget = other_sessions.summaries_of_hits(of_hits, hits, findings.budget)
    excerpts = make_excerpts(
        loaded,
        hits,
        budget=budget,
        window_size=engine.settings.recall_window,
        exclude=scope.exclude | empty,
        evenly=findings.plan.is_list_question,
        terms=prepared.terms if prepared is not None else (),
        analysis=analysis_in(engine.settings.search_language),
    )
    return other_sessions.with_summaries(excerpts, summaries) if summaries else excerpts


def _near_enough(
    engine: Engine,
    findings: Findings,
    prepared: PreparedQuery,
    hits: list[Hit],
    loaded: Mapping[int, LocatedMessage],
) -> list[Hit]:
    """Return the hits, re-ranked by the mini model if it does that; none if none is near enough."""
    plan = findings.plan
    if engine.reranker is not None and len(hits) > 1 and (plan.shows_nearest or relevance.JUDGED.is_open(hits)):
        judged = reranking.rerank(engine.reranker, findings.scope.owner_id, prepared.query.text, hits, loaded)
        if judged is not None:
            return judged or (hits if plan.shows_nearest else [])  # what is asked for is shown, whatever the model says
    if plan.shows_nearest or not hits:
        return hits
    is_passage = loaded[hits[0].message_id].message.is_passage
    gate = relevance.gate_for(plan, hits, prepared.query, is_passage=is_passage, is_foreign=prepared.is_foreign)
    return hits if gate.is_open(hits) else []


def _demote_unhelpful(
    engine: Engine, prepared: PreparedQuery, marks: Sequence[UnhelpfulExcerpt], hits: list[Hit]
) -> list[Hit]:
    """Return the hits in their new order: hits that did not help with a similar question score less."""
    analysis = analysis_in(engine.settings.search_language)
    questions = [
        MessageReading(mark.question.content, mark.question.created_at, UTC, analysis).plan((), always=True).text
        for mark in marks
    ]
    similar = compress(marks, engine.index.nearness.similar(prepared.text, questions))
    unhelpful = {message.id for mark in similar for message in mark.messages}
    demoted = [
        hit._replace(score=hit.score * UNHELPFUL, why={**hit.why, "unhelpful": hit.score * (UNHELPFUL - 1)})
        if hit.message_id in unhelpful
        else hit
        for hit in hits
    ]
    return sorted(demoted, key=lambda hit: -hit.score)


def _tells_of_oneself(excerpt: Excerpt) -> bool:
    """Return whether a hit is a message of the person about themselves, the answer to "where do I live"."""
    hits = (message for message in excerpt.messages if message.id in excerpt.hits)
    return any(message.role == "user" and triggers.role_meant(message.content) for message in hits)
