"""Recall: finding what was said before.

Guarantee: only the owner's own messages are found, and all of them can be: rows the index does not hold yet are
searched by the same analysis.  What a search returns was read from the rows a moment ago, never from the index, so
nothing erased comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from config import Settings
from memory import tokens
from memory.domain import Caller, Excerpt, Message
from memory.errors import InvalidRequest
from memory.indexing import waiting
from memory.outbox import Outbox
from memory.quoting import message_line
from memory.sessions import as_message, find_session, find_user
from models import Database, JobRow, MessageRow, SessionRow
from search_index import Document, Hit, Query, SearchIndex
from search_index.analysis import terms

QUERY_CHARS = 2000  # of a message that are searched with; what somebody pastes after that is not a question
RELEVANT_SHARE = 0.3  # of the best hit's score, below which a hit is chance and not worth its tokens
NEIGHBOURS = 1  # messages shown before and after a hit: a question means little without its answer
HIT_TOKENS, NEIGHBOUR_TOKENS = 200, 80  # of one message in an excerpt; replies can be long


@dataclass(frozen=True)
class Found:
    """A search result: the message, how well it matches and why, and the messages around it."""

    message: Message
    score: float
    why: Mapping[str, float]
    window: tuple[Message, ...] = ()


@dataclass(frozen=True)
class Recalled:
    """What a turn recalls: excerpts, best first, the mode asked for, and in words why these or why none."""

    excerpts: tuple[Excerpt, ...] = ()
    mode: str = "auto"
    reason: str = ""


@dataclass(frozen=True)
class Search:
    """A search on behalf of a caller.  `after` is inclusive, `before` exclusive; `window` counts messages each side."""

    text: str
    session_id: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    role: str | None = None
    limit: int = 10
    window: int = 0


class Recall:
    """Searches, for callers and for turns."""

    def __init__(self, settings: Settings, database: Database, index: SearchIndex, outbox: Outbox) -> None:
        self._settings = settings
        self._database = database
        self._index = index
        self._outbox = outbox

    def search(self, caller: Caller, search: Search) -> list[Found]:
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
        )
        hits = self._hits(owner.id, owner.index_key, query)
        with self._database.read() as tx:
            rows = _rows(tx, owner.id, [hit.message_id for hit in hits])
            found = [
                Found(as_message(*rows[hit.message_id]), hit.score, hit.why) for hit in hits if hit.message_id in rows
            ]
            if search.window:
                found = [replace(one, window=_around(tx, *rows[one.message.id], search.window)) for one in found]
        return found

    def look_back(self, *, owner_id: int, owner_key: str, text: str, mode: str, exclude: Collection[int]) -> Recalled:
        """What the words of `text` bring back from the owner's past, within RECALL_TOKENS.

        `exclude` are the ids of messages the prompt shows anyway, the new one among them.
        """
        if mode == "off" or not self._settings.recall_limit or not self._settings.recall_tokens:
            return Recalled(mode=mode, reason="recall is off")
        text = text[:QUERY_CHARS]
        if not terms(text):
            return Recalled(mode=mode, reason="the message has no words to look for")
        hits = self._hits(owner_id, owner_key, Query(text=text, limit=self._settings.recall_limit, exclude=exclude))
        hits = [hit for hit in hits if hit.score >= RELEVANT_SHARE * hits[0].score]
        if not hits:
            return Recalled(mode=mode, reason="nothing earlier has the message's words")
        with self._database.read() as tx:
            excerpts = self._excerpts(tx, owner_id, hits, exclude)
        return Recalled(excerpts, mode, "earlier messages share the message's words")

    def _hits(self, owner_id: int, owner_key: str, query: Query) -> list[Hit]:
        abandoned = False

        def pending(generation: str) -> list[Document]:
            nonlocal abandoned
            with self._database.read() as tx:
                documents = waiting(tx, owner_id, generation)
                job = select(JobRow.id).where(JobRow.kind == "index", JobRow.key == str(owner_id))
                abandoned = bool(documents) and tx.scalar(job) is None
            return documents

        hits = self._index.search(owner_key, query, pending)
        if abandoned:  # the index was lost or damaged: what it held has to be indexed again
            with self._database.write() as tx:
                self._outbox.enqueue(tx, "index", owner_id, owner_id=owner_id)
            self._outbox.notify()
        return hits

    def _excerpts(
        self, tx: Session, owner_id: int, hits: Sequence[Hit], exclude: Collection[int]
    ) -> tuple[Excerpt, ...]:
        """Windows around the hits, best hit first, until RECALL_TOKENS are spent.  A window gives up its neighbours
        before its hit; what doesn't fit at all is left out."""
        rows = _rows(tx, owner_id, [hit.message_id for hit in hits])
        best = {hit.message_id: hit for hit in hits if hit.message_id in rows}
        near = _neighbourhood(tx, (rows[message_id][0] for message_id in best), NEIGHBOURS)
        budget = self._settings.recall_tokens
        shown: dict[int, Message] = {}
        for message_id in best:
            row, session = rows[message_id]
            beside = [
                n for n in near if n.session_id == row.session_id and abs(n.position - row.position) <= NEIGHBOURS
            ]
            for one in sorted(beside, key=lambda n: n.id != row.id):  # the hit before its neighbours
                if one.id in shown or one.id in exclude:
                    continue
                message = as_message(one, session)
                limit = HIT_TOKENS if one.id in best else NEIGHBOUR_TOKENS
                message = replace(message, content=tokens.clip(message.content, limit))
                cost = tokens.estimate(message_line(message)) + 1
                if cost > budget:
                    break
                budget -= cost
                shown[one.id] = message
        return _gather(shown.values(), best, {session.public_id: session.title for _, session in rows.values()})


