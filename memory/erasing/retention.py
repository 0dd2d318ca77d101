"""Retention: how long a tenant's sessions stay, the job that takes them out, and the archives it makes.

A session stays if it is pinned or has a valid pinned fact. Its age counts from its last message or its last import.
A session that retention takes out is in no list, search or prompt until its archive is restored. An archive is an
export of all that is erased with the session: messages, summaries, facts, and documents that rest on it alone. (A
session that is merely `archived` is hidden from the page's list and remembered as any other.)

Invariants:
- Each session is taken out in one transaction, which checks the policy again: a kill leaves it in memory, or archived
  and erased (test_retention).
- Restoring an archive twice, or again after a kill, stores nothing twice (test_retention).
"""

import gzip
import io
import logging
from contextlib import nullcontext
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, case, delete, exists, false, func, or_, select
from sqlalchemy.orm import defer

from memory.access.owners import find_or_make_owner, find_owner, get_row, lock_session, visible_to
from memory.engine import Engine
from memory.erasing.erasing import DATABASE_FILES, Receipt, erase_empty_owner, erase_rows, receipt_of, vacuum_job
from memory.errors import NotFound
from memory.paging import Page, read_page
from memory.store import item_rows
from memory.transfer.export import ARCHIVES, Export
from memory.transfer.export_format import to_json
from memory.transfer.import_reader import read_import
from memory.transfer.imports import Import, store_import
from memory.users import message_span
from models import ArchiveRow, FactRow, MessageRow, OwnerRow, SessionRow, Transaction, retry_on_conflict
from models.jobs import Job, JobRequest
from models.owners import Caller
from models.retention import Policy
from models.store import OWN, Put

log = logging.getLogger(__name__)

NAMESPACE = (OWN, "retention")
POLICY_KEY = "policy"
BATCH_SESSIONS = 20  # taken out before the job goes back to its queue
DAY_SECONDS = 86_400.0

_LAST_USED = case((SessionRow.imported_at > SessionRow.updated_at, SessionRow.imported_at), else_=SessionRow.updated_at)
_HAS_PINNED_FACT = exists().where(FactRow.session_id == SessionRow.id, FactRow.pinned, FactRow.valid_to.is_(None))
_NEWEST_FIRST = func.row_number().over(
    partition_by=SessionRow.owner_id, order_by=(_LAST_USED.desc(), SessionRow.id.desc())
)


def get_policy(engine: Engine, caller: Caller) -> Policy:
    with engine.database.read() as tx:
        owner = find_owner(tx, Caller(caller.tenant))
        return _policy(engine, tx, owner.id if owner is not None else None)


def put_policy(engine: Engine, caller: Caller, policy: Policy) -> Policy:
    """Store the policy of the caller's tenant. Its job runs soon, and then once a day."""
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, Caller(caller.tenant), engine.now())
        item_rows.write(tx, owner.id, Put(NAMESPACE, POLICY_KEY, asdict(policy)), engine.now())
        engine.job_queue.enqueue(tx, JobRequest("retention", owner.id, owner.tenant, owner.id, force=True))
    return policy


def expire_sessions(engine: Engine, job: Job) -> bool:
    """Run the job that takes out a tenant's oldest sessions that are due; return whether there may be more. Idempotent.

    Enqueues itself again as long as there is a policy.
    """
    with engine.database.read() as tx:
        policy = _policy(engine, tx, job.owner_id)
        query = _due(engine, policy, SessionRow.tenant == job.tenant)
        due = tx.scalars(query.limit(BATCH_SESSIONS)).all()
    expired = sum(archive_and_erase(engine, session, job.owner_id) for session in due)
    if expired:
        log.info("retention: %d sessions taken out", expired)
    if len(due) == BATCH_SESSIONS:
        return True
    if policy.days is not None or policy.sessions is not None:
        with engine.database.write() as tx:
            again = JobRequest("retention", job.key, job.tenant, job.owner_id, delay=DAY_SECONDS)
            engine.job_queue.enqueue(tx, again)
    return False


@retry_on_conflict
def archive_and_erase(engine: Engine, session: int, tenant_id: int | None) -> bool:
    """Take a session out, unless it is no longer due; return whether it was."""
    with engine.database.write() as tx:
        row = lock_session(tx, session)
        if row is None:
            return False
        policy = _policy(engine, tx, tenant_id)
        if row.id not in tx.scalars(_due(engine, policy, SessionRow.owner_id == row.owner_id)).all():
            return False
        if policy.archive:
            _archive(engine, tx, row)
        owner = row.owner
        erase_rows(engine, tx, row, "archived" if policy.archive else "forgotten")
        erase_empty_owner(engine, tx, owner)
        return True


