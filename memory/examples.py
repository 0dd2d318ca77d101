"""Examples: good answers, shown to the main model when a similar message comes.

Invariants:
- A person's prompts show their own examples and the tenant's, and no others (test_examples, test_owners_apart).
- An example made from an exchange goes when one of its messages is erased or replaced (test_examples).
"""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jsonschema import Draft202012Validator

from memory.access.owners import OWNER_AND_TENANT, find_or_make_owner, find_owner, get_session
from memory.engine import Engine
from memory.llm.mini_model import INTEGER, TEXT, list_of, object_of
from memory.paging import Page, read_page
from memory.sessions.messages import MESSAGES, VISIBLE, Exchange, find_exchange
from memory.store import item_rows
from memory.store.store import rank_items
from models import ItemRow, MessageRow, Transaction
from models.messages import Message
from models.owners import Caller
from models.store import OWN, Item, Put
from schemas.examples import INPUT_CHARS, OUTPUT_CHARS
from search_index import Query

Json = dict[str, Any]
NAMESPACE = (OWN, "examples")
_CALL = {"type": "object", "properties": {"function": object_of(name=TEXT, arguments=TEXT)}, "required": ["function"]}
_MESSAGE = {"role": TEXT, "content": TEXT, "tool_calls": list_of(_CALL)}
_MESSAGES = list_of({"type": "object", "properties": _MESSAGE, "required": ["role", "content"]})
_PLAIN = object_of(input=TEXT, output=TEXT, tags=list_of(TEXT), rating=INTEGER)
SHAPE = {**_PLAIN, "properties": {**_PLAIN["properties"], "messages": _MESSAGES}}
_is_well_formed = Draft202012Validator(_MESSAGES).is_valid
SHOWN_MAX = 3
COMPARED_EXAMPLES_MAX = 200  # the newest, of an owner and the tenant together
SCORE_SHARE = 0.55  # of the best score, which the others need
_COMPARED = ("input", "tags[*]")

_I, _M = ItemRow.__table__.c, MessageRow.__table__.c
_OF_KIND = item_rows.ITEMS.where(_I.namespace == item_rows.join_namespace(NAMESPACE))
OF_BOTH = _OF_KIND.where(_I.owner_id.in_(OWNER_AND_TENANT))
"""Items of an owner's examples and the tenant's, for a statement with these two parameters."""
_CANDIDATES = OF_BOTH.order_by(_I.updated_at.desc(), _I.id.desc()).limit(COMPARED_EXAMPLES_MAX)


