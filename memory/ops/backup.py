"""Backups of a live SQLite database, and bringing one back.

A backup is one SQLite file: a snapshot of all that was committed when it began, made while others read and write.  It
is written anew from the living rows (VACUUM INTO), so that nothing which was erased before is in it.

Guarantee: a file under a backup's name is whole, checked, and for its owner's eyes; a backup that fails leaves none.
A restore puts a checked copy in place at once or changes nothing, and keeps the database that was there.  The index is
derived data: a restore drops it, and it is made again from the rows.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine

from memory.errors import Conflict, InvalidRequest
from memory.ops.data_lock import DataLock

BUSY_SECONDS = 15.0


@dataclass(frozen=True)
class Backup:
    """What a backup holds: the schema's revision, how many sessions and messages, and when the last was said."""

    path: Path
    revision: str
    sessions: int
    messages: int
    last_message_at: str | None

    def __str__(self) -> str:
        newest = f", the newest of {self.last_message_at[:19]} UTC" if self.last_message_at else ""
        return f"{self.sessions} sessions, {self.messages} messages{newest}"


def back_up(engine: Engine, target: Path, *, force: bool = False) -> Backup:
    """Write a backup of the database of `engine`, which may be in use, to `target`.

    Raises Conflict when the file is there already (unless `force`), InvalidRequest for another database than SQLite or
    one that is damaged, OSError when the file can't be written.  Then there is no file that was not there before.
    """
    source = database_file(engine)
    target = target.absolute()
    if target.exists() and (not force or target.resolve() == source.resolve()):
        raise Conflict(
            "backup_exists",
            f"{target} is there already. Nothing was written; choose another name"
            + (", or write over it with --force." if target.resolve() != source.resolve() else ": it is the database."),
        )
    if not source.exists():
        raise InvalidRequest("no_database", f"There is no database at {source}. Nothing was written.")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # VACUUM INTO fills an empty file
    try:
        with closing(sqlite3.connect(source, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("VACUUM INTO ?", (str(part),))
        backup = examine(part)
        _sync(part)
        if force or not _linked(part, target):
            part.replace(target)
        _sync(target.parent)
    except sqlite3.DatabaseError as error:
        raise InvalidRequest(
            "backup_failed",
            f"The database could not be backed up: {error}. No backup was written, and the database is as it was. If "
            "it is damaged, stop the server and bring the last backup back with `flask restore`.",
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return Backup(target, backup.revision, backup.sessions, backup.messages, backup.last_message_at)


def restore(
    engine: Engine,
    data_dir: Path,
    file: Path,
    *,
    known_revisions: Collection[str],
    upgrade: Callable[[Path], None],
    now: datetime,
) -> tuple[Backup, Path | None]:
    """Put the backup `file` in the place of the database of `engine`; gives what it holds, and where the former is.

    `upgrade` brings the schema of a database file up to date.  Raises Conflict while anybody uses the database, and
    InvalidRequest when the file is no backup, damaged, or of a newer Recap; then nothing has changed.
    """
    place = database_file(engine)
    engine.dispose()
    with DataLock(data_dir).alone():
        backup = examine(file)
        if backup.revision not in known_revisions:
            raise InvalidRequest(
                "backup_too_new",
                f"{file} is of a newer Recap than this one, with the schema {backup.revision}. Nothing was changed; "
                "update Recap first.",
            )
        part = place.with_name(f".{place.name}.{os.getpid()}.part")
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            shutil.copyfile(file, part)
            upgrade(part)
            _let_go(part)
            backup = examine(part)
            _sync(part)
            former = _put_in_place(part, place, data_dir / "index", now)
        finally:
            for left in (part, *_beside(part)):
                left.unlink(missing_ok=True)
    return backup, former


def examine(file: Path) -> Backup:
    """What the backup `file` holds.  Raises InvalidRequest when it is none, or damaged."""
    if not file.is_file():
        raise InvalidRequest("backup_unusable", f"There is no file {file}. Nothing was changed.")
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            found = [row[0] for row in database.execute("PRAGMA integrity_check(5)")]
            if found != ["ok"]:
                raise sqlite3.DatabaseError("; ".join(" ".join(str(one).split()) for one in found))
            if database.execute("PRAGMA foreign_key_check").fetchone() is not None:
                raise sqlite3.DatabaseError("rows refer to others that are not there")
            (revision,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
            (sessions,) = database.execute("SELECT count(*) FROM sessions").fetchone()
            messages, newest = database.execute("SELECT count(*), max(created_at) FROM messages").fetchone()
    except (sqlite3.DatabaseError, TypeError) as error:
        raise InvalidRequest(
            "backup_unusable",
            f"{file} is damaged, or no backup of Recap: {error}. Nothing was changed; take another backup.",
        ) from error
    return Backup(file, str(revision), sessions, messages, newest)


def database_file(engine: Engine) -> Path:
    """The file of an SQLite database.  Raises InvalidRequest for another."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        raise InvalidRequest(
            "not_sqlite",
            "This is for SQLite. Nothing was done; back PostgreSQL up with `pg_dump -Fc`, and bring that back with "
            "`pg_restore`.",
        )
    return Path(engine.url.database)


def _let_go(file: Path) -> None:
    """What was being done when the backup was made is done by nobody now."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("PRAGMA secure_delete = ON")
        database.execute("UPDATE sessions SET lease_token = NULL, lease_until = NULL, stop_token = NULL")
        database.execute("UPDATE jobs SET lease_token = NULL, lease_until = NULL")
        database.execute("UPDATE jobs SET state = 'pending' WHERE state = 'running'")
        database.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it


def _put_in_place(part: Path, place: Path, index: Path, now: datetime) -> Path | None:
    """Rename `part` to `place`, with what is there now kept under a dated name."""
    former = None
    if place.exists():
        former = place.with_name(f"{place.stem}-until-{now:%Y%m%dT%H%M%SZ}{place.suffix}")
        if former.exists():
            raise Conflict("restored_just_now", f"{former} is there already. Nothing was changed; try again.")
        _refuse_others(place)
        if not _linked(place, former):
            shutil.copyfile(place, former)
        # A log beside another database would be taken for its own.
        for log, kept in zip(_beside(place), _beside(former), strict=True):
            if log.exists():
                log.replace(kept)
    if index.exists():
        shutil.rmtree(index)
    part.replace(place)
    _sync(place.parent)
    return former


def _refuse_others(place: Path) -> None:
    """Raise Conflict when someone has the database open who does not know our lock, such as a shell."""
    try:
        with closing(sqlite3.connect(place, timeout=0.0, isolation_level=None)) as database:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("BEGIN EXCLUSIVE")
            database.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise Conflict(
                "database_in_use", f"Somebody has {place} open. Nothing was changed; stop them first."
            ) from None
    except sqlite3.DatabaseError:
        return  # too damaged to be opened, which is why it is replaced


def _beside(file: Path) -> tuple[Path, Path]:
    return file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")


def _linked(path: Path, name: Path) -> bool:
    """Give a file one name more, never that of another; False where the file system has no such thing."""
    try:
        os.link(path, name)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _sync(path: Path) -> None:
    """Let what was written there survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
