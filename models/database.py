"""Database: the one door to transactions.

Guarantee: a transaction is as long as its `with` block and commits at its end or not at all.  Readers never wait
for a writer.  On SQLite a write takes the write lock at its start, so it can't fail half-way for want of it; a
process queues its own writers in memory first, which is fair, where SQLite's waiting is not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.orm import Session, sessionmaker

BUSY_TIMEOUT_MS = 15_000  # longer than any write here takes, shorter than a person waits before giving up


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
    def write(self) -> Iterator[Session]:
        """A transaction that commits at the end of the block, or rolls back when the block raises."""
        if self._sqlite:
            with self._writing, self._writes.begin() as session:
                yield session
        else:
            with self._writes.begin() as session:
                yield session


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


def _begin_sqlite(connection: Any) -> None:
    writing = connection.get_execution_options().get("recap_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
