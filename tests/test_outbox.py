"""The outbox: what is asked for is done at least once, failures are retried and visible, a bad job holds up none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from api.context import EXTENSION
from app import services_of
from memory.errors import ModelError
from memory.leases import LEASE_SECONDS
from memory.outbox import BACKOFF_FIRST, BACKOFF_LAST, MAX_ATTEMPTS, Job
from memory.services import Services, build
from models import JobRow, OwnerRow
from tests.model_server import ModelServer, Status
from tests.resources import append, digest_of, error, good, read_all, said


class Clock:
    """A time the test moves on."""

    def __init__(self) -> None:
        self.now = datetime(2024, 6, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Bench:
    """An application on the test's clock; `work` is what jobs of kind `probe` do."""

    def __init__(self, app: Flask, clock: Clock) -> None:
        self.clock = clock
        self.client = app.test_client()
        self.services = self.process(app)
        app.extensions[EXTENSION] = self.services
        self.app = app
        self.work: Callable[[Job], None] = lambda job: None
        self.done: list[str] = []
        with self.services.database.write() as tx:
            owner = OwnerRow(tenant="default", kind="user", name="ada", created_at=clock())
            tx.add(owner)
            tx.flush()
            self.owner_id = owner.id

    def process(self, app: Flask) -> Services:
        """Another engine on the same data, as another process has."""
        services = build(services_of(app).settings, services_of(app).database.engine, now=self.clock)
        services.outbox.register("probe", self._run)
        return services

    def _run(self, job: Job) -> None:
        self.work(job)
        self.done.append(job.key)

    def ask(self, key: str = "a", kind: str = "probe", **options: Any) -> None:
        with self.services.database.write() as tx:
            self.services.outbox.enqueue(tx, kind, key, owner_id=self.owner_id, **options)

    def run(self) -> list[str]:
        """Run what is due; the keys of the jobs that were done."""
        self.done.clear()
        self.services.outbox.run_due(["probe"])
        return list(self.done)

    def jobs(self, **query: Any) -> list[dict[str, Any]]:
        return read_all(self.client, "/api/jobs", **query)

    def job(self) -> dict[str, Any]:
        (job,) = self.jobs()
        return dict(job)


@pytest.fixture
def bench(app: Flask) -> Iterator[Bench]:
    bench = Bench(app, Clock())
    yield bench
    bench.services.stop()


def fail(job: Job) -> None:
    raise ModelError("model_down", "The model is down.")


# -- merging and waiting


def test_done_means_gone(bench: Bench) -> None:
    bench.ask("a", payload={"n": 1})
    bench.ask("b")
    assert {job["state"] for job in bench.jobs()} == {"pending"}
    assert bench.run() == ["a", "b"]
    assert bench.jobs() == []
    assert bench.run() == []


def test_asking_again_merges(bench: Bench) -> None:
    payloads: list[Any] = []
    bench.work = lambda job: payloads.append(dict(job.payload))
    bench.ask("a", payload={"n": 1})
    bench.ask("a")
    bench.ask("a", payload={"n": 2})
    assert len(bench.jobs()) == 1
    assert bench.run() == ["a"]
    assert payloads == [{"n": 2}]


@pytest.mark.parametrize(
    ("first", "second", "due"),
    [
        ({"delay": 10.0}, {"delay": 3.0}, 3),
        ({"delay": 3.0}, {"delay": 10.0}, 3),
        ({"delay": 3.0}, {"delay": 10.0, "postpone": True}, 10),
        ({"delay": 10.0}, {"delay": 0.0, "postpone": True}, 0),
    ],
)
def test_the_earlier_time_holds_unless_postponed(bench: Bench, first: Any, second: Any, due: int) -> None:
    bench.ask("a", **first)
    bench.ask("a", **second)
    if due:
        bench.clock.tick(due - 0.1)
        assert bench.run() == []
    bench.clock.tick(0.2)
    assert bench.run() == ["a"]


def test_a_burst_of_turns_costs_one_summary(make_app: Any, model_server: ModelServer) -> None:
    app = make_app(openai_base_url=model_server.url, openai_summary_model="mini-model", summary_debounce=3.0)
    bench = Bench(app, Clock())
    for number in range(5):
        good(bench.client.post("/api/chat", json={"session_id": "s", "message": f"Message {number}"}))
        bench.clock.tick(2.9)
        bench.services.outbox.run_due()
    assert [request.model for request in model_server.requests] == ["main"] * 5
    bench.clock.tick(0.2)
    bench.services.outbox.run_due()
    assert [request.model for request in model_server.requests].count("mini") == 1
    assert good(bench.client.get("/api/sessions/s/summary"))["state"] == "current"


