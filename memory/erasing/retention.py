"""Retention: how long a tenant's sessions stay, and the job that takes them out.

A tenant's policy is a document of the tenant's own.  Without one, sessions stay for ever.  What is taken out is erased
as by `DELETE` of the session, after it was stored as an archive if the policy says so (see `archives`).

A session stays if it is pinned, or a fact of it that holds is pinned.  Its age counts from its last message, or from
its last import: what was restored or brought along stays for as long as what was said then.

Guarantee: each session is taken out in one transaction, which looks again whether the policy still asks for it.  So
a kill leaves it either in memory or taken out, and others write in between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, case, exists, false, func, or_, select

from memory.access.owners import find_or_make_owner, find_owner, lock_session
from memory.erasing.archives import Archives
from memory.erasing.erasing import Erasing
from memory.jobs import JobQueue
from memory.store import documents
from models import Database, FactRow, SessionRow, Transaction, retry_on_conflict
from models.jobs import Job, JobRequest
from models.owners import Caller
from models.retention import Policy
from models.store import OWN, Put

log = logging.getLogger(__name__)

NAMESPACE, KEY = (OWN, "retention"), "policy"
PART = 20  # sessions that the job takes out before it goes back to its queue
DAY = 86_400.0  # seconds

_LAST_USED = case((SessionRow.imported_at > SessionRow.updated_at, SessionRow.imported_at), else_=SessionRow.updated_at)
_PINNED_FACT = exists().where(FactRow.session_id == SessionRow.id, FactRow.pinned, FactRow.valid_to.is_(None))
_NEWEST_FIRST = func.row_number().over(
    partition_by=SessionRow.owner_id, order_by=(_LAST_USED.desc(), SessionRow.id.desc())
)


@dataclass(frozen=True)
class Retention:
    """Reads and changes a tenant's policy, and takes out its sessions in jobs."""

    database: Database
    job_queue: JobQueue
    erasing: Erasing
    archives: Archives
    now: Callable[[], datetime]

    def get(self, caller: Caller) -> Policy:
        """The policy of the caller's tenant."""
        with self.database.read() as tx:
            owner = find_owner(tx, Caller(caller.tenant))
            return self._policy(tx, owner.id if owner is not None else None)

    def put(self, caller: Caller, policy: Policy) -> Policy:
        """Store the policy of the caller's tenant.  Its job runs soon, and then once a day."""
        tenant = Caller(caller.tenant)
        with self.database.write() as tx:
            owner = find_or_make_owner(tx, tenant, self.now())
            documents.write(tx, owner.id, Put(NAMESPACE, KEY, asdict(policy)), self.now())
            self.job_queue.enqueue(tx, JobRequest("retention", owner.id, owner.tenant, owner.id, force=True))
        return policy

    def run(self, job: Job) -> bool:
        """The job that takes out the first of a tenant's sessions that are due; whether there may be more.  Idempotent.

        Asks for itself again, for as long as there is a policy.
        """
        with self.database.read() as tx:
            policy = self._policy(tx, job.owner_id)
            due = tx.scalars(_due(policy, self.now(), SessionRow.tenant == job.tenant).limit(PART)).all()
        taken = sum(self.expire_session(session, job.owner_id) for session in due)
        if taken:
            log.info("retention: %d sessions taken out", taken)
        if len(due) == PART:
            return True
        if policy.days is not None or policy.sessions is not None:
            with self.database.write() as tx:
                self.job_queue.enqueue(tx, JobRequest("retention", job.key, job.tenant, job.owner_id, delay=DAY))
        return False

    @retry_on_conflict
    def expire_session(self, session: int, tenant_id: int | None) -> bool:
        """Take a session out, unless it is no longer due; whether it was."""
        with self.database.write() as tx:
            row = lock_session(tx, session)
            if row is None:
                return False
            policy = self._policy(tx, tenant_id)
            if row.id not in tx.scalars(_due(policy, self.now(), SessionRow.owner_id == row.owner_id)).all():
                return False
            if policy.archive:
                self.archives.keep(tx, row)
            self.erasing.archive_and_erase(tx, row)
            return True

    def _policy(self, tx: Transaction, tenant_id: int | None) -> Policy:
        """The policy that a tenant, by its owner row's id, has stored."""
        item = documents.read(tx, tenant_id, NAMESPACE, KEY, self.now()) if tenant_id is not None else None
        return Policy(**item.value) if item is not None else Policy()


def _due(policy: Policy, now: datetime, whose: ColumnElement[bool]) -> Select[int]:
    """The row ids of those sessions that the policy does not let stay, the ones used longest ago first."""
    stays = SessionRow.pinned | _PINNED_FACT
    may_go = (
        select(SessionRow.id, _LAST_USED.label("used"), _NEWEST_FIRST.label("place")).where(whose, ~stays).subquery()
    )
    beyond: list[ColumnElement[bool]] = [false()]
    if policy.days is not None:
        beyond.append(may_go.c.used < now - timedelta(days=policy.days))
    if policy.sessions is not None:
        beyond.append(may_go.c.place > policy.sessions)
    return select(may_go.c.id).where(or_(*beyond)).order_by(may_go.c.used, may_go.c.id)
