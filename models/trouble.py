"""What is the matter when a database fails, told by SQLite's own codes and not by its words."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

RECHECK_SECONDS = 60.0  # between looks at a whole file that was found damaged: each reads all of it


class Trouble(StrEnum):
    """Why a database can't be used, as far as somebody can do something about it."""

    DAMAGED = "damaged"
    FULL = "full"
    READ_ONLY = "read only"
    NO_TABLES = "no tables"
    UNAVAILABLE = "unavailable"  # busy, out of reach, or anything else that may pass


_TROUBLES = {
    sqlite3.SQLITE_CORRUPT: Trouble.DAMAGED,
    sqlite3.SQLITE_NOTADB: Trouble.DAMAGED,
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: Trouble.FULL,  # the index of the log, which grows with it
    sqlite3.SQLITE_READONLY: Trouble.READ_ONLY,
    sqlite3.SQLITE_IOERR: Trouble.UNAVAILABLE,
    sqlite3.SQLITE_CANTOPEN: Trouble.UNAVAILABLE,
    sqlite3.SQLITE_BUSY: Trouble.UNAVAILABLE,
    sqlite3.SQLITE_LOCKED: Trouble.UNAVAILABLE,
    sqlite3.SQLITE_PROTOCOL: Trouble.UNAVAILABLE,
}


def trouble_of(error: BaseException) -> Trouble | None:
    """What an error of the database, or of its driver, tells of; None for one that is a mistake in what was asked."""
    if isinstance(error, PoolTimeout):
        return Trouble.UNAVAILABLE
    said = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(said, "sqlite_errorcode", None)
    if code is not None:
        known = _TROUBLES.get(code) or _TROUBLES.get(code & 0xFF)
        return known or (Trouble.NO_TABLES if "no such table" in str(said) else None)
    if isinstance(error, DBAPIError) and isinstance(said, TimeoutError):  # see Database.write
        return Trouble.UNAVAILABLE
    if type(said).__name__ == "UndefinedTable":
        return Trouble.NO_TABLES
    passing = isinstance(error, DBAPIError) and type(error).__name__ in ("OperationalError", "InterfaceError")
    return Trouble.UNAVAILABLE if passing else None


class Damage:
    """Whether the database's file was found damaged, known to all processes by a file beside it.

    It is believed until all of the file reads well again, as after a restore: that is looked at every
    RECHECK_SECONDS, when somebody asks.
    """

    def __init__(self, database: Path | None) -> None:
        """`database` is SQLite's file; None where there is none, and nothing is ever noted."""
        self._mark = database.with_name(f"{database.name}.damaged") if database is not None else None
        self._noted = False
        self._rechecking = threading.Lock()
        self._recheck_at = 0.0

    def note(self) -> None:
        """It was found damaged."""
        self._noted = self._mark is not None
        if self._mark is not None:
            with suppress(OSError):  # a full or read-only disk: then this process alone knows
                self._mark.touch()

    def stands(self, reads_well: Callable[[], bool]) -> bool:
        """Whether it is damaged; `reads_well` looks at all of it."""
        if self._mark is None or not (self._noted or self._mark.exists()):
            return False
        with self._rechecking:
            if time.monotonic() < self._recheck_at:
                return True
            try:
                well = reads_well()
            except (SQLAlchemyError, sqlite3.Error):
                well = False
            if well:
                self._noted = False
                with suppress(OSError):
                    self._mark.unlink(missing_ok=True)
            else:
                self._recheck_at = time.monotonic() + RECHECK_SECONDS
            return not well


def on_read_only_disk(file: Path) -> bool:
    """Whether the file's disk takes no writes from anybody here."""
    try:
        return bool(os.statvfs(file.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False
