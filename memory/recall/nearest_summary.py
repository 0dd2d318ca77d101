"""Summaries of other conversations: the best matching one, in a line beside what a turn recalls.

It takes only the tokens that the excerpts have left, so it never replaces a message.

Invariants:
- No summary is shown of a conversation with an unremembered message (test_nearest_summary).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, bindparam, select

from memory import tokens
from memory.recall.excerpts import address, excerpt_block
from memory.recall.latest_sessions import COLUMNS, NEWEST, gist_of
from memory.recall.relevance import FOREIGN_SUMMARY, OTHER
from memory.recall.search import SearchScope, facts_and_summaries
from memory.sessions.messages import PRIVATE
from models import SessionRow
from models.messages import Excerpt
from search_index import PreparedQuery, SearchIndex

SUMMARIES_MAX = 100  # newest summaries that a turn searches
LINE_TOKENS_MIN = 25  # tokens below which no line fits

_S = SessionRow.__table__.c
_SESSIONS = select(*COLUMNS).outerjoin(*NEWEST).where(_S.id.in_(bindparam("sessions", expanding=True)), ~PRIVATE)


def find_summaries(
    tx: Connection, index: SearchIndex, scope: SearchScope, prepared: PreparedQuery, limit: int
) -> list[Excerpt]:
    """Return lines of the summaries of other sessions that fit a query, best first."""
    summaries = {
        summary.id: summary
        for summary in facts_and_summaries(tx, "summary", scope.owner_id, None, SUMMARIES_MAX)
        if summary.session_row_id != scope.session_row_id
    }
    limited = prepared._replace(query=replace(prepared.query, limit=limit))
    hits = index.rank_texts(limited, [summary.document for summary in summaries.values()])
    gate = FOREIGN_SUMMARY if prepared.is_foreign else OTHER
    hits = [hit for hit in hits if gate.is_open([hit])]
    rows = (
        {row.id: row for row in tx.execute(_SESSIONS, {"sessions": [hit.session_id for hit in hits]})} if hits else {}
    )
    lines = []
    for hit in hits:
        if row := rows.get(hit.session_id):
            fit = round(hit.fit, 4)
            gist = gist_of(row, in_full=False)
            lines.append(Excerpt(row.public_id, row.title, (), (), fit, {"summary": fit}, gist))
    return lines


def nearest_summary(summaries: Sequence[Excerpt], excerpts: Sequence[Excerpt], budget: int) -> tuple[Excerpt, ...]:
    """Return the first of the `summaries` whose session has no excerpt, if it fits what these leave of the budget."""
    shown = {excerpt.session_id for excerpt in excerpts}
    best = next((summary for summary in summaries if summary.session_id not in shown), None)
    if best is None:
        return ()
    room = budget - sum(map(_words_cost, excerpts))
    return (best,) if room >= LINE_TOKENS_MIN and _words_cost(best) <= room else ()


def _words_cost(excerpt: Excerpt) -> int:
    """Return the tokens of an excerpt without its address, as RECALL_TOKENS counts them."""
    message_id = excerpt.hits[0] if excerpt.hits else None
    return tokens.estimate(excerpt_block(excerpt)) - len(address(excerpt.session_id, message_id, "")) // 4
