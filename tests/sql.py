"""What SQL the application sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from models import Database


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """The SQL that is sent while the block runs, but for what begins and ends transactions."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA", "COMMIT", "ROLLBACK")):
            sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
