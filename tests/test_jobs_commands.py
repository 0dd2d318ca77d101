"""`recap jobs`: what an operator sees and does at the command line."""

import re
from typing import Any

import pytest
from click.testing import Result

from app import build_app, engine_of
from config import Settings
from memory import jobs as jobs_module
from models import JobRow
from tests.application import run_command
from tests.http import append, read_all, said, summary
from tests.model_server import Status, at


@pytest.fixture
def run(make_app, model_server):
    """Runs `recap jobs ...` as a process of its own would: an application, and its end."""

    def invoke(*command: str, **changes: Any) -> Result:
        app = make_app(jobs="worker", **at(model_server), **changes)
        return run_command(app, "jobs", *command)

    return invoke


@pytest.fixture
def client(make_app, model_server):
    """The server beside which commands are run."""
    client = make_app(jobs="worker", **at(model_server)).test_client()
    for name in ("s", "t"):
        append(client, name, [said("I drink tea.")], user_id="ada")
    return client


def test_what_is_due_is_done_once_and_failures_are_told(run, client, model_server):
    model_server.mini.queue(Status(401))
    done = run("work", "--once")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == "3 jobs ran, 1 of them failed."
    assert re.search(r"^job \d+ \(index\): done$", done.stdout, re.M)
    assert re.search(r"^job \d+ \(summary\): The model server .* refused the key", done.stdout, re.M)
    assert {summary(client, name)["state"] for name in ("s", "t")} == {"pending", "current"}
    again = run("work", "--once")  # what failed waits for its pause
    assert (again.exit_code, again.stdout) == (0, "0 jobs ran, 0 of them failed.\n")


def test_jobs_are_listed_with_their_errors_and_retried(run, client, model_server):
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


def test_all_that_failed_is_retried_whosever_it_is(run, client, model_server, monkeypatch):
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


def test_what_a_command_does_not_take_is_refused(run):
    for command in (("retry",), ("retry", "1", "--all"), ("list", "--state", "done")):
        refused = run(*command)
        assert refused.exit_code == 2 and "Error" in refused.stderr


@pytest.mark.parametrize("command", [("jobs", "retry"), ("keys", "revoke"), ("keys", "disconnect")])
def test_a_number_that_no_row_has_is_refused(app, command):
    result = run_command(app, *command, 1 << 63)
    assert result.exit_code == 2 and "is not in the range" in result.output


def test_a_command_without_a_database_says_what_to_do(tmp_path):
    app = build_app(Settings(data_dir=tmp_path, log_level="error"))
    for command in (("jobs", "work"), ("jobs", "list"), ("keys", "list"), ("index", "verify")):
        done = run_command(app, *command)
        assert done.exit_code == 1 and "recap db upgrade" in done.stderr
    engine_of(app).stop()
