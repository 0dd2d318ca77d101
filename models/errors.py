"""Faults of a database, told from SQLite's error codes instead of its messages."""

import os
import sqlite3
from enum import StrEnum
from pathlib import Path

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout


class DatabaseFault(StrEnum):
    """Reason why a database can't be used, as far as an operator can do something about it."""

    DAMAGED = "damaged"
    FULL = "full"
    READ_ONLY = "read only"
    MISSING = "missing"
    LOG_MISSING = "log missing"
    SCHEMA = "wrong schema"
    UNAVAILABLE = "unavailable"  # busy, out of reach, or anything else that may pass


class DatabaseLost(SQLAlchemyError):
    """SQLite's files are not what they were: what is written may be lost, although SQLite reports no error."""

    def __init__(self, fault: DatabaseFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


_FAULTS = {
    sqlite3.SQLITE_CORRUPT: DatabaseFault.DAMAGED,
    sqlite3.SQLITE_NOTADB: DatabaseFault.DAMAGED,
    sqlite3.SQLITE_FULL: DatabaseFault.FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: DatabaseFault.FULL,  # the index of the log, which grows with it
    sqlite3.SQLITE_READONLY: DatabaseFault.READ_ONLY,
}
_UNDEFINED = ("no such table", "no such column", "has no column named")  # which have no code of their own


def fault_of(error: BaseException) -> DatabaseFault | None:
    """Return the fault behind an error of SQLAlchemy or of a driver; None when the statement itself was wrong."""
    if isinstance(error, DatabaseLost):
        return error.fault
    if isinstance(error, PoolTimeout):
        return DatabaseFault.UNAVAILABLE
    original = error.orig if isinstance(error, DBAPIError) else error
    code: int = getattr(original, "sqlite_errorcode", sqlite3.SQLITE_OK)
    if code == sqlite3.SQLITE_ERROR:
        return DatabaseFault.SCHEMA if any(text in str(original) for text in _UNDEFINED) else None
    if type(original).__name__ in ("UndefinedTable", "UndefinedColumn"):  # psycopg's; imported only where it is used
        return DatabaseFault.SCHEMA
    fault = _FAULTS.get(code) or _FAULTS.get(code & 0xFF)  # the upper bits of a code tell more than is needed
    passing = isinstance(error, (OperationalError, InterfaceError, sqlite3.OperationalError))
    return fault or (DatabaseFault.UNAVAILABLE if passing else None)


def on_read_only_disk(file: Path) -> bool:
    """Return whether the file lies on a disk that is mounted read-only."""
    try:
        return bool(os.statvfs(file.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False
