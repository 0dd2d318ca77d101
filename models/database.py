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
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Insert, event, func, select, text
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, DisconnectionError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from models.errors import Damage, Trouble, on_read_only_disk, trouble_of
from models.rows import Base

PATIENCE = 15.0  # seconds a write waits for others: longer than any write takes, shorter than a person waits
BUSY_TIMEOUT_MS = 1_000  # SQLite waits so long for a lock; `Database.write` tries again while its patience lasts
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
        self._sqlite = engine.dialect.name == "sqlite"
        self._queue = threading.Lock()
        # The caller says when changed rows are flushed, not the next query; they can be read after the commit.
        self._session = sessionmaker(autoflush=False, expire_on_commit=False)
        name = engine.url.database if self._sqlite else None
        self._file = Path(name) if name and name != ":memory:" else None
        self._damage = Damage(self._file)
        if self._sqlite:
            _prepare(engine)
            event.listen(engine, "handle_error", self._handle_error)
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

        Raises OperationalError when other writers keep it waiting for PATIENCE, or for `patience` seconds.
        """
        # This process's writers queue in memory: that is fair, and the database's lock is polled by one thread only.
        if not self._queue.acquire(timeout=-1 if patience is None else patience):
            raise OperationalError("BEGIN IMMEDIATE", None, TimeoutError("other writes of this process take too long"))
        try:
            with self._session(bind=self._durable if durable else self._relaxed) as tx:
                self._lock(tx, PATIENCE if patience is None else patience)
                yield tx
                tx.flush()
                try:
                    tx.commit()
                except DBAPIError:
                    tx.invalidate()  # SQLAlchemy would pool the connection with the transaction still open
                    raise
        finally:
            self._queue.release()

    def _lock(self, tx: Transaction, patience: float) -> None:
        """Begin the transaction and take the database's write lock."""
        if self._sqlite:
            until = time.monotonic() + patience
            while True:
                try:
                    tx.connection()
                    return
                except OperationalError as error:
                    if not _is_busy(error) or time.monotonic() >= until:
                        raise
        tx.execute(text(f"SET LOCAL lock_timeout = {int(patience * 1000)}"))
        tx.execute(select(func.pg_advisory_xact_lock(WRITE_LOCK)))

    def close(self) -> None:
        """Close idle connections.  The last process to do so writes SQLite's log into its file."""
        self.engine.dispose()

    def damaged(self) -> bool:
        """Whether any process found SQLite's file damaged, and it has not been read whole since."""
        return self._damage.stands(self._reads_well)

    def _reads_well(self) -> bool:
        self.engine.dispose()  # open connections would go on reading a damaged file that has been replaced
        with self.engine.connect() as connection:
            return bool(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() == "ok")

    def _handle_error(self, context: ExceptionContext) -> None:
        """Drop all connections to a damaged file, so that one put in its place is used at once; and those that were
        opened on a read-only disk which can be written again."""
        trouble = trouble_of(context.original_exception)
        if trouble is Trouble.DAMAGED:
            self._damage.note()
        elif trouble is not Trouble.READ_ONLY or self._file is None or on_read_only_disk(self._file):
            return
        context.is_disconnect = True
        self.engine.dispose()

    def scrub(self) -> bool:
        """On SQLite rewrite the file from its rows, and empty its log, so that no byte of deleted rows is left.

        `secure_delete` overwrites a deleted row, but pages keep copies of rows that were moved, and the log keeps
        older pages.  Others can read meanwhile, but not write.  False when a reader kept the log from being emptied.
        Raises sqlite3.OperationalError, for instance on a full disk; then nothing has changed.
        """
        if not self._sqlite:
            return True
        with self._queue, closing(self.engine.raw_connection()) as connection, closing(connection.cursor()) as raw:
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
    """

    def __init__(self, row: type[Base], key: Sequence[str], changes: Callable[[Any], Mapping[str, Any]]) -> None:
        on_sqlite, on_postgresql = sqlite_insert(row.__table__), postgresql_insert(row.__table__)
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


# -- connections to an SQLite file


def _prepare(engine: Engine) -> None:
    """Set up every connection that `engine` opens from now on."""

    def check(_connection: Any, record: Any, _proxy: Any) -> None:
        read_only, opened = record.info.get("read_only"), record.info.get("opened")
        if read_only is not None and not on_read_only_disk(read_only):
            engine.dispose()  # a process's connections share what SQLite knows of a file, so all of them have to go
            raise DisconnectionError("the disk can be written again")
        if opened is not None and _identity(opened[0]) not in (opened[1], None):
            raise DisconnectionError("another file was put in the place of the database")

    event.listen(engine, "do_connect", _open_on_read_only_disk)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "checkout", check)
    event.listen(engine, "begin", _begin)


def _begin(connection: Connection) -> None:
    """Begin as the connection's execution options say: `begin` is the statement; a writer also sets `synchronous`."""
    options = connection.get_execution_options()
    synchronous = options.get("synchronous")
    if synchronous is not None and connection.info.get("synchronous", "FULL") != synchronous:
        connection.exec_driver_sql(f"PRAGMA synchronous = {synchronous}")
        connection.info["synchronous"] = synchronous
    connection.exec_driver_sql(options.get("begin", "BEGIN"))


def _open_on_read_only_disk(_dialect: Any, record: Any, names: Any, options: Any) -> Any:
    """Open a file on a read-only disk as immutable: SQLite can't make the log it needs to read it with others.

    If the log is there, somebody had the file open when the disk became read-only, and SQLite opens it as usual.
    """
    record.info.pop("read_only", None)
    file = Path(names[0])
    if not file.is_file() or not on_read_only_disk(file):
        return None
    record.info["read_only"] = file
    if file.with_name(f"{file.name}-wal").exists():
        return None
    return sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro&immutable=1", **{**options, "uri": True})


def _identity(file: str) -> tuple[int, int] | None:
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _set_up(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # the `begin` event begins transactions, not the driver
    file = connection.execute("PRAGMA database_list").fetchone()[2]
    record.info["opened"] = (file, _identity(file)) if file else None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    if not record.info.get("read_only"):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # what is acknowledged survives a power cut
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")  # erased bytes are overwritten
    # SQLite's own lower() knows only A to Z; a search has to ignore case in every script.
    connection.create_function("lower", 1, _lower, deterministic=True)


def _lower(text: Any) -> Any:
    return text.lower() if isinstance(text, str) else text
