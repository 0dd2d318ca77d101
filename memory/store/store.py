"""Store: operations on JSON items for callers. A caller without a user has the tenant's own items.

Invariant: the operations of a call run in one transaction, in their order, all or none of them; each sees the changes
of those before it (test_store, test_store_api).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import select

from memory.access.owners import find_or_make_owner, find_owner, lock_owner
from memory.errors import InvalidRequest, NotFound
from memory.jobs import JobQueue
from memory.store import item_rows
from memory.store.filters import condition
from models import Database, ItemRow, Transaction, retry_on_conflict
from models.jobs import Job, JobRequest
from models.owners import Caller
from models.store import ANY_PART, OWN, Delete, Get, Item, ListNamespaces, Namespace, Operation, Put, Search
from search_index import PreparedQuery, Query, SearchableText, SearchIndex

ERASED_ITEMS_SECONDS = 60.0  # of erased items for one rewriting of the files: programs erase often
NO_OWNER_ID = 0

_I = ItemRow.__table__.c


@dataclass(frozen=True)
class Items:
    """Runs operations on items for callers."""

    database: Database
    index: SearchIndex
    job_queue: JobQueue
    now: Callable[[], datetime]

    def run(self, caller: Caller, operations: Sequence[Operation]) -> list[Any]:
        """Return the result of each operation.

        Put, Get: the item (None: there is none). Delete: the number of erased rows by kind. Search: items.
        ListNamespaces: namespaces. Raises InvalidRequest, and Conflict when a version is not the expected one.
        """
        writes = [operation for operation in operations if isinstance(operation, Put | Delete)]
        if any(operation.namespace[0] == OWN for operation in writes):
            raise InvalidRequest(
                "reserved_namespace",
                f"Namespaces that begin with {OWN!r} are Recap's own. Nothing was stored. Choose another name.",
                param="namespace",
            )
        queries = list(map(self._prepare, operations))  # may call a service: not in a transaction
        now = self.now()
        with self.database.write() if writes else self.database.read() as tx:
            puts = any(isinstance(operation, Put) for operation in writes)
            owner = find_or_make_owner(tx, caller, now) if puts else find_owner(tx, caller)
            owner_id = owner.id if owner is not None else NO_OWNER_ID
            pairs = zip(operations, queries, strict=True)
            results = [self._run(tx, owner_id, operation, query, now) for operation, query in pairs]
            done = list(zip(operations, results, strict=True))
            self.job_queue.enqueue(tx, *_jobs(owner_id, caller.tenant, done, now))
        refreshed = [item for operation, result in done for item in _refreshed(operation, result)]
        if refreshed:
            self._extend_expiry(owner_id, refreshed)
        return results

    @retry_on_conflict
    def _extend_expiry(self, owner_id: int, items: Sequence[Item]) -> None:
        with self.database.write(durable=False) as tx:
            lock_owner(tx, owner_id)  # before items, of which another call may lock these in another order
            item_rows.extend_expiry(tx, items)

    def get(self, caller: Caller, operation: Get) -> Item:
        """Return an item. Raises NotFound."""
        item: Item | None = self.run(caller, [operation])[0]
        if item is None:
            raise item_not_found(operation.namespace, operation.key)
        return item

    def expire(self, job: Job) -> None:
        """Run the job that deletes an owner's expired items. Idempotent."""
        if job.owner_id is None:
            return
        now = self.now()
        with self.database.write() as tx:
            lock_owner(tx, job.owner_id)
            next_expiry = item_rows.remove_expired(tx, job.owner_id, now)
            if next_expiry is not None:
                self.job_queue.enqueue(tx, item_rows.expire_job(job.owner_id, job.tenant, next_expiry, now))

    def _prepare(self, operation: Operation) -> PreparedQuery | None:
        if not isinstance(operation, Search) or not (operation.query or "").strip():
            return None
        return self.index.prepare(Query(operation.query or "", limit=operation.offset + operation.limit, alone=True))

    def _run(
        self, tx: Transaction, owner_id: int, operation: Operation, query: PreparedQuery | None, now: datetime
    ) -> Any:
        match operation:
            case Put():
                return item_rows.write(tx, owner_id, operation, now)
            case Get():
                item = item_rows.read(tx, owner_id, operation.namespace, operation.key, now)
                return _refresh(item, now) if item is not None and operation.refresh else item
            case Delete():
                item = item_rows.read(tx, owner_id, operation.namespace, operation.key, now)
                item_rows.check_version(operation.key, operation.version, item.version if item is not None else 0)
                return item_rows.remove(tx, [item.id]) if item is not None else Counter()
            case Search():
                items = self._search(tx, owner_id, operation, query, now)
                return [_refresh(item, now) for item in items] if operation.refresh else items
            case ListNamespaces():
                return _namespaces(tx, owner_id, operation, now)

    def _search(
        self, tx: Transaction, owner_id: int, search: Search, query: PreparedQuery | None, now: datetime
    ) -> list[Item]:
        matches = condition(search.filter, tx.get_bind().dialect.name)
        rows = item_rows.ITEMS.where(
            _I.owner_id == owner_id, item_rows.below(search.namespace), item_rows.unexpired(now), matches
        ).order_by(_I.updated_at.desc(), _I.id.desc())
        if query is None:
            return list(map(item_rows.as_item, tx.execute(rows.limit(search.limit).offset(search.offset))))
        candidates = list(map(item_rows.as_item, tx.execute(rows.limit(RANKED_ITEMS_MAX))))
        return rank_items(self.index, query, candidates, search.paths)[search.offset :]


