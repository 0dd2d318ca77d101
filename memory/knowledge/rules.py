"""Rules of what is kept: how long facts stay.

Invariant: from its `expires_at` on a fact is not valid, by the one condition for valid facts; a job closes it later
[test_facts].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from memory.access.owners import lock_owner
from memory.jobs import JobQueue
from memory.knowledge.fact_writes import invalidate
from models import Database, FactRow, Transaction
from models.jobs import Job, JobRequest


@dataclass(frozen=True)
class Rules:
    """Closes facts at their end."""

    database: Database
    job_queue: JobQueue
    now: Callable[[], datetime]

    def schedule_end(self, tx: Transaction, owner_id: int, tenant: str, at: datetime | None) -> None:
        """Ask for the job that closes an owner's facts at their `expires_at`; does nothing for None."""
        if at is not None:
            delay = max(0.0, (at - self.now()).total_seconds())
            self.job_queue.enqueue(tx, JobRequest("fact_ends", owner_id, tenant, owner_id, delay=delay))

    def close_ended(self, job: Job) -> None:
        """Run the job that closes an owner's facts that have reached their end. Idempotent."""
        now, valid = self.now(), (FactRow.owner_id == job.owner_id, FactRow.valid_to.is_(None))
        with self.database.write() as tx:
            owner = lock_owner(tx, job.owner_id)
            if owner is None:
                return
            ended = select(FactRow.id, FactRow.expires_at).where(*valid, FactRow.expires_at <= now)
            for fact_id, end in tx.execute(ended).all():
                invalidate(tx, fact_id, now, "ended", until=end)
            following = tx.scalar(select(func.min(FactRow.expires_at)).where(*valid))
            self.schedule_end(tx, owner.id, owner.tenant, following)
