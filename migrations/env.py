"""Alembic's environment: the application's engine and the rows' metadata, nothing of its own.

A migration is one transaction: one that fails leaves nothing behind.

On SQLite some changes write a table anew and drop the old one.  With foreign keys on, that drop would take along every
row that refers to the table; so they are off while a migration runs, and checked before it commits.

On PostgreSQL a migration locks the tables that it changes, while servers run.  All that use such a table wait for the
lock as well, behind the migration.  So it gives up before they do, and where it meets them in a circle it begins anew.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from alembic import context
from flask import current_app
from sqlalchemy import Connection, func, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from models import Base, retry_on_conflict
from models.database import LOCK_TIMEOUT_SECONDS
from models.database_faults import DatabaseFault, DatabaseLost, command_failed
from models.schema import revision_of, revisions, schema_differs
from models.sqlite import BUSY_TIMEOUT_MS, is_in_memory

MIGRATION_LOCK = 0x6D696772617465  # the key of PostgreSQL's advisory lock
PATIENCE = "3s"  # for a table that another holds: longer than any write of Recap's, and than a vacuum takes to give way
HELD = "55P03"  # lock_not_available
NOT_ALLOWED = ("42501", "3F000")  # insufficient_privilege, invalid_schema_name where the user may use no schema

events = logging.getLogger("recap.migrations")

if context.is_offline_mode():
    raise SystemExit("Migrations look at the database they change: run them online, with `recap db upgrade`.")


@contextmanager
def tables_may_be_written_anew(connection: Connection) -> Iterator[None]:
    """Foreign keys off for the transaction of the block, and on again after it."""
    if connection.dialect.name != "sqlite":
        with connection.begin():
            yield
        return
    raw = connection.connection.cursor()  # beside SQLAlchemy, which would begin: within a transaction it has no effect
    raw.execute("PRAGMA foreign_keys = OFF")
    raw.execute(f"PRAGMA busy_timeout = {int(LOCK_TIMEOUT_SECONDS * 1000)}")
    try:
        with connection.begin():
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # no write of a server comes between what it reads and writes
            yield
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
            if broken:
                raise RuntimeError(f"The migration would leave rows that refer to nothing; undone: {broken[:5]}")
    finally:
        with suppress(sqlite3.ProgrammingError):  # it is closed, because the database failed
            raw.execute("PRAGMA foreign_keys = ON")
            raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            raw.close()


engine = current_app.extensions["migrate"].db.engine


def make_file() -> None:
    if engine.dialect.name != "sqlite" or is_in_memory(engine.url) or Path(engine.url.database).exists():
        return
    log, log_index = Path(f"{engine.url.database}-wal"), Path(f"{engine.url.database}-shm")
    if log.exists() and log.stat().st_size:  # SQLite would delete it, and with it what was stored last
        raise DatabaseLost(DatabaseFault.MISSING)
    log_index.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(engine.url.database)) as new:
            new.execute("PRAGMA journal_mode = WAL")  # nothing else makes a file, so one that was lost is missed
    finally:
        file = Path(engine.url.database)
        if file.exists() and not file.stat().st_size:  # the disk is full, and it would count as one that was lost
            file.unlink()


def report(former: str | None, revision: str | None) -> None:
    if former is None:
        events.info("A new database was made: %s, with the schema %s", engine.url.render_as_string(), revision)
    elif former == revision:
        events.info("The database is up to date: its schema is %s", revision)
    else:
        events.info("The database was upgraded: its schema was %s, and is %s now", former, revision)


def require_own_tables(connection: Connection) -> None:
    taken = sorted(Base.metadata.tables.keys() & set(inspect(connection).get_table_names()))
    if taken:
        raise RuntimeError(
            f"The database {engine.url.render_as_string()} is another program's: it has tables of its own with the "
            f"names {', '.join(taken)}. Nothing was changed. Give Recap a database of its own: set DATABASE_URL or "
            "RECAP_DATA_DIR."
        )


def require_unicode(connection: Connection) -> None:
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise RuntimeError(
            f"The database's encoding is {encoding}, which does not hold all characters. Nothing was changed. Make the "
            "database anew with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0, and run this again."
        )


@retry_on_conflict
def migrate() -> tuple[str | None, str | None]:
    with engine.connect() as connection, tables_may_be_written_anew(connection):
        if engine.dialect.name == "postgresql":  # of nodes that upgrade at once, one migrates, the others find it done
            connection.execute(select(func.set_config("lock_timeout", "0", True)))  # however long that takes
            connection.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            connection.execute(select(func.set_config("lock_timeout", PATIENCE, True)))
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            compare_type=True,
            render_as_batch=connection.dialect.name == "sqlite",  # SQLite can't alter most things in place
        )
        revision = revision_of(connection)
        if revision is None:
            require_own_tables(connection)
            if engine.dialect.name == "postgresql":
                require_unicode(connection)
        if revision is not None and revision not in revisions():
            raise RuntimeError(f"The database can't be upgraded: {schema_differs(revision)}. Nothing was changed.")
        context.run_migrations()
        return revision, revision_of(connection)


try:
    make_file()
    report(*migrate())
except (SQLAlchemyError, sqlite3.Error) as error:
    original = getattr(error, "orig", None)
    state = getattr(original, "sqlstate", None)
    if state in NOT_ALLOWED:
        reason = str(original).partition("\n")[0]
        message: str | None = (
            f"The user {engine.url.username} of the database {engine.url.database} may not change its tables, says "
            f"PostgreSQL: {reason}. Nothing was changed. Have its superuser run, in that database, GRANT ALL ON SCHEMA "
            "public to that user, or make it the owner of the tables if there are some; then run this again."
        )
    elif state == HELD:
        message = (
            "Another transaction, such as pg_dump's, holds a table that the migration changes. Nothing was changed. "
            "Run this again when it has ended."
        )
    else:
        message = command_failed(error, engine.url)
    if message is None:
        raise
    raise RuntimeError(message) from error
