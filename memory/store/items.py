"""Items: the store's door for callers.

A caller that names a user has that user's items, any other the tenant's own.  Guarantee: the operations of one call
happen in one transaction, in their order, all or none of them, and each sees what those before it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select

from memory.access.owners import find_owner, make_owner
from memory.domain import Caller
from memory.errors import InvalidRequest, NotFound
from memory.jobs.outbox import JobRequest, Outbox
from memory.store import documents
from memory.store.filters import condition
from memory.store.finding import CANDIDATES, Path, found, path_of
from memory.store.values import ANY_PART, OWN, Delete, Get, Item, ListNamespaces, Namespace, Operation, Put, Search
from models import Database, ItemRow, JobRow, OwnerRow, Transaction
from search_index import Prepared, Query, SearchIndex

SCRUB_SECONDS = 60.0  # within which erased items are gathered: programs erase often, and rewriting the files is long

_I = ItemRow.__table__.c


@dataclass(frozen=True)
class Items:
    """Runs operations on items, on behalf of callers."""

    database: Database
    index: SearchIndex
    outbox: Outbox
    now: Callable[[], datetime]

    def run(self, caller: Caller, operations: Sequence[Operation]) -> list[Any]:
        """The result of each operation: the item of a Put or Get (None: there is none), what a Delete erased by kind,
        the items of a Search, or namespaces.

        Raises InvalidRequest, and Conflict when a version is not the expected one; then nothing was stored.
        """
        _refuse_reserved(operations)
        questions = [_Question.of(self.index, one) for one in operations]  # may call a service: not in a transaction
        writes = any(isinstance(one, Put | Delete) for one in operations)
        now = self.now()
        with self.database.write() if writes else self.database.read() as tx:
            work = _Work(tx, caller, now, self.index, find_owner(tx, caller))
            results = [work.run(*one) for one in zip(operations, questions, strict=True)]
            if writes:
                documents.store_expiry(tx, work.refreshed)
                self.outbox.ask(tx, *work.jobs())
        if work.refreshed and not writes:
            with self.database.write(durable=False) as tx:
                documents.store_expiry(tx, work.refreshed)
        return results

    def get(self, caller: Caller, which: Get) -> Item:
        """Raises NotFound."""
        (item,) = self.run(caller, [which])
        if item is None:
            raise item_not_found(which.namespace, which.key)
        found: Item = item
        return found

    def expire(self, job: JobRow) -> None:
        """The job that deletes an owner's items once they have expired.  Idempotent."""
        if job.owner_id is None:
            return
        now = self.now()
        with self.database.write() as tx:
            following = documents.remove_expired(tx, job.owner_id, now)
            if following is not None:
                self.outbox.ask(tx, _expire(job.owner_id, job.tenant, following, now))


def item_not_found(namespace: Namespace, key: str) -> NotFound:
    return NotFound("item_not_found", f"There is no item {key!r} in the namespace {'.'.join(namespace)!r}.")


@dataclass(frozen=True)
class _Question:
    """What a search with a query looks for, and where."""

    prepared: Prepared
    paths: tuple[Path, ...]

    @classmethod
    def of(cls, index: SearchIndex, operation: Operation) -> _Question | None:
        if not isinstance(operation, Search) or operation.query is None:
            return None
        paths = tuple(map(path_of, operation.fields))
        return cls(index.prepare(Query(operation.query, limit=operation.offset + operation.limit)), paths)


