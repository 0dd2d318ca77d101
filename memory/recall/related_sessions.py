"""Related conversations: the person's other sessions that speak of the same entities, or whose summaries are near.

Invariants:
- Only sessions of the same owner are listed, and none with an unremembered message (test_related_sessions).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import select

from memory.access.owners import get_session
from memory.engine import Engine
from memory.knowledge.entities import EntityResolver, key
from memory.knowledge.fact_reads import valid_at
from memory.knowledge.graph import LINKED, LINKED_FACTS_MAX
from memory.recall.search import facts_and_summaries
from memory.sessions.messages import PRIVATE
from models import FactRow, SessionRow, Transaction
from models.facts import SELF
from models.owners import Caller
from search_index import Query

SUMMARIES = 50  # nearest summaries that count
SUMMARY_FIT_MIN = 0.5  # least fit of a summary that is near
NAMED_MAX = 8  # shared entities that are listed for a session
_LINKS = select(FactRow.session_id, FactRow.links).where(*LINKED, valid_at(None), FactRow.session_id.is_not(None))
_LINKS = _LINKS.order_by(FactRow.id.desc()).limit(LINKED_FACTS_MAX)


@dataclass(frozen=True)
class RelatedSession:
    """Session that is related, with a score from 0 to 1.

    entities: names in links of both sessions. summary: fit of its summary, from 0 to 1; None: it is not near.
    """

    session_id: str
    title: str
    updated_at: datetime
    score: float
    entities: tuple[str, ...]
    summary: float | None


def related_sessions(engine: Engine, caller: Caller, session_id: str, limit: int) -> list[RelatedSession]:
    """Return the sessions related to one, the closest first.  Raises NotFound."""
    with engine.database.read() as tx:
        session = get_session(tx, caller, session_id)
        owner_id = session.owner_id
        shared = _shared(tx, owner_id, session.id)
        summaries = facts_and_summaries(tx.connection(), "summary", owner_id, None)
    near: dict[int, float] = {}
    own = next((summary for summary in summaries if summary.session_row_id == session.id), None)
    if own is not None and len(summaries) > 1:
        topic = own.text.partition("\n")[0].partition(": ")[2]
        prepared = engine.index.prepare(Query(topic, SUMMARIES, alone=True))
        hits = engine.index.rank_texts(prepared, [summary.searchable for summary in summaries])
        near = {hit.session_id: round(hit.fit, 4) for hit in hits if hit.fit >= SUMMARY_FIT_MIN}
        near.pop(session.id, None)
    with engine.database.read() as tx:
        query = select(SessionRow.id, SessionRow.public_id, SessionRow.title, SessionRow.updated_at)
        query = query.where(SessionRow.owner_id == owner_id, SessionRow.id.in_([*shared, *near]), ~PRIVATE)
        rows = tx.execute(query).all()
    related = []
    for row in rows:
        share, names = shared.get(row.id, (0.0, ()))
        summary = near.get(row.id)
        score = 1 - (1 - share) * (1 - (summary or 0.0))
        related.append(RelatedSession(row.public_id, row.title, row.updated_at, score, names, summary))
    return sorted(related, key=lambda session: (-session.score, session.session_id))[:limit]


def _shared(tx: Transaction, owner_id: int, session_row_id: int) -> Mapping[int, tuple[float, tuple[str, ...]]]:
    """Return the other sessions that share entities with this one.

    Each has its share of this session's entities, weighted by rarity, and the names of the shared ones.
    """
    rows: Sequence[Any] = tx.execute(_LINKS, {"owner": owner_id}).all()
    links = [(session_id, link) for session_id, relations in rows for link in relations]
    resolver = EntityResolver(link for _, link in links)
    called: dict[str, str] = {}
    entities: dict[int, set[str]] = {}
    for session_id, link in links:
        for name in (link.subject, link.object):
            entity = resolver.entity_of(name)
            if entity != SELF:
                entities.setdefault(session_id, set()).add(entity)
                if entity not in called or key(name) == entity:
                    called[entity] = name
    own = entities.pop(session_row_id, set())
    count = Counter(chain.from_iterable(entities.values()))
    rarity = {entity: math.log(1 + (len(entities) + 1) / (count[entity] + 1)) for entity in own}
    shared = {}
    for session_id, others in entities.items():
        rarest_first = sorted(own & others, key=lambda entity: (-rarity[entity], entity))
        if rarest_first:
            share = sum(rarity[entity] for entity in rarest_first) / sum(rarity.values())
            shared[session_id] = share, tuple(called[entity] for entity in rarest_first[:NAMED_MAX])
    return shared