def item_not_found(namespace: Namespace, key: str) -> NotFound:
    return NotFound("item_not_found", f"There is no item {key!r} in the namespace {'.'.join(namespace)!r}.")


def _refresh(item: Item, now: datetime) -> Item:
    """Return the item as it is after a read."""
    return replace(item, expires_at=item_rows.expiry(item.ttl, now)) if item.refreshes else item


def _refreshed(operation: Operation, result: Any) -> list[Item]:
    """Return the items whose expiry an operation has extended."""
    if not isinstance(operation, Get | Search) or not operation.refresh:
        return []
    items = result if isinstance(operation, Search) else filter(None, [result])
    return [item for item in items if item.refreshes]


def _namespaces(tx: Transaction, owner_id: int, operation: ListNamespaces, now: datetime) -> list[Namespace]:
    begin = tuple(takewhile(lambda part: part != ANY_PART, operation.prefix))
    query = select(_I.namespace).where(_I.owner_id == owner_id, item_rows.below(begin), item_rows.unexpired(now))
    names = [tuple(name.split(".")) for name in tx.scalars(query.distinct())]
    matching = {name[: operation.max_depth] for name in names if _matches(name, operation)}
    return sorted(matching)[operation.offset :][: operation.limit]


def _matches(namespace: Namespace, operation: ListNamespaces) -> bool:
    prefix, suffix = operation.prefix, operation.suffix
    if len(namespace) < max(len(prefix), len(suffix)):
        return False
    pairs = [*zip(prefix, namespace, strict=False), *zip(reversed(suffix), reversed(namespace), strict=False)]
    return all(part in (ANY_PART, there) for part, there in pairs)


def _jobs(owner_id: int, tenant: str, done: Sequence[tuple[Operation, Any]], now: datetime) -> Iterator[JobRequest]:
    """Yield the jobs that follow from operations, each with its result."""
    expiries = [item.expires_at for operation, item in done if isinstance(operation, Put) and item.expires_at]
    if expiries:
        yield item_rows.expire_job(owner_id, tenant, min(expiries), now)
    if any(isinstance(operation, Delete) and erased for operation, erased in done):
        yield JobRequest("scrub", tenant, tenant, delay=ERASED_ITEMS_SECONDS)


RANKED_ITEMS_MAX = 1_000
RANKED_CHARS = 4_000  # of an item's text
_STEP = re.compile(r"[^.\[\]]+")  # of a path such as `notes[*].text`


def rank_items(index: SearchIndex, prepared: PreparedQuery, items: Sequence[Item], paths: Sequence[str]) -> list[Item]:
    """Return these items, best first, each with its score. Items without a text at `paths` come last, without a score.

    paths: where in the values the text stands; none: anywhere.
    """
    by_id = {item.id: item for item in items}
    texts = {item.id: _indexed_text(item, paths) for item in items}
    searchable = [
        SearchableText(
            -item_id, -item_id, "", by_id[item_id].updated_at, text[:RANKED_CHARS]
        )  # below the ids of messages
        for item_id, text in texts.items()
        if text
    ]
    hits = index.rank_texts(prepared, searchable)
    scored = [replace(by_id[-hit.message_id], score=hit.score) for hit in hits]
    return [*scored, *(by_id[item_id] for item_id, text in texts.items() if not text)][: prepared.query.limit]


def _indexed_text(item: Item, paths: Sequence[str]) -> str:
    """Return the text of an item that a query is compared with."""
    steps = [_STEP.findall(path) for path in (paths if item.paths is None else item.paths)]
    if item.paths is None and not paths:
        steps = [[]]  # all texts
    return " ".join(text for path in steps for text in _texts(item.value, path))


def _texts(value: Any, path: Sequence[str]) -> Iterator[str]:
    """Yield all texts at a path; none where the value has another shape."""
    if isinstance(value, str) and not path:
        yield value
    elif isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if not path or path[0] in ("*", str(step)):
                yield from _texts(inner, path[1:])
