"""An SQLite database's files, and this process's connections to them.

An open file stays open when its name is removed or given to another: SQLite goes on writing where nobody will look.
Its log (`-wal`) and the log's index (`-shm`) take commits too, and the log is of use with its own database alone.

Guarantee: a transaction begins, and its commit is acknowledged, only while the files under the database's names are
those that its connection has open, whole as far as SQLite knows.  No file is made here: migrations make databases.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError

from models.errors import DatabaseFault, DatabaseLost, fault_of, on_read_only_disk

BUSY_TIMEOUT_MS = 1_000  # SQLite waits so long for a lock; `Database.write` tries again while its lock_timeout lasts
RECHECK_SECONDS = 60.0  # between checks of a damaged file: each reads all of it
SETTLE_SECONDS = 0.1  # SQLite writes, makes and removes these files one after the other: what is so for longer, stays

Opened = tuple[tuple[int, int] | None, ...]  # device and inode of the database, its log and the log's index


class SQLiteFile:
    """The database file of one engine.  Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._file = Path(engine.url.database or "").resolve()
        self._files = (self._file, Path(f"{self._file}-wal"), Path(f"{self._file}-shm"))
        self._length = 0
        self._damage = self._file.with_name(f"{self._file.name}.damaged")  # a mark that tells all processes
        self._recheck_at = 0.0
        event.listen(engine, "do_connect", self._open)
        event.listen(engine, "connect", self._set_up)
        event.listen(engine, "checkout", self._check)
        event.listen(engine, "begin", self._begin)
        event.listen(engine, "handle_error", self._handle_error)

    def damaged(self) -> bool:
        """Whether any process found the file damaged, and it has not been read whole since, as after a restore."""
        if self._damage.exists() and time.monotonic() >= self._recheck_at:
            self._recheck_at = time.monotonic() + RECHECK_SECONDS
            with suppress(SQLAlchemyError, sqlite3.Error, OSError):
                if self._reads_well():
                    self._damage.unlink(missing_ok=True)
        return self._damage.exists()

    def confirm(self, opened: Opened | None) -> None:
        """Raise DatabaseLost when what was written to the files `opened` may be lost."""
        if opened is not None and (trouble := self._trouble(opened)):
            raise DatabaseLost(trouble)

    def _trouble(self, opened: Opened) -> DatabaseFault | None:
        now = self._look()
        if now[0] != opened[0]:
            return DatabaseFault.MISSING
        if now != opened or None in now:
            return DatabaseFault.LOG_MISSING
        length = self._file.stat().st_size
        if length != self._length and self._cut_short():
            return DatabaseFault.DAMAGED
        self._length = length
        return None

    def _look(self) -> Opened:
        return tuple(map(_identity, self._files))

    def _cut_short(self) -> bool:
        """Whether the file is shorter than its header says, and stays so: SQLite writes the header before the rest."""
        until = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < until:
            try:
                with closing(sqlite3.connect(self._uri("mode=ro&immutable=1"), uri=True)) as alone:
                    return bool(alone.execute("PRAGMA page_count").fetchone() == (0,))
            except sqlite3.DatabaseError as error:
                if fault_of(error) is not DatabaseFault.DAMAGED:
                    return False
            time.sleep(SETTLE_SECONDS / 20)
        return not self._whole()

    def _whole(self) -> bool:
        """Whether a new connection can read everything, with the log."""
        try:
            with closing(sqlite3.connect(self._uri("mode=rw"), uri=True)) as new:
                return bool(new.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))
        except sqlite3.DatabaseError as error:
            return fault_of(error) is not DatabaseFault.DAMAGED

    def _check(self, connection: Any, record: Any, _proxy: Any) -> None:
        if record.info.get("read_only") and not on_read_only_disk(self._file):
            self._engine.dispose()  # a process's connections share what SQLite knows of a file: all of them have to go
            raise DisconnectionError("the disk can be written again")
        opened = record.info.get("opened")
        record.info["trouble"] = trouble = self._trouble(opened) if opened is not None else None
        if trouble is DatabaseFault.DAMAGED:
            self._set_aside(opened)
        elif trouble is not None:
            _empty_log(connection, trouble)
        if trouble is DatabaseFault.MISSING and self._file.exists():
            self._set_aside(opened)  # its log: SQLite would read it over the database that is there now
            self._recheck_at = 0.0
            self._engine.dispose()
            raise DisconnectionError("another file was put in the place of the database")

    def _set_aside(self, opened: Opened) -> None:
        """Give what is left of `opened` other names, so that whatever is put in its place is not mixed up with it."""
        for file, before in zip(self._files, opened, strict=True):
            if _identity(file) == before:
                with suppress(OSError):
                    file.replace(file.with_name(file.name.replace(self._file.name, f"{self._file.name}.former")))

    def _reads_well(self) -> bool:
        if not self._file.exists():
            return False
        self._engine.dispose()  # open connections remember pages of the damaged file
        with self._engine.connect() as connection:
            return bool(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() == "ok")

    def _handle_error(self, context: ExceptionContext) -> None:
        """Remember damage; drop connections that were opened on a read-only disk which can be written again."""
        trouble = fault_of(context.original_exception)
        if trouble is DatabaseFault.DAMAGED:
            with suppress(OSError):
                self._damage.touch()
        elif trouble is DatabaseFault.READ_ONLY and not on_read_only_disk(self._file):
            context.is_disconnect = True
            self._engine.dispose()

    def _begin(self, connection: Connection) -> None:
        """Begin as the connection's options say: `begin` is the statement; a writer also sets `synchronous`."""
        if trouble := connection.info.get("trouble"):
            raise DatabaseLost(trouble)
        options = connection.get_execution_options()
        synchronous = options.get("synchronous")
        if synchronous is not None and connection.info.get("synchronous", "FULL") != synchronous:
            connection.exec_driver_sql(f"PRAGMA synchronous = {synchronous}")
            connection.info["synchronous"] = synchronous
        connection.exec_driver_sql(options.get("begin", "BEGIN"))

    def _open(self, _dialect: Any, record: Any, _names: Any, options: Any) -> Any:
        """Open the file; on a read-only disk as immutable: SQLite can't make the log it needs to read it with others.

        If the log is there, somebody had the file open when the disk became read-only, and SQLite opens it as usual.
        """
        database, log, index = self._look()
        read_only = record.info["read_only"] = database is not None and on_read_only_disk(self._file)
        if database is None or not self._file.stat().st_size:
            raise DatabaseLost(DatabaseFault.MISSING)
        until = time.monotonic() + SETTLE_SECONDS
        while index is not None and log is None:
            if time.monotonic() >= until:  # others use a log that was removed; SQLite would begin another
                raise DatabaseLost(DatabaseFault.LOG_MISSING)
            time.sleep(SETTLE_SECONDS / 20)  # or others are the first to open the database, or the last to close it
            _, log, index = self._look()
        how = "mode=ro&immutable=1" if read_only and log is None else "mode=rw"
        return sqlite3.connect(self._uri(how), **{**options, "uri": True})

    def _set_up(self, connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the `begin` event begins transactions, not the driver
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        if not record.info["read_only"]:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA schema_version")  # reading opens the log
        record.info["opened"] = None if record.info["read_only"] else self._look()
        connection.execute("PRAGMA synchronous = FULL")  # what is acknowledged survives a power cut
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # erased bytes are overwritten
        # SQLite's own lower() knows only A to Z; a search has to ignore case in every script.
        connection.create_function("lower", 1, _lower, deterministic=True)

    def _uri(self, how: str) -> str:
        return f"file:{quote(str(self._file))}?{how}"


def _empty_log(connection: Any, trouble: DatabaseFault) -> None:
    """Write what a connection's log holds into the database it has open, whatever its name is now, as far as it can be.

    A log that others may have begun to use in another way is not cut.
    """
    how = "PASSIVE" if trouble is DatabaseFault.LOG_MISSING else "TRUNCATE"
    with suppress(sqlite3.Error):
        connection.execute(f"PRAGMA wal_checkpoint({how})")


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _lower(text: Any) -> Any:
    return text.lower() if isinstance(text, str) else text
