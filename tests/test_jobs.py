"""Jobs: each is done at least once, failures are retried and visible, and a bad job holds up no other."""

import errno
import logging
import runpy
import sqlite3
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app import engine_of
from benchmarks.serving import ROOT
from config import Settings
from memory import jobs
from memory.errors import ModelError
from memory.jobs import BACKOFF_FACTOR, BACKOFF_FIRST, BACKOFF_LAST, CLOCK_SECONDS
from memory.leases import LEASE_SECONDS
from memory.ops.health import LATE
from models import JobRow
from models.jobs import Job
from search_index import IndexBusy
from tests.application import statements
from tests.http import append, error, good, read_all, said
from tests.jobs import Bench, fail
from tests.knowledge import digest_of
from tests.model_server import Status
from tests.processes import eventually

TRIES = jobs.ATTEMPTS
FULL = sqlite3.OperationalError("database or disk is full")
FULL.sqlite_errorcode = sqlite3.SQLITE_FULL

# -- merging and waiting


def test_the_earlier_time_holds_unless_postponed(bench):
    for first, second, due in (
        ({"delay": 10.0}, {"delay": 3.0}, 3),
        ({"delay": 3.0}, {"delay": 10.0}, 3),
        ({"delay": 3.0}, {"delay": 10.0, "debounce": True}, 10),
    ):
        bench.enqueue("a", **first)
        bench.enqueue("a", **second)
        bench.clock.tick(due - 0.1)
        assert bench.run() == []
        bench.clock.tick(0.2)
        assert bench.run() == ["a"]


def test_what_is_asked_for_while_it_runs_waits_as_if_it_had_not_run(bench):
    def more_comes(job: Job) -> None:
        bench.work = lambda job: None
        bench.enqueue("a", delay=5.0)

    bench.work = more_comes
    bench.enqueue("a")
    assert bench.run() == ["a"]  # not at once again
    bench.clock.tick(4.9)
    assert bench.run() == []
    bench.clock.tick(0.2)
    assert bench.run() == ["a"]


# -- failing


def test_a_failure_is_retried_with_growing_pauses_that_new_work_does_not_shorten_and_then_stays(bench):
    bench.work = fail
    bench.enqueue("a")
    pauses = []
    for attempt in range(1, TRIES + 1):
        assert bench.engine.job_queue.run_due(["probe"]) == 1
        job = bench.job()
        assert (job["attempts"], job["error"]) == (attempt, "The model is down.")
        if attempt < TRIES:
            assert job["state"] == "pending"
            pause = (datetime.fromisoformat(job["run_at"]) - bench.clock()).total_seconds()
            bench.enqueue("a")
            bench.clock.tick(pause - 0.01)
            assert bench.engine.job_queue.run_due(["probe"]) == 0
            bench.clock.tick(0.01)
            pauses.append(pause)
    assert pauses == [min(BACKOFF_LAST, BACKOFF_FIRST * BACKOFF_FACTOR**n) for n in range(TRIES - 1)]
    assert bench.job()["state"] == "failed"
    bench.clock.tick(86_400 * 30)
    assert bench.engine.job_queue.run_due(["probe"]) == 0
    assert [job["id"] for job in bench.jobs(state="failed")] == [bench.job()["id"]]
    assert bench.jobs(state="pending") == []
    assert good(bench.client.get("/health/ready"))["jobs"] == {"failed": 1}


@pytest.mark.parametrize(
    "failure",
    [
        ModelError("model_unreachable", "It is away."),
        PermissionError(errno.EACCES, "Permission denied", "/srv/recap/index"),
        OperationalError("INSERT", None, FULL),
        IndexBusy("another process writes to the index"),
    ],
)
def test_a_job_goes_on_by_itself_however_long_what_it_needs_is_away(bench, failure):
    def away(job: Job) -> None:
        raise failure

    bench.work = away
    bench.enqueue("a")
    for _ in range(4 * TRIES):
        assert bench.engine.job_queue.run_due(["probe"]) == 1
        bench.clock.tick(BACKOFF_LAST)
    assert bench.job()["state"] == "pending" and bench.job()["error"]
    assert good(bench.client.get("/health/ready"))["jobs"] == {"pending": 1, "retried": 1}
    bench.work = fail  # it has begun to start, and answers otherwise at first
    assert bench.run() == [] and bench.job()["state"] == "pending"
    bench.clock.tick(BACKOFF_LAST)
    bench.work = lambda job: None
    assert bench.run() == ["a"]
    assert good(bench.client.get("/health/ready"))["jobs"] == {}


