"""Reading and writing items inside a transaction: for the door, and for the engine's own kinds of documents.

A kind of the engine's keeps its documents under ("recap", kind).  What it writes with an `author` keeps its history,
and what it derives from messages names them as its sources: when one of these is erased, the item goes with all of its
versions, unless the kind has rewritten it and dropped the source in the same transaction.

Guarantee: an item that has expired is not found, and another one may take its place from version 1 on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, bindparam, delete, func, insert, or_, select, update

from memory.errors import Conflict, NotFound
from memory.store.values import OWN, Item, ItemVersion, Namespace, Put, Source
from models import ItemRow, ItemSourceRow, ItemVersionRow, MessageRow, SessionRow, Transaction

_I, _V, _S = ItemRow.__table__.c, ItemVersionRow.__table__.c, ItemSourceRow.__table__.c
ITEMS = select(ItemRow.__table__)
_NAMED = ITEMS.where(
    _I.owner_id == bindparam("owner"), _I.namespace == bindparam("namespace"), _I.key == bindparam("key")
)


def read(tx: Transaction, owner_id: int, namespace: Namespace, key: str, now: datetime) -> Item | None:
    """The item of this name."""
    row = tx.execute(_NAMED, {"owner": owner_id, "namespace": joined(namespace), "key": key}).first()
    return as_item(row) if row is not None and not _expired(row, now) else None


def listed(tx: Transaction, owner_id: int, namespace: Namespace, now: datetime) -> list[Item]:
    """All items of this namespace, by their keys."""
    query = ITEMS.where(_I.owner_id == owner_id, _I.namespace == joined(namespace), alive(now)).order_by(_I.key)
    return list(map(as_item, tx.execute(query)))


def write(
    tx: Transaction,
    owner_id: int,
    put: Put,
    now: datetime,
    *,
    author: str | None = None,
    sources: Iterable[int] = (),
) -> Item:
    """Store a value; with an `author` also in the item's history, and with the ids of messages it rests on.

    Raises Conflict when the item is not of the version that `put` expects.
    """
    named = {"owner": owner_id, "namespace": joined(put.namespace), "key": put.key}
    row = tx.execute(_NAMED, named).first()
    if row is not None and _expired(row, now):
        remove(tx, [row.id])
        row = None
    check_version(put.key, put.version, row.version if row is not None else 0)
    values = {
        "value": put.value,
        "version": row.version + 1 if row is not None else 1,
        "ttl_minutes": put.ttl,
        "refreshes": put.refreshes,
        "expires_at": None if put.ttl is None else now + timedelta(minutes=put.ttl),
        "updated_at": now,
    }
    if row is None:
        new = {"owner_id": owner_id, "namespace": named["namespace"], "key": put.key, "created_at": now, **values}
        done = tx.execute(insert(ItemRow.__table__).returning(ItemRow.__table__), new).one()
    else:
        changed = update(ItemRow.__table__).where(_I.id == row.id).values(values)
        done = tx.execute(changed.returning(ItemRow.__table__)).one()
    if author is not None:
        version = {"version": done.version, "value": put.value, "author": author, "created_at": now}
        tx.execute(insert(ItemVersionRow.__table__), {"item_id": done.id, **version})
    rest_on(tx, done.id, sources)
    return as_item(done)


def refreshed(item: Item, now: datetime) -> Item:
    """The item as it is after it was read: if it refreshes, it lives on for another `ttl`."""
    if not item.refreshes or item.ttl is None:
        return item
    return replace(item, expires_at=now + timedelta(minutes=item.ttl))


def store_expiry(tx: Transaction, items: Iterable[Item]) -> None:
    """Store when these items, which were read, expire now; not of one that was replaced since."""
    for item in items:
        as_read = _I.id == item.id, _I.version == item.version
        tx.execute(update(ItemRow.__table__).where(*as_read).values(expires_at=item.expires_at))


def remove(tx: Transaction, item_ids: Collection[int]) -> Counter[str]:
    """Delete items with their history, and count what went."""
    versions = tx.scalar(select(func.count()).where(_V.item_id.in_(item_ids))) or 0
    tx.execute(delete(ItemRow).where(_I.id.in_(item_ids)))
    return Counter(items=len(item_ids), item_versions=versions)


def remove_expired(tx: Transaction, owner_id: int, now: datetime) -> datetime | None:
    """Delete what has expired of an owner; when the next item does."""
    tx.execute(delete(ItemRow).where(_I.owner_id == owner_id, _I.expires_at <= now))
    return tx.scalar(select(func.min(_I.expires_at)).where(_I.owner_id == owner_id))


# -- history and sources


def versions(tx: Transaction, item_id: int, as_of: datetime | None = None) -> list[ItemVersion]:
    """The values that the item had, newest first; with `as_of` those that were written until then."""
    found = reversed(histories(tx, [item_id])[item_id])
    return [one for one in found if as_of is None or one.created_at <= as_of]


def histories(tx: Transaction, item_ids: Collection[int]) -> Mapping[int, list[ItemVersion]]:
    """The values that items had, oldest first."""
    found: Mapping[int, list[ItemVersion]] = defaultdict(list)
    query = select(_V.item_id, _V.version, _V.value, _V.author, _V.created_at).where(_V.item_id.in_(item_ids))
    for item_id, *columns in tx.execute(query.order_by(_V.item_id, _V.version)):
        found[item_id].append(ItemVersion(*columns))
    return found


def sources_of(tx: Transaction, item_ids: Collection[int]) -> Mapping[int, list[Source]]:
    """The messages that items rest on, without those that were replaced."""
    found: Mapping[int, list[Source]] = defaultdict(list)
    query = (
        select(_S.item_id, SessionRow.public_id, MessageRow.position)
        .join(MessageRow, MessageRow.id == _S.message_id)
        .join(SessionRow, SessionRow.id == MessageRow.session_id)
        .where(_S.item_id.in_(item_ids), MessageRow.branch == 0)
    )
    for item_id, session, position in tx.execute(query.order_by(_S.item_id, _S.message_id)):
        found[item_id].append(Source(session, position))
    return found


def find_version(tx: Transaction, item: Item | None, version: int) -> ItemVersion:
    """Raises NotFound."""
    for one in versions(tx, item.id) if item is not None else ():
        if one.version == version:
            return one
    raise NotFound("version_not_found", f"There is no version {version}.", param="version")


def drop_versions(
    tx: Transaction, owner_id: int, item: Item, stays: Callable[[Any], Any], now: datetime
) -> Counter[str]:
    """Take something out of an item and its history; `stays` makes of a value what stays of it.

    Versions that had it go.  If the newest one had, what stays of it becomes a version by `erasure` or, where that is
    None, the newest version that is left.  An item of which nothing is left goes.
    """
    history = versions(tx, item.id)
    kept = [one for one in history if stays(one.value) == one.value]
    left = stays(item.value)
    if not (kept or left):
        return remove(tx, [item.id])
    gone = {one.version for one in history} - {one.version for one in kept}
    tx.execute(delete(ItemVersionRow).where(_V.item_id == item.id, _V.version.in_(gone)))
    if left != item.value:
        value = kept[0].value if left is None else left
        write(tx, owner_id, Put(item.namespace, item.key, value), now, author="erasure")
    return Counter(item_versions=len(gone))


def messages_of(tx: Transaction, item: Item) -> Sequence[int]:
    """The ids of the messages that an item rests on, replaced or not."""
    return tx.scalars(select(_S.message_id).where(_S.item_id == item.id)).all()


def restore(
    tx: Transaction, owner_id: int, item: Item, history: Iterable[ItemVersion], sources: Iterable[int], now: datetime
) -> bool:
    """Store an item as it was, with its history; False when there is one of its name, or its time is up."""
    if (item.expires_at is not None and item.expires_at <= now) or read(tx, owner_id, item.namespace, item.key, now):
        return False
    first = write(
        tx, owner_id, Put(item.namespace, item.key, item.value, 0, item.ttl, item.refreshes), now, sources=sources
    )
    kept = {"version": item.version, "expires_at": item.expires_at}
    times = {"created_at": item.created_at, "updated_at": item.updated_at}
    tx.execute(update(ItemRow.__table__).where(_I.id == first.id).values(**kept, **times))
    rows = [{"item_id": first.id, **vars(one)} for one in history]
    if rows:
        tx.execute(insert(ItemVersionRow.__table__), rows)
    return True


def rest_on(tx: Transaction, item_id: int, messages: Iterable[int]) -> None:
    """Note messages that the item rests on."""
    new = set(messages)
    if new and (new := new.difference(tx.scalars(select(_S.message_id).where(_S.item_id == item_id)))):
        rows = [{"item_id": item_id, "message_id": message} for message in sorted(new)]
        tx.execute(insert(ItemSourceRow.__table__), rows)


def rest_no_more_on(tx: Transaction, item_id: int, messages: Select[int] | Collection[int]) -> None:
    """Forget that the item rests on these messages, once no value of it does."""
    tx.execute(delete(ItemSourceRow).where(_S.item_id == item_id, _S.message_id.in_(messages)))


def resting_on(messages: Select[int] | Collection[int]) -> Select[int]:
    """The ids of the items that rest on any of these messages, which are ids or a query of them."""
    return select(_S.item_id).where(_S.message_id.in_(messages)).distinct()


# -- rows


def joined(namespace: Namespace) -> str:
    """A namespace as it is stored."""
    return ".".join(namespace)


def below(namespace: Namespace) -> ColumnElement[bool]:
    """What is in a namespace or below it; below none is everything but what is the engine's own."""
    if not namespace:
        return ~below((OWN,))
    name = joined(namespace)
    near = (_I.namespace >= name) & (_I.namespace < f"{name}/")  # "/" follows "."; one range, which an index serves
    return near & or_(_I.namespace == name, _I.namespace > f"{name}.")


def alive(now: datetime) -> ColumnElement[bool]:
    return or_(_I.expires_at.is_(None), _I.expires_at > now)


def as_item(row: Row[Any]) -> Item:
    return Item(
        id=row.id,
        namespace=tuple(row.namespace.split(".")),
        key=row.key,
        value=row.value,
        version=row.version,
        ttl=row.ttl_minutes,
        refreshes=row.refreshes,
        expires_at=row.expires_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def check_version(key: str, expected: int | None, found: int) -> None:
    """Raise Conflict when another version was found than was expected; 0 is none."""
    if expected is not None and expected != found:
        there = f"has version {found}" if found else "does not exist"
        raise Conflict(
            "item_changed",
            f"The item {key!r} {there}, but the call expects version {expected}. Nothing was stored. Read it again and "
            "decide anew.",
            param="version",
        )


def _expired(row: Row[Any], now: datetime) -> bool:
    return row.expires_at is not None and row.expires_at <= now
