"""What SQL the application sends, as SQLite's connections have it: most of it goes past SQLAlchemy's events."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from models import Database

_VALUE = re.compile(r"'(?:[^']|'')*'|\b\d+\b")  # SQLite tells statements with their values in place


@contextmanager
def told_of_statements(database: Database, tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, `tell` hears of the SQL that is sent, with ? for its values, but not of what begins and
    ends transactions."""

    def note(statement: str) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA", "COMMIT", "ROLLBACK")):
            tell(_VALUE.sub("?", statement))

    def listen(connection: sqlite3.Connection, *_: Any) -> None:
        connection.set_trace_callback(note)

    event.listen(database.engine, "connect", listen)
    database.close()  # so that connections are made anew, and watched
    try:
        yield
    finally:
        event.remove(database.engine, "connect", listen)
        database.close()


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """The SQL that is sent while the block runs."""
    sent: list[str] = []
    with told_of_statements(database, sent.append):
        yield sent
