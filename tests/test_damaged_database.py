"""A database file that is damaged: a clear refusal with the way to restore, nothing hidden, nothing that spins."""

import logging
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event

from app import engine_of
from tests.http import append, ask, chat, events, failed, good, said
from tests.http import history as all_said
from tests.model_server import ModelServer, at
from tests.processes import eventually

PAGE = 4096


@pytest.fixture
def server():
    with ModelServer(reply="An answer.") as server:
        yield server


@pytest.fixture
def make(make_app, server):
    return lambda **changes: make_app(**at(server, **changes))


@pytest.fixture
def file(make):
    """The file of a database with a conversation of 400 messages, which nobody has open."""
    app = make()
    engine = engine_of(app)
    append(app.test_client(), "s", [said(f"Note {n} about lighthouse {n}. " * 8) for n in range(400)], user_id="ada")
    chat(app.test_client(), "Hello.", session_id="t", user_id="ada")
    engine.job_queue.run_due()
    engine.database.engine.dispose()
    path = engine.settings.data_dir / "recap.db"
    with closing(sqlite3.connect(path)) as database:  # a thread that ends late may have kept the log
        assert database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return path


def pages_of(file: Path, table: str) -> list[int]:
    """The pages that hold a table's rows, but for the first, which leads to the others."""
    with closing(sqlite3.connect(file)) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        try:
            found = database.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,))
            leaves = [page for (page,) in found]
        except sqlite3.OperationalError:  # built without dbstat
            leaves = []
    return leaves or [root]


def overwrite(file: Path, pages: list[int], seed: int = 1) -> None:
    """Put noise in place of pages, as a failing disk does."""
    chance = random.Random(seed)
    with file.open("r+b") as stream:
        for page in pages:
            stream.seek((page - 1) * PAGE)
            stream.write(chance.randbytes(PAGE))


def test_a_damaged_page_is_refused_with_the_way_to_restore(make, file):
    """Readiness tells of it in every process, until the database is restored."""
    whole = file.with_name("copy.db")
    shutil.copy(file, whole)
    client, other = make().test_client(), make().test_client()
    assert good(client.get("/health/ready"))["database"] == "ok"
    overwrite(file, pages_of(file, "messages"))
    for answer, consequence in (
        (ask(client, "Hello?", session_id="s", user_id="ada"), "Nothing of this request was stored."),
        (client.get("/api/sessions/s/messages"), "Nothing was read."),
        (client.get("/api/search?q=lighthouse&user_id=ada"), "Nothing was read."),
    ):
        told = failed(answer, 503, "database_damaged")
        assert "damaged" in told["message"]
        assert consequence in told["message"]
        assert "restore FILE" in told["message"] and "docs/operations.md" in told["message"]
    assert good(client.get("/api/facts?user_id=ada"))["items"] is not None  # what lies elsewhere can be read
    for one in (client, other):
        ready = one.get("/health/ready")
        assert ready.status_code == 503 and ready.json["database"].startswith("damaged")
    whole.replace(file)
    for one in (client, other):
        assert good(one.get("/health/ready"))["database"] == "ok"
        assert len(good(one.get("/api/sessions/s/messages", query_string={"limit": 100}))["items"]) == 100
    assert list(file.parent.glob("*.damaged")) == []


class FullDisk:
    """The disk of an application's database: `fill` leaves no room for another page, `free` does."""

    def __init__(self, app: Flask) -> None:
        self._engine = engine_of(app).database.engine
        event.listen(self._engine, "connect", self._limit)
        self._pages = 2**30

    def fill(self) -> None:
        with self._engine.connect() as connection:
            self._pages = connection.exec_driver_sql("PRAGMA page_count").scalar() or 0
        self._engine.dispose()

    def free(self) -> None:
        self._pages = 2**30
        self._engine.dispose()

    def _limit(self, connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {self._pages}")


@pytest.mark.parametrize("streamed", [True, False])
def test_a_reply_that_cannot_be_stored_says_that_the_message_is_kept(make, server, streamed):
    app = make()
    client, disk = app.test_client(), FullDisk(app)

    def long(_: Any) -> str:
        disk.fill()
        return "long" * 20_000

    server.main.queue(long)
    answer = ask(client, "Keep this.", session_id="s", stream=streamed)
    told = events(answer.text)[-1]["error"] if streamed else failed(answer, 503, "disk_full")
    assert told["code"] == "disk_full"
    assert "The reply was not stored. Your message is kept: send it again in session s" in told["message"]
    assert all_said(client, "s") == [("user", "Keep this.")]

    too_long = ask(client, "And this. " * 7000, session_id="t")
    assert "Nothing of this request was stored." in failed(too_long, 503, "disk_full")["message"]
    failed(client.get("/api/sessions/t"), 404, "session_not_found")

    disk.free()
    assert chat(client, "Keep this.", session_id="s")["reply"] == "An answer."
    assert all_said(client, "s") == [("user", "Keep this."), ("assistant", "An answer.")]


def test_jobs_do_not_spin_nor_fill_the_log(make, file, caplog, monkeypatch):
    monkeypatch.setattr("memory.jobs.POLL_SECONDS", 0.05)
    overwrite(file, pages_of(file, "ix_jobs_queue"))
    engine = engine_of(make())
    with caplog.at_level(logging.ERROR):
        engine.start()
        assert eventually(lambda: "jobs wait: the database can't be used" in caplog.text)
        assert not eventually(
            lambda: len(caplog.records) > 16, seconds=1.5
        )  # some two of the looker and of each worker
        engine.stop()
    assert "Traceback" not in caplog.text, "it is no mistake of ours"
