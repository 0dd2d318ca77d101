"""Items: the store's door for callers.

A caller that names a user has that user's items, any other the tenant's own.  Guarantee: the operations of one call
happen in one transaction, in their order, all or none of them, and each sees what those before it did.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import select

from memory.access.owners import find_or_make_owner, find_owner
from memory.errors import InvalidRequest, NotFound
from memory.jobs import JobQueue
from memory.store import documents
from memory.store.filters import condition
from models import Database, ItemRow, Transaction
from models.jobs import Job, JobRequest
from models.owners import Caller
from models.store import (
    ANY_PART,
    OWN,
    Delete,
    Get,
    Item,
    ListNamespaces,
    Namespace,
    Operation,
    Put,
    Search,
)
from search_index import Document, PreparedQuery, Query, SearchIndex

SCRUB_SECONDS = 60.0  # within which erased items are gathered: programs erase often, and rewriting the files is long
NOBODY = 0  # the id of no owner

_I = ItemRow.__table__.c


@dataclass(frozen=True)
class Items:
    """Runs operations on items, on behalf of callers."""

    database: Database
    index: SearchIndex
    job_queue: JobQueue
    now: Callable[[], datetime]

    def run(self, caller: Caller, operations: Sequence[Operation]) -> list[Any]:
        """The result of each operation: the item of a Put or Get (None: there is none), what a Delete erased by kind,
        the items of a Search, or namespaces.

        Raises InvalidRequest, and Conflict when a version is not the expected one; then nothing was stored.
        """
        writes = [one for one in operations if isinstance(one, Put | Delete)]
        if any(one.namespace[0] == OWN for one in writes):
            raise InvalidRequest(
                "reserved_namespace",
                f"Namespaces that begin with {OWN!r} are Recap's own. Nothing was stored. Choose another name.",
                param="namespace",
            )
        questions = list(map(self._question, operations))  # may call a service: not in a transaction
        now = self.now()
        with self.database.write() if writes else self.database.read() as tx:
            makes = any(isinstance(one, Put) for one in writes)
            owner = find_or_make_owner(tx, caller, now) if makes else find_owner(tx, caller)
            owner_id = owner.id if owner is not None else NOBODY
            results = [self._run(tx, owner_id, *one, now) for one in zip(operations, questions, strict=True)]
            done = list(zip(operations, results, strict=True))
            self.job_queue.enqueue(tx, *_jobs(owner_id, caller.tenant, done, now))
        read = [item for one, result in done for item in _refreshed(one, result)]
        if read:
            with self.database.write(durable=False) as tx:
                documents.postpone(tx, read)
        return results

    def get(self, caller: Caller, which: Get) -> Item:
        """Raises NotFound."""
        (item,) = self.run(caller, [which])
        if item is None:
            raise item_not_found(which.namespace, which.key)
        there: Item = item
        return there

    def expire(self, job: Job) -> None:
        """The job that deletes an owner's items once they have expired.  Idempotent."""
        if job.owner_id is None:
            return
        now = self.now()
        with self.database.write() as tx:
            following = documents.remove_expired(tx, job.owner_id, now)
            if following is not None:
                self.job_queue.enqueue(tx, _expire(job.owner_id, job.tenant, following, now))

    def _question(self, operation: Operation) -> PreparedQuery | None:
        """What a search with a query looks for."""
        if not isinstance(operation, Search) or not (operation.query or "").strip():
            return None
        return self.index.prepare(Query(operation.query or "", limit=operation.offset + operation.limit, alone=True))

    def _run(
        self, tx: Transaction, owner_id: int, operation: Operation, question: PreparedQuery | None, now: datetime
    ) -> Any:
        match operation:
            case Put():
                return documents.write(tx, owner_id, operation, now)
            case Get():
                item = documents.read(tx, owner_id, operation.namespace, operation.key, now)
                return _renewed(item, now) if item is not None and operation.refresh else item
            case Delete():
                item = documents.read(tx, owner_id, operation.namespace, operation.key, now)
                documents.check_version(operation.key, operation.version, item.version if item is not None else 0)
                return documents.remove(tx, [item.id]) if item is not None else Counter()
            case Search():
                items = self._search(tx, owner_id, operation, question, now)
                return [_renewed(item, now) for item in items] if operation.refresh else items
            case ListNamespaces():
                return _namespaces(tx, owner_id, operation, now)

    def _search(
        self, tx: Transaction, owner_id: int, search: Search, question: PreparedQuery | None, now: datetime
    ) -> list[Item]:
        wanted = condition(search.filter, tx.get_bind().dialect.name)
        query = documents.ITEMS.where(
            _I.owner_id == owner_id, documents.below(search.namespace), documents.alive(now), wanted
        ).order_by(_I.updated_at.desc(), _I.id.desc())
        if question is None:
            return list(map(documents.as_item, tx.execute(query.limit(search.limit).offset(search.offset))))
        candidates = list(map(documents.as_item, tx.execute(query.limit(CANDIDATES))))
        return found(self.index, question, candidates, search.paths)[search.offset :]


