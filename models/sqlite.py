"""SQLite: the files of a database, and how this process opens them and sets its connections up.

An open file stays open when its name is removed or given to another: SQLite goes on writing where nobody will look.
Its log (`-wal`) and the log's index (`-shm`) take commits too, and the log is of use with its own database alone.

Invariants:
- A commit is acknowledged only if the names still belong to the files that its connection has open (test_lost_files).
- No file is made here: migrations make databases (test_lost_files).
"""

import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DisconnectionError

from models.database_faults import DatabaseFault, DatabaseLost, fault_of, on_read_only_disk

BUSY_TIMEOUT_MS = 1_000  # SQLite waits so long for a lock; `Database.write` tries again while its lock_timeout lasts
SETTLE_SECONDS = 0.1  # SQLite makes and removes the log and its index one after the other

Opened = tuple[tuple[int, int] | None, ...]  # device and inode of the database, its log and the log's index


class SQLiteFile:
    """Database file of one engine. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._file = Path(engine.url.database or "").resolve()
        self._files = (self._file, Path(f"{self._file}-wal"), Path(f"{self._file}-shm"))
        self._mark = self._file.with_name(f"{self._file.name}.damaged")  # tells all processes which file is damaged
        self._lost: Opened | None = None
        event.listen(engine, "do_connect", self._open)
        event.listen(engine, "connect", self._set_up)
        event.listen(engine, "checkout", self._check_out)
        event.listen(engine, "handle_error", self._handle_error)

    def damaged(self) -> bool:
        """Return whether a process found the file that is there now damaged."""
        with suppress(OSError):
            if self._mark.read_text() == str(_identities(self._file)[0]):
                return True
            self._mark.unlink()  # another file is in its place, as after a restore
        return False

    def check_file(self, opened: Opened | None) -> None:
        """Raise DatabaseLost when what was written to the files `opened` may be lost."""
        if opened is not None and (current := _identities(*self._files)) != opened:
            moved = current[0] != opened[0]
            raise DatabaseLost(DatabaseFault.MISSING if moved else DatabaseFault.LOG_MISSING)

    def _check_out(self, connection: Any, record: Any, _proxy: Any) -> None:
        """Give up all connections when their files are no longer those of the names; the pool opens new ones."""
        opened: Opened | None = record.info["opened"]
        if _identities(*self._files) == opened if opened is not None else on_read_only_disk(self._file):
            return
        if opened is not None:
            self._lost = opened
            if _identities(self._file)[0] != opened[0]:
                # Closing a file that was moved does not do this, and SQLite would not find the log under its new name.
                with suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._engine.dispose()  # closing the last connection writes the log into its database
        raise DisconnectionError("the names belong to other files, or the disk can be written again")

    def _open(self, _dialect: Any, record: Any, _names: Any, options: Any) -> Any:
        """Open the file; on a read-only disk as immutable: SQLite can't make the log it needs to read it with others.

        If the log is there, somebody had the file open when the disk became read-only, and SQLite opens it as usual.
        """
        database, log, index = _identities(*self._files)
        read_only = record.info["read_only"] = database is not None and on_read_only_disk(self._file)
        if database is None or not self._file.stat().st_size:
            raise DatabaseLost(DatabaseFault.MISSING)
        if self._lost is not None and database != self._lost[0]:
            self._set_log_aside(self._lost)
        until = time.monotonic() + SETTLE_SECONDS
        while _is_torn(log, index, loss_is_known=self._lost is not None):
            if time.monotonic() >= until:
                raise DatabaseLost(DatabaseFault.LOG_MISSING)
            time.sleep(SETTLE_SECONDS / 20)
            _, log, index = _identities(*self._files)
        how = "mode=ro&immutable=1" if read_only and log is None else "mode=rw"
        return sqlite3.connect(f"file:{quote(str(self._file))}?{how}", **{**options, "uri": True})

    def _set_log_aside(self, lost: Opened) -> None:
        """Rename a former database's log, which SQLite would apply to the database that is there now."""
        for file, identity in zip(self._files[1:], lost[1:], strict=True):
            if _identities(file)[0] == identity:
                with suppress(OSError):
                    file.replace(file.with_name(file.name.replace(self._file.name, f"{self._file.name}.former")))

    def _set_up(self, connection: Any, record: Any) -> None:
        set_up_connection(connection)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        if not record.info["read_only"]:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA schema_version")  # reading opens the log
        record.info["opened"] = None if record.info["read_only"] else _identities(*self._files)
        record.info["synchronous"] = "FULL"  # what is acknowledged survives a power cut
        connection.execute("PRAGMA synchronous = FULL")

    def _handle_error(self, context: ExceptionContext) -> None:
        """Remember damage; drop connections that were opened on a read-only disk which can be written again."""
        fault = fault_of(context.original_exception)
        if fault is DatabaseFault.DAMAGED:
            with suppress(OSError):
                self._mark.write_text(str(_identities(self._file)[0]))
        elif fault is DatabaseFault.READ_ONLY and not on_read_only_disk(self._file):
            context.is_disconnect = True
            self._engine.dispose()


def set_up_connection(connection: Any) -> None:
    """Set up what a new connection to any SQLite database needs."""
    connection.isolation_level = None  # `Database` begins transactions, not the driver
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")  # erased bytes are overwritten
    # SQLite's own lower() knows only A to Z; a search has to ignore case in every script.
    connection.create_function("lower", 1, _lower, deterministic=True)


def is_in_memory(url: URL) -> bool:
    """Return whether a database is in memory: for tests of programs that embed Recap. It ends with its process."""
    return url.get_backend_name() == "sqlite" and url.query.get("mode") == "memory"


def set_up_in_memory(connection: Any, record: Any) -> None:
    """Set up the one connection to a database in memory."""
    set_up_connection(connection)
    record.info |= {"opened": None, "synchronous": "FULL"}


def _is_torn(log: object, index: object, *, loss_is_known: bool) -> bool:
    """Return whether others still use a log or an index that was removed: a new one would not fit theirs.

    An index that is missing alone is usual after a copy, so it counts only with `loss_is_known`.
    """
    return (log is None and index is not None) or (loss_is_known and log is not None and index is None)


def _identities(*files: Path) -> Opened:
    found: list[tuple[int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino))
    return tuple(found)


def _lower(text: Any) -> Any:
    return text.lower() if isinstance(text, str) else text
