"""Erase sessions, people, facts and documents, and return a receipt.

Rewriting the database's files takes long. Erasing a session or a person waits for it. Messages and facts are often
erased one by one, so one job rewrites the files for all of them that were erased within GATHER_SECONDS.

Invariants:
- The rows go in one transaction, which enqueues the rest as jobs; another process finishes what a killed one began
  (test_erasing_processes).
- From the commit on, nothing erased is found, shown or sent to a model; turns, imports and summaries that are under way
  store nothing of it (test_erasing, test_import).
- When a receipt has nothing `pending`, no byte of the erased words, names and ids is in the database's files, its log,
  the search index or this process's caches (test_erasing, test_erasing_clients).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, delete, or_, select

from memory.access.owners import find_owner, get_session, get_user
from memory.engine import Engine
from memory.errors import NotFound, RecapError
from memory.events import KEPT, tell
from memory.knowledge import facts, overview
from memory.knowledge.fact_writes import delete_with_history
from memory.knowledge.forgetting import forget_messages
from memory.store import item_rows
from memory.store.store import item_not_found
from memory.users import count_of
from models import (
    ArchiveRow,
    DocumentRow,
    FactRevisionRow,
    FactRow,
    ItemRow,
    ItemVersionRow,
    JobRow,
    MessageRow,
    OwnerRow,
    SessionRow,
    SummaryRow,
    Transaction,
    TurnRow,
    for_update,
    retry_on_conflict,
)
from models.jobs import Job, JobRequest
from models.owners import Caller
from models.store import Delete, Namespace

GATHER_SECONDS = 5.0
KILLED_SECONDS = 30.0  # until another process does the jobs that this one is about to run
SEARCH_INDEX, DATABASE_FILES, EVENTS = "search_index", "database_files", "events"  # what may be `pending`
RECEIPT = (
    *("sessions", "messages", "turns", "summaries", "edited_summaries", "facts", "fact_revisions"),
    *("items", "item_versions", "documents", "archives", "jobs", "index_documents"),
)
"""The names that a receipt counts by."""


@dataclass(frozen=True)
class Receipt:
    """Rows erased, by kind.

    pending: places that still hold some of it, until a job is done. named: the parameters that the answer repeats.
    """

    erased: Mapping[str, int]
    pending: tuple[str, ...]
    erased_at: datetime
    named: Mapping[str, Any]


class Erased(NamedTuple):
    """Rows that are gone, and the keys of the jobs that clear the index and the files."""

    rows: Counter[str]
    index_key: str
    tenant: str
    has_event: bool = False  # in an event, which names the person


def erase_user(engine: Engine, caller: Caller) -> Receipt:
    """Erase everything of a person or a space. Raises NotFound."""
    kind, name = caller.owner or ("user", "")
    named = {"space" if kind == "space" else "user_id": name}
    return erase_now(engine, lambda tx: erase_owner(engine, tx, get_user(tx, caller)), **named)


def erase_session(engine: Engine, caller: Caller, session_id: str) -> Receipt:
    """Erase a session with its messages, summaries and facts. Raises NotFound."""

    def erase(tx: Transaction) -> Erased:
        row = get_session(tx, caller, session_id)
        return erase_owner(engine, tx, row.owner) if row.owner.kind == "session" else erase_rows(engine, tx, row)

    return erase_now(engine, erase, session_id=session_id)


def erase_fact(engine: Engine, caller: Caller, fact_id: int, *, restore: bool = False) -> Receipt:
    """Forget a fact with its history and the facts that it superseded. Raises NotFound.

    The source message stays. The newest summaries and the profile lose what says the same; earlier versions stay.
    restore: the superseded facts are valid again instead.
    """
    receipt = erase_facts(engine, caller, [fact_id], restore=restore)
    if not receipt.named["forgotten"]:
        raise NotFound("fact_not_found", f"There is no fact {fact_id}.")
    return replace(receipt, named={"fact_id": fact_id})


@retry_on_conflict
def erase_facts(engine: Engine, caller: Caller, fact_ids: Sequence[int], *, restore: bool = False) -> Receipt:
    """Forget the facts that exist, each as `erase_fact` does.

    The receipt also counts superseded facts; its `forgotten` does not.
    """
    with engine.database.write() as tx:
        owner_ids, count, erased = facts.forget(engine, tx, caller, fact_ids, restore=restore)
        if count:
            engine.job_queue.enqueue(tx, vacuum_job(caller.tenant))
            for owner_id in owner_ids:
                overview.enqueue_update(engine, tx, tx.get(OwnerRow, owner_id))
    return receipt_of(engine, erased, (DATABASE_FILES,) if count else (), forgotten=count)


def erase_item(engine: Engine, caller: Caller, operation: Delete) -> Receipt:
    """Erase an item of the store. Raises NotFound, and Conflict when it has another version."""
    (erased,) = engine.items.run(caller, [operation])
    if not erased:
        raise item_not_found(operation.namespace, operation.key)
    return receipt_of(engine, erased, (DATABASE_FILES,), namespace=operation.namespace, key=operation.key)


def erase_item_by_id(engine: Engine, caller: Caller, namespace: Namespace, item_id: int, kind: str) -> Receipt:
    """Erase the caller's item of this id; its namespace holds items of this kind. Raises NotFound."""
    with engine.database.write() as tx:
        erased = item_rows.remove(tx, [item_rows.get_item_id(tx, caller, namespace, item_id, kind)])
        engine.job_queue.enqueue(tx, vacuum_job(caller.tenant))
    return receipt_of(engine, erased, (DATABASE_FILES,), **{f"{kind}_id": item_id})


