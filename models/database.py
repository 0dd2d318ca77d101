"""Database: the only place that opens transactions, and that knows what a transaction is on SQLite and PostgreSQL.

Guarantee: a transaction lasts as long as its `with` block, and commits at its end or not at all.  Readers never wait
for a writer.  What a write has read of an owner stays true until it commits, over all threads, processes and nodes, but
for what the holder of a session's lease adds to that session:

- On SQLite one write runs at a time.  It takes the write lock before its first statement.
- On PostgreSQL one write of an owner runs at a time, and those of different owners run side by side. A write that
  looks up an owner or a session locks the owner's row first, then the session's (`for_update`). What is not read
  before it is written needs no such lock: one statement compares and sets, as at the end of a turn. Rows of jobs are
  locked last, so that writes seldom wait for each other in a circle. One that does is run again
  (`retry_on_conflict`), and so is one that met a row which another had just made or erased.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    Insert,
    QueuePool,
    Select,
    event,
    func,
    make_url,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from models.base import Base
from models.database_faults import DatabaseFault, DatabaseLost
from models.sqlite import BUSY_TIMEOUT_MS, SQLiteFile, is_in_memory, set_up_in_memory

LOCK_TIMEOUT_SECONDS = (
    15.0  # seconds a write waits for others: longer than any write takes, shorter than a person waits
)
TRANSACTION_TRIES = 5  # of a write that meets others: each time one of them has got through
_MET = {"40001", "40P01", "23503", "23505"}  # not serializable, deadlock, a row erased or made by another meanwhile
_READ_ONLY = "25006"  # the transaction takes no writes

# A server or a node that is gone without a word is noticed in 25 seconds; its locks are free then.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_OF_CONNECTION = {
    "lock_timeout": int(LOCK_TIMEOUT_SECONDS * 1000),
    **{f"tcp_{name}": value for name, value in _KEEPALIVE.items()},
}
_PSYCOPG = {"client_encoding": "utf8", "connect_timeout": 5, "tcp_user_timeout": 15_000, **_KEEPALIVE}

Query = TypeVar("Query", bound=Select[*tuple[Any, ...]])
Given = ParamSpec("Given")
Result = TypeVar("Result")

Transaction = Session
"""SQLAlchemy's session, under another name: in this project a session is a thread of messages."""


