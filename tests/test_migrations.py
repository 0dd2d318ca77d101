"""Migrations: they make what the rows are declared as, keep what is stored, and can be taken back."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from flask_migrate import downgrade, upgrade

from app import engine_of
from models import Base
from tests.resources import an_app
from tests.talking import ask, chat, failed, said, stored

UPGRADE = "flask --app wsgi db upgrade"
NOW = "2026-05-01 12:00:00.000000"
ACMES = '{"tenant": "acme"}'  # where a job without an owner told its tenant


def migrate(folder: Path, step: Any, revision: str) -> None:
    """Upgrade or downgrade the database in `folder`, as an operator does: in a process of its own, as it were."""
    with an_app(folder) as app, app.app_context():
        step(revision=revision)


def rows(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "recap.db")) as database:
        return list(database.execute(statement))


def execute(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "recap.db")) as database, database:
        database.execute(statement)


def schema(folder: Path) -> dict[str, list[str]]:
    """Every table and index with its parts, in no order."""
    found = rows(folder, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: sorted(re.split(r"[\s\",()]+", sql)) for name, sql in found}


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A database as 0001 made it, with a conversation, its turn, summary and fact; a second one was erased."""
    migrate(tmp_path, upgrade, "0001")
    with closing(sqlite3.connect(tmp_path / "recap.db")) as database:
        database.executescript(f"""
            INSERT INTO owners (tenant, kind, name, created_at) VALUES ('default', 'user', 'ada', '{NOW}');
            INSERT INTO sessions (tenant, public_id, owner_id, title, created_at, updated_at, message_count, tokens,
                    summary_version, summary_through, facts_through, head_version, head_through, head_tokens)
                VALUES ('default', 's', 1, 'Tea', '{NOW}', '{NOW}', 2, 20, 1, 2, 2, 0, 0, 0);
            INSERT INTO messages (session_id, owner_id, position, role, content, created_at, external_id, tokens)
                VALUES (1, 1, 1, 'user', 'I like tea', '{NOW}', 'x1', 10),
                       (1, 1, 2, 'assistant', 'So do I', '{NOW}', NULL, 10),
                       (1, 1, 3, 'user', 'Erased', '{NOW}', NULL, 10);
            INSERT INTO turns (tenant, session_id, user_message_id, reply_message_id, started_at, finished_at,
                    finish_reason) VALUES ('default', 1, 1, 2, '{NOW}', '{NOW}', 'stop');
            INSERT INTO summaries (session_id, version, sections, through, tokens, author, created_at)
                VALUES (1, 1, '{{"topic": "Tea"}}', 2, 5, 'model', '{NOW}');
            INSERT INTO facts (owner_id, session_id, source_message_id, text, category, importance, scope, quote,
                    pinned, recalled_count, valid_from, created_at)
                VALUES (1, 1, 1, 'Likes tea', 'preference', 3, 'user', 'I like tea', 0, 0, '{NOW}', '{NOW}');
            DELETE FROM messages WHERE id = 3;
            INSERT INTO jobs (kind, key, owner_id, payload, state, revision, attempts, run_at, created_at, updated_at)
                VALUES ('index', '1', 1, NULL, 'pending', 1, 0, '{NOW}', '{NOW}', '{NOW}'),
                       ('scrub', 'acme', NULL, '{ACMES}', 'pending', 1, 0, '{NOW}', '{NOW}', '{NOW}');
        """)
    return tmp_path


def counted(folder: Path) -> dict[str, int]:
    tables = ("owners", "sessions", "messages", "turns", "summaries", "facts")
    return {table: rows(folder, f"SELECT count(*) FROM {table}")[0][0] for table in tables}


def test_the_migrations_make_what_the_rows_are_declared_as(tmp_path: Path) -> None:
    migrate(tmp_path, upgrade, "head")
    with an_app(tmp_path) as app, engine_of(app).database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    declared = Base.metadata.tables.items()
    numbered = {name for name, parts in schema(tmp_path).items() if "AUTOINCREMENT" in parts}
    assert numbered == {name for name, table in declared if table.dialect_options["sqlite"]["autoincrement"]}


