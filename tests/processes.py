"""What the tests of whole processes share: Recap as `make run` starts it, and its API as a client sees it."""

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, Self

import httpx2

from benchmarks.serving import ROOT, Server
from tests.application import an_app, run_command
from tests.forks import Fork


def model_settings(url: str) -> dict[str, str]:
    """Settings that let the model server at `url` answer, and summaries follow at once."""
    return {
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "test-key",
        "OPENAI_MODEL": "main-model",
        "OPENAI_SUMMARY_MODEL": "mini-model",
        "SUMMARY_DEBOUNCE": "0",
    }


class ForkedServer(Server):
    """A server whose programs begin as forks, with Recap loaded."""

    def begin(self, program: str, *arguments: str) -> Any:
        return Fork(program, arguments, self.environ, self.log)


@contextmanager
def migrated_server(
    folder: Path, migrated: Path, kind: type[Server] = ForkedServer, **settings: str
) -> Iterator[Server]:
    """A server over `folder` with a copy of the database `migrated`, not started yet; it is killed at the end."""
    server = kind(folder / "data", **settings)
    server.data_dir.mkdir()
    shutil.copy(migrated, server.data_dir / "recap.db")
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def server_with_model(folder: Path, migrated: Path, *options: str, **settings: str) -> Iterator[Server]:
    """`migrated_server` with a model server, `python -m tests.model_server` with `options`: a process of its own."""
    command = [sys.executable, "-m", "tests.model_server", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            at = model_settings(process.stdout.readline().strip())
            with migrated_server(folder, migrated, **{**at, **settings}) as server:
                yield server
        finally:
            process.terminate()


def workers(server: Server) -> list[int]:
    """The processes that the server's first one started."""
    return sorted(int(child) for child in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split())


class Address(Protocol):
    """A server, or a proxy in front of some."""

    @property
    def url(self) -> str: ...


class Api:
    """A client of a server, on connections of its own.  What isn't answered with success raises."""

    def __init__(self, server: Address, key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        options: Any = {"timeout": 60.0, "trust_env": False, "verify": False}  # no certificates are read for HTTP
        self.http = httpx2.Client(base_url=server.url, headers=headers, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()

    def get(self, path: str, **params: Any) -> Any:
        return self.http.get(path, params=params).raise_for_status().json()

    def post(self, path: str, *, key: str | None = None, **body: Any) -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        return self.http.post(path, json=body, headers=headers).raise_for_status().json()

    def chat(self, session: str, message: str, **more: Any) -> Any:
        return self.post("/api/chat", session_id=session, message=message, **more)

    def append(self, session: str, messages: list[dict[str, Any]], **more: Any) -> Any:
        return self.post(f"/api/sessions/{session}/messages", messages=messages, **more)

    def messages(self, session: str) -> list[dict[str, Any]]:
        """All messages of a session."""
        found: list[dict[str, Any]] = []
        more: dict[str, Any] = {"limit": 100}
        while True:
            page = self.get(f"/api/sessions/{session}/messages", **more)
            found += page["items"]
            if page["next_cursor"] is None:
                return found
            more["cursor"] = page["next_cursor"]

    def jobs_done(self, *kinds: str, seconds: float = 40.0, hurry: bool = True, **owner: str) -> None:
        """Wait until there is no job but for those that wait for a long pause or the night; or none of these kinds.

        hurry: have jobs done now that wait for more work of their kind. owner: whose jobs count, as user_id="ada".
        """
        later, hurried = ("profile", "consolidation"), set[int]()

        def none_left() -> bool:
            jobs = self.get("/api/jobs", limit=100, **owner)["items"]
            left = [job for job in jobs if (job["kind"] in kinds if kinds else job["kind"] not in later)]
            for job in left if hurry else ():
                if job["state"] == "pending" and job["id"] not in hurried:
                    hurried.add(job["id"])
                    self.http.post(f"/api/jobs/{job['id']}/retry")
            return not left

        assert eventually(none_left, seconds, 0.05), self.get("/api/jobs")


def eventually(condition: Callable[[], object], seconds: float = 15.0, pause: float = 0.02) -> bool:
    """Whether `condition` comes to hold within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def rows(server: Server, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """What the database says, read beside the server or while none runs."""
    with closing(sqlite3.connect(f"file:{server.data_dir / 'recap.db'}?mode=ro", uri=True, timeout=15)) as database:
        return list(database.execute(statement, values))


def execute(server: Server, statement: str) -> None:
    """Change the database, beside the server or while none runs."""
    with closing(sqlite3.connect(server.data_dir / "recap.db", timeout=15)) as database, database:
        database.execute(statement)


def command(server: Server, *arguments: str) -> str:
    """Run a command of `recap` on a server's data, which has to succeed; return its output."""
    with an_app(server.data_dir) as app:
        done = run_command(app, *arguments)
    assert done.exit_code == 0, done.output
    return done.output


def sound(server: Server) -> None:
    """Assert that the database is whole, and that every index agrees with it with nothing left to do."""
    with closing(sqlite3.connect(server.data_dir / "recap.db", timeout=15)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    verified = command(server, "index", "verify")
    assert "agree with the messages" in verified and "wait to be indexed" not in verified
