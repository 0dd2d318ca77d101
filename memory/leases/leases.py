"""Leases: who is taking a turn in a session, and who is doing a job.

A lease is a token and an expiry in the leased row, so it works between threads, processes and nodes alike.  A holder
that is killed loses it at once where that can be told (see `holders`), else after LEASE_SECONDS.  While a holder
lives, one thread a process renews all it holds.  No transaction stays open while a lease is held.

Guarantee: whoever writes at the end of leased work checks `holds` in the same transaction: a holder that was suspended
past its expiry, or whose lease a clock that was put forward let run out, does not overwrite what its successor did.
A clock that was put back stalls nobody: an expiry further ahead than a lease lasts is brought back by whoever waits
for it; then a living holder renews it, and a dead one's runs out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Table, update
from sqlalchemy.exc import SQLAlchemyError

from memory.leases.holders import Holder
from memory.ops import logs
from models import Database, JobRow, SessionRow, Transaction

log = logging.getLogger(__name__)

LEASE_SECONDS = 10.0  # how long a holder that hangs keeps others out; three times what a busy one needs to renew
RENEW_PAUSE = 1.0  # seconds until renewing is tried again, when the database failed
RELEASE_PATIENCE = 2.0  # seconds it may take to give one back
_LEASE = timedelta(seconds=LEASE_SECONDS)
POLL_FIRST, POLL_LAST = 0.01, 0.25  # seconds between looks at a lease another process holds

Leased = SessionRow | JobRow


@dataclass(frozen=True)
class Lease:
    """A held lease: on which row, under which token."""

    table: Table
    row_id: int
    token: str


class Leases:
    """Takes, renews and gives back leases.  Thread-safe."""

    def __init__(self, database: Database, holder: Holder, now: Callable[[], datetime]) -> None:
        self._database = database
        self._holder = holder
        self._now = now
        self._held: set[Lease] = set()
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        self._closing = threading.Condition(lock)  # all that the renewer is woken for: a lease ends at every turn
        self._renewer: threading.Thread | None = None
        self._closed = False

    def free(self, row: Leased) -> bool:
        """Whether nobody holds `row` now."""
        if row.lease_token is None or row.lease_until is None or row.lease_until <= self._now():
            return True
        return self._holder.is_dead(row.lease_token)

    def take(self, row: Leased) -> Lease | None:
        """Take the lease on `row` in the caller's write transaction; None when somebody holds it.

        Call `keep` after the transaction has committed.
        """
        if not self.free(row):
            return None
        row.lease_token = self._holder.token()
        row.lease_until = self._now() + _LEASE
        return Lease(type(row).__table__, row.id, row.lease_token)

    def give_back(self, row: Leased) -> None:
        """Undo `take` in the same transaction."""
        row.lease_token = row.lease_until = None

    def keep(self, lease: Lease) -> None:
        """Renew `lease` from now on, until `release` or `ended`."""
        with self._changed:
            self._held.add(lease)
            if self._renewer is None:
                self._renewer = threading.Thread(target=self._renew_forever, name="recap-leases", daemon=True)
                self._renewer.start()

    def holds(self, row: Leased, lease: Lease) -> bool:
        """Whether `lease` is still the one on `row`."""
        return row.lease_token == lease.token

    def ended(self, lease: Lease) -> None:
        """Stop renewing a lease that was given back or lost in the caller's transaction; wakes those who wait here."""
        with self._changed:
            self._held.discard(lease)
            self._changed.notify_all()

    def release(self, lease: Lease) -> None:
        """Give the lease back in a transaction of its own, if the database can be written.

        No error when it can't, or when the lease was lost meanwhile: it runs out by itself.
        """
        try:
            self._give_back(lease)
        except SQLAlchemyError as error:
            told = logs.fields(seconds=LEASE_SECONDS, error=logs.told(error))
            log.error("a lease could not be given back, and runs out by itself", extra=told)
        self.ended(lease)

    def _give_back(self, lease: Lease) -> None:
        with self._database.write(RELEASE_PATIENCE) as tx:
            _change(tx, lease, lease_token=None, lease_until=None)

    def wait_free(self, table: type[Leased], row_id: int, deadline: float) -> bool:
        """Wait until the row may be free, False when `time.monotonic()` reaches `deadline` first."""
        pause = POLL_FIRST
        while time.monotonic() < deadline:
            with self._database.read() as tx:
                row = tx.get(table, row_id)
            if not isinstance(row, Leased) or self.free(row):
                return True
            self.shorten(row)
            with self._changed:  # woken at once by a holder in this process; others are looked for
                self._changed.wait(pause)
            pause = min(pause * 2, POLL_LAST)
        return False

    def shorten(self, row: Leased) -> None:
        """Bring the expiry of a lease that somebody holds back to where one taken now would have it, if it is beyond
        any that can be: then the clock was put back meanwhile.  In a transaction of its own."""
        now = self._now()
        if row.lease_token is None or row.lease_until is None or row.lease_until <= now + 2 * _LEASE:
            return
        ahead = (row.lease_until - now).total_seconds()
        log.warning("the clock was put back: a lease is shortened", extra=logs.fields(seconds_ahead=ahead))
        with self._database.write(durable=False) as tx:
            _change(tx, Lease(type(row).__table__, row.id, row.lease_token), lease_until=now + _LEASE)

    def close(self) -> None:
        """Stop renewing.  Leases still held run out by themselves."""
        with self._changed:
            self._closed = True
            self._closing.notify_all()
            if not self._held:  # else the kernel tells of our end
                self._holder.end()

    def _renew_forever(self) -> None:
        due = time.monotonic() + LEASE_SECONDS / 3
        while True:
            with self._changed:
                if self._closed:
                    return
                self._closing.wait(max(0.0, due - time.monotonic()))
                if self._closed:
                    return
                if time.monotonic() < due:
                    continue
                held = tuple(self._held)
            due = time.monotonic() + LEASE_SECONDS / 3
            try:
                if held:
                    self._renew(held)
            except SQLAlchemyError as error:  # those who work on may still have the database when they end
                due = time.monotonic() + RENEW_PAUSE
                figures = logs.fields(leases=len(held), error=logs.told(error))
                log.error("leases could not be renewed; trying again", extra=figures)

    def _renew(self, held: tuple[Lease, ...]) -> None:
        with self._database.write(durable=False) as tx:
            until = self._now() + _LEASE  # read here, as waiting for the transaction takes time too
            for lease in held:
                _change(tx, lease, lease_until=until)


def _change(tx: Transaction, lease: Lease, **values: Any) -> None:
    held = lease.table.c.id == lease.row_id, lease.table.c.lease_token == lease.token
    tx.execute(update(lease.table).where(*held).values(**values))
