"""Backups of a live SQLite database, and restoring one.

A backup is one SQLite file: a snapshot of what was committed when it began, taken while others read and write.  VACUUM
INTO writes it from the living rows, so nothing that was erased before is in it.

Invariants:
- A file under a backup's name is whole, checked, and readable by its owner alone; a failure leaves none (test_backup).
- A restore checks the backup, then puts a copy in place at once or changes nothing. It keeps the former database, and
  drops the search index, which is made again from the rows (test_backup).
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine

from memory.errors import Conflict, InvalidRequest
from models.schema import revisions, why_too_old

# What was leased when the backup was made is nobody's now.  At the end the database is one file, without a log.
_NOBODY_AT_WORK = """
    PRAGMA secure_delete = ON;
    UPDATE sessions SET lease_token = NULL, lease_until = NULL, stop_token = NULL;
    UPDATE jobs SET lease_token = NULL, lease_until = NULL;
    UPDATE jobs SET state = 'pending' WHERE state = 'running';
    PRAGMA journal_mode = DELETE;
"""


@dataclass(frozen=True)
class Backup:
    """Contents of a backup: the schema's revision, counts, and the time of the newest message."""

    revision: str
    sessions: int
    messages: int
    last_message_at: str | None

    def __str__(self) -> str:
        newest = f", the newest of {self.last_message_at[:19]} UTC" if self.last_message_at else ""
        return f"{self.sessions} sessions, {self.messages} messages{newest}"


def back_up(engine: Engine, target: Path, *, force: bool = False) -> Backup:
    """Write a backup of the database of `engine`, which may be in use, to `target`.

    Raises Conflict when the file exists (unless `force`), InvalidRequest when the database is missing, damaged or not
    SQLite, OSError when the file cannot be written.  No new file is left then.
    """
    source = database_file(engine)
    if target.exists() and (not force or (source.exists() and target.samefile(source))):
        raise Conflict(
            "backup_exists",
            f"{target} is there already, or is the database itself. Nothing was written; choose another name. --force "
            "writes over any file but the database.",
        )
    try:
        with _new_file(target) as part:
            with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as database:
                database.execute("VACUUM INTO ?", (str(part),))
            backup = examine(part)
            _sync(part)
            part.replace(target)
            _sync(target.parent)
    except sqlite3.DatabaseError as error:
        raise InvalidRequest(
            "backup_failed",
            f"The database {source} could not be backed up: {error}. No backup was written, and the database is as it "
            "was. If it is damaged, stop the server and bring the last backup back with `recap restore`.",
        ) from error
    return backup


def restore(
    engine: Engine,
    data_dir: Path,
    file: Path,
    *,
    upgrade: Callable[[Path], None],
    now: datetime,
) -> tuple[Backup, Path | None]:
    """Put the backup `file` in the place of the database of `engine`; returns what it holds, and where the former is.

    `upgrade` brings the schema of a database file up to date.  Raises Conflict while the database is in use, and
    InvalidRequest when the file is no backup, is damaged, or comes from a newer or a too old Recap; nothing has changed
    then.
    """
    place = database_file(engine)
    engine.dispose()
    with DataLock(data_dir).alone():
        backup = examine(file)
        too_old = why_too_old(backup.revision)
        if too_old is not None:
            raise InvalidRequest("backup_too_old", f"{file} can't be restored: {too_old}. Nothing was changed.")
        if backup.revision not in revisions():
            raise InvalidRequest(
                "backup_too_new",
                f"{file} is of a newer Recap than this one, with the schema {backup.revision}. Nothing was changed; "
                "update Recap first.",
            )
        with _new_file(place) as part:
            shutil.copyfile(file, part)
            upgrade(part)
            with closing(sqlite3.connect(part)) as database:
                database.executescript(_NOBODY_AT_WORK)
            if os.geteuid() == 0:  # the server's account has to open what root restores
                os.chown(part, data_dir.stat().st_uid, data_dir.stat().st_gid)
            if (index := data_dir / "index").exists():
                shutil.rmtree(index)
            _sync(part)
            with _moved_away(place, now) as former:
                part.replace(place)
            _sync(place.parent)
    return backup, former


