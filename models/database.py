"""Database: the one door to transactions.

Guarantee: a transaction is as long as its `with` block and commits at its end or not at all.  Readers never wait
for a writer.  On SQLite a write takes the write lock at its start, so it can't fail half-way for want of it; a
process queues its own writers in memory first, which is fair, where SQLite's waiting is not.
What was deleted is in no byte of SQLite's files once `scrub` has said so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

BUSY_TIMEOUT_MS = 15_000  # longer than any write here takes, shorter than a person waits before giving up
SCRUB_PAUSES = (0.0, 0.2, 1.0)  # seconds before each try to empty the log
SCRUB_TIMEOUT_MS = 500  # for those who read to come to their end; whoever writes waits as long


class Database:
    """Short transactions on one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._sqlite = engine.dialect.name == "sqlite"
        self._writing = threading.Lock()
        self._reads = sessionmaker(engine, expire_on_commit=False, autoflush=False)
        self._writes = sessionmaker(
            engine.execution_options(recap_write=True) if self._sqlite else engine,
            expire_on_commit=False,
            autoflush=False,  # what is written, and when, is said by flush: not by whichever query comes next
        )
        if self._sqlite:
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A consistent snapshot; nothing written in it is kept."""
        with self._reads() as session:
            yield session

    @contextmanager
    def write(self, patience: float | None = None) -> Iterator[Session]:
        """A transaction that commits at the end of the block, or rolls back when the block raises.

        Raises OperationalError when others keep it waiting for BUSY_TIMEOUT_MS, or for `patience` seconds.
        """
        if not self._sqlite:
            with self._writes.begin() as session:
                yield session
            return
        if not self._writing.acquire(timeout=-1 if patience is None else patience):
            raise OperationalError("BEGIN IMMEDIATE", None, TimeoutError("other writes of this process take too long"))
        try:
            with self._writes.begin() as session:
                if patience is not None:
                    session.connection(execution_options={"recap_patience_ms": int(patience * 1000)})
                yield session
        finally:
            self._writing.release()

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


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite, not guessed by the driver
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",  # what is acknowledged survives a power cut, at 0.2 ms a commit on an SSD
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
    options = connection.get_execution_options()
    writing = options.get("recap_write", False)
    patience = options.get("recap_patience_ms", BUSY_TIMEOUT_MS)
    if writing and connection.info.get("recap_patience_ms", BUSY_TIMEOUT_MS) != patience:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {patience}")
        connection.info["recap_patience_ms"] = patience
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
