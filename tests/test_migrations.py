"""The migration makes what the rows are declared as, and refuses a database that it can't upgrade."""

import resource
import signal
import sqlite3
import stat
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from flask_migrate import downgrade, upgrade

from app import add_migrations, build_app, engine_of, upgrade_schema
from config import Settings, SettingsError
from models import Base
from models.schema import MIGRATIONS, revisions
from tests.application import an_app, execute, run_command
from tests.http import ask, chat, failed, good

UPGRADE = "recap db upgrade"


def content(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "recap.db")) as database:
        return list(database.iterdump())


def make_old(folder: Path) -> None:
    """Take the database in `folder` back to revision 0019."""
    execute(
        folder / "recap.db",
        "ALTER TABLE sessions DROP recognised_type",
        "UPDATE alembic_version SET version_num = '0019'",
    )


def test_the_migration_makes_what_the_rows_are_declared_as(tmp_path):
    with an_app(tmp_path) as app:
        engine = engine_of(app).database.engine
        upgrade_schema(app)
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, Base.metadata) == []
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
            numbered = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'")
            declared = Base.metadata.tables.items()
            expected = {name for name, table in declared if table.dialect_options["sqlite"]["autoincrement"]}
            assert set(numbered.scalars()) == expected


def test_the_names_of_the_files_are_the_revisions():
    scripts = ScriptDirectory(str(MIGRATIONS)).walk_revisions()
    assert revisions() == tuple(script.revision for script in scripts)


def test_items_of_the_store_are_found_after_an_upgrade_with_their_time_to_live(tmp_path):
    with an_app(tmp_path) as app:
        add_migrations(app)
        with app.app_context():
            upgrade(revision="0020")
        now, ever, past = (f"'{year}-03-01 10:00:00.000000'" for year in (2026, 2126, 2020))
        names = "INSERT INTO items (owner_id, namespace, key, value, version, ttl_minutes, refreshes, expires_at, "
        execute(
            tmp_path / "recap.db",
            f"INSERT INTO owners (id, tenant, kind, name, created_at) VALUES (1, 'default', 'user', 'ada', {now})",
            f"{names} created_at, updated_at) VALUES "
            f"""(1, 'ada.notes', 'tea', '{{"text": "Green tea"}}', 3, 5.0, 1, {ever}, {now}, {now}),"""
            f"""(1, 'ada.notes', 'old', '{{"text": "Tea of old"}}', 1, 5.0, 0, {past}, {past}, {past}),"""
            f"""(1, 'ada', 'car', '"A red car"', 1, NULL, 0, NULL, {now}, {now})""",
        )
        upgrade_schema(app)
        client = app.test_client()
        query = {"namespace": "ada.notes", "key": "tea", "user_id": "ada"}
        item = good(client.get("/api/store/items", query_string=query))
        assert item == item | {"value": {"text": "Green tea"}, "version": 3, "ttl": 5.0, "refresh_on_read": True}
        assert item["expires_at"] < "2126", "each read gives it five minutes more"
        found = client.post("/api/store/search", json={"user_id": "ada", "query": "which tea?", "limit": 2})
        assert [item["key"] for item in good(found)["items"]] == ["tea", "car"], "by words, and nothing that expired"
        listed = good(client.get("/api/store/namespaces", query_string={"user_id": "ada"}))
        assert listed["namespaces"] == [["ada"], ["ada", "notes"]]


def test_a_migrated_database_is_up_to_date_and_can_not_be_downgraded(tmp_path, migrated):
    with an_app(tmp_path, migrated) as app:
        chat(app.test_client(), "Hello", session_id="s")
        before = content(tmp_path)
        upgrade_schema(app)
        with pytest.raises(SystemExit), app.app_context():
            downgrade()
    assert content(tmp_path) == before


def test_an_upgrade_says_in_a_line_what_it_did(tmp_path, caplog):
    caplog.set_level("INFO", "recap.migrations")
    with an_app(tmp_path) as app, app.app_context():
        add_migrations(app)
        for revision in ("0020", "head", "head"):
            upgrade(revision=revision)
    first, second, third = (record.getMessage() for record in caplog.records if record.name == "recap.migrations")
    assert first.startswith("A new database was made: sqlite:///") and first.endswith("with the schema 0020")
    assert second == f"The database was upgraded: its schema was 0020, and is {revisions()[0]} now"
    assert third == f"The database is up to date: its schema is {revisions()[0]}"


def test_an_upgrade_waits_for_a_server_that_writes(tmp_path):
    with an_app(tmp_path) as app:
        add_migrations(app)
        with app.app_context():
            upgrade(revision="0020")
        with closing(sqlite3.connect(tmp_path / "recap.db", isolation_level=None, check_same_thread=False)) as server:
            server.execute("BEGIN IMMEDIATE")
            server.execute("INSERT INTO owners (tenant, kind, name, created_at) VALUES ('default', 'user', 'ada', 0)")
            commit = threading.Timer(0.5, server.execute, ["COMMIT"])
            commit.start()
            upgrade_schema(app)
            commit.join()
        assert execute(tmp_path / "recap.db", "SELECT name FROM owners") == [("ada",)]
        assert engine_of(app).health.check().ready