def erase_versions(
    engine: Engine, caller: Caller, key: str, namespaces: Sequence[Namespace], missing: NotFound, **named: Any
) -> Receipt:
    """Erase the caller's item of this key in the first namespace, with its versions, and those in the others.

    Raises `missing` where the first is not there.
    """
    with engine.database.write() as tx:
        items = [item_rows.read_own(tx, caller, namespace, key, engine.now()) for namespace in namespaces]
        if items[0] is None:
            raise missing
        erased = item_rows.remove(tx, [item.id for item in items if item is not None])
        engine.job_queue.enqueue(tx, vacuum_job(caller.tenant))
    return receipt_of(engine, erased, (DATABASE_FILES,), **named)


# -- in a transaction of the caller


def erase_rows(engine: Engine, tx: Transaction, row: SessionRow, action: str = "forgotten") -> Erased:
    """Delete the session's row; foreign keys delete everything in it. action: as of `delete_with_history`."""
    key = f"{row.owner_id}/{row.id}"
    messages = select(MessageRow.id).where(MessageRow.session_id == row.id)
    rows = _count_cascade(tx, SessionRow.id == row.id, FactRow.session_id == row.id, JobRow.session_id == row.id)
    facts = tx.scalars(select(FactRow.id).where(FactRow.session_id == row.id))
    delete_with_history(tx, facts, engine.now(), action)
    rows += forget_messages(tx, messages, engine.now())
    _enqueue_clearing(engine, tx, row.tenant, key, owner=row.owner.index_key, session=row.id)
    overview.enqueue_update(engine, tx, row.owner)
    tx.execute(delete(SessionRow).where(SessionRow.id == row.id))
    return Erased(rows, key, row.tenant)


def erase_owner(engine: Engine, tx: Transaction, owner: OwnerRow) -> Erased:
    """Delete the owner's row; foreign keys delete everything of theirs."""
    sessions = select(SessionRow.id).where(SessionRow.owner_id == owner.id).order_by(SessionRow.id)
    tx.execute(for_update(tx, sessions, SessionRow))  # replies that are being stored come first
    rows = _count_cascade(tx, *(kind.owner_id == owner.id for kind in (SessionRow, FactRow, JobRow)), owner_id=owner.id)
    _enqueue_clearing(engine, tx, owner.tenant, owner.index_key, owner=owner.index_key)
    has_event = owner.is_named and _tell(engine, tx, owner)
    if owner.user_id is not None:
        engine.keys.forget_person(tx, owner.tenant, owner.user_id)
    tx.execute(delete(OwnerRow).where(OwnerRow.id == owner.id))
    return Erased(rows, owner.index_key, owner.tenant, has_event)


def _tell(engine: Engine, tx: Transaction, owner: OwnerRow) -> bool:
    """Tell those who listen to the whole tenant that a person or a space is erased, if anybody does."""
    tenant = find_owner(tx, Caller(owner.tenant))
    of_user = owner.kind == "user"
    events = [(tenant.id, {"user_id" if of_user else "space": owner.name})] if tenant is not None else []
    if not tell(tx, "person.erased" if of_user else "space.erased", events, engine.now()):
        return False
    kept = JobRequest("events", owner.id, owner.tenant, delay=KEPT.total_seconds() + 1.0)
    engine.job_queue.enqueue(tx, kept)
    return True