def _gather(messages: Iterable[Message], best: Mapping[int, Hit], titles: Mapping[str, str]) -> tuple[Excerpt, ...]:
    """Consecutive messages of a session as one excerpt; the excerpts with the best hits first."""
    runs: list[list[Message]] = []
    for message in sorted(messages, key=lambda m: (m.session_id, m.position)):
        last = runs[-1][-1] if runs else None
        if last is not None and last.session_id == message.session_id and last.position + 1 == message.position:
            runs[-1].append(message)
        else:
            runs.append([message])
    excerpts = []
    for run in runs:
        hits = sorted((best[m.id] for m in run if m.id in best), key=lambda hit: -hit.score)
        if hits:
            excerpts.append(
                Excerpt(
                    session_id=run[0].session_id,
                    title=titles.get(run[0].session_id, ""),
                    messages=tuple(run),
                    hits=tuple(hit.message_id for hit in hits),
                    score=hits[0].score,
                    why=hits[0].why,
                )
            )
    return tuple(sorted(excerpts, key=lambda excerpt: -excerpt.score))


def _rows(tx: Session, owner_id: int, ids: Sequence[int]) -> dict[int, tuple[MessageRow, SessionRow]]:
    """The owner's messages among `ids`, with their sessions; another owner's are left out, whoever asks."""
    query = (
        select(MessageRow, SessionRow)
        .join(SessionRow, SessionRow.id == MessageRow.session_id)
        .where(MessageRow.id.in_(ids), MessageRow.owner_id == owner_id)
    )
    return {row.id: (row, session) for row, session in tx.execute(query)}


def _neighbourhood(tx: Session, rows: Iterable[MessageRow], reach: int) -> list[MessageRow]:
    """All messages within `reach` positions of any of `rows`, in order."""
    places = [
        and_(
            MessageRow.session_id == row.session_id,
            MessageRow.position.between(row.position - reach, row.position + reach),
        )
        for row in rows
    ]
    if not places:
        return []
    return list(tx.scalars(select(MessageRow).where(or_(*places)).order_by(MessageRow.id)))


def _around(tx: Session, row: MessageRow, session: SessionRow, reach: int) -> tuple[Message, ...]:
    near = _neighbourhood(tx, [row], reach)
    return tuple(as_message(one, session) for one in sorted(near, key=lambda one: one.position))