def test_a_job_that_fails_at_its_disk_for_a_day_is_failed_until_it_is_retried(bench):
    def unreadable(job: Job) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/srv/recap/index")

    bench.work = unreadable
    bench.enqueue("a")
    assert 23 * 3600 < jobs.DISK_ATTEMPTS * BACKOFF_LAST < 25 * 3600
    with bench.engine.database.write() as tx:
        tx.query(JobRow).one().attempts = jobs.DISK_ATTEMPTS - 2
    for state in ("pending", "failed"):
        assert bench.engine.job_queue.run_due(["probe"]) == 1
        assert bench.job()["state"] == state
        bench.clock.tick(BACKOFF_LAST)
    assert bench.job()["error"] == "PermissionError: Permission denied"
    good(bench.client.post(f"/api/jobs/{bench.job()['id']}/retry"))
    bench.work = lambda job: None
    assert bench.run() == ["a"]


def kill(bench: Bench) -> None:
    """Let the job fail for good."""
    bench.work = fail
    for _ in range(TRIES):
        bench.engine.job_queue.run_due(["probe"])
        bench.clock.tick(BACKOFF_LAST)
    assert bench.job()["state"] == "failed"


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_retry_or_new_work_gives_a_failed_job_a_new_chance(bench, by_hand):
    bench.enqueue("a")
    kill(bench)
    bench.work = lambda job: None
    if by_hand:
        good(bench.client.post(f"/api/jobs/{bench.job()['id']}/retry"))
    else:
        bench.enqueue("a")
    assert (bench.job()["state"], bench.job()["attempts"]) == ("pending", 0)
    assert bench.run() == ["a"]
    assert bench.jobs() == []


def test_an_unexpected_exception_is_logged_with_its_traceback(bench, caplog):
    def work(job: Job) -> None:
        raise ZeroDivisionError("so this is how it ends")

    bench.work = work
    bench.enqueue("a")
    with caplog.at_level(logging.ERROR, "memory.jobs"):
        bench.engine.job_queue.run_due(["probe"])
    assert bench.job()["error"].startswith("ZeroDivisionError; the log has more")
    assert "how it ends" not in bench.job()["error"]  # what it says may be what a person said
    (record,) = [record for record in caplog.records if record.name == "memory.jobs"]
    assert record.exc_info is not None
    assert "Traceback" in caplog.text


def test_a_failing_erasure_is_visible_though_its_owner_is_gone(bench):
    bench.enqueue("index-of-ada", owner_id=None, payload={"owner": "index-of-ada"})
    bench.work = fail
    assert bench.run() == []
    job = bench.job()
    assert (job["kind"], job["error"]) == ("probe", "The model is down.")
    assert bench.jobs(user_id="ada") == []
    assert good(bench.client.post(f"/api/jobs/{job['id']}/retry"))["state"] == "pending"
    with bench.engine.database.write() as tx:
        tx.get_one(JobRow, job["id"]).tenant = "another"
    assert bench.jobs() == []
    error(bench.client.post(f"/api/jobs/{job['id']}/retry"), 404)


# -- work that arrives while it is done, and workers that vanish


@pytest.fixture
def held(bench):
    """A job that a worker took before it vanished."""
    bench.enqueue("a")
    row = bench.take()
    bench.engine.leases.close()  # it renews nothing any more
    return row


@pytest.mark.parametrize("put_back", [0, 3600])
def test_a_job_whose_worker_vanished_is_taken_over_after_a_pause(bench, held, put_back):
    """Also when the clock is put back meanwhile: its lease is never longer than any other."""
    bench.clock.tick(-put_back)
    good(bench.client.post(f"/api/jobs/{held.id}/retry"))
    assert bench.run() == [] and bench.job()["state"] == "running"
    bench.clock.tick(LEASE_SECONDS - 0.1)
    assert bench.run() == []
    bench.clock.tick(0.2)
    assert bench.run() == []
    assert (bench.job()["state"], bench.job()["attempts"], bench.job()["error"]) == ("pending", 1, None)
    bench.clock.tick(BACKOFF_FIRST)
    assert bench.run() == ["a"]
    assert bench.jobs() == []


