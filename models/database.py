"""Database: the only place that opens transactions.

Guarantee: a transaction lasts as long as its `with` block, and commits at its end or not at all.  Readers never wait
for a writer.  One write runs at a time, over all threads, processes and nodes: it takes the write lock before its
first statement, so what it has read stays true until it commits, and it can't fail half-way for want of the lock.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Insert, func, select, text
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from models.base import Base
from models.sqlite_file import BUSY_TIMEOUT_MS, Opened, SQLiteFile

PATIENCE = 15.0  # seconds a write waits for others: longer than any write takes, shorter than a person waits
WRITE_LOCK = 0x7265636170  # the key of PostgreSQL's advisory lock

Transaction = Session
"""SQLAlchemy's session, under another name: in this project a session is a thread of messages."""


class Database:
    """Short transactions on one engine.  Thread-safe.

    On SQLite all connections come from one pool.  Writes that nobody is told of until a later, durable write has
    committed can use a relaxed variant of the engine, which does not wait for the disk.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._queue = threading.Lock()
        # The caller says when changed rows are flushed, not the next query; they can be read after the commit.
        self._session = sessionmaker(autoflush=False, expire_on_commit=False)
        self._file = SQLiteFile(engine) if engine.dialect.name == "sqlite" else None
        if self._file is not None:
            self._reading: Engine = engine
            self._durable: Engine = engine.execution_options(begin="BEGIN IMMEDIATE", synchronous="FULL")
            self._relaxed: Engine = engine.execution_options(begin="BEGIN IMMEDIATE", synchronous="NORMAL")
        else:
            self._reading = engine.execution_options(isolation_level="REPEATABLE READ")
            self._durable = self._relaxed = engine

    def read(self) -> Transaction:
        """A consistent snapshot, to be used in a `with` statement.  Nothing that is written in it is kept."""
        return self._session(bind=self._reading)

    def connect(self) -> Connection:
        """As `read`, for statements that return plain columns."""
        return self._reading.connect()

    @contextmanager
    def write(self, patience: float | None = None, *, durable: bool = True) -> Iterator[Transaction]:
        """A transaction that commits at the end of the block, or rolls back when the block raises.

        A durable commit survives a power cut.  On SQLite one that is not `durable` survives a kill, and a power cut
        only after a later durable commit: use it for what nobody is told of before that.

        Raises OperationalError when this process's other writers, or then those of others, keep it waiting for PATIENCE
        or `patience` seconds, and DatabaseLost when SQLite's files were removed or cut; also after the commit, which
        may be kept all the same.
        """
        patience = PATIENCE if patience is None else patience
        # This process's writers queue in memory: that is fair, and the database's lock is polled by one thread only.
        if not self._queue.acquire(timeout=patience):
            raise OperationalError("BEGIN IMMEDIATE", None, TimeoutError("other writes of this process take too long"))
        try:
            with self._session(bind=self._durable if durable else self._relaxed) as tx:
                opened = self._lock(tx, patience)
                yield tx
                tx.flush()
                try:
                    tx.commit()
                except DBAPIError:
                    tx.invalidate()  # SQLAlchemy would pool the connection with the transaction still open
                    raise
            if self._file is not None:
                self._file.confirm(opened)
        finally:
            self._queue.release()

    def _lock(self, tx: Transaction, patience: float) -> Opened | None:
        """Begin the transaction and take the database's write lock.  Returns the files that SQLite has open."""
        if self._file is not None:
            until = time.monotonic() + patience
            while True:
                try:
                    opened: Opened | None = tx.connection().info["opened"]
                    return opened
                except OperationalError as error:
                    if not _is_busy(error) or time.monotonic() >= until:
                        raise
        tx.execute(text(f"SET LOCAL lock_timeout = {int(patience * 1000)}"))
        tx.execute(select(func.pg_advisory_xact_lock(WRITE_LOCK)))
        return None

    def close(self) -> None:
        """Close idle connections.  The last process to do so writes SQLite's log into its file."""
        self.engine.dispose()

    def damaged(self) -> bool:
        """Whether any process found SQLite's file damaged, and it has not been read whole since."""
        return self._file is not None and self._file.damaged()

    def scrub(self) -> bool:
        """On SQLite rewrite the file from its rows, and empty its log, so that no byte of deleted rows is left.

        `secure_delete` overwrites a deleted row, but pages keep copies of rows that were moved, and the log keeps
        older pages.  Others can read meanwhile, but not write.  False when a reader kept the log from being emptied.
        Raises DatabaseLost, and sqlite3.OperationalError, for instance on a full disk; then nothing has changed.
        """
        if self._file is None:
            return True
        with self._queue, closing(self.engine.raw_connection()) as connection, closing(connection.cursor()) as raw:
            self._file.confirm(connection.info["opened"])
            try:
                raw.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")
                raw.execute("VACUUM")
            finally:
                raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # waits for readers so long, and writers for it
            ((busy, _, _),) = raw.fetchall()
            return not busy


class Upsert:
    """INSERT ... ON CONFLICT DO UPDATE, made once for each kind of database that Recap runs on.

    `key` names the columns of a unique constraint.  `changes` gets the row that was to be inserted, as a collection of
    columns, and returns the new values of the row that exists; its bind parameters are filled from the given rows.
    `computed` are columns whose values are looked up, again by bind parameters.
    """

    def __init__(
        self, row: type[Base], key: Sequence[str], changes: Callable[[Any], Mapping[str, Any]], **computed: Any
    ) -> None:
        on_sqlite = sqlite_insert(row.__table__).values(**computed)
        on_postgresql = postgresql_insert(row.__table__).values(**computed)
        self._statements: dict[str, Insert] = {
            "sqlite": on_sqlite.on_conflict_do_update(index_elements=key, set_=changes(on_sqlite.excluded)),
            "postgresql": on_postgresql.on_conflict_do_update(index_elements=key, set_=changes(on_postgresql.excluded)),
        }

    def execute(self, tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert or change these rows."""
        tx.execute(self._statements[tx.get_bind().dialect.name], rows)


def _is_busy(error: OperationalError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_BUSY  # the upper bits tell kinds of it apart
