"""Faults of a database: which one is behind an error, and what people are told of it, such as that the disk is full."""

import errno
import os
import sqlite3
from enum import StrEnum
from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from models.schema import NEWER, UPGRADE


class DatabaseFault(StrEnum):
    """Reason why a database can't be used, as far as an operator can do something about it."""

    DAMAGED = "damaged"
    FULL = "full"
    READ_ONLY = "read only"
    MISSING = "missing"
    LOG_MISSING = "log missing"
    SCHEMA = "wrong schema"
    CUT_OFF = "cut off in a commit"  # nobody knows whether it was done
    UNAVAILABLE = "unavailable"  # busy, out of reach, or anything else that may pass

    @property
    def may_lose_writes(self) -> bool:
        """Return whether a write that met it may have been committed, and lost."""
        return self in (DatabaseFault.MISSING, DatabaseFault.LOG_MISSING, DatabaseFault.CUT_OFF)


class DatabaseLost(SQLAlchemyError):
    """Commit that may be lost, or not: SQLite's files are not what they were, or a server's connection broke off."""

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
# psycopg's, which is imported only where it is used.  Prepared statements get lost behind a pooler of transactions.
_REFUSED = ("InsufficientPrivilege", "ReadOnlySqlTransaction", "DuplicatePreparedStatement", "InvalidSqlStatementName")
_UNDEFINED = ("no such table", "no such column", "has no column named")  # which have no code of their own


def fault_of(error: BaseException) -> DatabaseFault | None:
    """Return the fault behind an error of SQLAlchemy or of a driver; None when the statement itself was wrong."""
    if isinstance(error, DatabaseLost):
        return error.fault
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):  # of a file beside the database
        return DatabaseFault.FULL
    if isinstance(error, PoolTimeout):
        return DatabaseFault.UNAVAILABLE
    original = error.orig if isinstance(error, DBAPIError) else error
    code: int = getattr(original, "sqlite_errorcode", sqlite3.SQLITE_OK)
    if code == sqlite3.SQLITE_ERROR:
        return DatabaseFault.SCHEMA if any(text in str(original) for text in _UNDEFINED) else None
    if type(original).__name__ in ("UndefinedTable", "UndefinedColumn"):
        return DatabaseFault.SCHEMA
    fault = _FAULTS.get(code) or _FAULTS.get(code & 0xFF)  # the upper bits of a code tell more than is needed
    passing = isinstance(error, (OperationalError, InterfaceError, sqlite3.OperationalError))
    return fault or (DatabaseFault.UNAVAILABLE if passing or type(original).__name__ in _REFUSED else None)


def on_read_only_disk(file: Path) -> bool:
    """Return whether the file lies on a disk that is mounted read-only."""
    try:
        return bool(os.statvfs(file.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False


# -- what people are told

RESTORE = "Stop Recap and bring back a backup with `recap restore FILE`; docs/operations.md says how."
DAMAGED = f"damaged. {RESTORE}"
_NEW = "For a new database move the file and its log (-wal) away, as far as they are there, and run"
_PUT_BACK = "Put the file back, or stop Recap and bring back a backup with `recap restore FILE`"
_RESTART = (
    "If this lasts, restart Recap with SIGTERM: it then writes what it holds into the database. If no process of Recap "
    "runs, what the log had is lost: put the log back, or delete the -shm file to go on without it"
)


# For each fault: the error's code, its message around the consequence and what to do at the end, and its short form for
# /health/ready.
_MESSAGES = {
    DatabaseFault.DAMAGED: (
        "database_damaged",
        "The database file is damaged: a part of it is not what was written. {0} What lies in other parts can still be "
        f"read. {RESTORE}",
        DAMAGED,
    ),
    DatabaseFault.FULL: (
        "disk_full",
        "The disk is full. {0} Free some space, then {1}.",
        "the disk is full: free some space",
    ),
    DatabaseFault.READ_ONLY: (
        "database_read_only",
        "The data directory can't be written. {0} What is stored can be read. Make it writable, then {1}.",
        "can't be written: make the data directory writable",
    ),
    DatabaseFault.MISSING: (
        "database_missing",
        f"The database file is missing, empty, or another one. {{0}} {_PUT_BACK}, then {{1}}. {_NEW} {UPGRADE}.",
        f"the file is missing, empty, or another one. {_PUT_BACK}. {_NEW} {UPGRADE}",
    ),
    DatabaseFault.LOG_MISSING: (
        "database_log_missing",
        "A file beside the database, its log (-wal) or the log's index (-shm), was removed or replaced. {0} Try again. "
        f"{_RESTART}.",
        f"its -wal or -shm file was removed or replaced. {_RESTART}",
    ),
    DatabaseFault.SCHEMA: (
        "database_schema",
        f"The database does not have the tables that this version of Recap needs. {{0}} Run {UPGRADE}, then try "
        f"again; if that finds an unknown revision, {NEWER}.",
        f"tables are missing or differ: run {UPGRADE}",
    ),
    DatabaseFault.CUT_OFF: (
        "database_unavailable",
        "The connection to the database broke off while it was storing this. {0} Wait, look whether it is there, then "
        "{1}. If this lasts, look at the server's log.",
        "can't be read; see the log",
    ),
    DatabaseFault.UNAVAILABLE: (
        "database_unavailable",
        "The database can't be used right now. {0} Wait, then {1}. If this lasts, look at the server's log.",
        "can't be read; see the log",
    ),
}


def message_of(fault: DatabaseFault, consequence: str, remedy: str) -> tuple[str, str]:
    """Return the code and the message of a fault. remedy: what to do at the end, such as `send it again`."""
    code, message, _ = _MESSAGES[fault]
    return code, message.format(consequence, remedy)


def command_failed(error: SQLAlchemyError | sqlite3.Error, url: URL) -> str | None:
    """Return what to tell who ran a command; None for an error of Recap's own."""
    fault = fault_of(error)
    if fault is None:
        return None
    changed = "What this command wrote, if anything, may be lost." if fault.may_lose_writes else "Nothing was changed."
    consequence = f"The database is {url.render_as_string()} by the settings of this folder. {changed}"
    if fault is DatabaseFault.UNAVAILABLE:
        reason = str(error.orig if isinstance(error, DBAPIError) else error).strip().partition("\n")[0]
        consequence += f' It says: "{reason}".'
        if url.get_backend_name() == "sqlite":
            consequence += " Its folder may be missing, this account may not open it, or another program holds it."
    return message_of(fault, consequence, "run this again")[1]


def in_short(error: BaseException) -> str:
    """Return the fault in a few words, for health checks."""
    return _MESSAGES[fault_of(error) or DatabaseFault.UNAVAILABLE][2]
