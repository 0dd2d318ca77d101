"""Applications of tests, and what their databases have."""

import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from click.testing import Result
from flask import Flask
from sqlalchemy import Connection, RootTransaction, event, func, select
from werkzeug.routing import Rule

from app import build_app, engine_of
from cli import register_commands
from config import Settings
from memory.access.owners import get_user
from memory.engine import Engine
from memory.store import item_rows
from models import Base, Database
from models.owners import Caller
from models.store import Item, Put


class CompiledRule(Rule):
    """A rule of addresses, compiled once a run: compiling them all again is most of what an application costs."""

    compiled: ClassVar[dict[Any, dict[str, Any]]] = {}

    def compile(self) -> None:
        key = str({name: value for name, value in vars(self).items() if name != "map"})
        if key not in self.compiled:
            super().compile()
            self.compiled[key] = {name: value for name, value in vars(self).items() if name != "map"}
        vars(self).update(self.compiled[key])


@contextmanager
def an_app(folder: Path, migrated: Path | None = None, **settings: Any) -> Iterator[Flask]:
    """An application on what is in `folder`, or on a copy of `migrated`; for several tests, if they leave no trace."""
    if migrated is not None:
        shutil.copy(migrated, folder / "recap.db")
    app = build_app(Settings(**{"data_dir": folder, "log_level": "warning", **settings}))
    yield app
    engine_of(app).stop()
    engine_of(app).database.engine.dispose()


def run_command(app: Flask, *arguments: object, **more: Any) -> Result:
    """Run a command of `recap` in the process of the tests, which has all modules loaded."""
    register_commands(app)
    return app.test_cli_runner().invoke(args=[str(part) for part in arguments], **more)


@contextmanager
def locked(app: Flask) -> Iterator[None]:
    """The database is being written by somebody who takes long."""
    database = sqlite3.connect(engine_of(app).settings.data_dir / "recap.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
        database.close()


def execute(file: Path, *statements: str) -> list[Any]:
    """Run statements in a database that somebody else may have open; what the last one found."""
    with closing(sqlite3.connect(file)) as database, database:
        return [list(database.execute(statement)) for statement in statements][-1]


def rows_of(engine: Engine) -> dict[str, int]:
    """How many rows each table has."""
    with engine.database.read() as tx:
        tables = Base.metadata.sorted_tables
        return {table.name: tx.scalar(select(func.count()).select_from(table)) or 0 for table in tables}


def index_key(engine: Engine, user_id: str) -> str:
    """What a person's search index is called."""
    with engine.database.read() as tx:
        return get_user(tx, Caller(user_id=user_id)).index_key


def derived(engine: Engine, user_id: str, key: str, value: Any, sources: Sequence[int], author: str = "model") -> Item:
    """A document of the engine's as it is stored of a person, resting on these messages."""
    with engine.database.write() as tx:
        owner = get_user(tx, Caller(user_id=user_id))
        put = Put(("recap", "profile"), key, value)
        return item_rows.write(tx, owner.id, put, engine.items.now(), author=author, sources=sources)


REREAD = re.compile(r"\bFROM (keys|model_server)\b")  # by each process, after seconds


class Statements(list[str]):
    """SQL that was sent, and the transactions that it was sent in."""

    def __init__(self) -> None:
        self.transactions: set[RootTransaction | None] = set()


@contextmanager
def statements(database: Database, *, every_thread: bool = False) -> Iterator[Statements]:
    """The SQL that this thread sends while the block runs, but for what begins and ends transactions.

    What a process reads again after some seconds, whoever asks, is left out.
    """
    sent = Statements()
    thread = threading.get_ident()

    def note(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        is_counted = every_thread or threading.get_ident() == thread
        is_boundary = statement.startswith(("BEGIN", "PRAGMA", "COMMIT", "ROLLBACK"))
        if is_counted and not is_boundary and REREAD.search(statement) is None:
            sent.append(statement)
            sent.transactions.add(connection.get_transaction())

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


HOSTILE_SECONDS = 10.0  # of CPU: far above what any machine needs for it, far below what is not linear would take


@contextmanager
def soon_over(seconds: float = HOSTILE_SECONDS) -> Iterator[None]:
    """Fails when the block takes longer than it may, by this thread's CPU: other load does not count."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < seconds
