"""Search messages, facts and summaries on behalf of callers; `find_matches` is the search of turns too.

Invariants:
- Only the owner's own rows are found (test_owners_apart).
- Messages that are not indexed yet are found by the same analysis (test_search_waiting). A turn counts those that it
  leaves out (test_recall).
- Every result was read from the rows a moment ago (test_erasing).
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, bindparam, null, select
from sqlalchemy.exc import SQLAlchemyError

from memory.access.owners import get_session, owner_and_session
from memory.engine import Engine
from memory.knowledge.fact_reads import NOW, valid_at
from memory.knowledge.graph import sources_about
from memory.knowledge.supersession import find_corrections
from memory.ops import logs
from memory.recall import triggers
from memory.recall.excerpts import LocatedMessage, load_windows, messages_of, windows
from memory.recall.indexing import find_unindexed
from memory.recall.times import time_ranges
from models import FactRow, OwnerRow, SessionRow, SummaryRow
from models.facts import Fact
from models.jobs import JobRequest
from models.messages import PASSAGE, Message
from models.owners import Caller
from models.sections import Sections
from search_index import NO_INDEX, Hit, IndexLost, PreparedQuery, Query, SearchableText, SearchIndex, UnindexedMessages

log = logging.getLogger(__name__)

SEARCHED_ROWS_MAX = 2_000  # newest facts, or summaries, of an owner that are searched
SUMMARY_MESSAGES_MAX = 3  # messages of its session that come with a summary
SUMMARY_RANKED_MAX = 500  # best messages of the owner, from which those are taken

_F, _S, _V = FactRow.__table__.c, SessionRow.__table__.c, SummaryRow.__table__.c
_SESSION = _S.id.label("session"), _S.public_id, _S.title
_KINDS = {  # the columns are the fields of a `FactOrSummary`; a summary's text is made of its sections
    "fact": select(_F.id, _F.text, _F.valid_from, _F.source_message_id, *_SESSION)
    .outerjoin(SessionRow, _S.id == _F.session_id)
    .where(_F.owner_id == bindparam("owner"), valid_at(None)),
    "summary": select(_V.id, _V.sections.label("text"), _V.created_at, null(), *_SESSION)
    .join(SessionRow, (_S.id == _V.session_id) & (_S.summary_version == _V.version))
    .where(_S.owner_id == bindparam("owner")),
}


class SearchResult(NamedTuple):
    """Result of a search: a message with its score, its highlighted words and its neighbours (`window`).

    A fact or a summary has a `text`, to which score and highlights belong. Its `message` is the best of the messages
    that it comes from, and its `window` has all of them.

    corrections: facts that hold now in place of what it says.
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
    corrections: Sequence[Fact] = ()
    fact_id: int | None = None

    @property
    def document(self) -> Mapping[str, Any] | None:
        """Return the document of a passage, and the passage's place in it; None for anything else."""
        if self.message is None or not self.message.is_passage:
            return None
        return {"id": self.message.session_id, "title": self.title, "uri": None, **(self.message.extra or {})}


class SearchFlags(NamedTuple):
    """Kinds of rows that an owner may have; a kind that is False is not searched.

    corrected: facts in whose place others were put.
    """

    links: bool = True
    unhelpful: bool = True
    summaries: bool = True
    corrected: bool = True


@dataclass(frozen=True)
class SearchScope:
    """Messages to search: the owner's, or with `only_session` those of the session that a turn is in.

    generation: of the owner's index, read before the transaction begins, so that no message is missed. None: without
    the index. unindexed: the messages that this generation does not have; None: not read yet.
    flags: which kinds of rows there may be.
    session_row_id: of the turn's session; None: it is in none of this owner's. only_session: RECALL_SCOPE is `session`.
    exclude: ids of messages that the prompt shows anyway, or that are hidden or refused.
    analysed_max: how many unindexed messages a search analyses, the newest; the others that no search has analysed yet
    are left out. None: it analyses all.
    """

    owner_id: int
    owner_key: str
    generation: str | None
    unindexed: UnindexedMessages | None = None
    flags: SearchFlags = SearchFlags()
    session_row_id: int | None = None
    only_session: bool = False
    exclude: frozenset[int] = frozenset()
    analysed_max: int | None = None

    @property
    def searched_session(self) -> int | None:
        """Return the row id of the one session to search, 0 if there is none; None: all are searched."""
        return (self.session_row_id or 0) if self.only_session else None


