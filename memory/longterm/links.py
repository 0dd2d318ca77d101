"""Links: which people, places, organisations and things belong together, read as a graph.

Guarantee: a link shows the quote of its fact and holds for the same time.  Every name of somebody leads to one entity
(see `facts.entities`).  Around an entity each link and each entity is visited once, whatever circles they form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from memory.access.owners import find_session, find_user
from memory.domain import Caller
from memory.errors import InvalidRequest
from memory.facts.entities import SELF, Names, key
from memory.facts.facts import held, in_scope
from memory.facts.links import as_link
from memory.paging import Page, decode_cursor, page_of
from models import Database, FactRow, LinkRow, SessionRow, Transaction

READ_MAX = 5_000  # links of one person that are read at once, the newest first
RECALLED_MAX = 1_000  # of them, when a search asks: it has a few milliseconds
DEPTH_MAX = 3


@dataclass(frozen=True)
class Entity:
    """A person, place, organisation or thing, by the name of the newest link that names it."""

    name: str
    kind: str


@dataclass(frozen=True)
class Edge:
    """A link of the graph, with the fact that it belongs to and the words that both rest on.

    `distance` is 1 for a link of the entity that was asked for, 2 for a link of its neighbours.
    """

    relation: str
    subject: Entity
    object: Entity
    distance: int
    id: int
    fact_id: int
    quote: str
    session_id: str | None
    source_message_id: int | None
    valid_from: datetime
    valid_to: datetime | None


_L, _F = LinkRow.__table__.c, FactRow.__table__.c
_LINKS = (
    select(_L.subject, _L.relation, _L.object, _L.subject_kind, _L.object_kind, _L.id, _L.fact_id, _F.quote)
    .add_columns(SessionRow.public_id, _F.source_message_id, _F.valid_from, _F.valid_to)
    .join(FactRow, _F.id == _L.fact_id)
    .outerjoin(SessionRow, SessionRow.id == _F.session_id)
    .where(_L.owner_id == bindparam("owner"))
    .order_by(_L.id.desc())
    .limit(READ_MAX)
)
_CURRENT = _LINKS.where(held(None)).limit(RECALLED_MAX)


@dataclass(frozen=True)
class Links:
    """Reads links, on behalf of callers."""

    database: Database
    now: Callable[[], datetime]

    def around(
        self,
        caller: Caller,
        *,
        session_id: str | None = None,
        entity: str = SELF,
        depth: int = 1,
        as_of: datetime | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Edge]:
        """The links up to `depth` steps from an entity that hold now (or held at `as_of`), the nearest first.

        With `session_id`: that session's links and those its person has everywhere.  Raises NotFound, and
        InvalidRequest when neither a session nor a user is named.
        """
        with self.database.read() as tx:
            session = find_session(tx, caller, session_id) if session_id is not None else None
            if session is None and caller.user_id is None:
                raise InvalidRequest("owner_needed", "Say whose links to read: a user_id or a session_id.")
            owner = session.owner if session is not None else find_user(tx, caller)
            query = _LINKS.where(held(as_of))
            if session is not None:
                query = query.where(in_scope(session.id, session.owner_id))
            rows = tx.execute(query, {"owner": owner.id}).all() if owner is not None else []
        edges = _around(rows, entity, depth)
        if cursor is not None:
            distance, last = decode_cursor(cursor, int, int)
            edges = [edge for edge in edges if (edge.distance, -edge.id) > (distance, -last)]
        return page_of(edges[: limit + 1], limit, lambda edge: (edge.distance, edge.id))


def sources_about(tx: Connection | Transaction, owner_id: int, text: str) -> list[int]:
    """The ids of the messages whose links belong to the entities that a text of the person names, newest first."""
    rows = tx.execute(_CURRENT, {"owner": owner_id}).all()
    if not rows:
        return []
    links = list(map(as_link, rows))
    names = Names(links)
    asked = names.mentioned(text)
    if not asked:
        return []
    found = (row.source_message_id for row, link in zip(rows, links, strict=True) if asked & names.ends(link))
    return list(dict.fromkeys(filter(None, found)))


def _around(rows: Sequence[Row[Any]], entity: str, depth: int) -> list[Edge]:
    """The edges within `depth` of an entity, in order; `rows` are the newest first."""
    links = list(map(as_link, rows))
    names = Names(links)
    ends = [names.ends(link) for link in links]
    reached = names.all(entity)
    distances: dict[int, int] = {}
    for distance in range(1, depth + 1):
        near = [at for at, pair in enumerate(ends) if at not in distances and reached & pair]
        distances.update(dict.fromkeys(near, distance))
        reached = reached.union(*(ends[at] for at in near))
    shown = {SELF: Entity(SELF, "person")}
    for link in links:
        for name, kind in ((link.subject, link.subject_kind), (link.object, link.object_kind)):
            if names.one(name) == key(name):  # else it is what somebody else calls them
                shown.setdefault(key(name), Entity(name, kind))
    return [
        Edge(
            relation=links[at].relation,
            subject=shown[names.one(links[at].subject)],
            object=shown[names.one(links[at].object)],
            distance=distance,
            id=rows[at].id,
            fact_id=rows[at].fact_id,
            quote=rows[at].quote,
            session_id=rows[at].public_id,
            source_message_id=rows[at].source_message_id,
            valid_from=rows[at].valid_from,
            valid_to=rows[at].valid_to,
        )
        for at, distance in sorted(distances.items(), key=lambda one: (one[1], one[0]))
    ]
