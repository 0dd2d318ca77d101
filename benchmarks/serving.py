"""A Recap of our own to measure or to try: gunicorn as `make run` starts it, on a free port of loopback.

Guarantee: nobody's data or model is touched.  Every setting that is not given has its default, whatever the
environment and `.env` say, so the built-in model answers; and only the process group started here is ended, by its id.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import httpx2

from config import Settings

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 90.0
STOP_SECONDS = 30.0
MAIN, MINI = "main", "mini"  # the names of the models that a benchmark scripts


class Server:
    """A Recap over one data directory; started, ended and started again as often as wanted.

    `settings` are environment variables by name: `Server(folder, OPENAI_BASE_URL=url, LOG_LEVEL="debug")`.
    """

    def __init__(self, data_dir: Path, **settings: str) -> None:
        self.data_dir = data_dir
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        self.port = int(settings.setdefault("PORT", str(free_port())))
        self.url = f"http://127.0.0.1:{self.port}"
        unset = dict.fromkeys(Settings.variables(), "")  # empty, it counts as unset, in `.env` too
        self.environ = {**os.environ, **unset, "RECAP_DATA_DIR": str(data_dir), **settings}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        self.migrate()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def flask(self, *command: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a flask command, as `flask --app wsgi index verify`, on this server's data."""
        program = [str(_program("flask")), "--app", "wsgi", *command]
        return subprocess.run(  # nosec B603 # our own command, no shell
            program, cwd=ROOT, env=self.environ, capture_output=True, text=True, timeout=seconds, check=False
        )

    def migrate(self) -> None:
        """Bring the database up to date.  Raises RuntimeError with what the command said."""
        done = self.flask("db", "upgrade")
        if done.returncode:
            raise RuntimeError(f"flask db upgrade failed:\n{done.stderr}")

    def start(self) -> None:
        """Start gunicorn and wait until it answers.  Raises RuntimeError with the log's end when it does not."""
        assert self._process is None, "it runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # nosec B603 # our own command, no shell
                [str(_program("gunicorn")), "wsgi:app"],
                cwd=ROOT,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a group of its own: a signal to it reaches no one else
            )
        deadline = time.monotonic() + START_SECONDS
        try:
            while not self._answers():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"Recap did not start:\n{self.log.read_text(errors='replace')[-4000:]}")
                time.sleep(0.02)
        except BaseException:
            self.kill()
            raise

    def settle(self, seconds: float) -> None:
        """Wait until no job waits: what was said is summarised and indexed.  Raises RuntimeError when one has failed
        for good, or not all are done in time."""
        deadline = time.monotonic() + seconds
        while jobs := httpx2.get(f"{self.url}/health/ready", timeout=60.0, trust_env=False).json()["jobs"]:
            if "failed" in jobs or time.monotonic() > deadline:
                raise RuntimeError(f"jobs that do not get done: {jobs}")
            time.sleep(0.25)  # asking costs the server some time too

    @property
    def pid(self) -> int:
        """The first process's id, which is also its group's."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal to every process of the group, as a terminal does with Ctrl-C."""
        os.killpg(self.pid, number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for the end and return the exit code.  Raises TimeoutExpired."""
        assert self._process is not None
        code = self._process.wait(seconds)
        self._process = None
        return code

    def stop(self) -> int:
        """End it as a service manager does, with SIGTERM to the first process; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self.wait()

    def kill(self) -> None:
        """End the whole group at once, wherever it is; no error when it has ended."""
        if self._process is not None:
            try:
                self.signal(signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.wait()

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/health/live", timeout=2.0, trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False


@contextmanager
def temporary_server(model_url: str | None = None, **settings: str) -> Iterator[Server]:
    """A Recap that answers, in a folder that goes with it at the block's end, also when this process is told to end.

    Its models are MAIN and MINI of the model server at that URL, or the built-in one.
    """
    models = {"OPENAI_BASE_URL": model_url, "OPENAI_MODEL": MAIN, "OPENAI_SUMMARY_MODEL": MINI} if model_url else {}
    with (
        terminable(),
        tempfile.TemporaryDirectory(prefix="recap-bench-") as folder,
        Server(Path(folder) / "data", **{**models, **settings}) as server,
    ):
        yield server


@contextmanager
def terminable() -> Iterator[None]:
    """Within it SIGTERM and SIGINT raise SystemExit, which ends every block: otherwise a server would stay behind.

    SIGINT needs a handler too, because a job in the background inherits it ignored.
    """
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda number, _: sys.exit(128 + number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _program(name: str) -> Path:
    """A program of the virtual environment this Python belongs to."""
    return Path(sys.executable).with_name(name)
