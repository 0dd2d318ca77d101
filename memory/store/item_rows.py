"""Read and write items inside a transaction: for the store, and for Recap's own kinds of items.

A kind of Recap's keeps its items under ("recap", kind). An item written with an `author` keeps its history. One made
from messages names them as sources: when a source is erased, the item goes with all of its versions, unless the
kind rewrites it and removes the source in the same transaction.

Invariant: an expired item is not found, and another one may take its place from version 1 on (test_store).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, delete, func, insert, or_, select, update

from memory.access.owners import find_owner, get_row, visible_to
from memory.errors import Conflict, NotFound
from memory.paging import Page, read_page
from models import ItemRow, ItemSourceRow, ItemVersionRow, MessageRow, OwnerRow, SessionRow, Transaction
from models.jobs import JobRequest
from models.owners import Caller
from models.store import OWN, Item, ItemVersion, Namespace, Put, Source
from schemas.fields import INT64_MAX

T = TypeVar("T")
_I, _V, _S = ItemRow.__table__.c, ItemVersionRow.__table__.c, ItemSourceRow.__table__.c
_COLUMNS = (
    *(_I.id, _I.namespace, _I.key, _I.value, _I.version, _I.ttl_minutes, _I.refreshes),
    *(_I.expires_at, _I.created_at, _I.updated_at, _I.index_paths),
)
_VERSIONS = select(_V.version, _V.value, _V.author, _V.created_at)
ITEMS = select(*_COLUMNS)
"""Items, with the columns of `as_item` first."""


def as_item(row: Sequence[Any]) -> Item:
    id, namespace, *rest = row[: len(_COLUMNS)]
    return Item(id, tuple(namespace.split(".")), *rest)


def unexpired(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    """Return the condition of items that have not expired."""
    return or_(_I.expires_at.is_(None), _I.expires_at > now)


def join_namespace(namespace: Namespace) -> str:
    """Return a namespace as it is stored."""
    return ".".join(namespace)


def below(namespace: Namespace) -> ColumnElement[bool]:
    """Return the condition of items in a namespace or below it; below none are all but Recap's own."""
    if not namespace:
        return ~below((OWN,))
    name = join_namespace(namespace)
    prefixed = (_I.namespace >= name) & (_I.namespace < f"{name}/")  # "/" follows "."; one range, which an index serves
    return prefixed & or_(_I.namespace == name, _I.namespace > f"{name}.")


_BY_NAME = ITEMS.where(
    _I.owner_id == bindparam("owner"), _I.namespace == bindparam("namespace"), _I.key == bindparam("key")
)


def read(tx: Transaction, owner_id: int, namespace: Namespace, key: str, now: datetime) -> Item | None:
    """Return the item of this name."""
    item = _find(tx, owner_id, namespace, key)
    return item if item is not None and not _is_expired(item, now) else None


def read_own(tx: Transaction, caller: Caller, namespace: Namespace, key: str, now: datetime) -> Item | None:
    """Return the item of this name that the caller means: of a person, a space or the tenant."""
    owner = find_owner(tx, caller)
    return read(tx, owner.id, namespace, key, now) if owner is not None else None


def _find(tx: Transaction, owner_id: int, namespace: Namespace, key: str) -> Item | None:
    row = tx.execute(_BY_NAME, {"owner": owner_id, "namespace": join_namespace(namespace), "key": key}).first()
    return as_item(row) if row is not None else None


def _is_expired(item: Item, now: datetime) -> bool:
    return item.expires_at is not None and item.expires_at <= now


def get_item_id(tx: Transaction, caller: Caller, namespace: Namespace, item_id: int, kind: str) -> int:
    """Return the id of the caller's item in a namespace, which holds items of this kind. Raises NotFound."""
    query = select(ItemRow.id).join(OwnerRow, OwnerRow.id == ItemRow.owner_id).where(ItemRow.id == item_id)
    query = query.where(ItemRow.namespace == join_namespace(namespace))
    (own_id,) = get_row(tx, visible_to(query, caller), NotFound(f"{kind}_not_found", f"There is no {kind} {item_id}."))
    return int(own_id)


def list_items(tx: Transaction, owner_id: int, namespace: Namespace, now: datetime) -> list[Item]:
    """Return all items of this namespace, by key."""
    query = ITEMS.where(_I.owner_id == owner_id, _I.namespace == join_namespace(namespace), unexpired(now))
    return list(map(as_item, tx.execute(query.order_by(_I.key))))


