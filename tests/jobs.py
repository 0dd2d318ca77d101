"""What the tests of jobs share: a clock of their own, and an application with jobs that do what a test says."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import create_engine, update

from api.current_request import EXTENSION
from app import engine_of
from memory.engine import Engine
from memory.errors import ModelError
from memory.job_kinds import register_jobs
from models import JobRow, OwnerRow
from models.jobs import Job, JobRequest
from tests.http import read_all


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
        self.engine = self.process(app)
        app.extensions[EXTENSION] = self.engine
        self.app = app
        self.work: Callable[[Job], None] = lambda job: None
        self.done: list[str] = []
        self.owner_id = self.owner("ada")

    def owner(self, name: str) -> int:
        """A new person's row."""
        with self.engine.database.write() as tx:
            owner = OwnerRow(tenant="default", kind="user", name=name, created_at=self.clock())
            tx.add(owner)
            tx.flush()
            return owner.id

    def process(self, app: Flask) -> Engine:
        """Another engine on the same data, as another process has."""
        database = create_engine(engine_of(app).database.engine.url)
        engine = Engine(engine_of(app).settings, database, now=self.clock)
        register_jobs(engine)
        engine.job_queue.register("probe", self._run)
        return engine

    def _run(self, job: Job) -> None:
        self.work(job)
        self.done.append(job.key)

    def enqueue(self, key: str = "a", kind: str = "probe", **options: Any) -> None:
        with self.engine.database.write() as tx:
            told = {"tenant": "default", "owner_id": self.owner_id, **options}
            self.engine.job_queue.enqueue(tx, JobRequest(kind, key, **told))

    def take(self, engine: Engine | None = None) -> JobRow:
        """Have the next job taken by a process that goes no further; its row."""
        engine = engine or self.engine
        claimed = engine.job_queue.claim_next("probe")
        assert claimed is not None
        with engine.database.read() as tx:
            return tx.get_one(JobRow, claimed.id)

    def run(self) -> list[str]:
        """Run what is due; the keys of the jobs that were done."""
        self.done.clear()
        self.engine.job_queue.run_due(["probe"])
        return list(self.done)

    def jobs(self, **query: Any) -> list[dict[str, Any]]:
        return read_all(self.client, "/api/jobs", **query)

    def job(self) -> dict[str, Any]:
        (job,) = self.jobs()
        return dict(job)


def fail(job: Job) -> None:
    raise ModelError("model_down", "The model is down.")


def jobs_done(client: FlaskClient, *kinds: str) -> None:
    """Let these jobs run, or all but tomorrow's retention, due or not."""
    try_jobs(client, *kinds)
    assert [job for job in read_all(client, "/api/jobs") if job["state"] == "failed"] == []


def try_jobs(client: FlaskClient, *kinds: str) -> None:
    """Let these jobs run, due or not, also if they fail."""
    engine = engine_of(client.application)
    with engine.database.write() as tx:
        tx.execute(update(JobRow).where(JobRow.kind != "retention").values(run_at=JobRow.created_at))
    engine.job_queue.run_due(kinds or None)
