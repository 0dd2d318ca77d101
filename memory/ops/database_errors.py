"""Errors of the database in words: what happened, what it means for the data, what to do.

Guarantee: an error of Recap's own, such as a wrong value, is not reported as trouble of the database.
"""

from __future__ import annotations

from memory.errors import RecapError
from models.errors import Trouble, trouble_of
from models.schema import revisions

NOT_STORED = "Nothing of this request was stored."
RETRY_SECONDS = 5.0  # in which a database server restarts
RESTORE = "Stop Recap and bring back a backup with `flask --app wsgi restore FILE`; docs/operations.md says how."
DAMAGED = f"damaged. {RESTORE}"
_MAY_BE_LOST = "What this request wrote may be lost."
_PUT_BACK = "Put the file back, or stop Recap and bring back a backup with `flask --app wsgi restore FILE`"
_RESTART = "Put the file back, or restart Recap with SIGTERM: it then writes what it holds into the database"
_UPGRADE = "`flask --app wsgi db upgrade` (make run does)"
_NEWER = "run the version of Recap that made it, or restore a backup of this one"

# For each trouble: the error's code, its message around the consequence, and its short form for /health/ready.
_TOLD = {
    Trouble.DAMAGED: (
        "database_damaged",
        "The database file is damaged: a part of it is not what was written. {} What lies in other parts can still be "
        f"read. {RESTORE}",
        DAMAGED,
    ),
    Trouble.FULL: (
        "disk_full",
        "The disk is full. {} Free some space, then send it again; no restart is needed.",
        "the disk is full: free some space",
    ),
    Trouble.READ_ONLY: (
        "database_read_only",
        "The data directory can't be written. {} What is stored can be read. Make it writable, then send it again; no "
        "restart is needed.",
        "can't be written: make the data directory writable",
    ),
    Trouble.MISSING: (
        "database_missing",
        f"The database file is missing, empty, or another one. {_MAY_BE_LOST} {_PUT_BACK}, then send it again; no "
        f"restart is needed. For a new database run {_UPGRADE}.",
        "the file is missing or empty, or was cut short and set aside under another name (.former). "
        f"{_PUT_BACK}. For a new database run {_UPGRADE}",
    ),
    Trouble.LOG_MISSING: (
        "database_log_missing",
        "A file beside the database, its log (-wal) or the log's index (-shm), was removed or replaced. "
        f"{_MAY_BE_LOST} {_RESTART}, then send it again.",
        f"its -wal or -shm file was removed or replaced. {_RESTART}",
    ),
    Trouble.SCHEMA: (
        "database_schema",
        f"The database does not have the tables that this version of Recap needs. {{}} Run {_UPGRADE}, then try again; "
        f"if that finds an unknown revision, {_NEWER}.",
        f"tables are missing or differ: run {_UPGRADE}",
    ),
    Trouble.UNAVAILABLE: (
        "database_unavailable",
        "The database can't be used right now. {} Try again.",
        "can't be read; see the log",
    ),
}


class DatabaseFailed(RecapError):
    """The database cannot be used for this now (503)."""

    status = 503


def database_failed(error: BaseException, consequence: str = NOT_STORED) -> DatabaseFailed | None:
    """The error to report; `consequence` says what it means for the data.  None for an error of Recap's own."""
    trouble = trouble_of(error)
    if trouble is None:
        return None
    code, message, _ = _TOLD[trouble]
    passes = RETRY_SECONDS if trouble is Trouble.UNAVAILABLE else None
    return DatabaseFailed(code, message.format(consequence), retry_after=passes)


def in_short(error: BaseException) -> str:
    """The trouble in a few words, for health checks."""
    return _TOLD[trouble_of(error) or Trouble.UNAVAILABLE][2]


def schema_differs(found: str | None) -> str | None:
    """Why a database of the revision `found` can't be used, and what to do; None when it has the one that is needed."""
    needed = revisions()[0]
    if found == needed:
        return None
    if found is None or found in revisions():
        return f"its schema is {found or 'missing'}, this version of Recap needs {needed}: run {_UPGRADE}"
    return f"its schema is {found}, which this version of Recap does not know: {_NEWER}"
