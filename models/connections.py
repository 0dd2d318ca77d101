"""Connections to SQLite's file: how one is opened, whether it is still right, and which one is used next.

SQLAlchemy's pool opens them and counts them.  What it does to lend one and to take it back costs several times what
SQLite needs to begin and end a transaction (docs/performance.md), so those that transactions use stay lent to this
module in between: the one used last is used next, having in memory what it wrote and read.

Guarantee: nobody goes on with a connection whose file is not what lies there now, or can be written now; nor, once the
engine was disposed of, with one made before that.  Nobody waits for one that is not in use.  Thread-safe.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from models.trouble import on_read_only_disk

BUSY_TIMEOUT_MS = 15_000  # longer than any write here takes, shorter than a person waits before giving up


class Connections:
    """Those of one engine and process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle: list[PoolProxiedConnection] = []
        self._round = 0  # which ends when the engine is disposed of
        self._pid = os.getpid()
        event.listen(engine, "do_connect", _open_read_only)
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "checkout", self._check)
        event.listen(engine, "engine_disposed", self._let_go_of_all)

    @property
    def idle(self) -> int:
        """How many of those that the pool has lent are not in use."""
        return len(self._idle)

    def take(self) -> PoolProxiedConnection:
        """One that nobody else has, until it is given back or closed.  Raises the driver's errors, or the pool's."""
        while self._idle:
            try:
                lent = self._idle.pop()
            except IndexError:  # another thread was first
                break
            if lent.info.get("recap_round") == self._round and self._wrong(lent.info) is None:
                return lent
            lent.invalidate()
        this = self._round
        lent = self._engine.raw_connection()
        lent.info["recap_round"] = this
        return lent

    def give_back(self, lent: PoolProxiedConnection) -> None:
        """Undo what has not been committed on it, and let others have it."""
        driver: Any = lent.dbapi_connection
        if driver is None:  # it has been let go of
            return
        if lent.info.get("recap_round") != self._round:
            lent.invalidate()
        elif not self._pool_has_room():
            lent.close()
        else:
            try:
                driver.rollback()
            except sqlite3.Error:
                lent.close()  # which tries again, and closes what can't be used any more
            else:
                self._idle.append(lent)

    def _pool_has_room(self) -> bool:
        """Whether so few are open, or lent, that nobody can be waiting for one."""
        pool = self._engine.pool
        return isinstance(pool, QueuePool) and (pool.overflow() < 0 or pool.checkedout() < pool.size())

    def _check(self, _connection: Any, record: Any, _proxy: Any) -> None:
        """Have the pool open another connection when this one is wrong."""
        wrong = self._wrong(record.info)
        if wrong is not None:
            raise DisconnectionError(wrong)

    def _wrong(self, info: dict[str, Any]) -> str | None:
        """What is wrong with a connection that knows this of itself, if something is.

        What could not be written is let go of by all at once: SQLite shares what it knows of a file in a process.
        """
        read_only, opened = info.get("recap_read_only"), info.get("recap_file")
        if read_only is not None and not on_read_only_disk(read_only):
            self._engine.dispose()
            return "the disk can be written again"
        if opened is not None and _place(opened[0]) not in (opened[1], None):
            return "another file lies there, as after a restore"
        return None

    def _let_go_of_all(self, _engine: Engine) -> None:
        """Close those that nobody uses; after a fork they are the parent's, and only forgotten."""
        idle, self._idle = self._idle, []
        self._round += 1
        if self._pid == os.getpid():
            for lent in idle:
                lent.invalidate()
        self._pid = os.getpid()


def _open_read_only(_dialect: Any, record: Any, names: Any, options: Any) -> Any:
    """A connection to a file on a read-only disk, where SQLite can't make the files it needs to read it with others.

    Where there is a log, those are there: somebody has it open, or had when the disk was taken from them.
    """
    record.info.pop("recap_read_only", None)
    file = Path(names[0])
    if not file.is_file() or not on_read_only_disk(file):
        return None
    record.info["recap_read_only"] = file
    if file.with_name(f"{file.name}-wal").exists():
        return None
    return sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro&immutable=1", **{**options, "uri": True})


def _place(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - at every transaction: twice as fast as by pathlib
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _prepare(connection: Any, record: Any) -> None:
    file = connection.execute("PRAGMA database_list").fetchone()[2]
    record.info["recap_file"] = (file, _place(file)) if file else None
    connection.isolation_level = None  # transactions are begun by Database, not guessed by the driver
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        *(() if record.info.get("recap_read_only") else ("journal_mode = WAL",)),
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
