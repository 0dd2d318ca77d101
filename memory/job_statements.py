"""Statements of the job queue: which job is next, and what a claim, an end or a new request changes in the table.

Jobs of a kind are taken from the tenant with the fewest running, then from the one that was served longest ago. A
tenant's queue goes round by round: each owner has one job in a round, and a long job goes back after each part. Of the
kinds ONE_BY_ONE an owner has one job running at a time, and the others wait.
"""

from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    CompoundSelect,
    DateTime,
    Executable,
    ScalarSelect,
    String,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    union_all,
    update,
)

from models import JobRow, OwnerRow, QueueRow, SessionRow, Upsert
from models.jobs import Job

_J, _Q = JobRow.__table__.c, QueueRow.__table__.c
IN_QUEUE = (_J.round, _J.run_at, _J.id)  # the order within a tenant
ONE_BY_ONE = ("summary",)  # each reads the facts that the one before has stored


def _next_round() -> ScalarSelect[int]:
    """Return the round for a job that is put into its queue now: the current one, or one after its owner's last."""
    other = JobRow.__table__.alias().c
    kind = bindparam("in_kind", type_=String())
    own = select((func.max(other.round) + 1).label("round"))
    own = own.where(other.owner_id == bindparam("of_owner"), other.kind == kind)
    current = select(_Q.round).where(_Q.kind == kind, _Q.tenant == bindparam("in_tenant"))
    either = union_all(own, current).subquery()
    return select(func.coalesce(func.max(either.c.round), 0)).scalar_subquery()


def _merge(new: Any) -> dict[str, Any]:
    """Return the values by which a request changes a job that exists. new: the row that would be inserted."""
    force, debounce = bindparam("force", type_=Boolean()), bindparam("debounce", type_=Boolean())
    running = _J.state == "running"
    backs_off = (_J.state == "pending") & (_J.attempts > 0) & ~force
    restarts = (_J.state == "failed") | (~running & force)
    earlier = case((_J.run_at < new.run_at, _J.run_at), else_=new.run_at)
    return {
        "state": case((restarts, "pending"), else_=_J.state),
        "attempts": case((restarts, 0), else_=_J.attempts),
        "revision": case((running, _J.revision + 1), else_=_J.revision),
        "round": case((restarts, new.round), else_=_J.round),
        "run_at": case((backs_off, _J.run_at), (or_(restarts, running, debounce), new.run_at), else_=earlier),
        "payload": func.coalesce(new.payload, _J.payload),
        "updated_at": case((backs_off, _J.updated_at), else_=new.updated_at),
    }


_NEXT_ROUND = _next_round()
ENQUEUE = Upsert(JobRow, ("kind", "key"), _merge, round=_NEXT_ROUND)


def _is_next_of_owner(job: Any, kind: Any) -> ColumnElement[bool]:
    """Return the condition that no other job of this kind runs for a job's owner. job: the columns of the job.

    The owners are looked up once for all jobs: an owner may have thousands that wait.
    """
    running = JobRow.__table__.alias().c
    return job.owner_id.not_in(select(running.owner_id).where(running.kind == kind, running.state == "running"))


def _next_job() -> ScalarSelect[int]:
    """Return the id of the job of `kind` to take next, if one is due `now` or was enqueued `in_future`."""
    # The tenants with pending jobs, each found by one step in the index, however many jobs it has.
    pending = JobRow.__table__.alias().c
    of_kind = pending.kind == bindparam("of_kind"), pending.state == "pending"
    tenants = select(func.min(pending.tenant).label("tenant")).where(*of_kind).cte("tenants", recursive=True)
    after = select(func.min(pending.tenant)).where(*of_kind, pending.tenant > tenants.c.tenant).scalar_subquery()
    tenants = tenants.union_all(select(after).where(tenants.c.tenant.is_not(None)))

    theirs = JobRow.__table__.alias().c
    job = JobRow.__table__.alias()
    of_tenant = theirs.kind == bindparam("of_kind"), theirs.tenant == tenants.c.tenant
    due = or_(theirs.run_at <= bindparam("now"), theirs.updated_at > bindparam("in_future"))
    in_turn = or_(bindparam("of_kind").not_in(ONE_BY_ONE), _is_next_of_owner(theirs, bindparam("of_kind")))
    first = select(theirs.id).where(*of_tenant, theirs.state == "pending", due, in_turn)
    first = first.order_by(theirs.round, theirs.run_at, theirs.id).limit(1)
    running = select(func.count()).where(*of_tenant, theirs.state == "running")
    return (
        select(job.c.id)
        .where(job.c.state == "pending")  # still, when another worker had it locked meanwhile
        .select_from(tenants)
        .join(job, job.c.id == first.scalar_subquery())
        .outerjoin(QueueRow, (_Q.kind == bindparam("of_kind")) & (_Q.tenant == tenants.c.tenant))
        .order_by(running.scalar_subquery(), func.coalesce(_Q.served, 0), job.c.run_at, job.c.id)
        .limit(1)
        .with_for_update(of=job, key_share=True, skip_locked=True)  # PostgreSQL alone locks rows
        .scalar_subquery()
    )


