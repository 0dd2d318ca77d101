"""Examples: good answers, shown to the main model when a similar message comes.

Guarantee: a person's prompts show their own examples and those of the tenant, and no others.  An example that was made
from an exchange rests on its two messages: it goes when one of them is erased or replaced.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.access.owners import OWNER_AND_TENANT, find_or_make_owner, find_owner, get_session
from memory.paging import Page, page_of, rows_of_page
from memory.sessions.messages import Exchange, find_exchange
from memory.store import documents
from memory.store.store import rank_items
from models import Database, ItemRow, Transaction
from models.owners import Caller
from models.store import OWN, Item, Put
from schemas.examples import INPUT_CHARS, OUTPUT_CHARS
from search_index import Query, SearchIndex

NAMESPACE = (OWN, "examples")
SHOWN_MAX = 3
CANDIDATES = 200  # of an owner and the tenant together, those changed last
SIMILAR = 0.55  # the share of the best score that the others need
_COMPARED = ("input", "tags[*]")

_I = ItemRow.__table__.c
_OF_KIND = documents.ITEMS.where(_I.namespace == documents.join_namespace(NAMESPACE))
OF_BOTH = _OF_KIND.where(_I.owner_id.in_(OWNER_AND_TENANT))
"""The items of an owner's examples and of the tenant's, for a statement with these two parameters."""
_CANDIDATES = OF_BOTH.order_by(_I.updated_at.desc(), _I.id.desc()).limit(CANDIDATES)


@dataclass(frozen=True)
class Example:
    """A message and a good answer to it."""

    id: int
    input: str
    output: str
    tags: tuple[str, ...]
    rating: int
    created_at: datetime


@dataclass(frozen=True)
class Examples:
    """Stores examples for callers, and finds those that fit a message."""

    database: Database
    index: SearchIndex
    now: Callable[[], datetime]

    def add(self, caller: Caller, input: str, output: str, *, tags: Collection[str], rating: int) -> Example:
        """Store an example for the caller's user or, when no user is named, for all of the tenant."""
        value = {"input": input, "output": output, "tags": list(tags), "rating": rating}
        with self.database.write() as tx:
            owner = find_or_make_owner(tx, caller, self.now())
            return as_example(documents.write(tx, owner.id, Put(NAMESPACE, uuid.uuid4().hex, value), self.now()))

    def add_exchange(
        self, caller: Caller, session_id: str, message_id: int, *, tags: Collection[str], rating: int
    ) -> Example:
        """Make an example of the exchange that a message or its reply names, for the session's owner.

        Raises NotFound, and InvalidRequest for an exchange that is not to be remembered.
        """
        with self.database.write() as tx:
            exchange = find_exchange(tx, caller, session_id, message_id)
            return as_example(keep(tx, exchange, self.now(), tags=tags, rating=rating))

    def page(self, caller: Caller, *, session_id: str | None, cursor: str | None, limit: int) -> Page[Example]:
        """The examples of the caller's user or of a session's owner, else the tenant's own, newest first.

        Raises NotFound.
        """
        with self.database.read() as tx:
            owner = get_session(tx, caller, session_id).owner if session_id is not None else find_owner(tx, caller)
            query = _OF_KIND.where(_I.owner_id == (owner.id if owner is not None else None))
            rows = tx.execute(rows_of_page(query, _I.id, cursor, limit)).all()
        return page_of([as_example(documents.as_item(row)) for row in rows], limit, lambda one: (one.id,))

    def similar(self, tenant: str, owner_id: int, text: str) -> tuple[Example, ...]:
        """The few examples whose input is most like `text`, the best rated of them first."""
        with self.database.read() as tx:
            items = [documents.as_item(row) for row in tx.execute(_CANDIDATES, {"tenant": tenant, "owner": owner_id})]
        if not items:
            return ()
        prepared = self.index.prepare(Query(text, CANDIDATES, alone=True))
        hits = [(hit.score or 0.0, as_example(hit)) for hit in rank_items(self.index, prepared, items, _COMPARED)]
        near = [one for score, one in hits if score >= SIMILAR * hits[0][0] > 0]
        return tuple(sorted(near, key=lambda one: -one.rating)[:SHOWN_MAX])


# -- for the engine's own transactions


def keep(tx: Transaction, exchange: Exchange, now: datetime, *, tags: Collection[str], rating: int) -> Item:
    """Make an example of the beginning of an exchange's message and reply, or change the one that there is."""
    said, answered = exchange.message.content[:INPUT_CHARS], exchange.reply.content[:OUTPUT_CHARS]
    value = {"input": said, "output": answered, "tags": list(tags), "rating": rating}
    put = Put(NAMESPACE, exchange.key, value)
    return documents.write(tx, exchange.session.owner_id, put, now, sources=exchange.ids)


def drop(tx: Transaction, exchange: Exchange, now: datetime) -> None:
    """Take away the example that an exchange is."""
    item = documents.read(tx, exchange.session.owner_id, NAMESPACE, exchange.key, now)
    documents.remove(tx, [item.id] if item is not None else [])


def shown(tx: Transaction, ids: Iterable[int]) -> tuple[Example, ...]:
    """Those of the examples that are still there, in this order."""
    wanted = list(ids)
    if not wanted:
        return ()
    there = {row.id: as_example(documents.as_item(row)) for row in tx.execute(_OF_KIND.where(_I.id.in_(wanted)))}
    return tuple(there[one] for one in wanted if one in there)


def as_example(item: Item) -> Example:
    value: dict[str, Any] = item.value
    return Example(item.id, value["input"], value["output"], tuple(value["tags"]), value["rating"], item.created_at)
