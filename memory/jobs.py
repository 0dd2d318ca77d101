"""Job queue: work that follows a reply, stored in the transaction that causes it (an outbox), and run later.

`memory.job_statements` says which job is next.

Invariants:
- A job runs to its end at least once, whatever is killed meanwhile [test_kill]. Handlers are idempotent.
- Two workers never run one job at a time [test_workers_of_many_processes_never_do_one_job_twice].
- A job that fails, or whose process dies, is tried again after a growing pause. After ATTEMPTS tries it stays with
  its error until somebody enqueues or retries it. A job that fails at a disk is tried for a day, and one whose server
  is unreachable until the server answers [test_jobs].
- A clock that is put back makes jobs due, never later [test_jobs].
"""

import logging
import math
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, select

from config.parsers import When
from memory import job_statements as statements
from memory.errors import DeliveryFailed, ModelError, RecapError
from memory.events import tell
from memory.leases import LEASE_DURATION, Lease, Leases
from memory.ops import logs
from memory.ops.metrics import Metrics
from models import Database, JobRow, OwnerRow, Transaction, retry_on_conflict
from models.database_faults import DatabaseFault, fault_of
from models.jobs import ATTEMPTS, Job, JobRequest
from search_index import EmbeddingUnavailable, IndexBusy

log = logging.getLogger(__name__)

DISK_ATTEMPTS = 292  # at a disk or a folder that fails: a day
BACKOFF_FIRST, BACKOFF_FACTOR, BACKOFF_LAST = 2.0, 4.0, 300.0  # seconds
POLL_SECONDS = 2.0  # between looks at the table for the jobs of other processes
DUE_SOON = timedelta(seconds=1.5)
DELAY_MAX = 366 * 86_400.0  # seconds; the jobs of later ends look for the next end each time they run
DEBOUNCE_STEP = 1.0  # seconds by which a job that waits for a pause is moved at least
START_SECONDS = 0.005  # between a commit and its jobs, so that the reply leaves first
CONTENDED_SECONDS = 0.05  # until the next look when another process has claimed the job that is due
FAILED_LOOK_SECONDS = 10.0  # the pause after looking failed, so that a full disk does not fill the log
CLOCK_SECONDS = timedelta(seconds=60)  # that a job may lie in the future by the clock of another machine
RUN_POLL_FIRST, RUN_POLL_LAST = 0.02, 0.25  # seconds between looks at a job that another worker runs
IDLE_SECONDS = 120.0  # without anything new, after which a conversation is over for now
ERROR_CHARS = 2000
ABANDONED = "The process that ran it ended before the job was done."  # the error of such a try
NO_DUE_TIMES: Mapping[str, datetime | None] = {}  # of no kind is known when its pending job is due

Result = TypeVar("Result")
Handler = Callable[[Job], bool | None]
"""Does a job, or a part of it that does not take long; returns True when there is more to do."""

_J = JobRow.__table__.c


