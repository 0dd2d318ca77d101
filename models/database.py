"""Database: the one door to transactions.

Guarantee: a transaction is as long as its `with` block and commits at its end or not at all.  Readers never wait
for a writer.  One write goes on at a time, of all threads, processes and nodes: it takes the database's write lock at
its start, so that what it reads stays as it is until it has written, and it can't fail half-way for want of the lock.
On SQLite that is the file's own; a process queues its writers in memory first, which is fair, where SQLite's waiting is
not.  On PostgreSQL it is a lock that means nothing to others.
What was deleted is in no byte of SQLite's files once `scrub` has said so.

On a disk that has become read-only what is stored can be read; once it takes writes again, so does this, as it is.  A
file that was found damaged is remembered as that until it reads well again (see `damaged`), and is opened anew at each
use, so that one put in its place is used at once.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError, OperationalError

from models.transaction import Transaction
from models.trouble import Damage, Trouble, on_read_only_disk, trouble_of

BUSY_TIMEOUT_MS = 15_000  # longer than any write here takes, shorter than a person waits before giving up
WRITE_LOCK = 0x7265636170  # of PostgreSQL's advisory locks
SCRUB_PAUSES = (0.0, 0.2, 1.0)  # seconds before each try to empty the log
SCRUB_TIMEOUT_MS = 500  # for those who read to come to their end; whoever writes waits as long


@dataclass(frozen=True)
class Writing:
    """How a connection to SQLite writes: how long it waits for others, and whether for the disk; a new one as here."""

    patience_ms: int = BUSY_TIMEOUT_MS
    synced: bool = True


_asked = threading.local()  # `writing`: how this thread's next transaction writes


class Database:
    """Short transactions on one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._sqlite = engine.dialect.name == "sqlite"
        self._reading = engine if self._sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        self._writing = threading.Lock()
        name = engine.url.database if self._sqlite else None
        self._damage = Damage(Path(name) if name and name != ":memory:" else None)
        if self._sqlite:
            event.listen(engine, "do_connect", _open_read_only)
            event.listen(engine, "checkout", _check_still_right)
            event.listen(engine, "handle_error", self._look_at)
            event.listen(engine, "connect", _prepare_sqlite)
            engine.dialect.do_begin = _begin_sqlite  # type: ignore[assignment] # an event would cost each statement

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A consistent snapshot; nothing written in it is kept."""
        with self._reading.connect() as connection:
            connection.begin()
            tx = Transaction(connection, self._note_damage)
            try:
                yield tx
            finally:
                tx.close()

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
            with self.engine.connect() as connection:
                _asked.writing = writing
                try:
                    connection.begin()
                finally:
                    _asked.writing = None
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {writing.patience_ms}")
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")
                tx = Transaction(connection, self._note_damage)
                try:
                    yield tx
                    tx.flush()
                    connection.commit()
                finally:
                    tx.close()
        finally:
            if self._sqlite:
                self._writing.release()

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


def _open_read_only(_dialect: Any, record: Any, names: Any, options: Any) -> Any:
    """A connection to a file on a read-only disk, where SQLite can't make the files it needs to read it with others.

    Only where there is no log: then nobody has it open, not even from where its disk can be written.
    """
    record.info.pop("recap_immutable", None)
    file = Path(names[0])
    if not file.is_file() or not on_read_only_disk(file) or file.with_name(f"{file.name}-wal").exists():
        return None
    record.info["recap_immutable"] = file
    return sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro&immutable=1", **{**options, "uri": True})


def _check_still_right(_connection: Any, record: Any, _proxy: Any) -> None:
    """Have the pool open another connection when this one's file is not what lies there now, or can be written now."""
    file = record.info.get("recap_immutable")
    if file is not None and not on_read_only_disk(file):
        raise DisconnectionError("the disk can be written again")
    opened = record.info.get("recap_file")
    if opened is not None and _place(opened[0]) not in (opened[1], None):
        raise DisconnectionError("another file lies there, as after a restore")


def _place(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - at every transaction: twice as fast as by pathlib
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _prepare_sqlite(connection: Any, record: Any) -> None:
    file = connection.execute("PRAGMA database_list").fetchone()[2]
    record.info["recap_file"] = (file, _place(file)) if file else None
    connection.isolation_level = None  # transactions are begun by Database, not guessed by the driver
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        *(() if record.info.get("recap_immutable") else ("journal_mode = WAL",)),
        "synchronous = FULL",  # what is acknowledged survives a power cut
        "foreign_keys = ON",
        "secure_delete = ON",  # what is erased is overwritten
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    # SQLite's own lower() knows A to Z alone; a search must find what is said in any script, in either case.
    connection.create_function("lower", 1, _lower, deterministic=True)


def _lower(text: Any) -> Any:
    return text.lower() if isinstance(text, str) else text


def _begin_sqlite(connection: Any) -> None:
    """Begin a transaction on a connection of the pool, as this thread asked for."""
    asked: Writing | None = getattr(_asked, "writing", None)
    driver = connection.driver_connection
    if asked is None:
        driver.execute("BEGIN")
        return
    now: Writing = connection.info.get("recap_writing", Writing())
    if now.patience_ms != asked.patience_ms:
        driver.execute(f"PRAGMA busy_timeout = {asked.patience_ms}")
    if now.synced != asked.synced:
        driver.execute(f"PRAGMA synchronous = {'FULL' if asked.synced else 'NORMAL'}")
    connection.info["recap_writing"] = asked
    driver.execute("BEGIN IMMEDIATE")