def test_a_full_tail_does_not_wait_for_a_pause(make_app: Any, model_server: ModelServer) -> None:
    app = make_app(openai_base_url=model_server.url, summary_debounce=60.0, tail_messages_max=4)
    bench = Bench(app, Clock())
    append(bench.client, "s", [said(str(number)) for number in range(5)])
    assert bench.services.outbox.run_due(["summary"]) == 1


# -- failing


def test_a_failure_is_retried_with_growing_pauses_and_then_stays(bench: Bench) -> None:
    bench.work = fail
    bench.ask("a")
    pauses = []
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert bench.services.outbox.run_due(["probe"]) == 1
        job = bench.job()
        assert (job["attempts"], job["error"]) == (attempt, "The model is down.")
        if attempt < MAX_ATTEMPTS:
            assert job["state"] == "pending"
            pause = (datetime.fromisoformat(job["run_at"]) - bench.clock()).total_seconds()
            bench.clock.tick(pause - 0.01)
            assert bench.services.outbox.run_due(["probe"]) == 0
            bench.clock.tick(0.01)
            pauses.append(pause)
    assert pauses == [min(BACKOFF_LAST, BACKOFF_FIRST * 2**n) for n in range(MAX_ATTEMPTS - 1)]
    assert bench.job()["state"] == "failed"
    bench.clock.tick(86_400 * 30)
    assert bench.services.outbox.run_due(["probe"]) == 0
    assert [job["id"] for job in bench.jobs(state="failed")] == [bench.job()["id"]]
    assert bench.jobs(state="pending") == []
    assert good(bench.client.get("/health/ready"))["jobs"] == {"failed": 1}


def kill(bench: Bench) -> None:
    """Let the job fail for good."""
    bench.work = fail
    for _ in range(MAX_ATTEMPTS):
        bench.services.outbox.run_due(["probe"])
        bench.clock.tick(BACKOFF_LAST)
    assert bench.job()["state"] == "failed"


def test_a_failed_job_is_retried_on_request(bench: Bench) -> None:
    bench.ask("a")
    kill(bench)
    bench.work = lambda job: None
    retried = good(bench.client.post(f"/api/jobs/{bench.job()['id']}/retry"))
    assert (retried["state"], retried["attempts"]) == ("pending", 0)
    assert bench.run() == ["a"]
    assert bench.jobs() == []


def test_new_work_gives_a_failed_job_a_new_chance(bench: Bench) -> None:
    bench.ask("a")
    kill(bench)
    bench.ask("a")
    assert (bench.job()["state"], bench.job()["attempts"]) == ("pending", 0)


def test_new_work_does_not_shorten_a_backoff(bench: Bench) -> None:
    bench.work = fail
    bench.ask("a")
    bench.services.outbox.run_due(["probe"])
    bench.ask("a")
    assert bench.services.outbox.run_due(["probe"]) == 0
    bench.clock.tick(BACKOFF_FIRST)
    assert bench.services.outbox.run_due(["probe"]) == 1


def test_a_poisoned_job_blocks_nobody(bench: Bench) -> None:
    def work(job: Job) -> None:
        if job.key.startswith("bad"):
            raise ValueError("poison")

    bench.work = work
    for number in range(8):  # more than are looked at in one go, and all due before the good one
        bench.ask(f"bad-{number}")
    bench.clock.tick(1)
    bench.ask("good")
    assert bench.run() == ["good"]
    assert len(bench.jobs()) == 8


