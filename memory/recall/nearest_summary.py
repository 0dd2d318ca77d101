"""The best matching summary of another conversation, in a line beside what a turn recalls.

It takes only the tokens that the excerpts have left, so it never takes the place of a message.

Invariant: nothing of a conversation with a message that is not to be remembered (tests/test_nearest_summary.py).
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import bindparam, select

from memory import tokens
from memory.domain import Excerpt
from memory.recall.derived import Derived, derived
from memory.recall.endings import COLUMNS, NEWEST, PRIVATE, gist_of
from memory.rendering import address, chat_block
from models import Database, SessionRow
from search_index import NO_INDEX, Prepared, SearchIndex
from search_index.analysis import Analysis

SUMMARIES_MAX = 100  # of the newest that a turn searches
ROOM_MIN = 25  # tokens below which no line fits
HALF = 0.5  # of the query's terms that a summary needs

_S = SessionRow.__table__.c
_TOLD = select(*COLUMNS).outerjoin(*NEWEST).where(_S.id == bindparam("session"), ~PRIVATE)


def nearest_summary(
    database: Database,
    index: SearchIndex,
    analysis: Analysis,
    prepared: Prepared,
    owner: tuple[int, str],
    unwanted: Collection[int | str],
    room: int,
) -> Excerpt | None:
    """Return the line of the summary that fits a query best; None where none does, or none has `room`.

    owner: row id and index key.
    unwanted: sessions that are shown anyway, by row id or public id.
    """
    owner_id, owner_key = owner
    if room < ROOM_MIN or not prepared.terms:
        return None
    with database.read() as tx:
        found = derived(tx, "summary", owner_id, None, SUMMARIES_MAX)
    candidates = {one.id: one for one in found if {one.session_row_id, one.session_id}.isdisjoint(unwanted)}
    hits = index.search(owner_key, prepared, NO_INDEX, [one.document for one in candidates.values()])
    best = next((one for hit in hits if _share(one := candidates[hit.message_id], prepared, analysis) >= HALF), None)
    if best is None:
        return None
    with database.read() as tx:
        row = tx.execute(_TOLD, {"session": best.session_row_id}).first()
    if row is None:
        return None
    share = round(_share(best, prepared, analysis), 4)
    excerpt = Excerpt(row.public_id, row.title, (), (), share, {"summary": share}, gist_of(row, in_full=False))
    return excerpt if words_cost(excerpt) <= room else None


def words_cost(excerpt: Excerpt) -> int:
    """Return the tokens of an excerpt without its address, as RECALL_TOKENS counts them."""
    message_id = excerpt.hits[0] if excerpt.hits else None
    return tokens.estimate(chat_block(excerpt)) - len(address(excerpt.session_id, message_id, "")) // 4


def _share(one: Derived, prepared: Prepared, analysis: Analysis) -> float:
    """Return the share of the query's terms that a summary has."""
    terms = set(prepared.terms)
    return len(terms & analysis.words(one.text)) / len(terms)