def write(
    tx: Transaction,
    owner_id: int,
    put: Put,
    now: datetime,
    *,
    author: str | None = None,
    sources: Collection[int] = (),
) -> Item:
    """Store a value. Raises Conflict when the item does not have the version that `put` expects.

    author: also store the value in the item's history. sources: ids of messages that the value was made from.
    """
    existing = _find(tx, owner_id, put.namespace, put.key)
    if existing is not None and _is_expired(existing, now):
        remove(tx, [existing.id])
        existing = None
    version = existing.version if existing is not None else 0
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
    if existing is None:
        values |= {"owner_id": owner_id, "namespace": join_namespace(put.namespace), "key": put.key, "created_at": now}
        item = as_item(tx.execute(insert(ItemRow.__table__).returning(*_COLUMNS), values).one())
    else:
        changed = update(ItemRow.__table__).where(_I.id == existing.id).values(values)
        item = as_item(tx.execute(changed.returning(*_COLUMNS)).one())
    if author is not None:
        add_version(tx, item.id, ItemVersion(item.version, put.value, author, now))
    if sources:
        new = {*sources}.difference(messages_of(tx, item))
        tx.add_all(ItemSourceRow(item_id=item.id, message_id=message) for message in new)
        tx.flush()
    return item


def check_version(key: str, expected: int | None, version: int) -> None:
    """Raise Conflict when the version is not the expected one; 0 is none."""
    if expected is not None and expected != version:
        state = f"has version {version}" if version else "does not exist"
        raise Conflict(
            "item_changed",
            f"The item {key!r} {state}, but the call expects version {expected}. Nothing was stored. Read it again and "
            "decide anew.",
            param="version",
        )


def expiry(ttl: float | None, now: datetime) -> datetime | None:
    """Return when an item that is written or refreshed now expires."""
    return None if ttl is None else now + timedelta(minutes=ttl)


def extend_expiry(tx: Transaction, items: Iterable[Item]) -> None:
    """Store the new expiry of items that were read, unless they were replaced since."""
    for item in items:
        as_read = _I.id == item.id, _I.version == item.version
        tx.execute(update(ItemRow.__table__).where(*as_read).values(expires_at=item.expires_at))


def remove(tx: Transaction, item_ids: Collection[int]) -> Counter[str]:
    """Delete items with their history, and count what went."""
    versions = tx.scalar(select(func.count()).where(_V.item_id.in_(item_ids))) or 0
    tx.execute(delete(ItemRow).where(_I.id.in_(item_ids)))
    return Counter(items=len(item_ids), item_versions=versions)


def remove_expired(tx: Transaction, owner_id: int, now: datetime) -> datetime | None:
    """Delete expired items of an owner; return when the next one expires."""
    tx.execute(delete(ItemRow).where(_I.owner_id == owner_id, _I.expires_at <= now))
    return tx.scalar(select(func.min(_I.expires_at)).where(_I.owner_id == owner_id))


def expire_job(owner_id: int, tenant: str, at: datetime, now: datetime) -> JobRequest:
    """Return the request for the job that deletes an owner's items which have expired at this time."""
    return JobRequest("expire", owner_id, tenant, owner_id, delay=max(0.0, (at - now).total_seconds()))


# -- history and sources


def add_version(tx: Transaction, item_id: int, version: ItemVersion) -> None:
    tx.execute(insert(ItemVersionRow.__table__), {"item_id": item_id, **vars(version)})


def list_versions(tx: Transaction, item_id: int) -> list[ItemVersion]:
    """Return the values that the item had, newest first."""
    return histories(tx, [item_id])[item_id][::-1]


def newest_version(tx: Transaction, item: Item | None, as_of: datetime | None = None) -> ItemVersion:
    """Return the value that an item has, or had at `as_of`."""
    query = _VERSIONS.where(_V.item_id == (item.id if item is not None else None)).order_by(_V.version.desc()).limit(1)
    row = tx.execute(query if as_of is None else query.where(_V.created_at <= as_of)).first()
    return ItemVersion(*row) if row is not None else ItemVersion()


