"""`recap backup` and `recap restore`: a copy of a live database, and a way back to it."""

import errno
import os
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result
from flask import Flask

from app import engine_of, upgrade_schema
from memory.ops.backup import DataLock, examine
from memory.recall import indexing
from tests.application import execute, run_command
from tests.faults.chatters import Chatter
from tests.http import chat, stored
from tests.jobs import jobs_done
from tests.processes import Api, eventually, migrated_server, rows, sound


@pytest.fixture
def run(make_app):
    """Runs a flask command in an application of its own, as another process would: `run("backup", file)`."""

    def run(*command: object, app: Flask | None = None) -> Result:
        mine = app or make_app()
        result = run_command(mine, *command)
        engine_of(mine).database.engine.dispose()
        return result

    return run


@pytest.fixture
def backup(app, run, tmp_path):
    """A backup of one session with one turn, `before`."""
    chat(app.test_client(), "My cat is called Miso.", session_id="before", user_id="ada")
    file = tmp_path / "backup.db"
    result = run("backup", file)
    assert result.exit_code == 0 and f"{file}: 1 sessions, 2 messages, the newest of 20" in result.output
    return file


@pytest.fixture
def stopped(app, backup):
    """The application the backup is of, with nobody connected any more."""
    engine_of(app).stop()
    engine_of(app).database.engine.dispose()
    return app


def messages(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as database:
        return [row[0] for row in database.execute("SELECT content FROM messages ORDER BY id")]


# -- taking one


def test_a_backup_holds_what_was_said_and_is_for_its_owners_eyes(backup):
    assert messages(backup)[0] == "My cat is called Miso."
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    found = examine(backup)
    assert (found.sessions, found.messages) == (1, 2)
    assert sorted(path.name for path in backup.parent.glob("*backup*")) == ["backup.db"], "one file, and no leftovers"


def test_a_backup_is_never_written_over_another_unless_that_is_said(app, run, backup):
    before = backup.read_bytes()
    chat(app.test_client(), "And my dog Rex.", session_id="after")
    result = run("backup", backup)
    assert result.exit_code == 1 and "--force" in result.output
    assert backup.read_bytes() == before
    database = engine_of(app).settings.data_dir / "recap.db"
    assert "is the database itself" in run("backup", database, "--force").output
    assert run("backup", backup, "--force").exit_code == 0
    assert "And my dog Rex." in messages(backup)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_backup_that_cannot_be_written_leaves_nothing(run, app, tmp_path):
    chat(app.test_client(), "Hello")
    result = run("backup", tmp_path / "missing" / "b.db")
    assert result.exit_code == 1 and "No such file or directory" in result.output
    assert not (tmp_path / "missing").exists()


def test_nothing_that_was_erased_before_is_in_a_backup(app, run, tmp_path):
    """Not in a free page either, as it may be in the database until that is written anew."""
    client = app.test_client()
    chat(client, "quicksilver " * 2000, session_id="s", user_id="ada")
    tables = ("jobs", "turns", "messages", "sessions")
    execute(tmp_path / "data" / "recap.db", "PRAGMA secure_delete = OFF", *(f"DELETE FROM {name}" for name in tables))
    assert run("backup", tmp_path / "b.db").exit_code == 0
    everything = b"".join(file.read_bytes() for file in (tmp_path / "data").glob("recap.db*"))
    assert b"quicksilver" in everything, "the control: it is still in the database's pages"
    assert b"quicksilver" not in (tmp_path / "b.db").read_bytes()


# -- bringing one back


def test_a_restore_brings_back_what_the_backup_holds_and_keeps_the_rest_beside_it(app, make_app, run, backup, tmp_path):
    """The index, which knows what was said since, goes; rows are searched at once and indexed again."""
    chat(app.test_client(), "My dog is called Rex.", session_id="after", user_id="ada")
    engine = engine_of(app)
    jobs_done(app.test_client())
    index = tmp_path / "data" / "index"
    assert any(index.iterdir())
    engine.stop()
    engine.database.engine.dispose()
    if os.geteuid() == 0:  # an operator, in the folder of the server's account
        os.chown(tmp_path / "data", 65534, 65534)
    result = run("restore", backup)
    assert result.exit_code == 0, result.output
    assert not index.exists()
    restored = make_app()
    client = restored.test_client()
    assert [one["id"] for one in client.get("/api/sessions").json["items"]] == ["before"]
    found = client.get("/api/search", query_string={"q": "cat", "user_id": "ada"}).json["results"]
    assert found[0]["content"] == "My cat is called Miso."
    assert "Miso" in chat(client, "What is my cat called?", session_id="new", user_id="ada")["reply"]
    jobs_done(client)
    assert all(one.consistent and not one.unindexed for one in indexing.verify(engine_of(restored)))
    (former,) = (tmp_path / "data").glob("recap-until-*.db")
    assert str(former) in result.output
    assert "My dog is called Rex." in messages(former), "also what was in its log"
    assert stat.S_IMODE((tmp_path / "data" / "recap.db").stat().st_mode) == 0o600
    assert stat.S_IMODE(former.stat().st_mode) == 0o600
    assert (tmp_path / "data" / "recap.db").stat().st_uid == (tmp_path / "data").stat().st_uid
    assert backup.exists(), "the backup is still there"


@pytest.mark.parametrize("failing", [".part", "recap.db"])
def test_a_restore_whose_disk_fails_leaves_the_database_and_its_log(
    stopped, run, backup, tmp_path, monkeypatch, failing
):
    file, log = tmp_path / "data" / "recap.db", tmp_path / "data" / "recap.db-wal"
    log.write_bytes(b"written last")
    kept, replace, fsync = file.read_bytes(), Path.replace, os.fsync
    failed = []

    def fail(name: str) -> None:
        if name.endswith(failing):
            failed.append(name)
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "replace", lambda path, target: fail(str(target)) or replace(path, target))
    monkeypatch.setattr(os, "fsync", lambda file: fail(str(Path(f"/proc/self/fd/{file}").readlink())) or fsync(file))
    assert run("restore", backup).exit_code != 0
    assert failed and (file.read_bytes(), log.read_bytes()) == (kept, b"written last")
    assert not list(file.parent.glob("recap-until-*"))


