"""The best matching summary of another conversation, in a line beside what a turn recalls.

It takes only the tokens that the excerpts have left, so it never takes the place of a message.

Invariant: nothing of a conversation with a message that is not to be remembered (tests/test_nearest_summary.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlalchemy import bindparam, select

from memory import tokens
from memory.quoting import address, excerpt_block
from memory.recall.derived import facts_and_summaries
from memory.recall.endings import COLUMNS, NEWEST, PRIVATE, gist_of
from memory.recall.gate import OTHER
from models import Database, SessionRow
from models.messages import Excerpt
from search_index import NO_INDEX, PreparedQuery, SearchIndex

SUMMARIES_MAX = 100  # of the newest that a turn searches
ROOM_MIN = 25  # tokens below which no line fits

_S = SessionRow.__table__.c
_TOLD = select(*COLUMNS).outerjoin(*NEWEST).where(_S.id == bindparam("session"), ~PRIVATE)


def nearest_summary(
    database: Database,
    index: SearchIndex,
    prepared: PreparedQuery,
    owner: tuple[int, str],
    unwanted: Collection[int | str],
    room: int,
) -> Excerpt | None:
    """Return the line of the summary that fits a query best; None where none does, or none has `room`.

    owner: row id and index key.
    unwanted: sessions that are shown anyway, by row id or public id.
    """
    owner_id, owner_key = owner
    if room < ROOM_MIN:
        return None
    with database.read() as tx:
        found = facts_and_summaries(tx, "summary", owner_id, None, SUMMARIES_MAX)
    candidates = {one.id: one for one in found if {one.session_row_id, one.session_id}.isdisjoint(unwanted)}
    alone = prepared._replace(query=replace(prepared.query, alone=True, limit=1))
    hits = index.search(owner_key, alone, NO_INDEX, [one.document for one in candidates.values()])
    if not OTHER.is_open(hits):
        return None
    with database.read() as tx:
        row = tx.execute(_TOLD, {"session": candidates[hits[0].message_id].session_row_id}).first()
    if row is None:
        return None
    fit = round(hits[0].fit, 4)
    excerpt = Excerpt(row.public_id, row.title, (), (), fit, {"summary": fit}, gist_of(row, in_full=False))
    return excerpt if words_cost(excerpt) <= room else None


def words_cost(excerpt: Excerpt) -> int:
    """Return the tokens of an excerpt without its address, as RECALL_TOKENS counts them."""
    message_id = excerpt.hits[0] if excerpt.hits else None
    return tokens.estimate(excerpt_block(excerpt)) - len(address(excerpt.session_id, message_id, "")) // 4
