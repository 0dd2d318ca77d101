"""The outbox: work that happens after a reply, as rows that commit together with what caused them.

Guarantee: a job that was asked for runs to its end at least once, whatever is killed meanwhile, and never in two
workers at a time.  Handlers are idempotent.  A job that fails, or whose process dies, is retried after a growing pause;
after JOB_ATTEMPTS tries it stays, with its error, until it is retried by hand or asked for again.  Tenants and owners
take turns (see `order`), and a long job goes back to its queue after each part, so that thousands of jobs do not hold
up those of others.  A clock that is put back makes jobs due, never later.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, TypeVar

from sqlalchemy import (
    Boolean,
    CompoundSelect,
    Connection,
    Select,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    union_all,
)

from memory.errors import RecapError
from memory.job_schedule import NEXT, next_round, note_taken
from memory.leases import Lease, Leases
from memory.ops import logs
from memory.ops.metrics import Metrics
from models import Database, JobRow, OwnerRow, SessionRow, Transaction, Upsert, for_update, retry_on_conflict
from models.jobs import JobRequest
from search_index import EmbeddingUnavailable, IndexBusy

log = logging.getLogger(__name__)

BACKOFF_FIRST, BACKOFF_FACTOR, BACKOFF_LAST = 2.0, 4.0, 300.0  # seconds
POLL_SECONDS = 2.0  # the longest pause between looks for work
START_SECONDS = 0.005  # between a commit and its jobs, so that the reply leaves first
CONTENDED_SECONDS = 0.05  # until the next look when another process claims the job that is due
TROUBLE_SECONDS = 10.0  # the pause after looking failed, so that a full disk does not fill the log
CLOCK_SECONDS = timedelta(seconds=60)  # how far the clocks of several machines may differ
ERROR_CHARS = 2000
ABANDONED = "The process that ran it ended before the job was done."

Result = TypeVar("Result")
Handler = Callable[[JobRow], bool | None]
"""Does a job, or a part of it that does not take long; True when there is more to do."""

Claimed = tuple[JobRow, Lease, dict[str, Any]]  # and whose job it is, for the log


def _merge(new: Any) -> dict[str, Any]:
    """What a request changes in a job that exists; `new` is the row that would have been inserted."""
    job = JobRow.__table__.c
    force, debounce = bindparam("force", type_=Boolean()), bindparam("debounce", type_=Boolean())
    running = job.state == "running"
    paused = (job.state == "pending") & (job.attempts > 0) & ~force
    restarts = (job.state == "failed") | (~running & force)
    earlier = case((job.run_at < new.run_at, job.run_at), else_=new.run_at)
    return {
        "state": case((restarts, "pending"), else_=job.state),
        "attempts": case((restarts, 0), else_=job.attempts),
        "revision": case((running, job.revision + 1), else_=job.revision),
        "round": case((restarts, new.round), else_=job.round),
        "run_at": case((paused, job.run_at), (or_(restarts, running, debounce), new.run_at), else_=earlier),
        "payload": func.coalesce(new.payload, job.payload),
        "updated_at": case((paused, job.updated_at), else_=new.updated_at),
    }


_ROUND = next_round(bindparam("in_kind"), bindparam("in_tenant"), bindparam("of_owner"))
_ENQUEUE = Upsert(JobRow, ("kind", "key"), _merge, round=_ROUND)
_OF_KIND = JobRow.kind == bindparam("kind")
_SOONEST = select(func.min(JobRow.run_at)).where(_OF_KIND, JobRow.state == "pending")


@lru_cache
def _due_by_kind(kinds: tuple[str, ...]) -> CompoundSelect[Any]:
    """Return a statement that reads for each kind when its next job is due, and between when its leases expire."""
    jobs = JobRow.__table__.c

    def of(kind: str, state: str, value: Any) -> Any:
        return select(value).where(jobs.kind == kind, jobs.state == state).scalar_subquery()

    first, last = func.min(jobs.lease_until), func.max(jobs.lease_until)
    return union_all(
        *(
            select(
                literal(kind).label("kind"),
                of(kind, "pending", func.min(jobs.run_at)),
                of(kind, "running", first),
                of(kind, "running", last),
            )
            for kind in kinds
        )
    )


_RUNNING = select(JobRow).where(_OF_KIND, JobRow.state == "running")
_NAMED = select(JobRow).where(_OF_KIND, JobRow.key == bindparam("key"))
_BY_ID = select(JobRow).where(JobRow.id == bindparam("id"))
_WHOSE = (
    select(OwnerRow.kind, OwnerRow.tenant, OwnerRow.name, SessionRow.public_id)
    .outerjoin(SessionRow, SessionRow.id == bindparam("session"))
    .where(OwnerRow.id == bindparam("owner"))
)


class JobQueue:
    """Asks for jobs, claims and runs them.

    One thread of a process looks for what is due, of all kinds in one statement, and starts a thread for each job.
    """

    def __init__(
        self, database: Database, leases: Leases, now: Callable[[], datetime], attempts: int, metrics: Metrics
    ) -> None:
        self._database = database
        self._leases = leases
        self._now = now
        self._attempts = attempts
        self._metrics = metrics
        self._handlers: dict[str, Handler] = {}
        self._workers: dict[str, int] = {}
        self._free: dict[str, int] = {}  # how many more jobs of a kind may run, of the kinds that this process runs
        self._threads: set[threading.Thread] = set()
        self._looker: threading.Thread | None = None
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._asked = False  # whether a commit has woken the looker
        self._looked_at: datetime | None = None
        self._stopping = False

    def register(self, kind: str, handler: Handler, workers: int = 1) -> None:
        """Let `handler` run jobs of this kind. workers: how many run at once in a process."""
        self._handlers[kind], self._workers[kind] = handler, workers

    def enqueue(self, tx: Transaction | Connection, *requests: JobRequest) -> None:
        """Ask for jobs in the caller's write transaction: insert them, or merge them with those that exist.

        Its commit wakes this process's workers for what is due soon.
        """
        if not requests:
            return
        now = self._now()
        rows = [
            {
                **vars(request),
                "key": str(request.key),
                "state": "pending",
                "run_at": now + timedelta(seconds=request.delay),
                "created_at": now,
                "updated_at": now,
                "in_kind": request.kind,
                "in_tenant": request.tenant,
                "of_owner": request.owner_id,
            }
            for request in requests
        ]
        if not isinstance(tx, Connection):
            tx.flush()  # other rows first: those of jobs are locked last
        _ENQUEUE.execute(tx, rows)
        if soon := {request.kind for request in requests if request.delay < POLL_SECONDS}:
            self._database.after_commit(partial(self._wake, soon))

    def _wake(self, kinds: set[str]) -> None:
        if not kinds.isdisjoint(self._free):
            self._asked = True
            self._woken.set()

    def start(self) -> None:
        """Run jobs in the background, each kind with workers of its own: slow kinds must not hold up others."""
        self._free = dict(self._workers)
        self._looker = threading.Thread(target=self._look, name="recap-jobs", daemon=True)
        self._looker.start()

    def stop(self, timeout: float) -> None:
        """Take no more jobs.  The lease of one that does not end within `timeout` seconds runs out."""
        self._stopping = True
        self._woken.set()
        deadline = time.monotonic() + timeout
        if self._looker is not None:
            self._looker.join(timeout)
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    def run_due(
        self, kinds: Sequence[str] | None = None, *, each: Callable[[JobRow, str | None], None] = lambda *_: None
    ) -> int:
        """Run every job that is due, in this thread.  Calls `each` with a job and its error; returns how many ran."""
        count = 0
        while claimed := next(filter(None, map(self._claim_due, kinds or self._handlers)), None):
            each(claimed[0], self._run(*claimed))
            count += 1
        return count

    def run_now(self, kind: str, key: str | int) -> str | None:
        """Run this job in this thread, due or not, or the next part of a long one.  Returns its error; None when it
        succeeded, runs or is gone."""
        claimed = self._claim(_NAMED, {"kind": kind, "key": str(key)})
        return self._run(*claimed) if claimed else None

    def _claim_due(self, kind: str) -> Claimed | None:
        """Claim the next job of this kind that is due."""
        while True:
            claimed, wait = self.claim_next(kind)
            if claimed is not None or wait:  # else another worker is claiming one at this moment
                return claimed

    def claim_next(self, kind: str) -> tuple[Claimed | None, float]:
        """Claim the next job of this kind; without one, the seconds until it makes sense to look again."""
        now = self._now()
        # Who asked `in_future` had a clock that was put back since.
        named = {"kind": kind, "now": now, "in_future": now + CLOCK_SECONDS}
        with self._database.read() as tx:
            running = tx.scalars(_RUNNING, named).all()
            due = tx.scalar(NEXT, named) is not None
            soonest = None if due else tx.scalar(_SOONEST, named)
        for row in running:
            self._check_holder(row)
        if due:
            return self._claim(NEXT, named), 0.0
        return None, POLL_SECONDS if soonest is None else min(POLL_SECONDS, (soonest - now).total_seconds())

    def _look(self) -> None:
        """Start jobs as they become due."""
        while not self._stopping:
            wait = _survive(self._start_due) or TROUBLE_SECONDS
            if self._woken.wait(wait) and self._asked and not self._stopping:
                time.sleep(START_SECONDS)
            self._woken.clear()  # before looking: whoever asks from now on wakes us again
            self._asked = False

    def _start_due(self) -> float:
        """Start every job that is due and may run now; return the seconds until it makes sense to look again."""
        now, wait = self._now(), POLL_SECONDS
        clock_set_back = self._looked_at is not None and now < self._looked_at
        self._looked_at = now
        with self._database.read() as tx:
            kinds = tx.execute(_due_by_kind(tuple(self._free))).all()
        for kind, soonest, expires_first, expires_last in kinds:
            is_due = soonest is not None and soonest <= now
            is_abandoned = expires_first is not None and not now < expires_first <= expires_last <= now + CLOCK_SECONDS
            if not (is_due or is_abandoned or clock_set_back):
                wait = wait if soonest is None else min(wait, (soonest - now).total_seconds())
                continue
            while self._free[kind] > 0 and not self._stopping:
                claimed, pause = self.claim_next(kind)
                if claimed is None:
                    wait = min(wait, pause or CONTENDED_SECONDS)
                    break
                self._start(kind, claimed)
        return wait

    def _start(self, kind: str, claimed: Claimed) -> None:
        def work() -> None:
            _survive(partial(self._run, *claimed))  # if its end can't be stored, its lease runs out
            with self._lock:
                self._free[kind] += 1
                self._threads.discard(thread)
            self._woken.set()

        thread = threading.Thread(target=work, name=f"recap-jobs-{kind}", daemon=True)
        with self._lock:
            self._free[kind] -= 1
            self._threads.add(thread)
        thread.start()

    def _claim(self, which: Select[Any], named: Mapping[str, Any]) -> Claimed | None:
        """Claim the job that a query finds; None when it finds none, or another worker has it."""
        with self._database.write(durable=False) as tx:  # after a power cut the job is claimed again
            job = tx.scalar(for_update(tx, which, JobRow, skip=which is NEXT), named)
            lease = self._leases.take(job) if job is not None else None
            if job is None or lease is None:
                return None
            job.state = "running"
            job.attempts += 1
            job.run_at = job.updated_at = self._now()
            if which is NEXT:
                note_taken(tx, job)
            whose = _whose(tx, job)
        self._leases.hold(lease)
        return job, lease, whose

    def _run(self, job: JobRow, lease: Lease, whose: dict[str, Any]) -> str | None:
        """Run a claimed job and store how it ended; returns its error."""
        began, outcome = time.perf_counter(), "done"
        try:
            with logs.about(job=job.id, kind=job.kind, **whose):
                more, error, waits = self._call_handler(job)
            if error is not None and self._stopping:  # its connections are being closed under it
                error = ABANDONED
            with self._database.write(durable=False) as tx:  # after a power cut the job runs once more
                row = tx.scalar(for_update(tx, _BY_ID, JobRow), {"id": job.id})
                if row is not None and row.lease_token == lease.token:
                    if error is None and not more and row.revision == job.revision:
                        tx.delete(row)
                    else:
                        outcome = self._finish_job(row, error, more=more, waits=waits)
            self._metrics.count_job(job.kind, outcome, time.perf_counter() - began)
        finally:  # if the end could not be stored, the lease expires and the job runs again
            self._leases.forget(lease)
        return error

    def _call_handler(self, job: JobRow) -> tuple[bool, str | None, bool]:
        """Return whether there is more to do; the error; and whether the job waits for a server, however long."""
        try:
            return bool(retry_on_conflict(self._handlers[job.kind])(job)), None, False
        except (RecapError, EmbeddingUnavailable) as failure:
            log.warning("job failed", extra=logs.fields(said=_reason(failure)))
            return False, _reason(failure), isinstance(failure, EmbeddingUnavailable)
        except Exception as failure:  # a job that always fails must not end the worker
            log.exception("job failed")
            return False, _reason(failure), False

    def _finish_job(self, row: JobRow, error: str | None, *, more: bool = False, waits: bool = False) -> str:
        """Put back a job that failed or, without an error, has more to do or was asked for again while it ran.  Returns
        the outcome.  One that `waits` is never given up.

        An abandoned try tells nothing of the job, so the row keeps the error of the try before, if there is one.
        """
        self._leases.give_back(row)
        row.updated_at = self._now()
        row.round = next_round(row.kind, row.tenant, row.owner_id)
        if error is None:
            row.state, row.attempts, row.error = "pending", 0, None
            row.run_at = row.updated_at if more else row.run_at
            return "done"
        given_up, abandoned = row.attempts >= self._attempts and not waits, error == ABANDONED
        row.state = "failed" if given_up else "pending"
        if given_up or not abandoned:
            row.error = error
        pause = min(BACKOFF_LAST, BACKOFF_FIRST * BACKOFF_FACTOR ** min(row.attempts - 1, 9))
        row.run_at = row.updated_at + timedelta(seconds=pause)
        return "dead" if given_up else "abandoned" if abandoned else "retried"

    def _check_holder(self, row: JobRow) -> None:
        """Put back a job whose lease has expired, and count the try.

        So a job that kills its worker is retried after a pause, behind other jobs, and not more often than others.
        """
        if not self._leases.is_free(row):
            self._leases.clamp_expiry(row)
            return
        with self._database.write() as tx:
            left = tx.scalar(for_update(tx, _BY_ID, JobRow), {"id": row.id})
            if left is not None and left.state == "running" and self._leases.is_free(left):
                log.warning("job abandoned", extra=logs.fields(job=row.id, kind=row.kind, tries=row.attempts))
                self._metrics.count_job(row.kind, self._finish_job(left, ABANDONED))


def _survive(work: Callable[[], Result]) -> Result | None:
    """Return what `work` returns; None after any mistake, and where the database fails: the thread goes on."""
    try:
        return work()
    except Exception:
        log.exception("jobs: a thread failed; it goes on")
        return None


def _whose(tx: Transaction, job: JobRow) -> dict[str, Any]:
    found = tx.execute(_WHOSE, {"owner": job.owner_id, "session": job.session_id}).first()
    if found is None:
        return {}
    kind, tenant, name, session_id = found
    session = logs.Pseudonym("session", tenant, session_id) if session_id is not None else None
    return {"owner": logs.Pseudonym(kind, tenant, name), "session": session}


def _reason(error: Exception) -> str:
    """What is stored and shown of an error, in words that repeat nothing of a conversation.

    The messages of our own errors, SQLite and the index repeat none.  A model server's message and that of an
    unexpected error may, so they are left out.
    """
    if isinstance(error, RecapError):
        return error.kept[:ERROR_CHARS]
    name = type(error).__name__
    said = (
        str(error) if isinstance(error, sqlite3.Error | IndexBusy | EmbeddingUnavailable) else logs.safe_message(error)
    )
    return f"{name}: {said}"[:ERROR_CHARS] if said != name else f"{name}; the log has more, under the job's id."