def test_an_upgrade_keeps_every_row_and_what_hangs_on_it(first: Path) -> None:
    before = counted(first)
    migrate(first, upgrade, "0012")
    columns = "owner_id, fact_id, subject, relation, object, subject_kind, object_kind"
    execute(first, f"INSERT INTO links ({columns}) VALUES (1, 1, 'user', 'likes', 'tea', 'person', 'thing')")
    migrate(first, upgrade, "head")
    assert counted(first) == before and all(before.values())
    asked = [("index", "default"), ("scrub", "acme"), ("thoughts", "default")]
    assert rows(first, "SELECT kind, tenant FROM jobs ORDER BY id") == asked
    assert rows(first, "PRAGMA foreign_key_check") == [] and rows(first, "PRAGMA integrity_check") == [("ok",)]
    with an_app(first) as app:
        client = app.test_client()
        assert said(client, "s") == [("user", "I like tea"), ("assistant", "So do I")]
        (turn,) = client.get("/api/sessions/s/turns").json["items"]
        assert (turn["user_message_id"], turn["message_id"], turn["state"]) == (1, 2, "finished")
        (fact,) = client.get("/api/facts?session_id=s").json["items"]
        assert (fact["text"], fact["source_message_id"]) == ("Likes tea", 1)
        (edge,) = client.get("/api/graph?session_id=s").json["items"]
        assert (edge["relation"], edge["object"]) == ("likes", {"name": "tea", "kind": "thing"})
        assert client.get("/api/sessions/s/summary").json["latest"]["sections"]["topic"] == "Tea"
        again = {"role": "user", "content": "I like tea", "external_id": "x1"}
        answer = client.post("/api/sessions/s/messages", json={"messages": [again]})
        assert answer.json["message_ids"] == [1] and answer.json["created"] == 0


def test_an_id_of_a_message_erased_before_the_upgrade_is_not_given_again(first: Path) -> None:
    migrate(first, upgrade, "head")
    with an_app(first) as app:
        assert chat(app.test_client(), "Hello", session_id="s")["user_message_id"] == 4


@pytest.mark.parametrize("revision", ["base", "0003", "9999"])
def test_ready_names_what_to_do_about_another_schema(first: Path, revision: str) -> None:
    migrate(first, upgrade, "head")
    with an_app(first) as app:
        client = app.test_client()
        assert client.get("/health/ready").status_code == 200
        if revision == "9999":  # a newer Recap, whose migrations keep what an older one needs while it is replaced
            execute(first, "UPDATE alembic_version SET version_num = '9999'")
            assert chat(client, "Hello", session_id="s")["reply"]
        else:
            migrate(first, downgrade, revision)
            turn = ask(client, "Hello", session_id="s")
            for answer in (turn, client.get("/api/sessions")):
                assert UPGRADE in failed(answer, 503, "database_schema")["message"]
        ready = client.get("/health/ready")
        assert ready.status_code == 503
        assert ("run the version of Recap that made it" if revision == "9999" else UPGRADE) in ready.json["database"]
        if revision != "9999":
            migrate(first, upgrade, "head")
            assert client.get("/health/ready").status_code == 200
            assert chat(client, "Hello", session_id="s")["reply"]


def test_foreign_keys_hold_again_after_an_upgrade(first: Path) -> None:
    with an_app(first) as app:
        with app.app_context():
            upgrade()
        with engine_of(app).database.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_downgrade_leaves_the_old_schema_and_the_line_without_its_branches(first: Path, tmp_path: Path) -> None:
    old = schema(first)
    migrate(first, upgrade, "head")
    with an_app(first) as app:
        client = app.test_client()
        replaced = chat(client, "Coffee", session_id="s")["user_message_id"]
        chat(client, "Water", session_id="s", replaces=replaced)
        last = stored(client, "s")[-1]
    migrate(first, downgrade, "0001")
    assert schema(first) == old
    assert rows(first, "SELECT payload FROM jobs WHERE key = 'acme'") == [(ACMES,)]
    kept = rows(first, "SELECT position, content FROM messages ORDER BY id")
    assert [content for _, content in kept] == ["I like tea", "So do I", "Water", last["content"]]
    assert [position for position, _ in kept] == [1, 2, 3, 4]
    assert counted(first)["turns"] == 2 and rows(first, "PRAGMA foreign_key_check") == []
    migrate(first, upgrade, "head")
    with an_app(first) as app:
        assert [m["id"] for m in stored(app.test_client(), "s")][-1] == last["id"]
