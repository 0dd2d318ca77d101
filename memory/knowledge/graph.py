"""Read the relations of facts as a graph: which people, places, organisations and things belong together.

A relation shows the quote of its fact and is valid for the same time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select

from memory.access.owners import owner_and_session
from memory.engine import Engine
from memory.knowledge.entities import EntityResolver, key
from memory.knowledge.fact_reads import FACTS, in_scope, valid_at
from memory.paging import Page, decode_cursor, encode_cursor
from models import FactRow
from models.facts import SELF, Fact, Relation
from models.owners import Caller
from schemas.facts import GRAPH_STEPS_MAX

LINKED_FACTS_MAX = 5_000  # facts of one person whose links are read at once, the newest first
RECALLED_MAX = 1_000  # of them, when a search asks: it has a few milliseconds
WEAKER = 0.5  # each step further, for a search


class Entity(NamedTuple):
    """Person, place, organisation or thing, by the name of the newest link that names it."""

    name: str
    kind: str


@dataclass(frozen=True)
class Edge:
    """Relation of the graph, and the fact that it belongs to.

    `distance` is 1 for a link of the entity that was asked for, 2 for a link of its neighbours.  `number` is its place
    among the links of its fact.
    """

    subject: Entity
    relation: str
    object: Entity
    distance: int
    fact: Fact
    number: int


LINKED = FactRow.owner_id == bindparam("owner"), FactRow.links.is_not(None)
"""True of the facts of an `owner` that have links."""
_FACTS = FACTS.add_columns(FactRow.links).where(*LINKED).order_by(FactRow.id.desc()).limit(LINKED_FACTS_MAX)
_SOURCES = select(FactRow.source_message_id, FactRow.links).where(*LINKED, valid_at(None)).order_by(FactRow.id.desc())


def around(  # noqa: PLR0913 - by keyword, as a query has them
    engine: Engine,
    caller: Caller,
    *,
    session_id: str | None = None,
    entity: str = SELF,
    depth: int = 1,
    as_of: datetime | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[Edge]:
    """Return the relations up to `depth` steps from an entity that are valid now (or at `as_of`), nearest first.

    session_id: only that session's relations and those its person has everywhere.  Raises NotFound, and
    InvalidRequest when neither a session nor a user is named.
    """
    query = _FACTS.where(valid_at(as_of))
    with engine.database.read() as tx:
        owner, session = owner_and_session(tx, caller, session_id)
        if session is not None:
            query = query.where(in_scope(session.id, session.owner_id))
        rows = tx.execute(query, {"owner": owner.id}).all() if owner is not None else []
    edges = _around(rows, entity, depth)
    if cursor is not None:
        distance, fact_id, number = decode_cursor(cursor, int, int, int)
        last = distance, -fact_id, number
        edges = [edge for edge in edges if (edge.distance, -edge.fact.id, edge.number) > last]
    shown = tuple(edges[:limit])
    following = (shown[-1].distance, shown[-1].fact.id, shown[-1].number) if len(edges) > limit else None
    return Page(shown, encode_cursor(*following) if following else None)


def sources_about(tx: Connection, owner_id: int, text: str) -> dict[int, float]:
    """Return the ids of messages whose links lead to what a text of the person names, each with its weight.

    A link of a named entity weighs 1, and half as much at each further step.  No step leads through the person, who is
    linked to everything.
    """
    rows = tx.execute(_SOURCES.limit(RECALLED_MAX), {"owner": owner_id}).all()
    relations = [(source, link) for source, links in rows for link in links]
    names = EntityResolver(link for _, link in relations)
    weights: dict[int, float] = {}
    if reached := names.mentioned(text):
        ends = [(source, names.ends_of(link)) for source, link in relations]
        for step in range(GRAPH_STEPS_MAX):
            near = [(source, both) for source, both in ends if reached & both]
            for source, _ in near:
                if source is not None:
                    weights.setdefault(source, WEAKER**step)
            reached = reached.union(*(both for _, both in near)) - {SELF}
    return weights


def _around(rows: Sequence[Sequence[Any]], entity: str, depth: int) -> list[Edge]:
    """Return the edges within `depth` of an entity, in order. rows: facts with their links, the newest first."""
    relations: list[tuple[Fact, int, Relation]] = []
    for row in rows:
        relations += [(Fact(*row[:-1]), number, link) for number, link in enumerate(row[-1])]
    names = EntityResolver(link for *_, link in relations)
    shown = {SELF: Entity(SELF, "person")}
    for *_, link in relations:
        shown.setdefault(key(link.subject), Entity(link.subject, link.subject_kind))
        shown.setdefault(key(link.object), Entity(link.object, link.object_kind))
    reached = names.entities_of(entity)
    edges: dict[int, Edge] = {}
    seen: set[tuple[str, str, str]] = set()
    for distance in range(1, depth + 1):
        near = [at for at, (*_, link) in enumerate(relations) if at not in edges and reached & names.ends_of(link)]
        for at in near:
            fact, number, link = relations[at]
            ends = names.entity_of(link.subject), key(link.relation), names.entity_of(link.object)
            if ends not in seen:  # the newest of those that an alias makes equal
                seen.add(ends)
                edges[at] = Edge(shown[ends[0]], link.relation, shown[ends[2]], distance, fact, number)
            reached = reached | names.ends_of(link)
    return list(edges.values())
