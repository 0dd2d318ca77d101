"""A temporary Recap server for benchmarks and tests: gunicorn as in `make run`, on a free loopback port.

Guarantee: no existing data or model is used.  Settings that are not given have their defaults, whatever the environment
and `.env` contain, so the built-in model answers.  Only the process group that was started here is stopped, by its id.
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
MAIN, MINI = "main", "mini"  # the names of the scripted models
OFF = {"PROFILE_MODE": "off", "CONSOLIDATION": "off"}


class Server:
    """A Recap server on one data directory, which can be started and stopped repeatedly.

    `settings` are environment variables by name: `Server(folder, OPENAI_BASE_URL=url, LOG_LEVEL="debug")`.
    `root` is the checkout whose code runs.
    """

    def __init__(self, data_dir: Path, root: Path = ROOT, /, **settings: str) -> None:
        self.data_dir = data_dir
        self._root = root
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        self.port = int(settings.setdefault("PORT", str(free_port())))
        self.url = f"http://127.0.0.1:{self.port}"
        unset = dict.fromkeys(Settings.variables(), "")  # an empty variable counts as unset and overrides `.env`
        self.environ = {**os.environ, **unset, "RECAP_DATA_DIR": str(data_dir), **settings}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        self.migrate()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def flask(self, *command: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a flask command on this server's data: `server.flask("index", "verify")`."""
        program = [str(_program("flask")), "--app", "wsgi", *command]
        return subprocess.run(  # nosec B603 # our own command, no shell
            program, cwd=self._root, env=self.environ, capture_output=True, text=True, timeout=seconds, check=False
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
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # nosec B603 # our own command, no shell
                [str(_program(program)), *(arguments or ("wsgi:app",))],
                cwd=self._root,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a separate process group, which can be signalled alone
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
        """Wait until all jobs are done, so that all messages are summarised and indexed.

        Raises RuntimeError if a job fails, or if jobs are left after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while jobs := httpx2.get(f"{self.url}/health/ready", timeout=60.0, trust_env=False).json()["jobs"]:
            if "failed" in jobs or time.monotonic() > deadline:
                raise RuntimeError(f"jobs failed or did not end in time: {jobs}")
            time.sleep(0.25)  # polling costs the server time

    @property
    def pid(self) -> int:
        """The id of the master process and of the process group."""
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
        """Kill the whole process group, if it still runs."""
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
def temporary_server(model_url: str | None = None, root: Path = ROOT, /, **settings: str) -> Iterator[Server]:
    """A running server in a temporary folder.  Both are removed at the end of the block, also on SIGTERM and SIGINT.

    The server uses the models MAIN and MINI of the model server at `model_url`; without it, the built-in model, unless
    the settings name others.  Profiles and consolidation are off, because they come long after a conversation, and a
    benchmark would wait for them.
    """
    models = {"OPENAI_BASE_URL": model_url, "OPENAI_MODEL": MAIN, "OPENAI_SUMMARY_MODEL": MINI} if model_url else {}
    with (
        terminable(),
        tempfile.TemporaryDirectory(prefix="recap-bench-") as folder,
        Server(Path(folder) / "data", root, **{**OFF, **models, **settings}) as server,
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
    """A free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _program(name: str) -> Path:
    """The path of a program in this Python's virtual environment."""
    return Path(sys.executable).with_name(name)
