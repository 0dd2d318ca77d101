"""Examples: good answers, shown to the main model when a similar message comes.

Invariants:
- A person's prompts show their own examples and the tenant's, and no others (test_examples, test_owners_apart).
- An example made from an exchange goes when one of its two messages is erased or replaced (test_examples).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.access.owners import OWNER_AND_TENANT, find_or_make_owner, find_owner, get_session
from memory.llm.json_answers import INTEGER, TEXT, list_of, object_of
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
SHAPE = object_of(input=TEXT, output=TEXT, tags=list_of(TEXT), rating=INTEGER)
SHOWN_MAX = 3
COMPARED_EXAMPLES_MAX = 200  # the newest, of an owner and the tenant together
SCORE_SHARE = 0.55  # of the best score, which the others need
_COMPARED = ("input", "tags[*]")

_I = ItemRow.__table__.c
_OF_KIND = documents.ITEMS.where(_I.namespace == documents.join_namespace(NAMESPACE))
OF_BOTH = _OF_KIND.where(_I.owner_id.in_(OWNER_AND_TENANT))
"""Items of an owner's examples and the tenant's, for a statement with these two parameters."""
_CANDIDATES = OF_BOTH.order_by(_I.updated_at.desc(), _I.id.desc()).limit(COMPARED_EXAMPLES_MAX)


@dataclass(frozen=True)
class Example:
    """Message and a good answer to it."""

    id: int
    input: str
    output: str
    tags: tuple[str, ...]
    rating: int
    created_at: datetime


@dataclass(frozen=True)
class Examples:
    """Stores examples for callers, and finds similar ones."""

    database: Database
    index: SearchIndex
    now: Callable[[], datetime]

    def add(self, caller: Caller, input: str, output: str, *, tags: Collection[str], rating: int) -> Example:
        """Store an example for the caller's user, or without a user for all of the tenant."""
        value = {"input": input, "output": output, "tags": list(tags), "rating": rating}
        with self.database.write() as tx:
            owner = find_or_make_owner(tx, caller, self.now())
            return as_example(documents.write(tx, owner.id, Put(NAMESPACE, uuid.uuid4().hex, value), self.now()))

    def add_exchange(
        self, caller: Caller, session_id: str, message_id: int, *, tags: Collection[str], rating: int
    ) -> Example:
        """Store an exchange, named by its message or its reply, as an example of the session's owner.

        Raises NotFound, and InvalidRequest for an exchange that must not be remembered.
        """
        with self.database.write() as tx:
            exchange = find_exchange(tx, caller, session_id, message_id)
            return as_example(keep(tx, exchange, self.now(), tags=tags, rating=rating))

    def page(self, caller: Caller, *, session_id: str | None, cursor: str | None, limit: int) -> Page[Example]:
        """Return the examples of the caller's user or of a session's owner, else the tenant's own, newest first.

        Raises NotFound.
        """
        with self.database.read() as tx:
            owner = get_session(tx, caller, session_id).owner if session_id is not None else find_owner(tx, caller)
            query = _OF_KIND.where(_I.owner_id == (owner.id if owner is not None else None))
            rows = tx.execute(rows_of_page(query, _I.id, cursor, limit)).all()
        return page_of([as_example(documents.as_item(row)) for row in rows], limit, lambda example: (example.id,))

    def similar(self, tenant: str, owner_id: int, text: str) -> tuple[Example, ...]:
        """Return the examples whose input is most similar to `text`, the best rated first."""
        with self.database.read() as tx:
            items = [documents.as_item(row) for row in tx.execute(_CANDIDATES, {"tenant": tenant, "owner": owner_id})]
        if not items:
            return ()
        prepared = self.index.prepare(Query(text, COMPARED_EXAMPLES_MAX, alone=True))
        hits = [(hit.score or 0.0, as_example(hit)) for hit in rank_items(self.index, prepared, items, _COMPARED)]
        similar = [example for score, example in hits if score >= SCORE_SHARE * hits[0][0] > 0]
        return tuple(sorted(similar, key=lambda example: -example.rating)[:SHOWN_MAX])


# -- in a transaction of the caller


def keep(tx: Transaction, exchange: Exchange, now: datetime, *, tags: Collection[str], rating: int) -> Item:
    """Store the beginning of an exchange's message and reply as an example, or change the existing one."""
    message, reply = exchange.message.content[:INPUT_CHARS], exchange.reply.content[:OUTPUT_CHARS]
    value = {"input": message, "output": reply, "tags": list(tags), "rating": rating}
    put = Put(NAMESPACE, exchange.key, value)
    return documents.write(tx, exchange.session.owner_id, put, now, sources=exchange.ids)


def drop(tx: Transaction, exchange: Exchange, now: datetime) -> None:
    """Remove the example made from an exchange."""
    item = documents.read(tx, exchange.session.owner_id, NAMESPACE, exchange.key, now)
    documents.remove(tx, [item.id] if item is not None else [])


def shown(tx: Transaction, ids: Iterable[int]) -> tuple[Example, ...]:
    """Return the examples that still exist, in this order."""
    wanted = list(ids)
    if not wanted:
        return ()
    rows = tx.execute(_OF_KIND.where(_I.id.in_(wanted)))
    existing = {row.id: as_example(documents.as_item(row)) for row in rows}
    return tuple(existing[example_id] for example_id in wanted if example_id in existing)


def as_example(item: Item) -> Example:
    value: dict[str, Any] = item.value
    return Example(item.id, value["input"], value["output"], tuple(value["tags"]), value["rating"], item.created_at)
