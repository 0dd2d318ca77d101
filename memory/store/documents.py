"""Reading and writing items inside a transaction: for the door, and for the engine's own kinds of documents.

A kind of the engine's keeps its documents under ("recap", kind).  What it writes with an `author` keeps its history,
and what it derives from messages names them as its sources: when one of these is erased, the item goes with all of its
versions, unless the kind has rewritten it and dropped the source in the same transaction.

Guarantee: an item that has expired is not found, and another one may take its place from version 1 on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, delete, func, insert, or_, select, update

from memory.access.owners import visible_to
from memory.errors import Conflict, NotFound
from models import ItemRow, ItemSourceRow, ItemVersionRow, MessageRow, OwnerRow, SessionRow, Transaction
from models.owners import Caller
from models.store import OWN, Item, ItemVersion, Namespace, Put, Source

_I, _V, _S = ItemRow.__table__.c, ItemVersionRow.__table__.c, ItemSourceRow.__table__.c
_COLUMNS = (
    *(_I.id, _I.namespace, _I.key, _I.value, _I.version, _I.ttl_minutes, _I.refreshes),
    *(_I.expires_at, _I.created_at, _I.updated_at, _I.index_paths),
)
ITEMS = select(*_COLUMNS)
"""Items, with the columns that `as_item` takes first."""


def as_item(row: Sequence[Any]) -> Item:
    id, namespace, *rest = row[: len(_COLUMNS)]
    return Item(id, tuple(namespace.split(".")), *rest)


def alive(now: datetime) -> ColumnElement[bool]:
    """What has not expired."""
    return or_(_I.expires_at.is_(None), _I.expires_at > now)


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


_NAMED = ITEMS.where(
    _I.owner_id == bindparam("owner"), _I.namespace == bindparam("namespace"), _I.key == bindparam("key")
)


def read(tx: Transaction, owner_id: int, namespace: Namespace, key: str, now: datetime) -> Item | None:
    """The item of this name."""
    item = _named(tx, owner_id, namespace, key)
    return item if item is not None and not _expired(item, now) else None


def _named(tx: Transaction, owner_id: int, namespace: Namespace, key: str) -> Item | None:
    row = tx.execute(_NAMED, {"owner": owner_id, "namespace": joined(namespace), "key": key}).first()
    return as_item(row) if row is not None else None


def _expired(item: Item, now: datetime) -> bool:
    return item.expires_at is not None and item.expires_at <= now


def find(tx: Transaction, caller: Caller, namespace: Namespace, item_id: int, kind: str) -> int:
    """The id of an item that is the caller's and of this namespace, which has the `kind`.  Raises NotFound."""
    there = select(ItemRow.id).join(OwnerRow, OwnerRow.id == ItemRow.owner_id).where(ItemRow.id == item_id)
    found = tx.scalar(visible_to(there.where(ItemRow.namespace == joined(namespace)), caller))
    if found is None:
        raise NotFound(f"{kind}_not_found", f"There is no {kind} {item_id}.")
    return found


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
    sources: Collection[int] = (),
) -> Item:
    """Store a value; with an `author` also in the item's history, and with the ids of messages it rests on.

    Raises Conflict when the item is not of the version that `put` expects.
    """
    there = _named(tx, owner_id, put.namespace, put.key)
    if there is not None and _expired(there, now):
        remove(tx, [there.id])
        there = None
    version = there.version if there is not None else 0
    check_version(put.key, put.version, version)
    values = {
        "value": put.value,
        "index_paths": put.paths,
        "version": version + 1,
        "ttl_minutes": put.ttl,
        "refreshes": put.refreshes,
        "expires_at": expiry(put.ttl, now),
        "updated_at": now,
    }
    if there is None:
        values |= {"owner_id": owner_id, "namespace": joined(put.namespace), "key": put.key, "created_at": now}
        item = as_item(tx.execute(insert(ItemRow.__table__).returning(*_COLUMNS), values).one())
    else:
        changed = update(ItemRow.__table__).where(_I.id == there.id).values(values)
        item = as_item(tx.execute(changed.returning(*_COLUMNS)).one())
    if author is not None:
        same = {"item_id": item.id, "version": item.version, "value": put.value}
        tx.execute(insert(ItemVersionRow.__table__), {**same, "author": author, "created_at": now})
    if sources:
        new = {*sources}.difference(messages_of(tx, item))
        tx.add_all(ItemSourceRow(item_id=item.id, message_id=message) for message in new)
        tx.flush()
    return item


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


def expiry(ttl: float | None, now: datetime) -> datetime | None:
    """When an item that is written or refreshed now expires."""
    return None if ttl is None else now + timedelta(minutes=ttl)


def postpone(tx: Transaction, items: Iterable[Item]) -> None:
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
    tx: Transaction, owner_id: int, item: Item, history: Iterable[ItemVersion], sources: Collection[int], now: datetime
) -> bool:
    """Store an item as it was, with its history; False when there is one of its name, or its time is up."""
    if _expired(item, now) or read(tx, owner_id, item.namespace, item.key, now) is not None:
        return False
    put = Put(item.namespace, item.key, item.value, ttl=item.ttl, refreshes=item.refreshes, paths=item.paths)
    new = write(tx, owner_id, put, now, sources=sources).id
    same = {name: getattr(item, name) for name in ("version", "expires_at", "created_at", "updated_at")}
    tx.execute(update(ItemRow.__table__).where(_I.id == new).values(same))
    tx.add_all(ItemVersionRow(item_id=new, **vars(one)) for one in history)
    return True


def rest_no_more_on(tx: Transaction, item_id: int, messages: Select[int] | Collection[int]) -> None:
    """Forget that the item rests on these messages, once no value of it does."""
    tx.execute(delete(ItemSourceRow).where(_S.item_id == item_id, _S.message_id.in_(messages)))


def resting_on(messages: Select[int] | Collection[int]) -> Select[int]:
    """The ids of the items that rest on any of these messages, which are ids or a query of them."""
    return select(_S.item_id).where(_S.message_id.in_(messages)).distinct()