class JobQueue:
    """Enqueues, claims and runs jobs.

    One thread of a process starts a thread for each job when it is due. The process knows when the next job of a kind
    is due from what it enqueues and claims, and from a look at the table every POLL_SECONDS.
    """

    def __init__(self, database: Database, leases: Leases, now: Callable[[], datetime], metrics: Metrics) -> None:
        self._database = database
        self._leases = leases
        self._now = now
        self._metrics = metrics
        self._handlers: dict[str, Handler] = {}
        self._workers: dict[str, int] = {}
        self._free: dict[str, int] = {}  # how many more jobs of a kind may run, of the kinds that this process runs
        self._threads: set[threading.Thread] = set()
        self._looker: threading.Thread | None = None  # runs `_look`
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._by_commit = False  # whether a commit has woken the looker
        self._due: dict[str, datetime] = {}  # when the next job of a kind is due, as far as this process knows
        self._next_poll = -math.inf
        self._last_time: datetime | None = None
        self._stopping = False
        self._before_poll: Callable[[], None] = lambda: None

    def before_poll(self, callback: Callable[[], None]) -> None:
        """Call `callback` before each look at the table, every POLL_SECONDS: it may enqueue jobs."""
        self._before_poll = callback

    def register(self, kind: str, handler: Handler, workers: int = 1) -> None:
        """Let `handler` run jobs of this kind. workers: how many of them a process runs at once."""
        self._handlers[kind], self._workers[kind] = handler, workers

    def enqueue(
        self, tx: Transaction | Connection, *requests: JobRequest, due: Mapping[str, datetime | None] = NO_DUE_TIMES
    ) -> None:
        """Insert jobs in the caller's write transaction, or merge them with those that exist.

        Its commit wakes this process's workers for jobs that are due soon. due: when the jobs that are pending already
        are due, by kind, as far as it is known: requests that change nothing of them are left out, to save the write.
        """
        now = self._now()
        requests = tuple(request for request in requests if not _is_covered(request, due.get(request.kind), now))
        if not requests:
            return
        rows = [
            {
                **vars(request),
                "key": str(request.key),
                "state": "pending",
                "run_at": now + timedelta(seconds=min(request.delay, DELAY_MAX)),
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
        statements.ENQUEUE.execute(tx, rows)
        soon = [(row["kind"], row["run_at"]) for row in rows if row["delay"] < POLL_SECONDS]
        if soon:
            self._database.after_commit(partial(self._wake, soon))

    def schedule(self, tx: Transaction, when: When, kind: str, owner: OwnerRow) -> None:
        """Enqueue a job of an owner at its time, where the kind runs by itself.

        An `inline` job is due at once, and the turn that is being taken runs it before it ends.
        """
        now = self._now()
        is_background = when.mode == "background"
        delay = IDLE_SECONDS if is_background else 0.0
        if when.mode == "schedule":
            delay = (when.next(now) - now).total_seconds()
        self.enqueue(tx, JobRequest(kind, owner.id, owner.tenant, owner.id, delay=delay, debounce=is_background))

    def _wake(self, soon: Collection[tuple[str, datetime]]) -> None:
        for kind, due in soon:
            if kind in self._free:
                self._note_due(kind, due)
                self._by_commit = True
                self._woken.set()

    def _note_due(self, kind: str, due: datetime | None) -> None:
        if due is not None:
            with self._lock:
                self._due[kind] = min(due, self._due.get(kind, due))

    def start(self) -> None:
        """Run jobs in the background, each kind with workers of its own: slow kinds must not hold up others.

        Does nothing where the thread runs already. A thread does not survive a fork, so a forked process starts one.
        """
        if self._looker is not None and self._looker.is_alive():
            return
        self._free = dict(self._workers)
        self._stopping = False
        self._next_poll = -math.inf
        self._looker = threading.Thread(target=self._look, name="recap-jobs", daemon=True)
        self._looker.start()

    def stop(self, timeout: float) -> None:
        """Start no more jobs; wait `timeout` seconds for running ones. The lease of a job that takes longer expires."""
        self._stopping = True
        self._woken.set()
        deadline = time.monotonic() + timeout
        if self._looker is not None:
            self._looker.join(timeout)
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    # -- in the caller's thread

    def run_due(
        self, kinds: Sequence[str] | None = None, *, each: Callable[[Job, str | None], None] = lambda *_: None
    ) -> int:
        """Run every job that is due. Call `each` with a job and its error; return how many ran."""
        count = 0
        self._before_poll()
        while job := next(filter(None, map(self.claim_next, self._check_table(tuple(kinds or self._handlers)))), None):
            each(job, self.run(job))
            count += 1
        return count

    def run_now(self, kind: str, key: str | int, patience: float = 0.0) -> str | None:
        """Run this job, due or not, or the next part of a long one.

        patience: seconds to wait for another worker that runs it already.
        Return its error; None when it succeeded, is gone, or runs still.
        """
        deadline = time.monotonic() + patience
        wait = RUN_POLL_FIRST
        params = {"of_kind": kind, "of_key": str(key)}
        waits = select(_J.id).where(_J.kind == kind, _J.key == str(key))
        while True:
            if (job := self._claim(statements.CLAIM_NAMED, params)[0]) is not None:
                return self.run(job)
            if time.monotonic() >= deadline:
                return None
            time.sleep(wait)
            wait = min(2 * wait, RUN_POLL_LAST)
            with self._database.read() as tx:
                if tx.scalar(waits) is None:
                    return None

    def _check_table(self, kinds: tuple[str, ...]) -> dict[str, datetime]:
        """Put back jobs whose lease has expired; return when the next job is due, of each kind that has one."""
        now = self._now()
        with self._database.connect() as tx:
            rows = tx.execute(statements.due_by_kind(kinds)).all()
        for kind, _, first, last in rows:
            if first is not None and not now < first <= last <= now + 2 * LEASE_DURATION:
                self._put_back_abandoned(kind, last)
        return {kind: soonest for kind, soonest, *_ in rows if soonest is not None}

    # -- in the background

    def _look(self) -> None:
        """Start jobs as they become due."""
        while not self._stopping:
            wait = _survive(self._start_due)
            if self._woken.wait(FAILED_LOOK_SECONDS if wait is None else wait) and self._by_commit:
                time.sleep(START_SECONDS)
            self._woken.clear()  # before looking: whoever enqueues from now on wakes us again
            self._by_commit = False

    def _start_due(self) -> float:
        """Start a due job of each kind; return the seconds until the next one is due, or the table is looked at."""
        now = self._now()
        last_time = self._last_time
        self._last_time = now
        clock_set_back = last_time is None or now < last_time  # at the start: perhaps while nothing ran
        if clock_set_back:
            self._make_due(now)
        if clock_set_back or time.monotonic() >= self._next_poll:
            self._poll()
        for kind in self._take_due(now):
            job, next_due = self._claim(statements.CLAIM_NEXT, {"of_kind": kind})
            self._note_due(kind, next_due)
            if job is not None:
                self._start(job)
            else:
                self._next_poll = time.monotonic() + CONTENDED_SECONDS
        with self._lock:
            waits = [(due - now).total_seconds() for kind, due in self._due.items() if self._free[kind] > 0]
        return max(0.0, min([self._next_poll - time.monotonic(), *waits]))

    def _make_due(self, now: datetime) -> None:
        """Make the jobs due that were enqueued before the clock was put back; their time may be years ahead."""
        times = {"in_future": now + CLOCK_SECONDS}
        with self._database.read() as tx:
            count = tx.scalar(statements.COUNT_AHEAD, times)
        if count:
            log.warning("the clock was put back: jobs are due now", extra=logs.fields(jobs=count))
            with self._database.write(durable=False) as tx:
                tx.execute(statements.MAKE_DUE.values(run_at=now, updated_at=now), times)

    def _take_due(self, now: datetime) -> list[str]:
        """Return the kinds that have a due job and a free worker, as long as none is enqueued."""
        with self._lock:
            kinds = [kind for kind, due in self._due.items() if self._free[kind] > 0 and due <= now]
            for kind in kinds:
                del self._due[kind]
        return kinds if not self._stopping else []

    def _poll(self) -> None:
        """Look at the table for the jobs that other processes enqueued or left."""
        self._next_poll = time.monotonic() + POLL_SECONDS
        _survive(self._before_poll)
        with self._lock:
            self._due.clear()
        for kind, due in self._check_table(tuple(self._free)).items():
            self._note_due(kind, due)

    def _start(self, job: Job) -> None:
        def work() -> None:
            _survive(partial(self.run, job))  # if its end can't be stored, its lease runs out
            with self._lock:
                is_full = self._free[job.kind] == 0
                self._free[job.kind] += 1
                self._threads.discard(thread)
            if job.kind in statements.ONE_BY_ONE:  # the owner's next one has waited for this
                self._note_due(job.kind, self._now())
            if is_full or job.kind in statements.ONE_BY_ONE:  # others of this kind may have had to wait
                self._woken.set()

        thread = threading.Thread(target=work, name=f"recap-jobs-{job.kind}", daemon=True)
        with self._lock:
            self._free[job.kind] -= 1
            self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:  # the process may have no more threads now: the job's lease runs out
            with self._lock:
                self._free[job.kind] += 1
                self._threads.discard(thread)
            self._leases.forget(_lease(job))
            raise

    # -- one job

    def claim_next(self, kind: str) -> Job | None:
        """Claim the next job of this kind that is due; None where there is none, or other workers are claiming it."""
        return self._claim(statements.CLAIM_NEXT, {"of_kind": kind})[0]

    def _claim(self, statement: Executable, params: dict[str, Any]) -> tuple[Job | None, datetime | None]:
        """Claim a job; return it, and when the next job of its kind is due."""
        with self._database.begin(durable=False) as tx:  # after a power cut the job is claimed again
            now = self._now()
            times = {"now": now, "until": now + LEASE_DURATION, "in_future": now + CLOCK_SECONDS}
            row = tx.execute(statement, {**params, **times, "token": secrets.token_hex(16)}).first()
            if row is None:
                return None, None
            *columns, next_due, is_noted = row
            job = Job._make(columns)
            if statement is statements.CLAIM_NEXT and not is_noted:
                queue = {"kind": job.kind, "of_kind": job.kind, "tenant": job.tenant, "round": job.round}
                statements.NOTE_TAKEN.execute(tx, [queue])
        self._leases.hold(_lease(job))
        return job, next_due

    def run(self, job: Job) -> str | None:
        """Run a claimed job and store how it ended; return its error."""
        began = time.perf_counter()
        owner = logs.Pseudonym(job.owner_kind, job.tenant, job.owner_name or "") if job.owner_kind else None
        session = logs.Pseudonym("session", job.tenant, job.session_name) if job.session_name else None
        try:
            with logs.about(job=job.id, kind=job.kind, owner=owner, session=session):
                more, error, limit = self._call_handler(job)
            if error is not None and self._stopping:  # its connections are being closed under it: no server is away
                error, limit = ABANDONED, ATTEMPTS
            outcome = self._finish_job(job, error, more=more, limit=limit)
            self._metrics.count_job(job.kind, outcome, time.perf_counter() - began)
        finally:  # if the end could not be stored, the lease expires and the job runs again
            self._leases.forget(_lease(job))
        return error

    def _call_handler(self, job: Job) -> tuple[bool, str | None, float]:
        """Return whether there is more to do; the error; and after how many tries that error ends the job."""
        try:
            return bool(retry_on_conflict(self._handlers[job.kind])(job)), None, ATTEMPTS
        except (RecapError, EmbeddingUnavailable, IndexBusy) as failure:
            log.warning("job failed", extra=logs.fields(said=_reason(failure)))
            is_away = isinstance(failure, ModelError) and failure.is_away
            is_away |= isinstance(failure, EmbeddingUnavailable | DeliveryFailed | IndexBusy)
            return False, _reason(failure), math.inf if is_away else ATTEMPTS
        except Exception as failure:  # a job that always fails must not end the worker
            log.exception("job failed")
            is_disk = isinstance(failure, OSError) or fault_of(failure) is DatabaseFault.FULL
            return False, _reason(failure), DISK_ATTEMPTS if is_disk else ATTEMPTS

    def _finish_job(
        self, job: Job, error: str | None, *, limit: float, more: bool = False, is_expired: bool = False
    ) -> str:
        """Delete a job that is done. Put back one that failed, has more to do, or was enqueued again while it ran.

        Return the outcome as metrics count it: `dead` for a job that is now `failed`, `done` also for a part of a job,
        and for one that was cancelled or taken over meanwhile. is_expired: only if its lease has expired still.
        """
        now = self._now()
        leased = {"job": job.id, "token": job.lease_token}
        with self._database.begin(durable=False) as tx:  # after a power cut the job runs once more
            is_done = error is None and not more
            if is_done and tx.execute(statements.DELETE_DONE, {**leased, "revision": job.revision}).first():
                return "done"
            outcome, values = _put_back_values(job, error, now, more=more, limit=limit)
            queue = {"in_kind": job.kind, "in_tenant": job.tenant, "of_owner": job.owner_id}
            put_back, expired = (statements.PUT_BACK_EXPIRED, {"now": now}) if is_expired else (statements.PUT_BACK, {})
            run_at = tx.execute(put_back, {**leased, **queue, **expired, **values}).scalar_one_or_none()
            if run_at is None:
                return "done"  # cancelled, erased, or another worker's by now
            if outcome == "dead" and job.owner_id is not None:
                tell(tx, "job.failed", [(job.owner_id, {"job_id": job.id, "kind": job.kind})], now)
        if outcome != "dead" and job.kind in self._free:
            self._note_due(job.kind, run_at)
            self._woken.set()
        return outcome

    def _put_back_abandoned(self, kind: str, latest: datetime) -> None:
        """Put back the jobs whose lease has expired, and count the try. latest: when the last of their leases expires.

        So a job that kills its worker is retried after a pause, behind other jobs, and not more often than others.
        A lease that ends later than any lasts was taken before the clock was put back: it is shortened.
        """
        now = self._now()
        with self._database.read() as tx:
            rows = tx.execute(statements.FIND_ABANDONED, {"of_kind": kind, "now": now}).all()
        for row in rows:
            job = Job(*row)
            if (outcome := self._finish_job(job, ABANDONED, limit=ATTEMPTS, is_expired=True)) != "done":
                log.warning("job abandoned", extra=logs.fields(job=job.id, kind=kind, tries=job.attempts))
                self._metrics.count_job(kind, outcome)
        if latest > now + 2 * LEASE_DURATION:
            log.warning("the clock was put back: leases of jobs are shortened", extra=logs.fields(kind=kind))
            with self._database.write(durable=False) as tx:
                tx.execute(
                    statements.SHORTEN_LEASES.values(lease_until=now + LEASE_DURATION),
                    {"latest": now + 2 * LEASE_DURATION},
                )


def _is_covered(request: JobRequest, due: datetime | None, now: datetime) -> bool:
    """Return whether the request changes nothing of a job that is pending until `due` (None: none is known).

    It asks for nothing sooner, and for at most DEBOUNCE_STEP later.  A job that is due soon may be running by the time
    that the request's transaction commits, so another is needed.
    """
    if due is None or request.payload or request.force:
        return False
    later = (now - due).total_seconds() + request.delay
    return due > now + DUE_SOON and (0 <= later < DEBOUNCE_STEP if request.debounce else later >= 0)


def _put_back_values(
    job: Job, error: str | None, now: datetime, *, more: bool, limit: float
) -> tuple[str, dict[str, Any]]:
    """Return the outcome of a try, and the columns of the job that is put back. limit: see `_call_handler`."""
    values = {"state": "pending", "updated_at": now, "lease_token": None, "lease_until": None}  # nosec B105
    if error is None:
        return "done", values | {"attempts": 0, "error": None} | ({"run_at": now} if more else {})
    backoff = min(BACKOFF_LAST, BACKOFF_FIRST * BACKOFF_FACTOR ** min(job.attempts - 1, 9))
    values |= {"run_at": now + timedelta(seconds=backoff)}
    # Tries while a server is away count for four at most, and so do those at a disk once the job fails in another way:
    # it has two left then, as what has just come back may fail once more.
    if limit == math.inf or job.attempts > limit:
        values["attempts"] = min(job.attempts, ATTEMPTS - 2)
    elif job.attempts >= limit:
        return "dead", values | {"state": "failed", "error": error}
    if error == ABANDONED:  # that tells nothing of the job, so the row keeps the error of the try before
        return "abandoned", values
    return "retried", values | {"error": error}


def _lease(job: Job) -> Lease:
    return Lease(JobRow, job.id, job.lease_token)


def _survive(work: Callable[[], Result]) -> Result | None:
    """Run `work` and return its result.  Log any error and return None, so that the thread goes on."""
    try:
        return work()
    except Exception as error:
        if (fault := fault_of(error)) is None:
            log.exception("jobs: a thread failed; it goes on")
        else:
            why = logs.fields(fault=fault.value, error=logs.safe_message(error))
            log.error("jobs wait: the database can't be used; /health/ready says what to do", extra=why)
        return None


def _reason(error: Exception) -> str:
    """Return the text of an error that is stored and shown, which repeats nothing of a conversation.

    The messages of our own errors, SQLite and the index repeat none. A model server's message and that of an
    unexpected error may, so they are left out.
    """
    if isinstance(error, RecapError):
        return error.kept[:ERROR_CHARS]
    name = type(error).__name__
    is_safe = isinstance(error, sqlite3.Error | IndexBusy | EmbeddingUnavailable)
    message = str(error) if is_safe else logs.safe_message(error)
    return f"{name}: {message}"[:ERROR_CHARS] if message != name else f"{name}; the log has more, under the job's id."
