"""Jobs as a caller sees them, and health when nobody does them."""

import runpy
from typing import Any

import pytest

from benchmarks.serving import ROOT
from config import Settings
from memory.ops.health import LATE
from tests.http import error, good
from tests.jobs import Bench, fail


def test_jobs_are_found_by_their_state_page_by_page(bench):
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


def test_jobs_that_nobody_does_are_told(bench, caplog):
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


def test_who_begins_to_run_jobs_does_not_warn_that_nobody_does(bench, caplog):
    """As after a pause of the whole server, which is no fault of the jobs."""
    bench.enqueue("a")
    bench.clock.tick(LATE.total_seconds() + 60)
    bench.engine.start()
    bench.engine.stop()
    assert not [message for message in caplog.messages if "nobody runs them" in message]


def test_jobs_that_wait_for_their_time_or_for_a_busy_worker_are_not_late(bench):
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
def test_a_server_that_is_ended_waits_for_all_the_calls_a_turn_may_make(monkeypatch, tmp_path, environ, seconds):
    monkeypatch.chdir(tmp_path)  # where there is no .env
    for variable in Settings.variables():
        monkeypatch.setenv(variable, environ.get(variable, ""))
    assert runpy.run_path(str(ROOT / "gunicorn.conf.py"))["graceful_timeout"] == seconds


# -- JOBS=worker