def erase_empty_owner(engine: Engine, tx: Transaction, owner: OwnerRow) -> None:
    """Erase an owner that was a session, once neither the session nor an archive of it is left."""
    sessions = select(SessionRow.id).where(SessionRow.owner_id == owner.id, SessionRow.is_document.is_(False))
    left = sessions.exists(), select(ArchiveRow.id).where(ArchiveRow.owner_id == owner.id).exists()
    if owner.kind == "session" and not tx.scalar(select(or_(*left))):
        erase_owner(engine, tx, owner)


def vacuum_job(tenant: str, delay: float | None = None) -> JobRequest:
    """Return the job that rewrites the files: one a tenant, however much is erased."""
    return JobRequest("scrub", tenant, tenant, delay=GATHER_SECONDS if delay is None else delay)


def vacuum(engine: Engine, job: Job) -> None:
    """Run the job that removes copies of deleted rows from the database's files, and from caches. Idempotent."""
    engine.index.clear_caches()
    if not engine.database.vacuum():
        raise RecapError(
            "log_in_use",
            "The erased rows are gone from the database, but not yet from its write-ahead log, because another "
            "process keeps reading from it. The job tries again; end that process if it keeps failing.",
        )


def receipt_of(engine: Engine, erased: Mapping[str, int], pending: tuple[str, ...], **named: Any) -> Receipt:
    """Clear this process's caches, and return the receipt."""
    engine.index.clear_caches()
    return Receipt({kind: erased.get(kind, 0) for kind in RECEIPT}, pending, engine.now(), named)


def _enqueue_clearing(engine: Engine, tx: Transaction, tenant: str, key: str, **payload: Any) -> None:
    unindex = JobRequest("unindex", key, tenant, delay=KILLED_SECONDS, payload=payload)
    engine.job_queue.enqueue(tx, unindex, vacuum_job(tenant, KILLED_SECONDS))


def erase_now(engine: Engine, erase: Callable[[Transaction], Erased], **named: Any) -> Receipt:
    """Erase in one transaction, run the jobs that it enqueues in this thread, and return the receipt."""

    @retry_on_conflict
    def write() -> Erased:
        with engine.database.write() as tx:
            return erase(tx)

    erased = write()
    engine.index.clear_caches()
    jobs = {("unindex", erased.index_key): SEARCH_INDEX, ("scrub", erased.tenant): DATABASE_FILES}
    for job in jobs:
        engine.job_queue.run_now(*job)
    with engine.database.read() as tx:
        left = {tuple(job) for job in tx.execute(select(JobRow.kind, JobRow.key).where(JobRow.owner_id.is_(None)))}
    pending = (*(name for job, name in jobs.items() if job in left), *((EVENTS,) if erased.has_event else ()))
    return receipt_of(engine, erased.rows, pending, **named)


def _count_cascade(
    tx: Transaction,
    sessions: ColumnElement[bool],
    facts: ColumnElement[bool],
    jobs: ColumnElement[bool],
    *,
    owner_id: int | None = None,
) -> Counter[str]:
    """Count the rows that go with those that meet the conditions, and with the owner of this id.

    A new kind of rows needs foreign keys ON DELETE CASCADE to its owner or session, and a line here.
    """
    every, fact_ids = select(SessionRow.id).where(sessions), select(FactRow.id).where(facts)
    session_ids = every.where(SessionRow.is_document.is_(False))
    indexed = MessageRow.erased_at.is_(None), MessageRow.branch == 0, MessageRow.indexed_in.is_not(None)
    summaries = select(SummaryRow.id).where(SummaryRow.session_id.in_(session_ids))
    kinds: dict[str, Select[int]] = {
        "sessions": session_ids,
        "messages": select(MessageRow.id).where(MessageRow.session_id.in_(session_ids), MessageRow.erased_at.is_(None)),
        "documents": select(DocumentRow.session_id).where(DocumentRow.session_id.in_(every)),
        "index_documents": select(MessageRow.id).where(MessageRow.session_id.in_(every), *indexed),
        "turns": select(TurnRow.id).where(TurnRow.session_id.in_(session_ids)),
        "summaries": summaries,
        "edited_summaries": summaries.where(SummaryRow.author == "person"),
        "facts": fact_ids,
        "fact_revisions": select(FactRevisionRow.id).where(FactRevisionRow.fact_id.in_(fact_ids)),
        "jobs": select(JobRow.id).where(jobs),
    }
    if owner_id is not None:
        items = select(ItemRow.id).where(ItemRow.owner_id == owner_id)
        kinds["items"] = items
        kinds["item_versions"] = select(ItemVersionRow.id).where(ItemVersionRow.item_id.in_(items))
        kinds["archives"] = select(ArchiveRow.id).where(ArchiveRow.owner_id == owner_id)
    return Counter({kind: count_of(tx, ids) for kind, ids in kinds.items()})