class Database:
    """Short transactions on one engine.  Thread-safe.

    On SQLite all connections come from one pool, and BEGIN is a statement of this class: its driver begins nothing.  A
    write that nobody is told of until a later, durable write has committed does not wait for the disk.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._queue = threading.Lock()
        self._thread = threading.local()  # what a thread's write calls once it has committed
        # The caller says when changed rows are flushed, not the next query; they can be read after the commit.
        self._session = sessionmaker(autoflush=False, expire_on_commit=False)
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._file = SQLiteFile(engine) if self._is_sqlite and not is_in_memory(engine.url) else None
        if self._is_sqlite and self._file is None:
            event.listen(engine, "connect", set_up_in_memory)
        if self._is_sqlite:
            self._reading = self._writing = engine
        else:
            self._reading = engine.execution_options(isolation_level="REPEATABLE READ")
            self._writing = engine.execution_options(locks_rows=True)
            event.listen(engine, "connect", _set_up)
            event.listen(engine, "handle_error", _leave_read_only)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a consistent snapshot.  Nothing that is written in it is kept."""
        with self.connect() as connection, self._session(bind=connection) as tx:
            yield tx

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Open a snapshot as `read` does, for Core statements alone."""
        with self._reading.connect() as connection:
            if self._is_sqlite:
                connection.connection.cursor().execute("BEGIN")  # it touches no file, so nothing can fail
            yield connection

    @contextmanager
    def write(self, lock_timeout: float | None = None, *, durable: bool = True) -> Iterator[Transaction]:
        """Run a transaction that commits at the end of the block, or rolls back when the block raises.

        A durable commit survives a power cut, and a crash of a server.  One that is not `durable` survives a kill of
        this process, and those only after a later durable commit: use it for what nobody is told of before that.

        Raises OperationalError when other writers keep it waiting for `lock_timeout` seconds (LOCK_TIMEOUT_SECONDS),
        and DatabaseLost when the commit may be lost, or kept: SQLite's files were removed or replaced, or a server's
        connection broke off.
        """
        with self.begin(lock_timeout, durable=durable) as connection, self.orm(connection) as tx:
            yield tx

    @contextmanager
    def orm(self, connection: Connection) -> Iterator[Transaction]:
        """Load and change rows as objects in the transaction of `connection`; flush them at the end of the block."""
        with self._session(bind=connection) as tx:
            yield tx
            tx.commit()  # the connection's own transaction stays open

    @contextmanager
    def begin(self, lock_timeout: float | None = None, *, durable: bool = True) -> Iterator[Connection]:
        """Run a transaction as `write` does, for Core statements alone."""
        # On SQLite this process's writers queue in memory: that is fair, and its lock is polled by one thread only.
        queues = self._is_sqlite
        if queues and not self._queue.acquire(timeout=LOCK_TIMEOUT_SECONDS if lock_timeout is None else lock_timeout):
            raise OperationalError("BEGIN IMMEDIATE", None, TimeoutError("other writes of this process take too long"))
        try:
            with self._writing.connect() as connection:
                self._start(connection, lock_timeout, durable=durable)
                callbacks = self._thread.callbacks = list[Callable[[], None]]()
                opened = connection.info.get("opened")  # the files that SQLite has open
                yield connection
                try:
                    connection.commit()
                except DBAPIError as error:
                    connection.invalidate()  # SQLAlchemy would pool it with the transaction still open
                    if error.connection_invalidated and not self._is_sqlite:  # it may be done, or not
                        raise DatabaseLost(DatabaseFault.CUT_OFF) from error
                    raise
            for callback in callbacks:
                callback()
            if self._file is not None:
                self._file.check_file(opened)
        finally:
            if queues:
                self._queue.release()

    def _start(self, connection: Connection, lock_timeout: float | None, *, durable: bool) -> None:
        """Begin the transaction, on SQLite with its write lock."""
        if not self._is_sqlite:
            connection.begin()  # now: one that the first `orm` in it began, that would also commit
            changed = {} if lock_timeout is None else {"lock_timeout": str(max(1, int(lock_timeout * 1000)))}
            changed |= {} if durable else {"synchronous_commit": "off"}
            if changed:
                connection.execute(select(*(func.set_config(name, value, True) for name, value in changed.items())))
            return
        synchronous = "FULL" if durable else "NORMAL"
        if connection.info["synchronous"] != synchronous:
            connection.connection.cursor().execute(f"PRAGMA synchronous = {synchronous}")
            connection.info["synchronous"] = synchronous
        until = time.monotonic() + (LOCK_TIMEOUT_SECONDS if lock_timeout is None else lock_timeout)
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except OperationalError as error:
                code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF  # the upper bits tell kinds of it apart
                if code != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                    raise

    @property
    def is_server(self) -> bool:
        """Return whether the database is in processes of its own, which can crash while this one goes on."""
        return not self._is_sqlite

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the write of this thread has committed, and not if it rolls back."""
        self._thread.callbacks.append(callback)

    def close(self) -> None:
        """Close idle connections.  The last process to do so writes SQLite's log into its file."""
        self.engine.dispose()

    def damaged(self) -> bool:
        """Return whether a process found SQLite's file damaged, and it was not replaced since."""
        return self._file is not None and self._file.damaged()

    def vacuum(self) -> bool:
        """On SQLite rewrite the file from its rows, and empty its log, so that no byte of deleted rows is left.

        `secure_delete` overwrites a deleted row, but pages keep copies of rows that were moved, and the log keeps
        older pages.  Others can read meanwhile, but not write.  False when a reader kept the log from being emptied.
        Raises DatabaseLost, and sqlite3.OperationalError, for instance on a full disk; then nothing has changed.
        """
        if not self._is_sqlite:
            return True
        with self._queue, closing(self.engine.raw_connection()) as connection, closing(connection.cursor()) as raw:
            if self._file is not None:
                self._file.check_file(connection.info["opened"])
            try:
                raw.execute(f"PRAGMA busy_timeout = {int(LOCK_TIMEOUT_SECONDS * 1000)}")
                raw.execute("VACUUM")
            finally:
                raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # waits for readers so long, and writers for it
            ((busy, _, _),) = raw.fetchall()
            return not busy


