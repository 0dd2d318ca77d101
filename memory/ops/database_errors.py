"""A database that fails, for whoever meets it: what happened, what it means for the data, what to do.

Guarantee: a mistake of Recap's own (a statement that is wrong) is none of these; it stays what it is.
"""

from __future__ import annotations

from memory.errors import RecapError
from models.errors import Trouble, trouble_of

NOT_STORED = "Nothing of this request was stored."
RESTORE = "Stop Recap and bring back a backup with `flask --app wsgi restore FILE`; docs/operations.md says how."
UPGRADE = "Run `flask --app wsgi db upgrade` (make run does)"
DAMAGED = f"damaged. {RESTORE}"

_CODES = {Trouble.DAMAGED: "database_damaged", Trouble.FULL: "disk_full", Trouble.READ_ONLY: "database_read_only"}


class DatabaseFailed(RecapError):
    """The database can't be used for this now (503)."""

    status = 503


def database_failed(error: BaseException, consequence: str = NOT_STORED) -> DatabaseFailed | None:
    """The error as it is told, `consequence` being what it means for the data; None when it is a mistake of ours."""
    trouble = trouble_of(error)
    if trouble is None:
        return None
    return DatabaseFailed(_CODES.get(trouble, "database_unavailable"), _told(trouble, consequence))


def in_short(error: BaseException) -> str:
    """The same for whoever looks whether the service is well."""
    return {
        Trouble.DAMAGED: DAMAGED,
        Trouble.FULL: "the disk is full: free some space",
        Trouble.READ_ONLY: "can't be written: make the data directory writable",
        Trouble.NO_TABLES: f"no tables: {UPGRADE[0].lower()}{UPGRADE[1:]}",
    }.get(trouble_of(error) or Trouble.UNAVAILABLE, "can't be read; see the log")


def _told(trouble: Trouble, consequence: str) -> str:
    if trouble is Trouble.DAMAGED:
        return (
            "The database file is damaged: a part of it is not what was written. "
            f"{consequence} What lies in other parts can still be read. {RESTORE}"
        )
    if trouble is Trouble.FULL:
        return f"The disk is full. {consequence} Free some space, then send it again; no restart is needed."
    if trouble is Trouble.READ_ONLY:
        return (
            f"The data directory can't be written. {consequence} What is stored can be read. "
            "Make it writable, then send it again; no restart is needed."
        )
    if trouble is Trouble.NO_TABLES:
        return f"The database has no tables yet. {UPGRADE}, then try again."
    return f"The database can't be used right now. {consequence} Try again."
