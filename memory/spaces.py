"""Spaces: memory that several persons share, such as a project's, a team's or an agent's.

A space is an owner like a person. It begins with the first thing that is stored of it, and ends when it is erased. Who
may read or write there is told by keys (see `memory.access.keys`); whoever writes is named by messages.

Invariants:
- What is said in a space is the space's; what a person said elsewhere never becomes the space's (test_spaces).
- To a key that does not open it, a space looks like one that does not exist (test_owners_apart).
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from memory.access.keys import Principal
from memory.engine import Engine
from memory.paging import Page, read_page
from models import OwnerRow
from models.keys import WRITE


@dataclass(frozen=True)
class Space:
    """Space that a key opens. right: `read` or `write`. created_at: None while nothing is stored of it."""

    name: str
    right: str
    created_at: datetime | None


def list_spaces(engine: Engine, principal: Principal, *, cursor: str | None, limit: int) -> Page[Space]:
    """List the spaces that a key opens: those that it names, by name, or all that its tenant has, newest first."""
    query = select(OwnerRow).where(OwnerRow.tenant == principal.tenant, OwnerRow.kind == "space")
    if not principal.is_whole_tenant:
        names = principal.spaces or {}
        with engine.database.read() as tx:
            made = {row.name: row.created_at for row in tx.scalars(query.where(OwnerRow.name.in_(names)))}
        return Page(tuple(Space(name, right, made.get(name)) for name, right in sorted(names.items())))
    with engine.database.read() as tx:
        page = read_page(tx, query, cursor, limit, OwnerRow.id)
    return page.map(lambda row: Space(row.OwnerRow.name, WRITE, row.OwnerRow.created_at))
