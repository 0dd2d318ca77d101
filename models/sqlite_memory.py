"""SQLite database in memory, for tests of programs that embed Recap: one connection, which transactions use in turn.

It ends with its process. A transaction that begins while its own thread has one open waits for itself, and fails.
"""

from typing import Any

from sqlalchemy import URL, Engine, QueuePool, event

from models.sqlite_file import Opened, set_up_connection

OPTIONS_IN_MEMORY: dict[str, Any] = {
    "poolclass": QueuePool,
    "pool_size": 1,
    "max_overflow": 0,
    "pool_timeout": 30,
    "connect_args": {"check_same_thread": False},
    "hide_parameters": True,  # words stay out of logs
}


def is_in_memory(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.query.get("mode") == "memory"


class SQLiteMemory:
    """Stands in for the file of a database that has none."""

    def __init__(self, engine: Engine) -> None:
        event.listen(engine, "connect", self._set_up)

    def damaged(self) -> bool:
        return False

    def check_file(self, opened: Opened | None) -> None:
        """Do nothing: no file can be lost."""

    def _set_up(self, connection: Any, record: Any) -> None:
        set_up_connection(connection)
        record.info |= {"opened": None, "synchronous": "FULL"}
