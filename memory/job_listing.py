"""List jobs, with the reason of those that failed, and try them again.

A caller sees the jobs of its own owners alone. No caller (None) is the operator, who sees all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Row, Update, delete, func, select, tuple_, update

from memory.access.owners import get_row, get_session, of_caller
from memory.engine import Engine
from memory.errors import Conflict, NotFound
from memory.job_statements import IN_QUEUE
from memory.paging import Page, read_page
from models import JobRow, OwnerRow, SessionRow, Transaction, as_value
from models.owners import Caller

OPTIONAL = ("consolidation",)  # kinds of jobs without which nothing is missing


@dataclass(frozen=True)
class JobInfo:
    """Job as it is shown: its `age` in seconds and, if it is pending, its `position` in the tenant's queue, from 1."""

    id: int
    kind: str
    state: str
    session_id: str | None
    attempts: int
    run_at: datetime
    error: str | None
    created_at: datetime
    updated_at: datetime
    position: int | None
    age: int


def page(
    engine: Engine,
    caller: Caller | None,
    state: str | None = None,
    session_id: str | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[JobInfo]:
    """Return the caller's jobs, oldest first. Raises NotFound for a session that is not the caller's."""
    query = _visible(caller)
    if state:
        query = query.where(JobRow.state == state)
    with engine.database.read() as tx:
        if session_id is not None:
            assert caller is not None, "two tenants may each have a session of that id"
            query = query.where(JobRow.session_id == get_session(tx, caller, session_id).id)
        page = read_page(tx, query, cursor, limit, JobRow.id, newest_first=False)
        return Page(tuple(_infos(engine, tx, page.items)), page.next_cursor)


def retry(engine: Engine, caller: Caller | None, job_id: int) -> JobInfo:
    """Make a failed or pending job due now.  Raises NotFound."""
    with engine.database.write() as tx:
        _get(tx, caller, job_id)
        tx.execute(_made_due(engine, JobRow.id == job_id, JobRow.state != "running"))
        return _infos(engine, tx, [_get(tx, caller, job_id)])[0]


def cancel(engine: Engine, caller: Caller | None, job_id: int) -> None:
    """Delete a job that need not be done.  If it runs, what it does is not stored.

    Raises NotFound, and Conflict for a job that is needed.
    """
    with engine.database.write() as tx:
        kind = _get(tx, caller, job_id).kind
        if kind not in OPTIONAL:
            raise Conflict("job_needed", f"Jobs of the kind {kind!r} can't be cancelled: memory would be lost.")
        tx.execute(delete(JobRow).where(JobRow.id == job_id))


def retry_failed(engine: Engine) -> int:
    """Make every failed job of all owners due now; returns how many there were."""
    with engine.database.write() as tx:
        return len(tx.scalars(_made_due(engine, JobRow.state == "failed").returning(JobRow.id)).all())


def _made_due(engine: Engine, *which: ColumnElement[bool]) -> Update:
    now = engine.now()
    return update(JobRow).where(*which).values(state="pending", attempts=0, run_at=now, updated_at=now)


def _infos(engine: Engine, tx: Transaction, rows: Sequence[Row[Any]]) -> list[JobInfo]:
    now = engine.now()
    positions = _positions(tx, rows)
    ages = (max(0, int((now - row.created_at).total_seconds())) for row in rows)
    return [
        as_value(JobInfo, row, position=positions.get(row.id), age=age) for row, age in zip(rows, ages, strict=True)
    ]


def _get(tx: Transaction, caller: Caller | None, job_id: int) -> Row[Any]:
    """Return a caller's job. Raises NotFound."""
    missing = NotFound("job_not_found", f"There is no job {job_id}; a job that has succeeded is gone.")
    row: Row[Any] = get_row(tx, _visible(caller).where(JobRow.id == job_id), missing)
    return row


_SHOWN = (
    *(JobRow.id, JobRow.kind, JobRow.state, JobRow.attempts, JobRow.run_at, JobRow.error),
    *(JobRow.created_at, JobRow.updated_at),
)

_place = tuple_(*IN_QUEUE)
_BEFORE_ALL = (-1, datetime.min.replace(tzinfo=UTC), 0)


def _positions(tx: Transaction, rows: Iterable[Row[Any]]) -> dict[int, int]:
    """Return the positions of the pending rows, by id. Jobs between two of them are counted in the index, once."""
    positions: dict[int, int] = {}
    pending = [(row.kind, row.tenant, (row.round, row.run_at, row.id)) for row in rows if row.state == "pending"]
    for (kind, tenant), group in groupby(sorted(pending), key=itemgetter(0, 1)):
        of_queue = JobRow.kind == kind, JobRow.state == "pending", JobRow.tenant == tenant
        position, last = 0, _BEFORE_ALL
        for _, _, place in group:
            between = select(func.count()).where(*of_queue, _place > last, _place <= place)
            position += tx.scalars(between).one()
            positions[place[2]], last = position, place
    return positions


def _visible(caller: Caller | None) -> Any:
    query: Any = (
        select(*_SHOWN, JobRow.tenant, JobRow.round, SessionRow.public_id.label("session_id"))
        .select_from(JobRow)
        .outerjoin(SessionRow, SessionRow.id == JobRow.session_id)
    )
    if caller is None:
        return query
    query = query.where(JobRow.tenant == caller.tenant)
    if caller.owner is not None:
        query = query.where(JobRow.owner_id == select(OwnerRow.id).where(of_caller(caller)).scalar_subquery())
    return query
