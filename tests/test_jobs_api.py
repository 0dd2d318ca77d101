"""Jobs as a caller sees them, and health when nobody does them."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask.testing import FlaskClient

from app import build_app, engine_of
from benchmarks.serving import ROOT
from cli import register_commands
from config import Settings
from memory import jobs as jobs_module
from memory.ops.health import LATE
from models import JobRow
from tests.conftest import MakeApp
from tests.http import append, chat, error, good, read_all, said, summary
from tests.jobs import Bench, Clock, fail
from tests.model_server import ModelServer, Status, at


def test_a_persons_jobs_are_theirs(client: FlaskClient) -> None:
    append(client, "one", [said("hello")], user_id="ada")
    append(client, "two", [said("hello")], user_id="bob")
    append(client, "three", [said("hello")])
    kinds = [(job["kind"], job["session_id"]) for job in read_all(client, "/api/jobs", user_id="ada", limit=1)]
    assert kinds == [("index", None), ("summary", "one")]
    assert len(read_all(client, "/api/jobs", limit=1)) == 6
    for query in ({"session_id": "one", "user_id": "bob"}, {"session_id": "none", "user_id": "ada"}):
        assert error(client.get("/api/jobs", query_string=query), 404)["code"] == "session_not_found"
    (job,) = read_all(client, "/api/jobs", session_id="two")
    error(client.post(f"/api/jobs/{job['id']}/retry?user_id=ada"), 404)
    error(client.post("/api/jobs/999/retry"), 404)
    assert good(client.post(f"/api/jobs/{job['id']}/retry?user_id=bob"))["session_id"] == "two"


def test_jobs_are_found_by_their_state_page_by_page(bench: Bench) -> None:
    bench.work = fail
    for number in range(7):
        bench.enqueue(str(number))
    for _ in range(6):
        bench.run()
        bench.clock.tick(300)
    for number in range(7, 10):
        bench.enqueue(str(number))
    everything = [job["id"] for job in bench.jobs(limit=2)]
    assert everything == sorted(everything) and len(everything) == 10
    assert [job["id"] for job in bench.jobs(state="failed", limit=2)] == everything[:7]
    assert [job["id"] for job in bench.jobs(state="pending", limit=2)] == everything[7:]
    assert bench.jobs(state="running") == []
    assert {job["error"] for job in bench.jobs(state="failed")} == {"The model is down."}
    for query in ("state=done", "cursor=nonsense", "limit=0"):
        error(bench.client.get(f"/api/jobs?{query}"), 422)


# -- health


def ready(bench: Bench) -> dict[str, Any]:
    return good(bench.client.get("/health/ready"))


def test_jobs_that_nobody_does_are_told(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    assert "jobs_late" not in ready(bench)
    bench.enqueue("a")
    bench.clock.tick(LATE.total_seconds())
    assert "jobs_late" not in ready(bench)
    bench.clock.tick(120)
    body = ready(bench)
    assert ready(bench) == body
    assert caplog.messages == [body["jobs_late"]], "once"
    assert (body["status"], body["jobs"]) == ("ready", {"pending": 1})
    assert "due for 3 minutes" in body["jobs_late"] and "recap jobs work" in body["jobs_late"]
    bench.run()
    assert "jobs_late" not in ready(bench)


def test_jobs_that_wait_for_their_time_or_for_a_busy_worker_are_not_late(bench: Bench) -> None:
    bench.enqueue("later", delay=3600.0)
    bench.clock.tick(600)
    assert "jobs_late" not in ready(bench)
    seen: list[dict[str, Any]] = []
    bench.enqueue("a")
    bench.enqueue("b")
    bench.clock.tick(600)
    assert "jobs_late" in ready(bench)
    bench.work = lambda job: seen.append(ready(bench))
    bench.run()
    assert len(seen) == 2 and not any("jobs_late" in body for body in seen)


# -- ending


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, 375),  # three calls of a model that may take two minutes each, and a quarter for running jobs
        ({"MODEL_TIMEOUT": "20", "RECALL_TOOL_ROUNDS": "5"}, 115),
        ({"MODEL_TIMEOUT": "20", "SUMMARY_MODE": "inline"}, 115),  # with the summary and its repair
    ],
)
def test_a_server_that_is_ended_waits_for_all_the_calls_a_turn_may_make(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environ: dict[str, str], seconds: int
) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no .env
    for variable in Settings.variables():
        monkeypatch.setenv(variable, environ.get(variable, ""))
    assert runpy.run_path(str(ROOT / "gunicorn.conf.py"))["graceful_timeout"] == seconds


# -- JOBS=worker


def test_with_workers_of_their_own_the_web_leaves_jobs_alone(make_app: MakeApp, model_server: ModelServer) -> None:
    web = Bench(make_app(jobs="worker", **at(model_server)), Clock())
    web.engine.start()
    try:
        assert chat(web.client, "I drink tea.", session_id="s", user_id="bob")["reply"]
        assert not web.engine.job_queue._threads
        assert {job["state"] for job in web.jobs()} == {"pending"}
        found = good(web.client.get("/api/search?q=tea&user_id=bob"))["results"]
        assert "I drink tea." in [one["content"] for one in found]
        erased = good(web.client.delete("/api/users/bob"))  # at once, by itself
        assert erased["pending"] == [] and web.jobs() == []
    finally:
        web.engine.stop()


# -- `recap jobs`: what an operator sees and does at the command line

Run = Callable[..., Result]


@pytest.fixture
def run(make_app: MakeApp, model_server: ModelServer) -> Run:
    """Runs `recap jobs ...` as a process of its own would: an application, and its end."""

    def invoke(*command: str, **changes: Any) -> Result:
        app = make_app(jobs="worker", **at(model_server), **changes)
        register_commands(app)
        return app.test_cli_runner().invoke(args=["jobs", *command])

    return invoke


@pytest.fixture
def client(make_app: MakeApp, model_server: ModelServer) -> FlaskClient:
    """The server beside which commands are run."""
    client = make_app(jobs="worker", **at(model_server)).test_client()
    for name in ("s", "t"):
        append(client, name, [said("I drink tea.")], user_id="ada")
    return client


def test_what_is_due_is_done_once_and_failures_are_told(
    run: Run, client: FlaskClient, model_server: ModelServer
) -> None:
    model_server.mini.queue(Status(401))
    done = run("work", "--once")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == "3 jobs ran, 1 of them failed."
    assert re.search(r"^job \d+ \(index\): done$", done.stdout, re.M)
    assert re.search(r"^job \d+ \(summary\): The model server .* refused the key", done.stdout, re.M)
    assert {summary(client, name)["state"] for name in ("s", "t")} == {"pending", "current"}
    again = run("work", "--once")  # what failed waits for its pause
    assert (again.exit_code, again.stdout) == (0, "0 jobs ran, 0 of them failed.\n")


def test_jobs_are_listed_with_their_errors_and_retried(
    run: Run, client: FlaskClient, model_server: ModelServer
) -> None:
    model_server.mini.queue(Status(401))
    run("work", "--once")
    listed = run("list")
    assert listed.exit_code == 0 and listed.stderr == "1 job.\n"
    line = (
        r"(\d+)  summary  pending  position 1  due \d{4}-\d\d-\d\d [\d:]{8} UTC  \d seconds old  tried 1 times  "
        r"session [st]\n    The model.*\n"
    )
    found = re.fullmatch(line, listed.stdout)
    assert found, listed.stdout
    assert run("list", "--state", "failed").stdout == ""
    assert "tried 0 times" in run("retry", found[1]).stdout
    assert run("work", "--once").exit_code == 0
    assert read_all(client, "/api/jobs") == []
    missing = run("retry", found[1])
    assert missing.exit_code == 1 and f"There is no job {found[1]}" in missing.stderr


def test_all_that_failed_is_retried_whosever_it_is(
    run: Run, client: FlaskClient, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "ATTEMPTS", 1)
    model_server.mini.queue(Status(401), Status(401))
    assert "2 of them failed" in run("work", "--once").stdout
    assert [job["state"] for job in read_all(client, "/api/jobs", state="failed")] == ["failed"] * 2
    with engine_of(client.application).database.write() as tx:
        tx.query(JobRow).order_by(JobRow.id).first().owner_id = None  # type: ignore[union-attr]
    assert len(run("list", "--state", "failed").stdout.splitlines()) == 4
    retried = run("retry", "--all")
    assert (retried.exit_code, retried.stdout) == (0, "2 jobs made due.\n")
    assert run("work", "--once").exit_code == 0 and run("list").stdout == ""
    assert run("retry", "--all").stdout == "0 jobs made due.\n"


@pytest.mark.parametrize("command", [("retry",), ("retry", "1", "--all"), ("retry", "0"), ("list", "--state", "done")])
def test_what_a_command_does_not_take_is_refused(run: Run, command: tuple[str, ...]) -> None:
    refused = run(*command)
    assert refused.exit_code == 2 and "Error" in refused.stderr


@pytest.mark.parametrize("command", [("jobs", "work"), ("jobs", "list"), ("keys", "list"), ("index", "verify")])
def test_a_command_without_a_database_says_what_to_do(tmp_path: Any, command: tuple[str, ...]) -> None:
    app = build_app(Settings(data_dir=tmp_path, log_level="error"))
    register_commands(app)
    done = app.test_cli_runner().invoke(args=command)
    assert done.exit_code == 1 and "recap db upgrade" in done.stderr
    engine_of(app).stop()