@dataclass(frozen=True)
class Example:
    """Message and a good answer to it.

    messages: from the message to the answer in the form of the OpenAI protocol, if tools were called in between.
    """

    id: int
    input: str
    output: str
    tags: tuple[str, ...]
    rating: int
    created_at: datetime
    messages: Sequence[Mapping[str, Any]] = field(default=(), hash=False)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield who speaks in each line of the example, and the words: calls of tools are lines of their own."""
        if not self.messages:
            yield from (("user", self.input), ("assistant", self.output))
        for message in self.messages:
            if message["content"]:
                yield message["role"], message["content"]
            for call in message.get("tool_calls", ()):
                yield f"assistant calls {call['function']['name']}", call["function"]["arguments"]


def add(engine: Engine, caller: Caller, messages: Sequence[Json], *, tags: Collection[str], rating: int) -> Example:
    """Store an example for the caller's user, or without a user for all of the tenant.

    messages: in the form of the OpenAI protocol, from a message to its answer.
    """
    value = _value(messages, tags, rating)
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, caller, engine.now())
        return as_example(item_rows.write(tx, owner.id, Put(NAMESPACE, uuid.uuid4().hex, value), engine.now()))


def add_exchange(
    engine: Engine, caller: Caller, session_id: str, message_id: int, *, tags: Collection[str], rating: int
) -> Example:
    """Store an exchange, named by its message or its reply, as an example of the session's owner.

    Raises NotFound, and InvalidRequest for an exchange that must not be remembered.
    """
    with engine.database.write() as tx:
        exchange = find_exchange(tx, caller, session_id, message_id)
        return as_example(keep(tx, exchange, engine.now(), tags=tags, rating=rating))


def page(engine: Engine, caller: Caller, *, session_id: str | None, cursor: str | None, limit: int) -> Page[Example]:
    """Return the examples of the caller's user or of a session's owner, else the tenant's own, newest first.

    Raises NotFound.
    """
    with engine.database.read() as tx:
        owner = get_session(tx, caller, session_id).owner if session_id is not None else find_owner(tx, caller)
        query = _OF_KIND.where(_I.owner_id == (owner.id if owner is not None else None))
        return read_page(tx, query, cursor, limit, _I.id).map(lambda row: as_example(item_rows.as_item(row)))


def similar(engine: Engine, tenant: str, owner_id: int, text: str) -> tuple[Example, ...]:
    """Return the examples whose input is most similar to `text`, the best rated first."""
    with engine.database.read() as tx:
        items = [item_rows.as_item(row) for row in tx.execute(_CANDIDATES, {"tenant": tenant, "owner": owner_id})]
    if not items:
        return ()
    prepared = engine.index.prepare(Query(text, COMPARED_EXAMPLES_MAX, alone=True))
    hits = [(hit.score or 0.0, as_example(hit)) for hit in rank_items(engine.index, prepared, items, _COMPARED)]
    similar = [example for score, example in hits if score >= SCORE_SHARE * hits[0][0] > 0]
    return tuple(sorted(similar, key=lambda example: -example.rating)[:SHOWN_MAX])


# -- in a transaction of the caller


def keep(
    tx: Transaction, exchange: Exchange, now: datetime, *, rating: int, tags: Collection[str] | None = None
) -> Item:
    """Store the beginning of an exchange's message and reply as an example, or change the existing one.

    tags: those of the existing one if left out.

    Calls of tools between the two are kept with their results, unless they are long.
    """
    message, reply = exchange.message, exchange.reply
    between = MessageRow.position > message.position, MessageRow.position < reply.position, *VISIBLE
    rows = tx.execute(MESSAGES.where(MessageRow.session_id == exchange.session.id, *between).order_by(_M.position))
    steps = [step for step in map(Message._make, rows) if step.remembered]
    first, *called, last = [_as_sent(step) for step in (message, *steps, reply)]
    if not any("tool_calls" in step for step in called) or len(json.dumps(called)) > OUTPUT_CHARS:
        steps, called = [], []
    first, last = {**first, "content": message.content[:INPUT_CHARS]}, {**last, "content": reply.content[:OUTPUT_CHARS]}
    existing = item_rows.read(tx, exchange.session.owner_id, NAMESPACE, exchange.key, now) if tags is None else None
    kept = tags or (existing.value["tags"] if existing is not None else ())
    put = Put(NAMESPACE, exchange.key, _value([first, *called, last], kept, rating))
    sources = [*exchange.ids, *(step.id for step in steps)]
    return item_rows.write(tx, exchange.session.owner_id, put, now, sources=sources)


def drop(tx: Transaction, exchange: Exchange, now: datetime) -> None:
    """Remove the example made from an exchange."""
    item = item_rows.read(tx, exchange.session.owner_id, NAMESPACE, exchange.key, now)
    item_rows.remove(tx, [item.id] if item is not None else [])


def read_examples(tx: Transaction, ids: Iterable[int]) -> tuple[Example, ...]:
    """Return the examples that still exist, in this order."""
    listed = list(ids)
    if not listed:
        return ()
    rows = tx.execute(_OF_KIND.where(_I.id.in_(listed)))
    existing = {row.id: as_example(item_rows.as_item(row)) for row in rows}
    return tuple(existing[example_id] for example_id in listed if example_id in existing)


def as_example(item: Item) -> Example:
    value: Json = {**item.value, "tags": tuple(item.value["tags"])}
    return Example(id=item.id, created_at=item.created_at, **value)


def _value(messages: Sequence[Json], tags: Collection[str], rating: int) -> Json:
    value = {"input": messages[0]["content"], "output": messages[-1]["content"] or ""}
    value |= {"tags": list(tags), "rating": rating}
    is_plain = len(messages) == 2 and "tool_calls" not in messages[-1]
    return (
        value
        if is_plain
        else {**value, "messages": [{**message, "content": message["content"] or ""} for message in messages]}
    )


def _as_sent(message: Message) -> Json:
    """Return a stored message in the form of the OpenAI protocol, without calls of another form."""
    extra = {name: value for name, value in (message.extra or {}).items() if name in ("tool_calls", "tool_call_id")}
    sent = {"role": message.role, "content": message.content, **extra}
    return sent if _is_well_formed([sent]) else {"role": message.role, "content": message.content}
