"""Two processes' worth of engines on one database: work that was taken over is not overwritten by who had it before.

Each engine has its own leases, threads and workers; the clock is the test's, so that one is suspended, or clocks jump,
without anybody waiting.
"""

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from memory import jobs
from memory.engine import Engine
from memory.jobs import BACKOFF_FIRST
from memory.leases import LEASE_DURATION, LEASE_SECONDS, Lease
from models import JobRow, SessionRow
from tests.http import append, chat, good, meanwhile, read_all, said
from tests.http import history as all_said
from tests.jobs import Bench
from tests.knowledge import digest_of, fact
from tests.model_server import Delay, at
from tests.processes import eventually

TEA = fact("Drinks tea", 1, "I drink tea")


@pytest.fixture
def app(make_app, model_server):
    return make_app(**at(model_server, model_timeout=30.0))


@pytest.fixture
def other(bench):
    """The other process."""
    engine = bench.process(bench.app)
    yield engine
    engine.stop()


def test_an_old_summary_never_overwrites_a_newer_one(bench, other, model_server):
    append(bench.client, "s", [said("I drink tea.")])
    release = threading.Event()
    model_server.mini.queue(Delay(release, digest_of(TEA, topic="Late")), digest_of(TEA, topic="In time"))
    with meanwhile(lambda: bench.engine.job_queue.run_due(["summary"])):  # suspended while the mini model works
        model_server.wait_for_requests(1)
        append(bench.client, "s", [said("And coffee.")])
        bench.clock.tick(LEASE_SECONDS + 1)
        assert other.job_queue.run_due(["summary"]) == 0, "it waits the pause"
        bench.clock.tick(BACKOFF_FIRST)
        assert other.job_queue.run_due(["summary"]) == 1
        release.set()
    (version,) = read_all(bench.client, "/api/sessions/s/summary/versions")
    assert (version["version"], version["sections"]["topic"], version["through"]) == (1, "In time", 2)
    assert [one["text"] for one in read_all(bench.client, "/api/facts", session_id="s")] == ["Drinks tea"]
    assert [job for job in bench.jobs() if job["kind"] == "summary"] == []
    assert good(bench.client.get("/api/sessions/s/summary"))["state"] == "current"


def test_an_inline_summary_waits_for_the_worker_that_has_taken_its_job(bench, other, model_server):
    append(bench.client, "s", [said("I drink tea.")])
    release = threading.Event()
    model_server.mini.queue(Delay(release, digest_of(TEA, topic="Tea")))
    with meanwhile(lambda: other.job_queue.run_due(["summary"])):
        model_server.wait_for_requests(1)
        assert bench.engine.job_queue.run_now("summary", 1, patience=0.1) is None
        assert read_all(bench.client, "/api/sessions/s/summary/versions") == []
        threading.Timer(0.3, release.set).start()
        assert bench.engine.job_queue.run_now("summary", 1, patience=30.0) is None
        assert good(bench.client.get("/api/sessions/s/summary"))["state"] == "current"


# -- clocks that jump


def leave_a_lease(bench: Bench, engine: Engine) -> None:
    """Have the session held by a process that dies now: nobody renews that."""
    with engine.database.write() as tx:
        row = tx.query(SessionRow).one()
        row.lease_token, row.lease_until = "gone", engine.now() + LEASE_DURATION


def seconds_left(bench: Bench) -> float:
    """For how long the session's lease goes on, by the clock as it is."""
    with bench.engine.database.read() as tx:
        until = tx.query(SessionRow).one().lease_until
    assert until is not None
    return (until - bench.clock()).total_seconds()


@pytest.mark.parametrize("seconds", [-18_000, -36])
def test_a_clock_that_is_put_back_does_not_keep_a_dead_holders_session_from_others(bench, other, seconds):
    chat(bench.client, "one", session_id="s")
    leave_a_lease(bench, other)
    bench.clock.tick(seconds)
    with meanwhile(lambda: chat(bench.client, "two", session_id="s")):
        assert eventually(lambda: seconds_left(bench) <= LEASE_SECONDS)
        bench.clock.tick(LEASE_SECONDS)
    assert [words for _, words in all_said(bench.client, "s")][::2] == ["one", "two"]


# -- the thread that renews


def test_renewing_goes_on_after_a_callback_failed_and_a_thread_could_not_start(bench, other, monkeypatch, caplog):
    monkeypatch.setattr("memory.leases.RENEW_SECONDS", 0.0)
    threads = refuse_threads(monkeypatch, "recap-leases")
    bench.enqueue("a")
    bench.enqueue("b")
    with pytest.raises(RuntimeError):
        bench.take()
    assert threads == []
    taken = bench.take()
    bench.engine.leases.hold(Lease(JobRow, 0, "x"), on_renew=lambda _: "\ud83d".encode())
    bench.clock.tick(5)

    def is_renewed() -> bool:
        with other.database.read() as tx:
            return bool(tx.get_one(JobRow, taken.id).lease_until > taken.lease_until)

    assert eventually(is_renewed) and eventually(lambda: "a callback failed" in caplog.text)
    bench.clock.tick(5)
    taken.lease_until += timedelta(seconds=5)
    assert eventually(is_renewed)


def test_a_lease_that_can_not_be_renewed_loses_no_other(bench, other, monkeypatch, caplog):
    monkeypatch.setattr("memory.leases.RENEW_SECONDS", 0.05)
    monkeypatch.setattr("memory.leases.TROUBLE_SECONDS", 0.01)
    bench.enqueue("a")
    taken = bench.take()
    bench.engine.leases.hold(Lease(JobRow, 0, "x"), on_renew=lambda tx: tx.execute(text("SELECT 1 FROM nowhere")))
    bench.clock.tick(5)

    def is_renewed() -> bool:
        with other.database.read() as tx:
            return bool(tx.get_one(JobRow, taken.id).lease_until > taken.lease_until)

    assert eventually(lambda: "could not be renewed" in caplog.text) and eventually(is_renewed)


def test_a_thread_that_could_not_start_stops_no_jobs(bench, monkeypatch):
    monkeypatch.setattr(jobs, "FAILED_LOOK_SECONDS", 0.05)
    threads = refuse_threads(monkeypatch, "recap-jobs-probe")
    bench.enqueue("a")
    bench.engine.job_queue.start()
    assert eventually(lambda: threads == [])
    assert eventually(lambda: bench.clock.tick(LEASE_SECONDS) or bench.done == ["a"])
    bench.engine.job_queue.stop(5.0)


def refuse_threads(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Let the next thread of this name not start, as at the limit of threads. The list has the name until then."""
    start, refused = threading.Thread.start, [name]

    def start_another(thread: threading.Thread) -> None:
        if thread.name in refused:
            refused.remove(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_another)
    return refused


def test_renewing_goes_on_after_the_database_failed(bench, other, monkeypatch, caplog):
    monkeypatch.setattr("memory.leases.RENEW_SECONDS", 0.0)
    monkeypatch.setattr("memory.leases.TROUBLE_SECONDS", 0.01)
    bench.enqueue("a")
    taken = bench.take()
    failures = [OperationalError("UPDATE", None, Exception("disk I/O error"))] * 2

    def fail(*_: Any) -> None:
        if failures:
            raise failures.pop()

    def lease_until() -> Any:
        with other.database.read() as tx:
            return tx.get_one(JobRow, taken.id).lease_until

    event.listen(bench.engine.database.engine, "before_cursor_execute", fail)
    bench.clock.tick(5)
    assert eventually(lambda: lease_until() > taken.lease_until)
    assert failures == [] and "could not be renewed" in caplog.text
