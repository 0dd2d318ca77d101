"""Why a database fails, told from SQLite's error codes instead of its messages."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

RECHECK_SECONDS = 60.0  # between checks of a damaged file: each reads all of it


class Trouble(StrEnum):
    """Why a database can't be used, as far as an operator can do something about it."""

    DAMAGED = "damaged"
    FULL = "full"
    READ_ONLY = "read only"
    MISSING = "missing"
    LOG_MISSING = "log missing"
    SCHEMA = "wrong schema"
    UNAVAILABLE = "unavailable"  # busy, out of reach, or anything else that may pass


class DatabaseLost(SQLAlchemyError):
    """SQLite's files are not what they were: what is written may be lost, although SQLite reports no error."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.value)
        self.trouble = trouble


_TROUBLES = {
    sqlite3.SQLITE_CORRUPT: Trouble.DAMAGED,
    sqlite3.SQLITE_NOTADB: Trouble.DAMAGED,
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: Trouble.FULL,  # the index of the log, which grows with it
    sqlite3.SQLITE_READONLY: Trouble.READ_ONLY,
}
_UNDEFINED = ("no such table", "no such column", "has no column named")  # which have no code of their own


def trouble_of(error: BaseException) -> Trouble | None:
    """The trouble behind an error of SQLAlchemy or of a driver; None when the statement itself was wrong."""
    if isinstance(error, DatabaseLost):
        return error.trouble
    if isinstance(error, PoolTimeout):
        return Trouble.UNAVAILABLE
    original = error.orig if isinstance(error, DBAPIError) else error
    code: int = getattr(original, "sqlite_errorcode", sqlite3.SQLITE_OK)
    if code == sqlite3.SQLITE_ERROR:
        return Trouble.SCHEMA if any(text in str(original) for text in _UNDEFINED) else None
    if type(original).__name__ in ("UndefinedTable", "UndefinedColumn"):  # psycopg's; imported only where it is used
        return Trouble.SCHEMA
    known = _TROUBLES.get(code) or _TROUBLES.get(code & 0xFF)  # the upper bits of a code tell more than is needed
    passing = isinstance(error, (OperationalError, InterfaceError, sqlite3.OperationalError))
    return known or (Trouble.UNAVAILABLE if passing else None)


class Damage:
    """Whether SQLite's file was found damaged.  A mark beside the file tells all processes.

    The mark stays until the whole file can be read again, as after a restore; that is checked every RECHECK_SECONDS,
    and at once when `recheck_at` is set to 0.
    """

    def __init__(self, database: Path) -> None:
        self._mark = database.with_name(f"{database.name}.damaged")
        self.recheck_at = 0.0

    def note(self) -> None:
        """Remember that the file is damaged, if the disk can be written."""
        with suppress(OSError):
            self._mark.touch()

    def stands(self, reads_well: Callable[[], bool]) -> bool:
        """Whether the file is damaged; `reads_well` reads all of it."""
        if not self._mark.exists():
            return False
        if time.monotonic() < self.recheck_at:
            return True
        self.recheck_at = time.monotonic() + RECHECK_SECONDS
        with suppress(SQLAlchemyError, sqlite3.Error, OSError):
            if reads_well():
                self._mark.unlink(missing_ok=True)
                return False
        return True


def on_read_only_disk(file: Path) -> bool:
    """Whether the file lies on a disk that is mounted read-only."""
    try:
        return bool(os.statvfs(file.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False