def item_not_found(namespace: Namespace, key: str) -> NotFound:
    return NotFound("item_not_found", f"There is no item {key!r} in the namespace {'.'.join(namespace)!r}.")


def _renewed(item: Item, now: datetime) -> Item:
    """The item as it is after it was read."""
    return replace(item, expires_at=documents.expiry(item.ttl, now)) if item.refreshes else item


def _refreshed(operation: Operation, result: Any) -> list[Item]:
    """The items whose end an operation has postponed by reading them."""
    if not isinstance(operation, Get | Search) or not operation.refresh:
        return []
    items = result if isinstance(operation, Search) else filter(None, [result])
    return [item for item in items if item.refreshes]


def _namespaces(tx: Transaction, owner_id: int, wanted: ListNamespaces, now: datetime) -> list[Namespace]:
    begin = tuple(takewhile(lambda part: part != ANY_PART, wanted.prefix))
    query = select(_I.namespace).where(_I.owner_id == owner_id, documents.below(begin), documents.alive(now))
    names = [tuple(name.split(".")) for name in tx.scalars(query.distinct())]
    matching = {name[: wanted.max_depth] for name in names if _matches(name, wanted)}
    return sorted(matching)[wanted.offset :][: wanted.limit]


def _matches(namespace: Namespace, wanted: ListNamespaces) -> bool:
    prefix, suffix = wanted.prefix, wanted.suffix
    if len(namespace) < max(len(prefix), len(suffix)):
        return False
    pairs = [*zip(prefix, namespace, strict=False), *zip(reversed(suffix), reversed(namespace), strict=False)]
    return all(part in (ANY_PART, there) for part, there in pairs)


def _jobs(owner_id: int, tenant: str, done: Sequence[tuple[Operation, Any]], now: datetime) -> Iterator[JobRequest]:
    """What is to be done after these operations, each with its result."""
    ends = [item.expires_at for one, item in done if isinstance(one, Put) and item.expires_at is not None]
    if ends:
        yield _expire(owner_id, tenant, min(ends), now)
    if any(isinstance(one, Delete) and erased for one, erased in done):
        yield JobRequest("scrub", tenant, tenant, delay=SCRUB_SECONDS)


def _expire(owner_id: int, tenant: str, at: datetime, now: datetime) -> JobRequest:
    return JobRequest("expire", owner_id, tenant, owner_id, delay=max(0.0, (at - now).total_seconds()))


CANDIDATES = 1_000
TEXT_CHARS = 4_000
_STEP = re.compile(r"[^.\[\]]+")  # of a path such as `notes[*].text`


def found(index: SearchIndex, prepared: PreparedQuery, items: Sequence[Item], paths: Sequence[str]) -> list[Item]:
    """The best of these items, best first, each with its score; without `paths` by all of their texts.

    Items without such a text come last, without a score.
    """
    by_id = {item.id: item for item in items}
    texts = {item.id: _indexed_text(item, paths) for item in items}
    documents = [
        Document(-id, -id, "", by_id[id].updated_at, text[:TEXT_CHARS])  # below zero, where no message's id is
        for id, text in texts.items()
        if text
    ]
    hits = index.rank_texts(prepared, documents)
    scored = [replace(by_id[-hit.message_id], score=hit.score) for hit in hits]
    return [*scored, *(by_id[id] for id, text in texts.items() if not text)][: prepared.query.limit]


def _indexed_text(item: Item, paths: Sequence[str]) -> str:
    """Return the text of an item that a query is compared with."""
    steps = [_STEP.findall(path) for path in (paths if item.paths is None else item.paths)]
    if item.paths is None and not paths:
        steps = [[]]  # all texts
    return " ".join(text for path in steps for text in _texts(item.value, path))


def _texts(value: Any, path: Sequence[str]) -> Iterator[str]:
    """All texts where a path leads to; none where the value is made otherwise."""
    if isinstance(value, str) and not path:
        yield value
    elif isinstance(value, dict | list):
        for step, one in value.items() if isinstance(value, dict) else enumerate(value):
            if not path or path[0] in ("*", str(step)):
                yield from _texts(one, path[1:])