_CLAIMED = tuple(_J[name] for name in Job._fields if name in _J)
_TAKEN = JobRow.__tablename__  # by name: SQLAlchemy writes the columns of SQLite's RETURNING without their table
_OTHER, _QUEUES = JobRow.__table__.alias().c, QueueRow.__table__.alias().c
_NEXT_DUE = select(func.min(_OTHER.run_at)).where(
    _OTHER.kind == literal_column(f"{_TAKEN}.kind"),
    _OTHER.state == "pending",
    _OTHER.id != literal_column(f"{_TAKEN}.id"),
)
_IS_NOTED = exists().where(
    *(_Q[name] == literal_column(f"{_TAKEN}.{name}") for name in ("kind", "tenant")),
    _Q.round >= literal_column(f"{_TAKEN}.round"),
    _Q.served == select(func.max(_QUEUES.served)).where(_QUEUES.kind == bindparam("of_kind")).scalar_subquery(),
)


def _claim(*conditions: ColumnElement[bool]) -> Executable:
    """Return a statement that makes a job running.

    It gives back the columns of a `Job`, when the next job of its kind is due, and whether nothing need be noted of
    the queue: its tenant was served last already, in that round.
    """
    owner, session = OwnerRow.id == _J.owner_id, SessionRow.id == _J.session_id
    names = (OwnerRow.kind, owner), (OwnerRow.name, owner), (SessionRow.public_id, session)
    claimed = {"state": "running", "attempts": _J.attempts + 1, "lease_token": bindparam("token")}
    claimed |= {"lease_until": bindparam("until"), "run_at": bindparam("now"), "updated_at": bindparam("now")}
    return (
        update(JobRow.__table__)
        .where(*conditions)
        .values(claimed)
        .returning(
            *_CLAIMED,
            *(select(name).where(which).correlate(JobRow.__table__).scalar_subquery() for name, which in names),
            _NEXT_DUE.scalar_subquery(),
            _IS_NOTED,
        )
    )


_IS_FREE = or_(_J.lease_token.is_(None), _J.lease_until.is_(None), _J.lease_until <= bindparam("now"))
CLAIM_NEXT = _claim(_J.id == _next_job(), _J.state == "pending")
CLAIM_NAMED = _claim(_J.kind == bindparam("of_kind"), _J.key == bindparam("of_key"), _IS_FREE)
_IS_LEASED = _J.id == bindparam("job"), _J.lease_token == bindparam("token")
DELETE_DONE = delete(JobRow.__table__).where(*_IS_LEASED, _J.revision == bindparam("revision")).returning(_J.id)
PUT_BACK = update(JobRow.__table__).where(*_IS_LEASED).values(round=_NEXT_ROUND).returning(_J.run_at)
PUT_BACK_EXPIRED = PUT_BACK.where(_J.lease_until <= bindparam("now"))
FIND_ABANDONED = select(*_CLAIMED).where(_J.kind == bindparam("of_kind"), _J.state == "running", _IS_FREE)
_AHEAD = _J.state == "pending", _J.updated_at > bindparam("in_future", type_=DateTime())
COUNT_AHEAD = select(func.count()).where(*_AHEAD)
MAKE_DUE = update(JobRow.__table__).where(*_AHEAD)
SHORTEN_LEASES = update(JobRow.__table__).where(
    _J.state == "running", _J.lease_until > bindparam("latest", type_=DateTime())
)
_SERVED = select(func.coalesce(func.max(_Q.served), 0)).where(_Q.kind == bindparam("of_kind"))
NOTE_TAKEN = Upsert(
    QueueRow,
    ("kind", "tenant"),
    lambda new: {"served": new.served, "round": case((_Q.round > new.round, _Q.round), else_=new.round)},
    served=_SERVED.scalar_subquery() + 1,
)


@lru_cache
def due_by_kind(kinds: tuple[str, ...]) -> CompoundSelect[Any]:
    """Return a statement that reads for each kind when its next job is due, and its first and last lease expire."""

    def find(kind: str, state: str, value: Any) -> Any:
        return select(value).where(_J.kind == kind, _J.state == state).scalar_subquery()

    def find_due(kind: str) -> Any:
        job = JobRow.__table__.alias().c
        due = select(job.run_at).where(job.kind == kind, job.state == "pending").order_by(job.run_at).limit(1)
        return (due.where(_is_next_of_owner(job, kind)) if kind in ONE_BY_ONE else due).scalar_subquery()

    return union_all(
        *(
            select(
                literal(kind),
                find_due(kind),
                find(kind, "running", func.min(_J.lease_until)),
                find(kind, "running", func.max(_J.lease_until)),
            )
            for kind in kinds
        )
    )