class Matches(NamedTuple):
    """Hits, best first, and the `loaded` messages, by id: the hits and their neighbours.

    left_out: how many unindexed messages were not searched, since none of the searches before has analysed them.
    """

    hits: Sequence[Hit] = ()
    index_lost: bool = False
    left_out: int = 0
    loaded: Mapping[int, LocatedMessage] = {}

    def load(self, tx: Connection, owner_id: int, window_size: int) -> Self:
        """Return the matches with their messages loaded, and with these many neighbours on either side."""
        return self._replace(loaded=load_windows(tx, owner_id, [hit.message_id for hit in self.hits], window_size))


class FactOrSummary(NamedTuple):
    """Fact or summary, with its source: the id of a fact's message, and the session."""

    id: int
    text: str
    created_at: datetime
    source: int | None
    session_row_id: int | None
    session_id: str | None
    title: str | None

    @property
    def searchable(self) -> SearchableText:
        return SearchableText(self.id, self.session_row_id or 0, "", self.created_at, self.text)


def facts_and_summaries(
    tx: Connection,
    kind: str,
    owner_id: int,
    session_row_id: int | None,
    limit: int = SEARCHED_ROWS_MAX,
    now: datetime | None = None,
) -> list[FactOrSummary]:
    """Return the newest facts that are valid `now`, or the newest summaries, of an owner or of one session.

    kind: "fact" or "summary".
    """
    query = _KINDS[kind]
    if session_row_id is not None:
        query = query.where(_S.id == session_row_id)
    params = {"owner": owner_id, **({NOW.key: now} if now else {})}
    rows = tx.execute(query.order_by(query.selected_columns.id.desc()).limit(limit), params)
    if kind == "fact":
        return [FactOrSummary(*row) for row in rows]
    return [FactOrSummary(*row)._replace(text=str(Sections.from_dict(row.text))) for row in rows]


def find_matches(tx: Connection, index: SearchIndex, scope: SearchScope, prepared: PreparedQuery) -> Matches:
    """Search the owner's messages in the snapshot of `tx`; none is loaded.

    Messages about entities that are linked to one in the query count as hits.
    """
    owner_id = scope.owner_id
    generation = scope.generation or NO_INDEX
    unindexed = scope.unindexed or find_unindexed(tx, owner_id, generation)
    index_lost = unindexed.is_lost
    if scope.flags.links:
        prepared = prepared.with_fields(linked=sources_about(tx, owner_id, prepared.text))
    while True:
        unindexed, left_out = index.analysable(scope.owner_key, unindexed, scope.analysed_max)
        try:
            hits = index.search(scope.owner_key, prepared, generation, unindexed, connection=tx)
        except IndexLost:
            index_lost = True
            generation = NO_INDEX
            unindexed = find_unindexed(tx, owner_id, generation)
        else:
            return Matches(hits, index_lost, left_out)


def search_memory(  # noqa: PLR0913 - by keyword, as a query has them
    engine: Engine,
    caller: Caller,
    now: datetime,
    *,
    text: str,
    zone: tzinfo = UTC,
    session_id: str | None = None,
    window_size: int = 0,
    kind: str = "message",
    **filters: Any,
) -> list[SearchResult]:
    """Return the best matching messages of the caller's user, or of one session, best first.

    text: the query. Times that it names are read in `zone`; messages of these times are preferred, not required.
    window_size: neighbours on either side of a result.
    kind: "message": messages and passages of documents; "document": passages alone, of all sessions; "fact" or
    "summary": these, with the messages that they come from.
    filters: other fields of a `Query`.

    Raises NotFound for a session that is not the caller's, InvalidRequest when neither user nor session is named.
    """
    with engine.database.read() as tx:
        owner, session = owner_and_session(tx, caller, session_id)
    if owner is None:
        return []
    query = Query(
        text,
        operators=True,
        nearest=True,
        alone=kind == "fact",
        session_id=session.id if session is not None and kind != "document" else None,
        times=[(time.after, time.before) for time in time_ranges(text, now, zone)],
        about=triggers.role_meant(text),
    )
    if kind == "document":
        filters["role"] = PASSAGE
    prepared = engine.index.prepare(replace(query, **filters), owner.index_key)
    scope = SearchScope(owner.id, owner.index_key, engine.index.generation(owner.index_key))
    if kind in _KINDS:
        return _find_facts_or_summaries(engine, scope, prepared, kind, now)
    with engine.database.connect() as tx:
        matches = find_matches(tx, engine.index, scope, prepared).load(tx, owner.id, window_size)
        corrections = find_corrections(engine, tx, owner.id, messages_of(matches.loaded))
    if matches.index_lost:
        index_again(engine, owner.id)
    hit_ids = [hit.message_id for hit in matches.hits if hit.message_id in matches.loaded]
    around = windows(matches.loaded, hit_ids, window_size)
    results = []
    for hit in matches.hits:
        if located := around.get(hit.message_id):
            message = located[0].message
            neighbours = [near.message for near in located] if window_size else []
            result = SearchResult(
                message=message,
                score=hit.fit,  # its score compares hits of one search only
                why=hit.why,
                highlights=engine.index.highlights(prepared, message.content),
                window=sorted(neighbours, key=lambda near: near.position),
                session_id=None if message.is_passage else message.session_id,
                title=located[0].title,
                kind="document" if message.is_passage else "message",
                corrections=corrections.of(near.message.id for near in located),
            )
            results.append(result)
    return results