def test_the_log_of_a_database_that_was_lost_is_not_applied_to_the_restored_one(
    stopped, make_app, run, backup, tmp_path
):
    """After kill -9 a log has what was stored last. SQLite applies it to any database that gets the name."""
    file, log = tmp_path / "data" / "recap.db", tmp_path / "data" / "recap.db-wal"
    with closing(sqlite3.connect(file)) as killed:
        killed.execute("UPDATE sessions SET title = 'Written after the backup'")
        killed.commit()
        killed.execute("PRAGMA journal_mode = WAL")
        killed.execute("UPDATE sessions SET title = 'Written last'")
        killed.commit()
        kept = log.read_bytes()
    file.unlink()
    log.write_bytes(kept)
    with pytest.raises(SystemExit):
        upgrade_schema(make_app())
    assert not file.exists() and log.read_bytes() == kept, "no new database, and nothing is lost"
    restored = run("restore", backup)
    assert restored.exit_code == 0 and "The database that was there" not in restored.output, restored.output
    assert execute(file, "SELECT count(*) FROM sessions WHERE title LIKE 'Written%'") == [(0,)]
    assert len(list(file.parent.glob("recap-until-*.db-wal"))) == 1, "it is kept"


def test_what_was_being_done_is_nobodys_after_a_restore(stopped, make_app, run, backup, tmp_path):
    execute(
        backup,
        "UPDATE sessions SET lease_token = 't', lease_until = '2999-01-01 00:00:00', stop_token = 't'",
        "UPDATE jobs SET state = 'running', lease_token = 't', lease_until = '2999-01-01 00:00:00'",
    )
    assert run("restore", backup).exit_code == 0
    restored = make_app()
    assert {job["state"] for job in restored.test_client().get("/api/jobs").json["items"]} == {"pending"}
    chat(restored.test_client(), "And where does it sleep?", session_id="before", user_id="ada")


def test_a_damaged_backup_is_refused(stopped, run, backup, tmp_path):
    (log := Path(f"{backup}-wal")).write_bytes(b"changes")
    _refused(run("restore", backup), tmp_path, "whose changes would be lost")
    log.unlink()
    _damage(backup)
    _refused(run("restore", backup), tmp_path, "damaged")


NOTES = "CREATE TABLE notes (text)"
FUTURE = "UPDATE alembic_version SET version_num = '9999_of_the_future'"
PAST = "UPDATE alembic_version SET version_num = '0019'"