def _policy(engine: Engine, tx: Transaction, tenant_id: int | None) -> Policy:
    item = item_rows.read(tx, tenant_id, NAMESPACE, POLICY_KEY, engine.now()) if tenant_id is not None else None
    return Policy(**item.value) if item is not None else Policy()


def _due(engine: Engine, policy: Policy, condition: ColumnElement[bool]) -> Select[int]:
    """Return the query of session ids that the policy takes out, those used longest ago first."""
    columns = SessionRow.id, _LAST_USED.label("used"), _NEWEST_FIRST.label("place")
    stays = SessionRow.pinned | _HAS_PINNED_FACT | SessionRow.is_document
    may_go = select(*columns).where(condition, ~stays).subquery()
    beyond: list[ColumnElement[bool]] = [false()]
    if policy.days is not None:
        beyond.append(may_go.c.used < engine.now() - timedelta(days=policy.days))
    if policy.sessions is not None:
        beyond.append(may_go.c.place > policy.sessions)
    return select(may_go.c.id).where(or_(*beyond)).order_by(may_go.c.used, may_go.c.id)


def _archive(engine: Engine, tx: Transaction, row: SessionRow) -> None:
    """Store an archive of a session, which the caller's transaction erases next."""
    file = io.BytesIO()
    export = Export(lambda: nullcontext(tx), tx, row.owner, engine.now(), only=row)
    with gzip.open(file, "wt", encoding="utf-8") as text:
        text.writelines(to_json(export))
    count, first, last = message_span(tx, MessageRow.session_id == row.id)
    session = {"owner_id": row.owner_id, "session_id": row.public_id, "title": row.title}
    times = {"first_message_at": first, "last_message_at": last, "created_at": engine.now()}
    tx.add(ArchiveRow(**session, **times, message_count=count, document=file.getvalue()))
    tx.flush()


# -- archives


def list_archives(engine: Engine, caller: Caller, session_id: str | None, cursor: str | None, limit: int) -> Page[Any]:
    """Return the caller's archives, the newest first."""
    query = visible_to(ARCHIVES, caller)
    if session_id is not None:
        query = query.where(ArchiveRow.session_id == session_id)
    with engine.database.read() as tx:
        return read_page(tx, query, cursor, limit, ArchiveRow.id)


def read_archive(engine: Engine, caller: Caller, archive_id: int) -> bytes:
    """Return an archive's document, which can be imported. Raises NotFound."""
    with engine.database.read() as tx:
        row, _ = _get_archive(tx, caller, archive_id)
        return gzip.decompress(row.document)


def restore_archive(engine: Engine, caller: Caller, archive_id: int) -> Import:
    """Import an archive, and delete it. Raises NotFound, and Conflict as an import does."""
    with engine.database.read() as tx:
        row, owner = _get_archive(tx, caller, archive_id)
        file = io.BytesIO(gzip.decompress(row.document))
    document = read_import(file, engine.now())
    restored = store_import(engine, owner.caller, document, owner_id=owner.id)
    with engine.database.write() as tx:
        tx.execute(delete(ArchiveRow).where(ArchiveRow.id == archive_id))
    return restored


def erase_archive(engine: Engine, caller: Caller, archive_id: int) -> Receipt:
    with engine.database.write() as tx:
        row, owner = _get_archive(tx, caller, archive_id)
        tx.execute(delete(ArchiveRow).where(ArchiveRow.id == row.id))
        erase_empty_owner(engine, tx, owner)
        engine.job_queue.enqueue(tx, vacuum_job(owner.tenant))
    return receipt_of(engine, {"archives": 1}, (DATABASE_FILES,), archive_id=archive_id)


def _get_archive(tx: Transaction, caller: Caller, archive_id: int) -> tuple[ArchiveRow, OwnerRow]:
    missing = NotFound("archive_not_found", f"There is no archive {archive_id}.")
    query = select(ArchiveRow, OwnerRow).join(OwnerRow, OwnerRow.id == ArchiveRow.owner_id)
    query = query.where(ArchiveRow.id == archive_id).options(defer(ArchiveRow.document))  # only its reader needs it
    row, owner = get_row(tx, visible_to(query, caller), missing, OwnerRow)
    return row, owner