@dataclass
class _Work:
    """The operations of one call, in its transaction."""

    tx: Transaction
    caller: Caller
    now: datetime
    index: SearchIndex
    owner: OwnerRow | None
    refreshed: list[Item] = field(default_factory=list)
    expires: datetime | None = None  # the first of the written items
    erased: bool = False

    def run(self, operation: Operation, question: _Question | None) -> Any:
        match operation:
            case Put():
                return self._put(operation)
            case Delete():
                return self._delete(operation)
            case Get():
                item = self._item(operation)
                return self._read([item], operation.refresh)[0] if item is not None else None
            case Search():
                return self._read(self._search(operation, question), operation.refresh)
            case ListNamespaces():
                return self._namespaces(operation)

    def jobs(self) -> list[JobRequest]:
        """What is to be done after the commit."""
        jobs, tenant = list[JobRequest](), self.caller.tenant
        if self.expires is not None and self.owner is not None:
            jobs.append(_expire(self.owner.id, tenant, self.expires, self.now))
        if self.erased:
            jobs.append(JobRequest("scrub", tenant, tenant, delay=SCRUB_SECONDS))
        return jobs

    def _put(self, put: Put) -> Item:
        if self.owner is None:
            documents.check_version(put.key, put.version, 0)
            self.owner = make_owner(self.tx, self.caller, self.now)
        item = documents.write(self.tx, self.owner.id, put, self.now)
        if item.expires_at is not None:
            self.expires = min(item.expires_at, self.expires or item.expires_at)
        return item

    def _delete(self, which: Delete) -> Counter[str]:
        item = self._item(which)
        documents.check_version(which.key, which.version, item.version if item is not None else 0)
        if item is None:
            return Counter()
        self.erased = True
        return documents.remove(self.tx, [item.id])

    def _item(self, which: Get | Delete) -> Item | None:
        if self.owner is None:
            return None
        return documents.read(self.tx, self.owner.id, which.namespace, which.key, self.now)

    def _search(self, search: Search, question: _Question | None) -> list[Item]:
        wanted = condition(search.filter, self.tx.get_bind().dialect.name)
        if self.owner is None:
            return []
        query = documents.ITEMS.where(
            _I.owner_id == self.owner.id, documents.below(search.namespace), documents.alive(self.now), wanted
        ).order_by(_I.updated_at.desc(), _I.id.desc())
        if question is None:
            rows = self.tx.execute(query.limit(search.limit).offset(search.offset))
            return list(map(documents.as_item, rows))
        candidates = list(map(documents.as_item, self.tx.execute(query.limit(CANDIDATES))))
        return found(self.index, question.prepared, candidates, question.paths)[search.offset :]

    def _read(self, items: list[Item], refresh: bool) -> list[Item]:
        if not refresh:
            return items
        items = [documents.refreshed(item, self.now) for item in items]
        self.refreshed += [item for item in items if item.refreshes]
        return items

    def _namespaces(self, wanted: ListNamespaces) -> list[Namespace]:
        if self.owner is None:
            return []
        begin = wanted.prefix[: wanted.prefix.index(ANY_PART)] if ANY_PART in wanted.prefix else wanted.prefix
        query = select(_I.namespace).where(_I.owner_id == self.owner.id, documents.below(begin))
        names = self.tx.scalars(query.where(documents.alive(self.now)).distinct())
        namespaces = (tuple(name.split(".")) for name in names)
        matching = {one[: wanted.max_depth] for one in namespaces if _matches(one, wanted)}
        return sorted(matching)[wanted.offset :][: wanted.limit]


def _matches(namespace: Namespace, wanted: ListNamespaces) -> bool:
    prefix, suffix = wanted.prefix, wanted.suffix
    if len(namespace) < max(len(prefix), len(suffix)):
        return False
    pairs = [*zip(prefix, namespace, strict=False), *zip(reversed(suffix), reversed(namespace), strict=False)]
    return all(part in (ANY_PART, there) for part, there in pairs)


def _refuse_reserved(operations: Iterable[Operation]) -> None:
    if any(isinstance(one, Put | Delete) and one.namespace[0] == OWN for one in operations):
        raise InvalidRequest(
            "reserved_namespace",
            f"Namespaces that begin with {OWN!r} are Recap's own. Nothing was stored. Choose another name.",
            param="namespace",
        )


def _expire(owner_id: int, tenant: str, at: datetime, now: datetime) -> JobRequest:
    return JobRequest("expire", owner_id, tenant, owner_id, delay=max(0.0, (at - now).total_seconds()))