def test_an_unexpected_exception_is_logged_with_its_traceback(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    def work(job: Job) -> None:
        raise ZeroDivisionError("so this is how it ends")

    bench.work = work
    bench.ask("a")
    with caplog.at_level(logging.ERROR, "memory.outbox"):
        bench.services.outbox.run_due(["probe"])
    assert bench.job()["error"] == "ZeroDivisionError: so this is how it ends"
    (record,) = [record for record in caplog.records if record.name == "memory.outbox"]
    assert record.exc_info is not None
    assert f"job {bench.job()['id']} (probe a)" in record.getMessage()
    assert "Traceback" in caplog.text


def test_a_failing_erasure_is_visible_though_its_owner_is_gone(bench: Bench) -> None:
    append(bench.client, "s", [said("hello")])
    good(bench.client.get("/api/sessions/s"))
    assert bench.client.delete("/api/sessions/s").status_code == 204
    bench.services.outbox.register("unindex", fail)
    bench.services.outbox.run_due(["unindex"])
    (job,) = bench.jobs()
    assert (job["kind"], job["error"]) == ("unindex", "The model is down.")
    assert bench.jobs(user_id="ada") == []
    assert good(bench.client.post(f"/api/jobs/{job['id']}/retry"))["state"] == "pending"


# -- work that arrives while it is done, and workers that vanish


def test_a_request_during_a_run_is_not_lost(bench: Bench) -> None:
    runs: list[int] = []

    def work(job: Job) -> None:
        runs.append(job.revision)
        if len(runs) == 1:
            bench.ask("a")

    bench.work = work
    bench.ask("a")
    assert bench.run() == ["a", "a"]
    assert runs == [1, 2]
    assert bench.jobs() == []


@pytest.fixture
def held(bench: Bench) -> JobRow:
    """A job that a worker took before it vanished."""
    bench.ask("a")
    with bench.services.database.read() as tx:
        row_id = tx.query(JobRow.id).scalar()
    claimed = bench.services.outbox._claim(row_id)
    assert claimed is not None
    bench.services.leases.close()  # it renews nothing any more
    with bench.services.database.read() as tx:
        return tx.get_one(JobRow, row_id)


def test_a_job_whose_worker_vanished_is_taken_over(bench: Bench, held: JobRow) -> None:
    assert bench.job()["state"] == "running"
    bench.clock.tick(LEASE_SECONDS - 0.1)
    assert bench.run() == []
    bench.clock.tick(0.2)
    assert bench.run() == ["a"]
    assert bench.jobs() == []


def test_a_job_that_kills_its_workers_is_given_up(bench: Bench, held: JobRow) -> None:
    for _ in range(MAX_ATTEMPTS - 1):
        bench.clock.tick(LEASE_SECONDS + 1)
        assert bench.services.outbox._claim(held.id) is not None
    bench.clock.tick(LEASE_SECONDS + 1)
    assert bench.run() == []
    assert bench.job()["state"] == "failed"
    assert "ended before it was done" in bench.job()["error"]


def test_a_running_job_is_not_retried_by_hand(bench: Bench, held: JobRow) -> None:
    assert good(bench.client.post(f"/api/jobs/{held.id}/retry"))["state"] == "running"
    assert bench.run() == []


def test_a_worker_that_comes_back_too_late_changes_nothing(bench: Bench) -> None:
    def work(job: Job) -> None:
        bench.clock.tick(LEASE_SECONDS + 1)  # this process was suspended ...
        other = bench.process(bench.app)
        bench.work = fail
        other.outbox.run_due(["probe"])  # ... and another took over, and failed
        other.stop()

    bench.work = work
    bench.ask("a")
    bench.services.outbox.run_due(["probe"])
    assert (bench.job()["error"], bench.job()["attempts"]) == ("The model is down.", 2)


def test_workers_of_many_processes_never_do_one_job_twice(bench: Bench) -> None:
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
        bench.ask(str(number))
    engines = [bench.process(bench.app) for _ in range(4)]
    threads = [threading.Thread(target=engine.outbox.run_due, args=(["probe"],)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for engine in engines:
        engine.outbox.run_due(["probe"])
        engine.stop()
    assert problems == []
    assert sorted(map(int, bench.done)) == list(range(40))
    assert bench.jobs() == []


# -- background workers


def test_started_workers_do_the_jobs_and_stop(model_app: Flask, model_server: ModelServer) -> None:
    services, client = services_of(model_app), model_app.test_client()
    model_server.mini.queue(Status(401), digest_of(topic="Tea"))
    append(client, "bad", [said("I drink tea.")])
    services.start()
    model_server.wait_for_requests(1)
    append(client, "s", [said("I drink tea.")])
    model_server.wait_for_requests(2)
    assert settles(lambda: good(client.get("/api/sessions/s/summary"))["state"] == "current")
    assert settles(lambda: "index" not in {job["kind"] for job in read_all(client, "/api/jobs")})
    names = {thread.name for thread in threading.enumerate() if thread.name.startswith("recap-jobs")}
    assert names
    services.stop()
    assert not {thread.name for thread in threading.enumerate()} & names


def settles(condition: Callable[[], bool]) -> bool:
    """Whether `condition` comes true within some seconds."""
    pause = threading.Event()
    return any(condition() or pause.wait(0.01) for _ in range(500))


# -- whose jobs


def test_a_persons_jobs_are_theirs(client: FlaskClient) -> None:
    append(client, "one", [said("hello")], user_id="ada")
    append(client, "two", [said("hello")], user_id="bob")
    append(client, "three", [said("hello")])
    kinds = [(job["kind"], job["session_id"]) for job in read_all(client, "/api/jobs", user_id="ada", limit=1)]
    assert kinds == [("index", None), ("summary", "one")]
    assert len(read_all(client, "/api/jobs", limit=1)) == 6
    (job,) = read_all(client, "/api/jobs", session_id="two")
    error(client.post(f"/api/jobs/{job['id']}/retry?user_id=ada"), 404)
    error(client.post("/api/jobs/999/retry"), 404)
    assert good(client.post(f"/api/jobs/{job['id']}/retry?user_id=bob"))["session_id"] == "two"
