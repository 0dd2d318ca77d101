"""`recap move-to`: all rows in another database, compared one by one."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import create_engine, select

from app import build_app, engine_of
from memory.ops.backup import DataLock
from models import Base
from tests.application import an_app, execute, run_command
from tests.conftest import empty
from tests.http import chat, good


def run(app: Flask, *command: object) -> Result:
    engine_of(app).stop()
    return run_command(app, *command)


def all_rows(url: str) -> dict[str, list[Any]]:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in Base.metadata.sorted_tables
        }
    engine.dispose()
    return found


@pytest.fixture(scope="module")
def life(tmp_path_factory, migrated):
    """A folder with people, a correction (a fact that is superseded by a later one), items, a document, an archive,
    and an erased message."""
    folder = tmp_path_factory.mktemp("life")
    with an_app(folder, migrated, summary_debounce=0.0) as app:
        client = app.test_client()
        for session in ("archived", "adas"):
            chat(client, "I like tea.", session_id=session, user_id="ada")
        good(client.put("/api/retention", json={"sessions": 1}))
        engine_of(app).job_queue.run_due(["retention"])
        assert len(good(client.get("/api/archives"))["items"]) == 1
        document = {"user_id": "ada", "text": "# Tea\n\nIt steeps for two minutes.", "external_id": "tea"}
        good(client.post("/api/documents", json=document))
        for who in ("ada", "bo"):
            for words in ("My name is Ada and I live in Lyon.", "I work at a bakery.", "No, I moved to Paris."):
                chat(client, words, session_id=f"{who}s", user_id=who)
                engine_of(app).job_queue.run_due()
        item = {"user_id": "ada", "namespace": ["a"], "key": "k", "value": {"n": 1.5}}
        good(client.put("/api/store/items", json=item))
        last = client.get("/api/sessions/bos/messages").json["items"][-1]["id"]
        good(client.delete(f"/api/sessions/bos/messages/{last}"))
    return folder


@pytest.fixture
def lived_in(life, tmp_path, make_app):
    shutil.copytree(life, tmp_path / "data")
    return make_app()


def url_of(file: Path) -> str:
    return f"sqlite:///{file}"


def test_every_row_is_moved(lived_in, tmp_path):
    source, target = engine_of(lived_in).settings.sqlalchemy_url, url_of(tmp_path / "new.db")
    before = all_rows(source)
    for _ in range(2):
        result = run(lived_in, "move-to", target)
        assert result.exit_code == 0, result.output
        assert f"Moved {sum(map(len, before.values()))} rows" in result.output
        moved = all_rows(target)
        assert moved == all_rows(source) == before
    superseded = [*Base.metadata.tables["facts"].c.keys()].index("superseded_by")
    assert any(fact[superseded] for fact in moved["facts"])


def test_a_move_that_broke_off_is_taken_up(lived_in, tmp_path, monkeypatch):
    source, target = engine_of(lived_in).settings.sqlalchemy_url, url_of(tmp_path / "new.db")
    monkeypatch.setattr("memory.ops.move.BATCH_ROWS", 3)
    assert run(lived_in, "move-to", target).exit_code == 0
    with_all_in_it = "DELETE FROM sessions WHERE public_id = 'bos'"  # messages, facts and turns
    execute(tmp_path / "new.db", "PRAGMA foreign_keys = ON", with_all_in_it, "UPDATE facts SET superseded_by = NULL")
    assert all_rows(target) != all_rows(source)
    assert run(lived_in, "move-to", target).exit_code == 0
    assert all_rows(target) == all_rows(source)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE messages SET content = 'Something else' WHERE id = (SELECT min(id) FROM messages)",
        "INSERT INTO owners (tenant, kind, name, created_at) VALUES ('t', 'user', 'eve', '2026-01-01 00:00:00')",
    ],
)
def test_a_target_with_other_data_is_refused(lived_in, tmp_path, change):
    target = url_of(tmp_path / "new.db")
    assert run(lived_in, "move-to", target).exit_code == 0
    execute(tmp_path / "new.db", change)
    before = all_rows(target)
    result = run(lived_in, "move-to", target)
    assert result.exit_code == 1 and "The source is unchanged. Empty the target" in result.output
    assert all_rows(target) == before


def test_ids_of_deleted_rows_are_not_given_again(lived_in, tmp_path):
    client = lived_in.test_client()
    good(client.delete("/api/sessions/bos"))
    newest = max(message[0] for message in all_rows(engine_of(lived_in).settings.sqlalchemy_url)["messages"])
    assert run(lived_in, "move-to", url_of(tmp_path / "new.db")).exit_code == 0
    ((last,),) = execute(tmp_path / "new.db", "SELECT seq FROM sqlite_sequence WHERE name = 'messages'")
    assert last > newest


def test_what_is_no_database_is_refused(lived_in):
    result = run(lived_in, "move-to", "recap.db")
    assert result.exit_code == 2 and "it takes sqlite:////" in result.output


@pytest.mark.parametrize("target", ["sqlite://", "sqlite:///{data}/../data/recap.db", ""])
def test_nothing_is_moved_to_memory_or_to_itself(lived_in, target):
    """What follows is that the former database is deleted."""
    result = run(lived_in, "move-to", target.format(data=engine_of(lived_in).settings.data_dir))
    assert result.exit_code == 2 and "it takes another database" in result.output


def test_a_database_of_another_version_is_not_moved(lived_in, tmp_path):
    """Its tables and columns that this version does not know would be left behind."""
    execute(engine_of(lived_in).settings.data_dir / "recap.db", "UPDATE alembic_version SET version_num = '9999'")
    result = run(lived_in, "move-to", url_of(tmp_path / "new.db"))
    assert result.exit_code == 1 and "run the version of Recap that made it" in result.output
    assert not (tmp_path / "new.db").exists()


def test_nothing_is_moved_beside_a_server(lived_in, tmp_path):
    lock = DataLock(engine_of(lived_in).settings.data_dir)
    lock.share()
    result = run(lived_in, "move-to", url_of(tmp_path / "new.db"))
    lock.release()
    assert result.exit_code == 1 and "stop it first" in result.output


@pytest.mark.slow
def test_postgresql_gets_every_row_and_gives_it_back(lived_in, postgres, tmp_path):
    source = engine_of(lived_in).settings.sqlalchemy_url
    empty(postgres)
    assert run(lived_in, "move-to", postgres).exit_code == 0
    assert all_rows(postgres) == all_rows(source)
    there = build_app(engine_of(lived_in).settings.model_copy(update={"database_url": postgres}))
    chat(there.test_client(), "Where do I live?", session_id="adas", user_id="ada")  # with an id that follows
    assert run(there, "move-to", url_of(tmp_path / "back.db")).exit_code == 0
    assert all_rows(url_of(tmp_path / "back.db")) == all_rows(postgres) != all_rows(source)