@pytest.mark.parametrize(
    ("content", "statement", "why"),
    [
        (b"not a database at all", None, "no backup of Recap"),
        (b"", NOTES, "no backup of Recap"),
        (None, None, "is missing"),
        (None, FUTURE, "newer Recap"),
        (None, PAST, "too old"),
    ],
)
def test_what_is_no_backup_of_this_recap_is_refused(stopped, run, backup, tmp_path, content, statement, why):
    if content is not None:
        backup.write_bytes(content)
    if statement is not None:
        execute(backup, statement)
    elif content is None:
        backup.unlink()
    _refused(run("restore", backup), tmp_path, why)


def test_a_restore_without_room_names_the_place_that_is_full(stopped, run, backup, monkeypatch):
    def full(file, part):
        raise OSError(errno.ENOSPC, "No space left on device", str(file), None, str(part))

    monkeypatch.setattr("memory.ops.backup.shutil.copyfile", full)
    result = run("restore", backup)
    assert result.exit_code == 1
    data = engine_of(stopped).settings.data_dir
    assert re.fullmatch(rf"Error: {backup} to {data}/\S+: No space left on device\.\n", result.output), result.output


def test_nothing_is_restored_under_a_running_server_and_none_starts_meanwhile(app, make_app, run, backup, tmp_path):
    engine_of(app).start()
    _refused(run("restore", backup), tmp_path, "runs on")
    engine_of(app).stop()
    engine_of(app).database.engine.dispose()
    assert run("restore", backup).exit_code == 0
    restored = engine_of(make_app())
    with DataLock(tmp_path / "data").alone(), pytest.raises(Exception, match="is being restored"):
        restored.start()
    restored.start()


def test_a_damaged_database_gives_no_backup_and_is_replaced_and_kept(stopped, make_app, run, backup, tmp_path):
    database = tmp_path / "data" / "recap.db"
    _damage(database)
    damaged = database.read_bytes()
    refused = run("backup", tmp_path / "b.db")
    assert refused.exit_code == 1 and "recap restore" in refused.output
    assert not (tmp_path / "b.db").exists()
    assert list(tmp_path.glob(".*part*")) == []
    result = run("restore", backup)
    assert result.exit_code == 0, result.output
    (former,) = (tmp_path / "data").glob("recap-until-*.db")
    assert former.read_bytes() == damaged
    assert stored(make_app().test_client(), "before")[0]["content"] == "My cat is called Miso."


def _refused(result: Result, tmp_path: Path, why: str) -> None:
    """The command said so, and all is as it was."""
    assert result.exit_code == 1, result.output
    assert why in result.output
    data = tmp_path / "data"
    assert messages(data / "recap.db")[0] == "My cat is called Miso."
    assert list(data.glob("recap-until-*")) == list(data.glob(".*part*")) == []


def _damage(database: Path) -> None:
    """Write nonsense over the pages after the first."""
    database.with_name(f"{database.name}-wal").unlink(missing_ok=True)
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))


# -- whole processes


@pytest.mark.slow
def test_a_backup_under_load_restores_every_message_acknowledged_before_it_began(tmp_path, migrated, make_app, run):
    """Also what is in the log of the database alone: one of three backups comes while it is full."""
    acknowledged: dict[Path, set[str]] = {}
    with migrated_server(tmp_path, migrated, SUMMARY_DEBOUNCE="0") as server:
        server.start()
        chatters = [Chatter(server, f"s{number}", "ada", stream=False) for number in range(4)]
        for chatter in chatters:
            chatter.start()
        assert eventually(lambda: all(len(chatter.said) > 2 for chatter in chatters), 60.0)
        beside = make_app()
        for file in (tmp_path / f"backup-{number}.db" for number in range(3)):
            acknowledged[file] = {words for chatter in chatters for words in chatter.said}
            made = run("backup", file, app=beside)
            assert made.exit_code == 0, made.output
        for chatter in chatters:
            chatter.finish()
        assert sum(len(chatter.said) for chatter in chatters) > len(acknowledged[file]), "they went on meanwhile"
        assert server.stop() == 0
        for made_file, words in acknowledged.items():
            assert words <= set(messages(made_file))
        done = run("restore", file)
        assert done.exit_code == 0, done.output
        there = {row[0] for row in rows(server, "SELECT content FROM messages WHERE role = 'user'")}
        assert acknowledged[file] <= there
        server.start()
        with Api(server) as api:
            api.jobs_done()
            assert api.chat("new", "Hello again.", user_id="ada")["reply"]
            api.jobs_done()
        assert server.stop() == 0
        sound(server)