def engine_options(address: str) -> dict[str, Any]:
    """Return the options to make the engine of a Database at this address."""
    # Transactions are short, so few connections serve many threads; more would only wait for each other.  The one used
    # last is used next: it has in memory what it wrote and read, the others would read it from the file once more.
    options: dict[str, Any] = {
        "pool_size": 8,
        "max_overflow": 24,
        "pool_timeout": 30,
        "pool_use_lifo": True,
        "hide_parameters": True,  # words stay out of logs
    }
    url: URL = make_url(address)
    if is_in_memory(url):
        pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}  # transactions take turns
        return options | pool | {"connect_args": {"check_same_thread": False}, "pool_use_lifo": False}
    if url.get_backend_name() == "sqlite":
        return options
    # A new connection is a process of the server's, and one that the server has closed is found before it is used.
    options |= {"pool_size": 16, "max_overflow": 16, "pool_timeout": LOCK_TIMEOUT_SECONDS, "pool_pre_ping": True}
    options["isolation_level"] = "READ COMMITTED"  # whatever the server or the role has
    return options | {"connect_args": _PSYCOPG} if url.get_driver_name() == "psycopg" else options


def for_update(tx: Transaction, query: Query, *rows: type[Base]) -> Query:
    """Return the query so that, in a write, it locks the rows of these kinds, in this order.

    They are as last committed, and nobody else changes them until this transaction ends.  It waits for whoever has
    locked one.
    """
    return query.with_for_update(of=rows, key_share=True) if has_row_locks(tx) else query


def has_row_locks(tx: Transaction) -> bool:
    """Return whether a write locks rows, as on PostgreSQL; SQLite has one write at a time."""
    return bool(tx.connection().get_execution_options().get("locks_rows"))


def retry_on_conflict(work: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function, which ends with its one write, again when another write made, erased or locked what it needs."""

    @wraps(work)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        for _ in range(TRANSACTION_TRIES - 1):
            try:
                return work(*args, **kwargs)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in _MET:
                    raise
        return work(*args, **kwargs)

    return run


def is_read_only(tx: Transaction) -> bool:
    """Return whether the server takes no writes: it is a replica, or an administrator has set it so."""
    return tx.get_bind().dialect.name == "postgresql" and tx.scalar(text("SHOW transaction_read_only")) == "on"


def clock_ahead(tx: Transaction, now: datetime) -> float:
    """Return by how many seconds `now` is ahead of the clock of the database's server; 0 where it has none."""
    if tx.get_bind().dialect.name != "postgresql":
        return 0.0
    return (now - tx.scalars(select(func.clock_timestamp())).one()).total_seconds()


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

    def execute(self, tx: Transaction | Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert or change these rows with one statement."""
        dialect = tx.dialect if isinstance(tx, Connection) else tx.get_bind().dialect
        tx.execute(self._statements[dialect.name], rows)


def _set_up(connection: Any, _record: Any) -> None:
    """Set up a new connection to PostgreSQL."""
    with closing(connection.cursor()) as cursor:
        for name, value in _OF_CONNECTION.items():
            cursor.execute(f"SET {name} = {value}")
    connection.commit()


def _leave_read_only(context: ExceptionContext) -> None:
    """Close all connections when one turns out to be read-only: it stays so when the server takes writes again."""
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        context.is_disconnect = True