def test_a_new_database_that_the_disk_has_no_room_for_is_made_when_there_is(tmp_path, caplog):
    caplog.set_level("INFO", "recap.migrations")
    with an_app(tmp_path) as app:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))  # bytes of a file: less than a page
        try:
            with pytest.raises(SystemExit):
                upgrade_schema(app)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, handler)
        assert "A new database was made" not in caplog.text
        upgrade_schema(app)
        assert engine_of(app).health.check().ready


def test_no_tables_are_made_among_those_of_another_program(tmp_path, caplog):
    execute(tmp_path / "recap.db", "CREATE TABLE messages (id INTEGER)")
    with an_app(tmp_path) as app, pytest.raises(SystemExit):
        upgrade_schema(app)
    assert content(tmp_path) == ["BEGIN TRANSACTION;", "CREATE TABLE messages (id INTEGER);", "COMMIT;"]
    assert "is another program's" in caplog.text and "DATABASE_URL" in caplog.text


def test_an_upgrade_of_a_database_that_is_too_old_changes_nothing_and_says_what_to_do(tmp_path, migrated, caplog):
    with an_app(tmp_path, migrated) as app, app.app_context():
        make_old(tmp_path)
        before = content(tmp_path)
        with pytest.raises(SystemExit):
            upgrade_schema(app)
    assert content(tmp_path) == before
    assert "its schema is 0019, too old" in caplog.text and UPGRADE in caplog.text and "Upgrading" in caplog.text


def test_a_schema_of_another_version_is_answered_with_what_to_do(tmp_path, migrated):
    with an_app(tmp_path, migrated) as app:
        client = app.test_client()
        assert client.get("/health/ready").status_code == 200
        make_old(tmp_path)
        for answer in (ask(client, "Hello", session_id="s"), client.get("/api/sessions")):
            assert UPGRADE in failed(answer, 503, "database_schema")["message"]
        ready = client.get("/health/ready")
        assert ready.status_code == 503 and "too old" in ready.json["database"] and UPGRADE in ready.json["database"]


def test_a_newer_schema_keeps_what_a_server_needs_until_it_is_replaced(tmp_path, migrated):
    with an_app(tmp_path, migrated) as app:
        client = app.test_client()
        execute(tmp_path / "recap.db", "UPDATE alembic_version SET version_num = '9999'")
        assert chat(client, "Hello", session_id="s")["reply"]
        ready = client.get("/health/ready")
        assert ready.status_code == 503 and "run the version of Recap that made it" in ready.json["database"]
        with pytest.raises(SystemExit):
            upgrade_schema(app)


def test_a_database_without_tables_is_answered_with_what_to_do(tmp_path):
    with an_app(tmp_path) as app:
        execute(tmp_path / "recap.db", "PRAGMA journal_mode = WAL")
        client = app.test_client()
        ready = client.get("/health/ready")
        assert ready.status_code == 503 and UPGRADE in ready.json["database"]
        upgrade_schema(app)
        assert client.get("/health/ready").status_code == 200
        assert chat(client, "Hello", session_id="s")["reply"]


def test_a_first_command_in_a_new_or_a_wrong_place_says_what_to_do_in_a_sentence(tmp_path, caplog):
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"RECAP_DATA_DIR: the folder .*/data can't be made or written .Not a dir"):
        build_app(Settings(data_dir=tmp_path / "file" / "data"))
    nowhere = f"sqlite:///{tmp_path}/nowhere/recap.db"
    with an_app(tmp_path, database_url=nowhere) as app, pytest.raises(SystemExit):
        upgrade_schema(app)
    assert nowhere in caplog.text and "unable to open database file" in caplog.text
    assert "this account may not open it" in caplog.text
    with an_app(tmp_path / "new?a%20b") as app:  # what stands for something else in an address is a letter of a path
        run = partial(run_command, app)
        assert (
            f"The database {tmp_path}/new?a%20b/recap.db could not be backed up" in run("backup", tmp_path / "b").output
        )
        refused = run("keys", "list")
        assert refused.exit_code == 1 and "if anything, may be lost" in refused.output and UPGRADE in refused.output
        assert f"A new database was made: sqlite:///{tmp_path}" in run("keys", "create").stderr, "as README says"
        assert "new database" not in run("keys", "create").stderr
        assert engine_of(app).health.check().ready
        for command in ("backup", "restore"):
            done = run(command, tmp_path / "b")
            assert done.exit_code == 0, done.output
    assert stat.S_IMODE((tmp_path / "new?a%20b").stat().st_mode) == 0o700