def test_a_job_that_kills_its_workers_lets_others_go_first_and_is_given_up(bench):
    """Whatever the next worker does first, it is not that."""
    bench.work = fail
    bench.enqueue("killer")
    bench.run()
    bench.clock.tick(BACKOFF_FIRST)
    bench.work = lambda job: None
    for number in range(1, TRIES):
        assert bench.job()["error"] == "The model is down."  # what its last whole try said
        bench.enqueue(f"other-{number}")
        killed = bench.process(bench.app)  # each time another process
        assert bench.take(killed).key == "killer"
        killed.leases.close()
        bench.clock.tick(LEASE_SECONDS + 1)
        assert bench.run() == [f"other-{number}"]
        bench.clock.tick(BACKOFF_LAST)
    (killer,) = bench.jobs()
    assert (killer["state"], killer["attempts"]) == ("failed", TRIES)
    assert "ended before the job was done" in killer["error"]


def test_a_worker_that_comes_back_too_late_changes_nothing(bench):
    def work(job: Job) -> None:
        bench.clock.tick(LEASE_SECONDS + 1)  # this process was suspended ...
        other = bench.process(bench.app)
        bench.work = fail
        assert other.job_queue.run_due(["probe"]) == 0  # ... another noticed ...
        bench.clock.tick(BACKOFF_FIRST)
        assert other.job_queue.run_due(["probe"]) == 1  # ... took over, and failed
        other.stop()

    bench.work = work
    bench.enqueue("a")
    bench.engine.job_queue.run_due(["probe"])
    assert (bench.job()["error"], bench.job()["attempts"]) == ("The model is down.", 2)