def page_of_versions(
    tx: Transaction, item: Item | None, read: Callable[[Any], Any], cursor: str | None, limit: int
) -> Page[ItemVersion]:
    """Return a page of the values that an item had, newest first, each as `read` returns it."""
    query = _VERSIONS.where(_V.item_id == (item.id if item is not None else None))
    return read_page(tx, query, cursor, limit, _V.version).map(lambda row: ItemVersion(*row[:-1]).read(read))


def histories(tx: Transaction, item_ids: Collection[int]) -> Mapping[int, list[ItemVersion]]:
    """Return the values that items had, oldest first."""
    by_item: Mapping[int, list[ItemVersion]] = defaultdict(list)
    query = _VERSIONS.add_columns(_V.item_id).where(_V.item_id.in_(item_ids))
    for *columns, item_id in tx.execute(query.order_by(_V.item_id, _V.version)):
        by_item[item_id].append(ItemVersion(*columns))
    return by_item


def sources_of(tx: Transaction, item_ids: Collection[int], last_message: int = INT64_MAX) -> Mapping[int, list[Source]]:
    """Return the source messages of items, without replaced ones and those after `last_message`."""
    by_item: Mapping[int, list[Source]] = defaultdict(list)
    query = (
        select(_S.item_id, SessionRow.public_id, MessageRow.position)
        .join(MessageRow, MessageRow.id == _S.message_id)
        .join(SessionRow, SessionRow.id == MessageRow.session_id)
        .where(_S.item_id.in_(item_ids), _S.message_id <= last_message, MessageRow.branch == 0)
    )
    for item_id, session, position in tx.execute(query.order_by(_S.item_id, _S.message_id)):
        by_item[item_id].append(Source(session, position))
    return by_item


def get_version(tx: Transaction, item: Item | None, version: int) -> ItemVersion:
    """Return a version of an item. Raises NotFound."""
    named = _VERSIONS.where(_V.item_id == (item.id if item is not None else None), _V.version == version)
    missing = NotFound("version_not_found", f"There is no version {version}.", param="version")
    return ItemVersion(*get_row(tx, named, missing))


def drop_versions(
    tx: Transaction, owner_id: int, item: Item, stays: Callable[[Any], Any], now: datetime
) -> Counter[str]:
    """Remove a part from an item and its history; return the number of rows by kind.

    stays: returns the rest of a value. Versions that change go. If the newest one changes, its rest becomes a version
    by `erasure`; where the rest is None, the newest version that stays does. An item without a rest goes.
    """
    history = list_versions(tx, item.id)
    kept = [version for version in history if stays(version.value) == version.value]
    rest = stays(item.value)
    if not (kept or rest):
        return remove(tx, [item.id])
    gone = [version.version for version in history if version not in kept]
    tx.execute(delete(ItemVersionRow).where(_V.item_id == item.id, _V.version.in_(gone)))
    if rest != item.value:
        value = kept[0].value if rest is None else rest
        write(tx, owner_id, Put(item.namespace, item.key, value), now, author="erasure")
    return Counter(item_versions=len(gone))


def messages_of(tx: Transaction, item: Item) -> Sequence[int]:
    """Return the ids of an item's source messages, replaced or not."""
    return tx.scalars(select(_S.message_id).where(_S.item_id == item.id)).all()


def restore(
    tx: Transaction, owner_id: int, item: Item, history: Iterable[ItemVersion], sources: Collection[int], now: datetime
) -> bool:
    """Store an item as it was, with its history; return False when one of its name exists, or it has expired."""
    if _is_expired(item, now) or read(tx, owner_id, item.namespace, item.key, now) is not None:
        return False
    put = Put(item.namespace, item.key, item.value, ttl=item.ttl, refreshes=item.refreshes, paths=item.paths)
    new = write(tx, owner_id, put, now, sources=sources).id
    same = {name: getattr(item, name) for name in ("version", "expires_at", "created_at", "updated_at")}
    tx.execute(update(ItemRow.__table__).where(_I.id == new).values(same))
    for version in history:
        add_version(tx, new, version)
    return True


def remove_sources(tx: Transaction, item_id: int, messages: Select[int] | Collection[int]) -> None:
    """Remove sources of an item, once no value of it rests on them."""
    tx.execute(delete(ItemSourceRow).where(_S.item_id == item_id, _S.message_id.in_(messages)))


def resting_on(messages: Select[int] | Collection[int]) -> Select[int]:
    """Return the query of ids of items that have any of these sources. messages: ids, or a query of them."""
    return select(_S.item_id).where(_S.message_id.in_(messages)).distinct()
