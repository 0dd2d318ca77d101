"""The order of waiting jobs: fair between tenants first, then between the owners of a tenant, then by age.

Each kind of jobs has a queue for each tenant.  The next job of a kind is taken from the tenant that has the fewest
running, then from the one that was served longest ago.  A queue goes round by round: an owner has one job in each, and
a round is taken in the order in which its jobs became due.  The rows tell all of it, so it holds over all processes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ScalarSelect, bindparam, case, func, or_, select, union_all
from sqlalchemy.orm import aliased

from config.parsers import When
from models import JobRow, OwnerRow, QueueRow, Transaction, Upsert
from models.jobs import JobRequest

_J, _Q = JobRow.__table__.c, QueueRow.__table__.c
_OF_KIND = JobRow.kind == bindparam("kind"), JobRow.state == "pending"
IN_QUEUE = (JobRow.round, JobRow.run_at, JobRow.id)  # within a tenant


def next_round(kind: Any, tenant: Any, owner_id: Any) -> ScalarSelect[int]:
    """The round of a job that is put into its queue now: the one being taken or, if it is later, the one after those of
    the owner's other jobs."""
    own = select((func.max(_J.round) + 1).label("round")).where(_J.owner_id == owner_id, _J.kind == kind)
    current = select(_Q.round).where(_Q.kind == kind, _Q.tenant == tenant)
    either = union_all(own, current).subquery()
    return select(func.coalesce(func.max(either.c.round), 0)).scalar_subquery()


def _next() -> Any:
    """The job of `kind` to take next, if one is due `now` or was asked for `in_future`."""
    # The tenants whose jobs wait, each found by one step in the index, however many jobs it has.
    first = select(func.min(JobRow.tenant).label("tenant")).where(*_OF_KIND)
    waiting = first.cte("waiting", recursive=True)
    after = select(func.min(JobRow.tenant)).where(*_OF_KIND, JobRow.tenant > waiting.c.tenant).scalar_subquery()
    waiting = waiting.union_all(select(after).where(waiting.c.tenant.is_not(None)))

    theirs = aliased(JobRow)
    of_tenant = theirs.kind == bindparam("kind"), theirs.tenant == waiting.c.tenant
    due = or_(theirs.run_at <= bindparam("now"), theirs.updated_at > bindparam("in_future"))
    head = select(theirs.id).where(*of_tenant, theirs.state == "pending", due)
    head = head.order_by(theirs.round, theirs.run_at, theirs.id).limit(1)
    running = select(func.count()).where(*of_tenant, theirs.state == "running")
    return (
        select(JobRow)
        .where(JobRow.state == "pending")  # still, when another worker had it locked meanwhile
        .select_from(waiting)
        .join(JobRow, JobRow.id == head.scalar_subquery())
        .outerjoin(QueueRow, (QueueRow.kind == bindparam("kind")) & (QueueRow.tenant == waiting.c.tenant))
        .order_by(running.scalar_subquery(), func.coalesce(QueueRow.served, 0), JobRow.run_at, JobRow.id)
        .limit(1)
    )


NEXT = _next()
_LAST_SERVED = select(func.coalesce(func.max(_Q.served), 0)).where(_Q.kind == bindparam("of_kind"))
_TAKEN = Upsert(
    QueueRow,
    ("kind", "tenant"),
    lambda new: {"served": new.served, "round": case((_Q.round > new.round, _Q.round), else_=new.round)},
    served=_LAST_SERVED.scalar_subquery() + 1,
)


def note_taken(tx: Transaction, job: JobRow) -> None:
    """Note that the job's tenant was served now, and which round its queue is in."""
    _TAKEN.execute(tx, [{"kind": job.kind, "of_kind": job.kind, "tenant": job.tenant, "round": job.round}])


PAUSE = 120.0  # seconds without anything new, after which a conversation is over for now


def scheduled_requests(when: When, kind: str, owner: OwnerRow, now: datetime) -> tuple[JobRequest, ...]:
    """What to enqueue; nothing where the kind is off, or written only when a call asks for it.

    An `inline` job is due at once, and the turn that is being taken runs it before it ends.
    """
    if when.mode in ("off", "manual"):
        return ()
    background = when.mode == "background"
    delay = PAUSE if background else 0.0
    if when.mode == "schedule":
        delay = (when.next(now) - now).total_seconds()
    return (JobRequest(kind, owner.id, owner.tenant, owner.id, delay=delay, debounce=background),)
