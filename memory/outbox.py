"""The outbox: work that happens after a reply, as rows that commit together with what caused them.

Guarantee: a job that was enqueued runs to its end at least once, whatever is killed meanwhile; handlers are
idempotent.  A job that fails is tried again with growing pauses, and after MAX_ATTEMPTS stays, with its error, until
somebody retries it or new work for the same key arrives.  Asking for a job that is already waiting merges with it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from memory.domain import Caller
from memory.errors import NotFound, RecapError
from memory.leases import Lease, Leases
from memory.paging import Page, decode_cursor, page_of
from models import Database, JobRow, OwnerRow, SessionRow

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 6
BACKOFF_FIRST, BACKOFF_LAST = 2.0, 300.0  # seconds
POLL_SECONDS = 2.0  # how soon a job is noticed that another process left behind


@dataclass(frozen=True)
class Job:
    """A piece of work as its handler sees it."""

    id: int
    kind: str
    key: str
    owner_id: int | None
    session_row_id: int | None
    payload: Mapping[str, Any]
    revision: int


@dataclass(frozen=True)
class JobInfo:
    """A job as it is shown: what it is, how it stands, why it failed."""

    id: int
    kind: str
    state: str
    session_id: str | None
    attempts: int
    run_at: datetime
    error: str | None
    created_at: datetime
    updated_at: datetime


Handler = Callable[[Job], None]


class Outbox:
    """Enqueues, claims and runs jobs."""

    def __init__(self, database: Database, leases: Leases, now: Callable[[], datetime]) -> None:
        self._database = database
        self._leases = leases
        self._now = now
        self._handlers: dict[str, Handler] = {}
        self._wake = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._stopping = False

    def register(self, kind: str, handler: Handler) -> None:
        """Say who does jobs of `kind`."""
        self._handlers[kind] = handler

    # -- asking for work

    def enqueue(
        self,
        tx: Session,
        kind: str,
        key: str | int,
        *,
        owner_id: int | None,
        session_row_id: int | None = None,
        delay: float = 0.0,
        postpone: bool = False,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask for a job in the caller's write transaction, due in `delay` seconds; call `notify` after it committed.

        If it waits already, the earlier time holds; with `postpone` the later one does (a debounce).  The payload of
        one without an owner says in `tenant` whose it is.
        """
        now = self._now()
        due = now + timedelta(seconds=delay)
        row = tx.scalar(select(JobRow).where(JobRow.kind == kind, JobRow.key == str(key)))
        if row is None:
            tx.add(
                JobRow(
                    kind=kind,
                    key=str(key),
                    owner_id=owner_id,
                    session_id=session_row_id,
                    payload=dict(payload) if payload else None,
                    state="pending",
                    run_at=due,
                    created_at=now,
                    updated_at=now,
                )
            )
            return
        row.payload = dict(payload) if payload else row.payload
        if row.state == "failed":  # new work for it is a new chance
            row.state, row.attempts, row.run_at = "pending", 0, due
        elif row.attempts == 0 or row.state == "running":  # one that is backing off keeps its pause
            row.run_at = due if postpone and delay else min(row.run_at, due)
        if row.state == "running":
            row.revision += 1

    def notify(self) -> None:
        """Wake this process's workers: something may be due, or due sooner."""
        with self._wake:
            self._wake.notify_all()

    # -- doing it

    def start(self, lanes: Sequence[Sequence[str]]) -> None:
        """Start a worker thread for each lane.  A lane is the kinds it takes: slow kinds must not hold up others."""
        for number, kinds in enumerate(lanes):
            thread = threading.Thread(
                target=self._work, args=(tuple(kinds),), name=f"recap-jobs-{number}-{'-'.join(kinds)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def stop(self, timeout: float) -> None:
        """Let running jobs end, at most `timeout` seconds; what is left stays in the table for the next process."""
        self._stopping = True
        self.notify()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads.clear()

    def run_due(self, kinds: Sequence[str] | None = None) -> int:
        """Run every job that is due now, in this thread, and say how many ran."""
        count = 0
        while self._run_next(tuple(kinds or self._handlers)):
            count += 1
        return count

    def run_now(self, kind: str, key: str | int) -> str | None:
        """Run this one job in this thread, due or not; its error, or None when it went well or is not to be had."""
        with self._database.read() as tx:
            row_id = tx.scalar(select(JobRow.id).where(JobRow.kind == kind, JobRow.key == str(key)))
        claimed = self._claim(row_id) if row_id else None
        return self._run(*claimed) if claimed else None

    def _work(self, kinds: tuple[str, ...]) -> None:
        while not self._stopping:
            try:
                pause = 0.0 if self._run_next(kinds) else self._pause(kinds)
            except SQLAlchemyError as error:
                log.error("jobs %s: the database failed; trying again in %s s: %s", kinds, POLL_SECONDS, error)
                pause = POLL_SECONDS
            except Exception:  # a worker outlives whatever goes wrong
                log.exception("jobs %s: looking for work failed; trying again in %s s", kinds, POLL_SECONDS)
                pause = POLL_SECONDS
            with self._wake:
                if pause and not self._stopping:
                    self._wake.wait(pause)

    def _pause(self, kinds: tuple[str, ...]) -> float:
        with self._database.read() as tx:
            due = tx.scalar(select(func.min(JobRow.run_at)).where(JobRow.kind.in_(kinds), JobRow.state == "pending"))
        if due is None:
            return POLL_SECONDS
        return min(POLL_SECONDS, max(0.001, (due - self._now()).total_seconds()))

    def _run_next(self, kinds: tuple[str, ...]) -> bool:
        now = self._now()
        with self._database.read() as tx:
            due = tx.scalars(
                select(JobRow.id)
                .where(
                    JobRow.kind.in_(kinds),
                    or_(
                        and_(JobRow.state == "pending", JobRow.run_at <= now),
                        and_(JobRow.state == "running", JobRow.lease_until <= now),
                    ),
                )
                .order_by(JobRow.run_at)
                .limit(4)
            ).all()
        for row_id in due:
            claimed = self._claim(row_id)
            if claimed:
                self._run(*claimed)
                return True
        return False

    def _claim(self, row_id: int) -> tuple[Job, Lease] | None:
        with self._database.write() as tx:
            row = tx.get(JobRow, row_id)
            lease = self._leases.take(row) if row is not None else None
            if row is None or lease is None:
                return None
            if row.state == "running" and row.attempts >= MAX_ATTEMPTS:
                self._settle(row, f"The process doing it ended before it was done, {row.attempts} times.")
                return None
            row.state = "running"
            row.attempts += 1
            job = Job(row.id, row.kind, row.key, row.owner_id, row.session_id, row.payload or {}, row.revision)
        self._leases.keep(lease)
        return job, lease

    def _run(self, job: Job, lease: Lease) -> str | None:
        error: str | None = None
        try:
            self._handlers[job.kind](job)
        except RecapError as failure:
            error = failure.message
            log.warning("job %s (%s %s) failed: %s", job.id, job.kind, job.key, error)
        except Exception as failure:  # one poisoned job must not end the worker
            error = f"{type(failure).__name__}: {failure}"
            log.exception("job %s (%s %s) failed", job.id, job.kind, job.key)
        with self._database.write() as tx:
            row = tx.get(JobRow, job.id)
            if row is not None and self._leases.holds(row, lease):
                if error is None and row.revision == job.revision:
                    tx.delete(row)
                else:
                    self._settle(row, error)
        self._leases.ended(lease)
        return error

    def _settle(self, row: JobRow, error: str | None) -> None:
        """Put back a job that failed, or (no error) one that was asked for again while it ran."""
        now = self._now()
        row.lease_token = row.lease_until = None
        row.updated_at = now
        row.error = error[:2000] if error else None
        if error is None:
            row.state, row.attempts = "pending", 0
        else:
            row.state = "failed" if row.attempts >= MAX_ATTEMPTS else "pending"
            row.run_at = now + timedelta(seconds=min(BACKOFF_LAST, BACKOFF_FIRST * 2 ** (row.attempts - 1)))

    # -- looking at it

    def page(
        self, caller: Caller, state: str | None, session_id: str | None, cursor: str | None, limit: int
    ) -> Page[JobInfo]:
        """The caller's jobs, oldest first."""
        query = self._visible(caller).order_by(JobRow.id).limit(limit + 1)
        if state:
            query = query.where(JobRow.state == state)
        if session_id:
            query = query.where(SessionRow.public_id == session_id)
        if cursor:
            query = query.where(JobRow.id > decode_cursor(cursor, int)[0])
        with self._database.read() as tx:
            infos = [_info(row, public_id) for row, public_id in tx.execute(query)]
        return page_of(infos, limit, lambda info: (info.id,))

    def retry(self, caller: Caller, job_id: int) -> JobInfo:
        """Make a failed or waiting job due now.  Raises NotFound."""
        with self._database.write() as tx:
            found = tx.execute(self._visible(caller).where(JobRow.id == job_id)).first()
            if found is None:
                raise NotFound("job_not_found", f"There is no job {job_id}; a job that has succeeded is gone.")
            row, public_id = found
            if row.state != "running":
                row.state, row.attempts, row.run_at, row.updated_at = "pending", 0, self._now(), self._now()
            info = _info(row, public_id)
        self.notify()
        return info

    def _visible(self, caller: Caller) -> Any:
        tenant = func.coalesce(OwnerRow.tenant, JobRow.payload["tenant"].as_string())  # an erasure outlives its owner
        query = (
            select(JobRow, SessionRow.public_id)
            .outerjoin(OwnerRow, OwnerRow.id == JobRow.owner_id)
            .outerjoin(SessionRow, SessionRow.id == JobRow.session_id)
            .where(tenant == caller.tenant)
        )
        if caller.user_id is not None:
            query = query.where(OwnerRow.kind == "user", OwnerRow.name == caller.user_id)
        return query


def _info(row: JobRow, public_id: str | None) -> JobInfo:
    return JobInfo(
        row.id, row.kind, row.state, public_id, row.attempts, row.run_at, row.error, row.created_at, row.updated_at
    )
