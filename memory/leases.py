"""Leases: the right to run a turn in a session, or to run a job, for a while.

A lease is a token and an expiry in the leased row, so it works between threads, processes and nodes.  One thread of a
process renews all leases that the process holds; those of a killed process expire after LEASE_SECONDS.  No transaction
stays open while a lease is held.  To stop a turn from another process, `stop` writes its token into the session's row;
the thread that renews its lease finds the token there and stops the turn.

Invariants:
- Leased work ends with a transaction that checks the token, so a holder that was suspended past its expiry cannot
  overwrite what its successor did (test_turn_serialisation, test_jobs_takeover).
- A stop ends only the turn that was running, since no other has its token (test_stop).
- A clock that is put back delays nobody: a request that waits for a lease shortens an expiry that is too far ahead to
  LEASE_SECONDS from now (test_jobs_takeover).
- A busy session blocks few threads: at most WAITING_MAX requests of a process wait for it, for at most WAIT_SECONDS
  (test_turn_serialisation).
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, select, update
from sqlalchemy.exc import SQLAlchemyError

from memory.errors import Conflict
from memory.ops import logs
from models import Database, JobRow, SessionRow, Transaction

log = logging.getLogger(__name__)

LEASE_SECONDS = 10.0  # three renewals fit into it, so a busy process keeps its leases
RENEW_SECONDS = 3.0
LOOK_SECONDS = 0.25  # between looks for turns to stop
TROUBLE_SECONDS = 1.0  # until the next try after the database failed
RELEASE_TIMEOUT_SECONDS = 2.0  # for which `release` waits for the database
WAIT_SECONDS = 30.0  # that a request waits for a session; most replies end sooner
WAITING_MAX = 3  # requests of a process that wait for one session; more would hold threads that others need
POLL_FIRST, POLL_LAST = 0.01, 0.25  # seconds between looks at a lease that another process holds
LEASE_DURATION = timedelta(seconds=LEASE_SECONDS)

Leased = SessionRow | JobRow
_HAS_TURN = select(exists().where(SessionRow.owner_id == bindparam("owner"), SessionRow.lease_until > bindparam("now")))
_STOP_TOKENS = select(SessionRow.stop_token).where(SessionRow.id.in_(bindparam("rows", expanding=True)))


@dataclass(frozen=True)
class Lease:
    """Held lease: the kind of row, its id and the token in it."""

    kind: type[Leased]
    row_id: int
    token: str


class _Held(NamedTuple):
    """Callbacks of a held lease: one stops its work, one saves progress in the transaction that renews the lease."""

    stop: Callable[[], None] | None
    on_renew: Callable[[Transaction], None] | None


class Leases:
    """Renews and releases leases, waits for them, and stops turns.  Thread-safe."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now
        self._held: dict[Lease, _Held] = {}
        self._waiting: Counter[int] = Counter()  # requests, by the session's row
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._keeper: threading.Thread | None = None

    def is_free(self, row: SessionRow) -> bool:
        """Return whether nobody holds `row` now."""
        return row.lease_token is None or row.lease_until is None or row.lease_until <= self._now()

    def has_turn(self, owner_id: int) -> bool:
        """Return whether a turn is in progress in a session of this owner, on any node."""
        with self._database.connect() as tx:
            return bool(tx.scalar(_HAS_TURN, {"owner": owner_id, "now": self._now()}))

    def hold(
        self,
        lease: Lease,
        stop: Callable[[], None] | None = None,
        on_renew: Callable[[Transaction], None] | None = None,
    ) -> None:
        """Renew `lease` until `release` or `forget`, and call `stop` when somebody stops its turn.

        on_renew: called with the transaction that renews the lease, every RENEW_SECONDS.
        """
        with self._changed:
            if self._keeper is None or not self._keeper.is_alive():
                self._keeper = threading.Thread(target=self._keep_forever, name="recap-leases", daemon=True)
                self._keeper.start()  # raises RuntimeError without holding the lease, so that it expires
            self._held[lease] = _Held(stop, on_renew)

    def stop(self, find: Callable[[Transaction], SessionRow]) -> bool:
        """Stop the turn in progress in the session that `find` returns; return False if there is none."""
        with self._database.write() as tx:
            row = find(tx)
            if self.is_free(row):
                return False
            row.stop_token = row.lease_token
        with self._changed:
            stops = [work.stop for lease, work in self._held.items() if lease.token == row.stop_token and work.stop]
        for stop in stops:  # another process finds the token in the row
            stop()
        return True

    def forget(self, lease: Lease) -> None:
        """Stop renewing a lease that was released or lost, and wake the requests of this process that wait for it."""
        with self._changed:
            self._held.pop(lease, None)
            self._changed.notify_all()

    def release(self, lease: Lease) -> None:
        """Release the lease in a transaction of its own.  If the database fails, the lease expires."""
        try:
            with self._database.write(RELEASE_TIMEOUT_SECONDS) as tx:
                _change(tx, lease, lease_token=None, lease_until=None)
        except SQLAlchemyError as error:
            fields = logs.fields(seconds=LEASE_SECONDS, error=logs.safe_message(error))
            log.error("a lease could not be given back, and runs out by itself", extra=fields)
        self.forget(lease)

    @contextmanager
    def free_session(
        self, find: Callable[[Transaction], SessionRow], consequence: str
    ) -> Iterator[tuple[Transaction, SessionRow]]:
        """Run a write on the session that `find` returns, once no turn is in progress in it.

        Raises Conflict as `wait_until_free` does.
        """
        began = time.monotonic()
        while True:
            with self._database.write() as tx:
                row = find(tx)
                if self.is_free(row):
                    yield tx, row
                    return
            self.wait_until_free(row, began, consequence)

    def wait_until_free(self, row: SessionRow, began: float, consequence: str) -> None:
        """Wait until the session may be free.

        began: when the request began to wait, by `time.monotonic()`. consequence: a sentence for the error.
        Raises Conflict after WAIT_SECONDS, and at once when WAITING_MAX requests of this process wait for the session.
        """
        pause = POLL_FIRST
        with self._changed:
            self._waiting[row.id] += 1
            waits = self._waiting[row.id] <= WAITING_MAX
        try:
            while waits and time.monotonic() < began + WAIT_SECONDS:
                with self._database.read() as tx:
                    current = tx.get(SessionRow, row.id)
                if current is None or self.is_free(current):
                    return
                self._clamp_expiry(current)
                with self._changed:  # a holder in this process wakes us; other processes' leases are polled
                    self._changed.wait(pause)
                pause = min(pause * 2, POLL_LAST)
        finally:
            with self._changed:
                self._waiting -= Counter([row.id])
        message = f"A reply is being written in session {row.public_id!r}. {consequence}"
        raise Conflict("session_busy", message, retry_after=5.0)

    def _clamp_expiry(self, row: SessionRow) -> None:
        """Shorten an expiry that lies further ahead than any lease lasts to LEASE_SECONDS from now.

        It was written before the clock was put back.  A living holder renews the lease; a dead one's expires.
        """
        now = self._now()
        if row.lease_token is None or row.lease_until is None or row.lease_until <= now + 2 * LEASE_DURATION:
            return
        ahead = (row.lease_until - now).total_seconds()
        log.warning("the clock was put back: a lease is shortened", extra=logs.fields(seconds_ahead=ahead))
        with self._database.write(durable=False) as tx:
            _change(tx, Lease(SessionRow, row.id, row.lease_token), lease_until=now + LEASE_DURATION)

    def close(self) -> None:
        """Stop renewing.  Leases still held expire."""
        self._closed.set()

    def _keep_forever(self) -> None:
        pause = LOOK_SECONDS
        renewed = time.monotonic()
        seen: set[Lease] = set()
        while not self._closed.wait(pause):
            with self._changed:
                leases = dict(self._held)
            # A turn that is over before the second look costs no query.
            turns = {lease: work.stop for lease, work in leases.items() if work.stop is not None and lease in seen}
            pause = LOOK_SECONDS
            seen = set(leases)
            try:
                if time.monotonic() >= renewed + RENEW_SECONDS:
                    self._renew(leases)
                    renewed = time.monotonic()
                if turns:
                    self._stop_marked(turns)
            except SQLAlchemyError as error:
                pause = TROUBLE_SECONDS
                fields = logs.fields(leases=len(leases), error=logs.safe_message(error))
                log.error("leases could not be renewed; trying again", extra=fields)

    def _renew(self, leases: Mapping[Lease, _Held]) -> None:
        failure = None
        for lease, work in leases.items():  # each in a transaction of its own: one that fails loses no other lease
            patience = RENEW_SECONDS if failure is None else LOOK_SECONDS  # nor do some that wait for locks
            try:
                with self._database.write(patience, durable=False) as tx:
                    until = self._now() + LEASE_DURATION  # read inside, since waiting for the transaction takes time
                    _change(tx, lease, lease_until=until)
                    if work.on_renew is not None:
                        _call(partial(work.on_renew, tx))
            except SQLAlchemyError as error:
                failure = error
        if failure is not None:
            raise failure

    def _stop_marked(self, turns: Mapping[Lease, Callable[[], None]]) -> None:
        with self._database.read() as tx:
            stopped = set(tx.scalars(_STOP_TOKENS, {"rows": [lease.row_id for lease in turns]}))
        for lease, stop in turns.items():
            if lease.token in stopped:
                _call(stop)


def _call(callback: Callable[[], None]) -> None:
    """Call what a holder passed. Errors of the database are raised: they end the transaction."""
    try:
        callback()
    except SQLAlchemyError:
        raise
    except Exception:
        log.exception("leases: a callback failed; the other leases are renewed")


def _change(tx: Transaction, lease: Lease, **values: Any) -> None:
    still_ours = lease.kind.id == lease.row_id, lease.kind.lease_token == lease.token
    tx.execute(update(lease.kind).where(*still_ours).values(**values))
