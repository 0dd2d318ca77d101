"""Connections to an SQLite file: how one is opened, when it is still good, and how a transaction begins on it.

Guarantee: no transaction begins on a connection to a file that has been replaced, or on one that was opened on a
read-only disk which can be written again.  All of it is done by events of SQLAlchemy's engine and pool.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DisconnectionError

from models.errors import on_read_only_disk

BUSY_TIMEOUT_MS = 1_000  # SQLite waits so long for a lock; `Database.write` tries again while its patience lasts


def prepare(engine: Engine) -> None:
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