def corrections_beside(engine: Engine, caller: Caller, session_id: str, messages: Sequence[Message]) -> Sequence[Fact]:
    """Return the facts that hold now in place of what messages of a session say.  Raises NotFound."""
    with engine.database.read() as tx:
        owner_id = get_session(tx, caller, session_id).owner_id
        corrections = find_corrections(engine, tx.connection(), owner_id, messages)
    return corrections.of(message.id for message in messages)


def _find_facts_or_summaries(
    engine: Engine, scope: SearchScope, prepared: PreparedQuery, kind: str, now: datetime
) -> list[SearchResult]:
    """Return the best matching facts or summaries, each with the messages that it comes from."""
    of_any_role = prepared.with_fields(role=None, about=None)
    with engine.database.connect() as tx:
        texts = facts_and_summaries(tx, kind, scope.owner_id, prepared.query.session_id, now=now)
        hits = engine.index.rank_texts(of_any_role, [text.searchable for text in texts])
        by_id = {text.id: text for text in texts}
        best = [by_id[hit.message_id] for hit in hits]
        if kind == "summary":
            matches = find_matches(tx, engine.index, scope, of_any_role.with_fields(limit=SUMMARY_RANKED_MAX))
            loaded = matches.load(tx, scope.owner_id, 0).loaded
            sources: dict[int | None, list[int]] = defaultdict(list)
            for hit in matches.hits:
                sources[hit.session_id].append(hit.message_id)
            source_ids = [sources[text.session_row_id] for text in best]
            summarised = [text.session_row_id for text in best if text.session_row_id]
        else:
            source_ids = [[text.source] if text.source is not None else [] for text in best]
            loaded = load_windows(tx, scope.owner_id, [text.source for text in best if text.source is not None], 0)
            summarised = []
        corrections = find_corrections(engine, tx, scope.owner_id, messages_of(loaded), sessions=summarised)
    results = []
    for text, hit, ids in zip(best, hits, source_ids, strict=True):
        messages = [loaded[id].message for id in ids[:SUMMARY_MESSAGES_MAX] if id in loaded]
        result = SearchResult(
            message=messages[0] if messages else None,
            score=hit.score,  # of a text that stands alone: how well it fits
            why=hit.why,
            highlights=engine.index.highlights(prepared, text.text),
            window=messages,
            session_id=text.session_id,
            title=text.title,
            kind=kind,
            text=text.text,
            corrections=corrections.of((message.id for message in messages), text.session_row_id),
            fact_id=text.id if kind == "fact" else None,
        )
        results.append(result)
    return results


def index_again(engine: Engine, owner_id: int) -> None:
    """Enqueue the job that makes the owner's index again."""
    try:
        with engine.database.write() as tx:
            owner = tx.get(OwnerRow, owner_id)
            if owner is not None:  # else they were erased a moment ago
                engine.job_queue.enqueue(tx, JobRequest("index", owner_id, owner.tenant, owner_id))
    except SQLAlchemyError as error:  # the hits are complete; the next search asks again
        log.error("a lost index can't be made again yet", extra=logs.fields(error=logs.safe_message(error)))
