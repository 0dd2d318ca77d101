"""Database: the one door to transactions.

Guarantee: a transaction is as long as its `with` block and commits at its end or not at all.  Readers never wait
for a writer.  One write goes on at a time, of all threads, processes and nodes: it takes the database's write lock at
its start, so that what it reads stays as it is until it has written, and it can't fail half-way for want of the lock.
On SQLite that is the file's own; a process queues its writers in memory first, which is fair, and the first of them
looks for the lock every millisecond, where SQLite would sleep for up to a tenth of a second.  On PostgreSQL it is one
that means nothing to others.
What was deleted is in no byte of SQLite's files once `scrub` has said so.

On a disk that has become read-only what is stored can be read; once it takes writes again, so does this, as it is.  A
file that was found damaged is remembered as that until it reads well again (see `damaged`), and is opened anew at each
use, so that one put in its place is used at once.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError, OperationalError, StatementError
from sqlalchemy.pool import PoolProxiedConnection

from models.connections import BUSY_TIMEOUT_MS, Connections
from models.transaction import Transaction
from models.trouble import Damage, Trouble, on_read_only_disk, trouble_of

LOOK_SECONDS = 0.001  # between two looks whether SQLite's write lock is free: others hold it for a few of these
WRITE_LOCK = 0x7265636170  # of PostgreSQL's advisory locks
SCRUB_PAUSES = (0.0, 0.2, 1.0)  # seconds before each try to empty the log
SCRUB_TIMEOUT_MS = 500  # for those who read to come to their end; whoever writes waits as long


@dataclass(frozen=True)
class Writing:
    """How a transaction writes: how long it waits for others to, in milliseconds, and whether for the disk."""

    patience_ms: int
    synced: bool


class Database:
    """Short transactions on one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._sqlite = engine.dialect.name == "sqlite"
        self._reading = engine if self._sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        self._begin = self._begin_on_sqlite if self._sqlite else self._begin_elsewhere
        self._writing = threading.Lock()
        name = engine.url.database if self._sqlite else None
        self._file = Path(name) if name and name != ":memory:" else None
        self._damage = Damage(self._file)
        self._connections = Connections(engine) if self._sqlite else None
        if self._sqlite:
            event.listen(engine, "handle_error", self._look_at)
            engine.dialect.do_begin = _go_on  # type: ignore[assignment] # an event would cost each statement

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent snapshot; nothing written in it is kept."""
        return closing(self._begin(None))

    @contextmanager
    def write(self, patience: float | None = None, *, synced: bool = True) -> Iterator[Transaction]:
        """A transaction that commits at the end of the block, or rolls back when the block raises.

        It survives a power cut from then on; on SQLite one that is not `synced` does only once the next has ended
        that is, and a kill all the same.  That is for what nobody is told of before: the disk takes a few milliseconds
        to say that something is on it.

        Raises OperationalError when others keep it waiting for BUSY_TIMEOUT_MS, or for `patience` seconds.
        """
        writing = Writing(BUSY_TIMEOUT_MS if patience is None else int(patience * 1000), synced)
        if self._sqlite and not self._writing.acquire(timeout=-1 if patience is None else patience):
            raise OperationalError("BEGIN IMMEDIATE", None, TimeoutError("other writes of this process take too long"))
        try:
            with closing(self._begin(writing)) as tx:
                yield tx
                tx.commit()
        finally:
            if self._sqlite:
                self._writing.release()

    def _begin_on_sqlite(self, writing: Writing | None) -> Transaction:
        """By the driver itself: what SQLAlchemy does around it takes as long as all else of a transaction."""
        assert self._connections is not None
        pooled: PoolProxiedConnection | None = None
        try:
            pooled = self._connections.take()
            _begin_sqlite(pooled, writing)
        except sqlite3.Error as error:
            try:
                raise self._failed("BEGIN", error, pooled) from error
            finally:
                if pooled is not None:
                    pooled.close()
        return Transaction(self.engine, pooled, self._failed, self._connections.give_back)

    def _begin_elsewhere(self, writing: Writing | None) -> Transaction:
        connection = (self._reading if writing is None else self.engine).connect()
        try:
            connection.begin()
            if writing is not None and self.engine.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {writing.patience_ms}")
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")
        except BaseException:
            connection.close()
            raise
        return Transaction(self.engine, connection.connection, self._failed, connection=connection)

    def _failed(self, statement: object, error: Any, pooled: PoolProxiedConnection | None) -> StatementError:
        """SQLAlchemy's error for the driver's at a statement, also where that didn't come by way of it."""
        dialect = self.engine.dialect
        driver = pooled.dbapi_connection if pooled is not None else None
        lost = self._note_damage(error) or self._believes(error) or dialect.is_disconnect(error, driver, None)
        if lost:  # nobody goes on with such a connection, nor with the others that were made to the same
            if pooled is not None and pooled.is_valid:
                pooled.invalidate(error)
            self.engine.dispose()
        base = dialect.loaded_dbapi.Error
        return DBAPIError.instance(str(statement), None, error, base, hide_parameters=True, connection_invalidated=lost)

    def _believes(self, error: BaseException) -> bool:
        """Whether an error comes of a disk that could not be written when the file was opened, and now can be."""
        read_only = trouble_of(error) is Trouble.READ_ONLY
        return read_only and self._file is not None and not on_read_only_disk(self._file)

    @property
    def in_use(self) -> int:
        """How many connections are in use."""
        lent: int = self.engine.pool.checkedout()  # type: ignore[attr-defined] # of the pool for files and servers
        return lent - self._connections.idle if self._connections is not None else lent

    def close(self) -> None:
        """Close the connections that nobody uses.  The last process to do so folds SQLite's log into its file."""
        self.engine.dispose()

    def damaged(self) -> bool:
        """Whether SQLite's file was found damaged, by any process, and has not been seen whole since."""
        return self._damage.stands(self._reads_well)

    def _reads_well(self) -> bool:
        self.engine.dispose()  # whoever holds the damaged file open goes on reading that
        with self.engine.connect() as connection:
            return bool(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() == "ok")

    def _look_at(self, context: Any) -> None:
        if self._note_damage(context.original_exception):
            context.is_disconnect = True  # nobody holds on to the file: another may be put in its place

    def _note_damage(self, error: BaseException) -> bool:
        """Whether an error of the driver's says that the file is damaged; then it is remembered."""
        damaged = trouble_of(error) is Trouble.DAMAGED
        if damaged:
            self._damage.note()
        return damaged

    def scrub(self) -> bool:
        """SQLite: write the file anew from what lives, and empty its log.  Elsewhere nothing has to be done.

        `secure_delete` overwrites a row where it stood last, but moving rows from page to page leaves copies of them
        in unused space, and the write-ahead log has older pages; so the words of a deleted row may be anywhere until
        this is done.  It takes about a second for 100 MB, in which others read but do not write.  False when someone
        went on reading from the log, so that it could not be emptied.  Raises sqlite3.OperationalError, as when the
        disk is full; then all is as before.
        """
        if not self._sqlite:
            return True
        self._pragma("VACUUM", BUSY_TIMEOUT_MS)
        for pause in SCRUB_PAUSES:
            time.sleep(pause)
            busy, _, _ = self._pragma("PRAGMA wal_checkpoint(TRUNCATE)", SCRUB_TIMEOUT_MS)
            if not busy:
                return True
        return False

    def _pragma(self, statement: str, timeout_ms: int) -> Any:
        """Run a statement of SQLite's that has to be outside any transaction, and give its first row."""
        with self._writing, self.engine.connect() as connection:
            raw = connection.connection.cursor()  # beside SQLAlchemy, which would begin a transaction
            try:
                raw.execute(f"PRAGMA busy_timeout = {timeout_ms}")
                raw.execute(statement)
                return raw.fetchone()
            finally:
                raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
                raw.close()


def _begin_sqlite(pooled: PoolProxiedConnection, writing: Writing | None) -> None:
    """Begin a transaction on a connection of the pool: to write as is asked, or to read."""
    driver: Any = pooled.dbapi_connection
    if writing is None:
        driver.execute("BEGIN")
        return
    if pooled.info.get("recap_synced", True) != writing.synced:
        driver.execute(f"PRAGMA synchronous = {'FULL' if writing.synced else 'NORMAL'}")
        pooled.info["recap_synced"] = writing.synced
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        _begin_to_write(driver, time.monotonic() + writing.patience_ms / 1000)
    finally:
        driver.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")  # for reading, which waits for nothing but repairs


def _begin_to_write(driver: sqlite3.Connection, until: float) -> None:
    while True:
        try:
            driver.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # its kinds are in the bits above
            if not busy or time.monotonic() >= until:
                raise
        time.sleep(LOOK_SECONDS)


def _go_on(pooled: Any) -> None:
    """Begin a transaction of SQLAlchemy's: the one that has begun on its connection, or else one to read."""
    if not pooled.dbapi_connection.in_transaction:
        _begin_sqlite(pooled, None)