def test_workers_of_many_processes_never_do_one_job_twice(bench):
    at_once: set[str] = set()
    problems: list[str] = []
    lock = threading.Lock()

    def work(job: Job) -> None:
        with lock:
            if job.key in at_once:
                problems.append(job.key)
            at_once.add(job.key)

    bench.work = work
    for number in range(40):
        bench.enqueue(str(number))
    engines = [bench.process(bench.app) for _ in range(4)]
    threads = [threading.Thread(target=engine.job_queue.run_due, args=(["probe"],)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for engine in engines:
        engine.job_queue.run_due(["probe"])
        engine.stop()
    assert problems == []
    assert sorted(map(int, bench.done)) == list(range(40))
    assert bench.jobs() == []


# -- background workers


def test_started_workers_do_the_jobs_and_stop(model_app, model_server):
    engine, client = engine_of(model_app), model_app.test_client()
    model_server.mini.queue(Status(401), digest_of(topic="Tea"))
    append(client, "bad", [said("I drink tea.")])
    engine.start()
    model_server.wait_for_requests(1)
    append(client, "s", [said("I drink tea.")])
    model_server.wait_for_requests(2)
    assert eventually(lambda: good(client.get("/api/sessions/s/summary"))["state"] == "current")
    assert eventually(lambda: "index" not in {job["kind"] for job in read_all(client, "/api/jobs")})
    names = {thread.name for thread in threading.enumerate() if thread.name.startswith("recap-jobs")}
    assert names
    engine.stop()
    assert not {thread.name for thread in threading.enumerate()} & names


# -- clocks that jump


def test_a_clock_that_is_put_back_makes_waiting_jobs_due(bench):
    bench.work = fail
    bench.enqueue("failing")
    bench.run()  # it waits for its pause
    bench.work = lambda job: None
    bench.enqueue("asked again", delay=60.0)
    bench.enqueue("asked before", delay=60.0)
    bench.clock.tick(-CLOCK_SECONDS.total_seconds())  # as clocks of several machines may differ
    assert bench.run() == []
    bench.clock.tick(-3600)
    bench.enqueue("asked again", delay=60.0, debounce=True)
    bench.enqueue("failing")
    assert bench.run() == ["failing", "asked before"]
    bench.clock.tick(61)
    assert bench.run() == ["asked again"]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_workers_soon_do_all_jobs_that_were_enqueued_before_a_clock_was_put_back(bench, is_restarted):
    """Those that take erased words out of the index would wait until the clock is there again."""
    engine = bench.process(bench.app) if is_restarted else bench.engine
    if not is_restarted:
        engine.start()
        bench.enqueue("first")
        assert eventually(lambda: bench.done == ["first"])
    for key in "abc":
        bench.enqueue(key, delay=30.0)
    bench.clock.now -= timedelta(days=3)
    if is_restarted:
        engine.start()
    assert eventually(lambda: set("abc") <= set(bench.done))
    engine.stop()


# -- what is kept of an error


def test_an_error_that_speaks_of_no_conversation_is_kept_whole(bench):
    failures = {
        "OSError: No space left on device": OSError(28, "No space left on device", "/secret/place"),
        "OperationalError: database or disk is full": sqlite3.OperationalError("database or disk is full"),
        "x" * 2000: ModelError("x", "x" * 10_000),
    }

    def work(job: Job) -> None:
        raise failures[job.key]

    bench.work = work
    for kept in failures:
        bench.enqueue(kept)
    bench.run()
    assert {job["error"] for job in bench.jobs()} == failures.keys()


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_server_that_repeats_the_conversation_leaves_none_of_it_in_the_error(make_app, model_server, status, caplog):
    app = make_app(openai_base_url=model_server.url, openai_api_key="sk-very-secret", openai_summary_model="mini-model")
    client = app.test_client()
    append(client, "s", [said("My locker's code is 4711.")])
    told = "messages[1].content: My locker's code is 4711. (key sk-very-secret)"
    model_server.mini.default = lambda body: Status(status, {"error": {"message": told}})
    engine_of(app).job_queue.run_due(["summary"])
    (job,) = [job for job in read_all(client, "/api/jobs") if job["kind"] == "summary"]
    shown = job["error"] + good(client.get("/api/sessions/s/summary"))["error"] + caplog.text
    assert job["error"].startswith("The ") and job["error"].endswith(".")
    assert not any(secret in shown for secret in ("4711", "locker", "sk-very-secret"))
    preview = client.post("/api/sessions/s/summary/preview", json={})
    assert "4711" in preview.json["error"]["message"] and "sk-very-secret" not in preview.text  # to who asks


# -- as a caller sees them


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


# -- health, when nobody does them


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


# -- a server that ends


def test_a_server_that_is_ended_waits_for_all_the_calls_a_turn_may_make(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where there is no .env
    for environ, seconds in (
        ({}, 375),  # three calls of a model that may take two minutes each, and a quarter for running jobs
        ({"MODEL_TIMEOUT": "20", "RECALL_TOOL_ROUNDS": "5"}, 115),
        ({"MODEL_TIMEOUT": "20", "SUMMARY_MODE": "inline"}, 115),  # with the summary and its repair
    ):
        for variable in Settings.variables():
            monkeypatch.setenv(variable, environ.get(variable, ""))
        assert runpy.run_path(str(ROOT / "gunicorn.conf.py"))["graceful_timeout"] == seconds


def test_a_summary_job_takes_at_most_eight_statements(model_app, model_server):
    engine, client = engine_of(model_app), model_app.test_client()
    for text in ("I drink tea.", "And coffee."):
        append(client, "s", [said(text)], user_id="ada")
        model_server.mini.queue(digest_of(topic="Tea"))
        with statements(engine.database) as sent:
            job = engine.job_queue.claim_next("summary")
            assert job is not None and engine.job_queue.run(job) is None
        assert len(sent) <= 8, sent


def test_one_statement_finds_that_no_job_waits(bench):
    with statements(bench.engine.database) as sent:
        assert bench.engine.job_queue.run_due() == 0
    of_jobs = [statement for statement in sent if "FROM webhooks" not in statement]  # which one looks for events
    assert len(of_jobs) == 1 and len(sent) <= 2, sent
