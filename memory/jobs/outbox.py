"""The outbox: work that happens after a reply, as rows that commit together with what caused them.

Guarantee: a job that was enqueued runs to its end at least once, whatever is killed meanwhile; handlers are
idempotent, and two workers never run the same job.  A job that fails, or whose process ends before it, is tried again
after a pause that grows, so that others have their turn first, and after JOB_ATTEMPTS tries stays, with its error,
until somebody retries it or new work for the same key arrives.  Asking for a job that is already waiting merges with
it.  Owners take turns: one with thousands of jobs due does not hold up another's.  A clock that was put back makes
jobs due, never later.

`listing` is how they are seen and retried.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from memory.errors import RecapError
from memory.jobs import looking
from memory.jobs.looking import Seen
from memory.jobs.reasons import reason
from memory.leases.leases import Lease, Leases
from memory.ops import logs
from memory.ops.metrics import Metrics
from models import Database, JobRow, Transaction

log = logging.getLogger(__name__)

BACKOFF_FIRST, BACKOFF_FACTOR, BACKOFF_LAST = 2.0, 4.0, 300.0  # seconds
POLL_SECONDS = 2.0  # how soon a job is noticed that another process left behind
TROUBLE_SECONDS = 30.0  # the longest pause while the database fails; a turn that is stored ends it
SERVED_MAX = 500  # owners who wait for the others, since a job of theirs was taken last
ABANDONED = "The process that did it ended before the job was done."

_JOBS = JobRow.__table__
_J = _JOBS.c
_ASKED = (  # thrice a turn
    select(_J.id, _J.state, _J.run_at, _J.revision, _J.attempts).where(
        _J.kind == bindparam("asked_kind"), _J.key == bindparam("asked_key")
    )
)
_NEW = insert(_JOBS)
_AGAIN = update(_JOBS).where(_J.id == bindparam("job"))
_DONE = (
    delete(_JOBS)
    .where(_J.id == bindparam("job"), _J.revision == bindparam("revision_done"), _J.lease_token == bindparam("token"))
    .returning(_J.id)
)
_CLAIMED = select(JobRow).where(_J.id == bindparam("job"))
_CLAIMED_DUE = _CLAIMED.where(_J.state == "pending", looking.DUE)


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
    whose: Mapping[str, Any] = field(default_factory=dict)  # for the log


Handler = Callable[[Job], None]


@dataclass(frozen=True)
class _Lane:
    """The kinds that some workers take, and the owners whose jobs they took in this round.  Who has `looking` looks for
    the next job, and sleeps until it is `woken` while there is none; the others wait for it to find one."""

    kinds: tuple[str, ...]
    served: deque[int] = field(default_factory=lambda: deque(maxlen=SERVED_MAX))
    looking: threading.Lock = field(default_factory=threading.Lock)
    woken: threading.Event = field(default_factory=threading.Event)


class _Asking(threading.local):
    """`soon`: the kinds of jobs this thread asked for that are due before the workers look by themselves."""

    def __init__(self) -> None:
        self.soon: set[str] = set()


class Outbox:
    """Enqueues, claims and runs jobs."""

    def __init__(
        self, database: Database, leases: Leases, now: Callable[[], datetime], attempts: int, metrics: Metrics
    ) -> None:
        self._database = database
        self._leases = leases
        self._now = now
        self._attempts = attempts
        self._metrics = metrics
        self._handlers: dict[str, Handler] = {}
        self._asking = _Asking()
        self._troubled = False
        self._lanes: list[_Lane] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._running: dict[Lease, str] = {}  # and of which kind
        self._stopping = False

    def register(self, kind: str, handler: Handler) -> None:
        """Say who does jobs of `kind`."""
        self._handlers[kind] = handler

    # -- asking for work

    def enqueue(
        self,
        tx: Transaction,
        kind: str,
        key: str | int,
        *,
        owner_id: int | None,
        session_row_id: int | None = None,
        delay: float = 0.0,
        postpone: bool = False,
        insist: bool = False,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask for a job in the caller's write transaction, due in `delay` seconds; call `notify` after it committed.

        If it waits already, the earlier time holds; with `postpone` the later one does (a debounce).  One that failed
        and is to be tried again keeps its pause, unless somebody does `insist`.  The payload of one without an owner
        says in `tenant` whose it is.  Nothing is written when it would be done no sooner and no differently.
        """
        now = self._now()
        due = now + timedelta(seconds=delay)
        if delay < POLL_SECONDS:
            self._asking.soon.add(kind)
        row = tx.execute(_ASKED, {"asked_kind": kind, "asked_key": str(key)}).first()
        given: dict[str, Any] = {"payload": dict(payload)} if payload else {}
        if row is None:
            made = {"kind": kind, "key": str(key), "owner_id": owner_id, "session_id": session_row_id}
            begun = {"state": "pending", "revision": 1, "attempts": 0, "run_at": due, "created_at": now}
            tx.execute(_NEW, {**made, **begun, **given, "updated_at": now})
            return
        changed = dict(given)
        again = row.state == "running" and row.run_at <= now  # its time passed when it was taken
        if row.state == "running":
            changed["revision"] = row.revision + 1
        elif row.state == "failed" or insist:  # new work for it is a new chance
            changed |= {"state": "pending", "attempts": 0, "run_at": due}
        paused = row.state == "pending" and row.attempts and not insist  # it keeps its pause
        if not paused:
            waits = changed.get("run_at", row.run_at)
            at = due if again or (postpone and delay) else min(waits, due)
            if at != row.run_at:
                changed["run_at"] = at
        if changed:
            tx.execute(_AGAIN, {"job": row.id, **changed, "updated_at": now})

    def notify(self) -> None:
        """Wake this process's workers for what this thread asked for and is due before they look by themselves.

        Most jobs of a turn are due later: waking every worker for them would cost each turn a dozen statements.
        """
        soon = self._asking.soon
        if soon or self._troubled:
            self.wake(None if self._troubled else soon)
            soon.clear()

    def wake(self, kinds: Set[str] | None = None) -> None:
        """Wake this process's workers, or those for some kinds: something is due now."""
        for lane in self._lanes:
            if kinds is None or not kinds.isdisjoint(lane.kinds):
                lane.woken.set()

    # -- doing it

    def start(self, lanes: Mapping[Sequence[str], int]) -> None:
        """Start worker threads: so many for the kinds of each lane.  Slow kinds must not hold up others."""
        for kinds, count in lanes.items():
            lane = _Lane(tuple(kinds))
            self._lanes.append(lane)
            for _ in range(count):
                name = f"recap-jobs-{len(self._threads)}-{'-'.join(kinds)}"
                thread = threading.Thread(target=self._work, args=(lane,), name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def retire(self) -> None:
        """Take no job any more; those that run go on.  May be called by a handler of signals: it takes no lock."""
        self._stopping = True

    def stop(self, timeout: float) -> None:
        """Let running jobs end, at most `timeout` seconds; the others are for the next process, from now on."""
        self.retire()
        self.wake()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads.clear()
        self._lanes.clear()
        with self._lock:
            left = tuple(self._running)
        for lease in left:
            self._hand_back(lease)

    def run_due(
        self, kinds: Sequence[str] | None = None, *, each: Callable[[Job, str | None], None] = lambda *_: None
    ) -> int:
        """Run every job that is due now, in this thread, and say how many ran; `each` is told of it and its error."""
        lane = _Lane(tuple(kinds or self._handlers))
        count = 0
        while claimed := self._next(lane):
            each(claimed[0], self._run(*claimed))
            count += 1
        return count

    def run_now(self, kind: str, key: str | int) -> str | None:
        """Run this one job in this thread, due or not; its error, or None when it went well or is not to be had."""
        with self._database.read() as tx:
            row_id = tx.scalar(select(JobRow.id).where(JobRow.kind == kind, JobRow.key == str(key)))
        claimed = self._claim(row_id, due=False) if row_id else None
        return self._run(*claimed) if claimed else None

    def _work(self, lane: _Lane) -> None:
        trouble = POLL_SECONDS  # grows while the database fails, so that a disk that is full fills no log
        while not self._stopping:
            try:
                with lane.looking:
                    lane.woken.clear()  # what it was woken for before is in sight now
                    if self._stopping:
                        lane.woken.set()  # for the others
                        return
                    seen = self._look(lane)
                    claimed = self._take(lane, seen)
                    if not claimed:
                        lane.woken.wait(seen.pause(self._now(), POLL_SECONDS))
                if claimed:
                    self._run(*claimed)
                trouble, self._troubled = POLL_SECONDS, False
            except SQLAlchemyError as error:
                self._troubled = True
                pause, trouble = trouble, min(TROUBLE_SECONDS, trouble * 2)
                figures = logs.fields(kinds=lane.kinds, seconds=pause, error=logs.told(error))
                log.error("jobs: the database failed; trying again", extra=figures)
                lane.woken.wait(pause)
            except Exception:  # a worker outlives whatever goes wrong
                log.exception("jobs: looking for work failed; trying again", extra=logs.fields(kinds=lane.kinds))
                lane.woken.wait(POLL_SECONDS)

    def _next(self, lane: _Lane) -> tuple[Job, Lease] | None:
        """Take the lane's next job, if one is due."""
        return self._take(lane, self._look(lane))

    def _look(self, lane: _Lane) -> Seen:
        """Look for the lane's next jobs, and after those that may have been left behind."""
        with self._lock:
            own = {lease.row_id for lease, kind in self._running.items() if kind in lane.kinds}
        with self._database.read() as tx:
            seen = looking.look(tx, lane.kinds, self._now(), served=lane.served, own=own)
            left = [tx.get(JobRow, job_id) for job_id in seen.left]
        for row in filter(None, left):
            self._look_after(row)
        return seen

    def _take(self, lane: _Lane, seen: Seen) -> tuple[Job, Lease] | None:
        """Take the one that is due for longest, of an owner who had none since the others had."""
        if all(owner_id in lane.served for _, owner_id in seen.due):
            lane.served.clear()  # a new round
        for row_id, owner_id in seen.due:
            claimed = self._claim(row_id, due=True)
            if claimed:
                lane.served.append(owner_id)
                return claimed
        return None

    def _claim(self, row_id: int, *, due: bool) -> tuple[Job, Lease] | None:
        """Take this job, with `due` only if it is; None when it is not to be had."""
        found, asked = (_CLAIMED_DUE, looking.due_by(self._now())) if due else (_CLAIMED, {})
        with self._database.write(durable=False) as tx:  # a power cut gives all leases back
            row = tx.scalar(found, {"job": row_id, **asked})
            lease = self._leases.take(row) if row is not None else None
            if row is None or lease is None:
                return None
            row.state, row.updated_at = "running", self._now()
            row.attempts += 1
            job = Job(
                row.id,
                row.kind,
                row.key,
                row.owner_id,
                row.session_id,
                row.payload or {},
                row.revision,
                looking.whose(tx, row.id),
            )
        self._leases.keep(lease)
        return job, lease

    def _run(self, job: Job, lease: Lease) -> str | None:
        with self._lock:
            self._running[lease] = job.kind
        began, outcome = time.perf_counter(), "done"
        try:
            with logs.about(job=job.id, kind=job.kind, **job.whose):
                error = self._do(job)
            with self._database.write(durable=False) as tx:  # done once more after a power cut does no harm
                if error is not None or not _ended(tx, job, lease):
                    row = tx.get(JobRow, job.id)
                    if row is not None and self._leases.holds(row, lease):
                        self._settle(row, error)
                        outcome = _outcome(row)
            self._metrics.job_over(job.kind, outcome, time.perf_counter() - began)
        finally:  # also when that could not be written: then the lease runs out, and it is done again
            with self._lock:
                self._running.pop(lease, None)
            self._leases.ended(lease)
        return error

    def _do(self, job: Job) -> str | None:
        """Have it done; why it failed, if it did."""
        try:
            self._handlers[job.kind](job)
        except RecapError as failure:
            log.warning("job failed", extra=logs.fields(said=reason(failure)))
            return reason(failure)
        except Exception as failure:  # one poisoned job must not end the worker
            log.exception("job failed")
            return reason(failure)
        return None

    def _look_after(self, row: JobRow) -> None:
        """A running job whose process has ended failed by that: with the pause of one that fails, a job that takes its
        worker down does not go on to the next before others had their turn, nor more often than any."""
        if not self._leases.free(row):
            self._leases.shorten(row)
            return
        with self._database.write() as tx:
            left = tx.get(JobRow, row.id)
            if left is not None and left.state == "running" and self._leases.free(left):
                log.warning("job abandoned", extra=logs.fields(job=row.id, kind=row.kind, tries=row.attempts))
                self._settle(left, ABANDONED)
                self._metrics.job_over(row.kind, "abandoned")

    def _hand_back(self, lease: Lease) -> None:
        """A job that this process has no time for any more: due, as if it had not been taken."""
        try:
            with self._database.write() as tx:
                row = tx.get(JobRow, lease.row_id)
                if row is not None and self._leases.holds(row, lease):
                    self._leases.give_back(row)
                    row.state, row.updated_at = "pending", self._now()
                    row.attempts -= 1
                    log.warning("job did not end in time; it is done again", extra=logs.fields(job=row.id))
        except SQLAlchemyError as error:
            log.error(
                "job could not be handed back; it is done again after a pause",
                extra=logs.fields(job=lease.row_id, error=logs.told(error)),
            )
        self._leases.ended(lease)

    def _settle(self, row: JobRow, error: str | None) -> None:
        """Put back a job that failed, or (no error) one that was asked for again while it ran."""
        now = self._now()
        self._leases.give_back(row)
        row.updated_at = now
        row.error = error
        if error is None:
            row.state, row.attempts = "pending", 0
        else:
            row.state = "failed" if row.attempts >= self._attempts else "pending"
            row.run_at = now + timedelta(seconds=_pause_after(row.attempts))


def _ended(tx: Transaction, job: Job, lease: Lease) -> bool:
    """Whether the job is done and gone: nobody asked for it again meanwhile, nor took it from us."""
    held = {"job": job.id, "revision_done": job.revision, "token": lease.token}
    return tx.scalar(_DONE, held) is not None


def _outcome(row: JobRow) -> str:
    if row.error is None:  # asked for again while it ran
        return "done"
    return "dead" if row.state == "failed" else "retried"


def _pause_after(attempts: int) -> float:
    return min(BACKOFF_LAST, BACKOFF_FIRST * BACKOFF_FACTOR ** min(attempts - 1, 9))