def examine(file: Path) -> Backup:
    """Check the backup `file` and say what it holds.  Raises InvalidRequest when it is damaged or no backup."""
    if (wal := Path(f"{file}-wal")).exists() and wal.stat().st_size:
        raise InvalidRequest(
            "backup_unusable",
            f"{file} is no backup but a database with a log, {wal.name}, whose changes would be lost. Nothing was "
            "changed. Make a backup of it: RECAP_DATA_DIR=<its folder> recap backup FILE.",
        )
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            problems = [row[0] for row in database.execute("PRAGMA integrity_check(5)")]
            if problems != ["ok"]:
                raise sqlite3.DatabaseError("; ".join(" ".join(str(problem).split()) for problem in problems))
            if database.execute("PRAGMA foreign_key_check").fetchone() is not None:
                raise sqlite3.DatabaseError("rows refer to others that are not there")
            (revision,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
            (sessions,) = database.execute("SELECT count(*) FROM sessions").fetchone()
            messages, newest = database.execute("SELECT count(*), max(created_at) FROM messages").fetchone()
    except (sqlite3.DatabaseError, TypeError) as error:
        raise InvalidRequest(
            "backup_unusable",
            f"{file} is missing, damaged, or no backup of Recap: {error}. Nothing was changed; take another backup.",
        ) from error
    return Backup(str(revision), sessions, messages, newest)


def database_file(engine: Engine) -> Path:
    """Return the file of an SQLite database. Raises InvalidRequest for any other."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        raise InvalidRequest(
            "not_sqlite",
            "This is for SQLite. Nothing was done; back PostgreSQL up with `pg_dump -Fc`, and bring that back with "
            "`pg_restore`.",
        )
    return Path(engine.url.database)


class DataLock:
    """Lock of the data directory: any number of servers share it, a restore has it alone.

    While a server of this machine lives, nobody replaces its database, and none starts during a restore.  The kernel
    holds the lock (flock), so it ends with the process.  Where the directory can't be written or has no locks, servers
    run without.
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir
        self._descriptor: int | None = None

    def share(self) -> None:
        """Use the directory until `release`.  Raises Conflict while a restore is under way."""
        under_way = Conflict(
            "restore_under_way",
            f"The database in {self._folder} is being restored. Nothing was started; start again when `recap restore` "
            "has ended.",
        )
        if self._descriptor is None:
            with suppress(OSError):  # the directory can't be written, which is reported where it matters
                self._lock(fcntl.LOCK_SH, under_way)

    def release(self) -> None:
        """Stop using the directory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have the directory without any server.  Raises Conflict when one runs, OSError without locks."""
        runs = f"A server, or `recap jobs work`, runs on {self._folder}. Nothing was changed; stop it first."
        self._lock(fcntl.LOCK_EX, Conflict("server_running", runs))
        try:
            yield
        finally:
            self.release()

    def _lock(self, how: int, refusal: Conflict) -> None:
        self._descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, how | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise refusal if isinstance(error, BlockingIOError) else error from None


@contextmanager
def _moved_away(place: Path, now: datetime) -> Iterator[Path | None]:
    """Give the database a second, dated name, and take its log away, which SQLite would apply to the restored one.

    Yield the name; None when there was no database. Its log may be there all the same. An error undoes it.
    """
    former = place.with_name(f"{place.stem}-until-{now:%Y%m%dT%H%M%SZ}{place.suffix}")
    is_there = place.exists()
    with ExitStack() as undo:
        if is_there:
            os.link(place, former)  # no rename: there is a database under its name all the time
            undo.callback(former.unlink)
            former.chmod(0o600)  # as the restored one
        for log, kept in zip(_beside(place), _beside(former), strict=True):
            if log.exists():
                log.replace(kept)
                undo.callback(kept.replace, log)
                kept.chmod(0o600)
        yield former if is_there else None
        undo.pop_all()


@contextmanager
def _new_file(target: Path) -> Iterator[Path]:
    """Make a file beside `target`, to take its place; what is left of it at the end of the block goes."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    part.touch(0o600, exist_ok=False)
    try:
        yield part
    finally:
        for left in (part, *_beside(part)):
            left.unlink(missing_ok=True)


def _beside(file: Path) -> tuple[Path, Path]:
    return file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")


def _sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
