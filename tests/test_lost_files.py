"""Files of the database that are removed, renamed or replaced under a server: nothing is acknowledged into a file that
is lost, readiness says what to do, and once the file is back the server goes on without a restart."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from app import engine_of, upgrade_schema
from memory.ops.backup import back_up
from models import Database
from models.database_faults import DatabaseLost
from tests.application import an_app
from tests.faults.chatters import Chatter, stored_once
from tests.http import ask, chat
from tests.processes import Api, eventually, migrated_server

INSERT = text(
    "INSERT INTO owners (tenant, kind, name, created_at) VALUES ('t', 'user', hex(randomblob(8)), '2026-01-01')"
)
Change = Callable[[Path], None]


def beside(file: Path, end: str) -> Path:
    return file.with_name(f"{file.name}{end}")


def away(file: Path) -> None:
    file.rename(file.parent.with_name(f"{file.name}.away"))


def back(file: Path) -> None:
    file.parent.with_name(f"{file.name}.away").rename(file)


def folder_away(file: Path) -> None:
    file.parent.rename(file.parent.with_name("away"))


def folder_back(file: Path) -> None:
    file.parent.with_name("away").rename(file.parent)


def moved_back(file: Path) -> None:
    shutil.copyfile(file.parent.with_name("backup.db"), beside(file, ".new"))
    beside(file, ".new").rename(file)


LOST: dict[str, tuple[Change, Change]] = {
    "renamed": (away, back),
    "removed, then copied": (Path.unlink, lambda file: shutil.copyfile(file.parent.with_name("backup.db"), file)),
    "removed, then moved": (Path.unlink, moved_back),
    "folder renamed": (folder_away, folder_back),
}


def words(file: Path) -> list[str]:
    """Return what people said, as another program reads it."""
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [row[0] for row in database.execute("SELECT content FROM messages WHERE role = 'user' ORDER BY id")]


@pytest.mark.parametrize("how", LOST)
def test_no_turn_is_taken_while_the_file_is_lost_and_turns_go_on_when_it_is_back(make_app, how):
    lose, put_back = LOST[how]
    apps = [make_app(), make_app()]
    clients = [app.test_client() for app in apps]
    file = engine_of(apps[0]).settings.data_dir / "recap.db"
    for client in clients:
        chat(client, "Before.", session_id="s")
    back_up(engine_of(apps[0]).database.engine, file.parent.with_name("backup.db"))
    lose(file)
    for client in clients:
        refused = ask(client, "Lost?", session_id="s")
        assert refused.status_code == 503 and refused.json["error"]["code"] == "database_missing", refused.text
        ready = client.get("/health/ready")
        assert ready.status_code == 503 and "Put the file back" in ready.json["database"]
    assert not file.exists(), "only migrations make a database"
    put_back(file)
    for client in clients:
        assert client.get("/health/ready").status_code == 200
        chat(client, "After.", session_id="s")
    assert words(file) == ["Before.", "Before.", "After.", "After."]


@pytest.mark.parametrize("end", ["-wal", "-shm"])
@pytest.mark.parametrize("lose", [away, Path.unlink])
def test_without_its_log_a_database_goes_on_when_all_processes_have_let_the_log_go(make_app, lose, end):
    apps = [make_app(), make_app()]
    clients = [app.test_client() for app in apps]
    file = engine_of(apps[0]).settings.data_dir / "recap.db"
    for client in clients:
        chat(client, "Before.", session_id="s")
    lose(beside(file, end))
    refused = ask(clients[0], "Lost?", session_id="s")
    assert refused.status_code == 503 and refused.json["error"]["code"] == "database_log_missing", refused.text
    for client in reversed(clients):
        assert client.get("/health/ready").status_code == 200
        chat(client, "After.", session_id="s")
    assert words(file) == ["Before.", "Before.", "After.", "After."]


def test_a_log_that_was_lost_while_nothing_ran_stops_a_start_until_the_operator_decides(tmp_path, migrated, caplog):
    """As after kill -9, which leaves the log's index too."""
    file = Path(shutil.copy(migrated, tmp_path / "recap.db"))
    beside(file, "-shm").write_bytes(bytes(32768))
    with an_app(tmp_path) as app:
        with pytest.raises(SystemExit):
            upgrade_schema(app)
        assert "delete the -shm file to go on without it" in caplog.text
        beside(file, "-shm").unlink()
        upgrade_schema(app)
        assert engine_of(app).health.check().ready


@pytest.mark.parametrize(("lose", "end"), [(away, ""), (moved_back, ""), (Path.unlink, "-wal"), (Path.unlink, "-shm")])
def test_a_transaction_that_was_open_when_a_file_went_is_not_acknowledged(tmp_path, migrated, lose, end):
    (tmp_path / "data").mkdir()
    file = Path(shutil.copy(migrated, tmp_path / "data"))
    shutil.copy(migrated, tmp_path / "backup.db")
    database = Database(create_engine(f"sqlite:///{file}"))
    with database.write() as tx:
        tx.execute(INSERT)
    with pytest.raises(DatabaseLost), database.write() as tx:
        tx.execute(INSERT)
        lose(beside(file, end))
    database.close()


def test_what_was_acknowledged_is_in_a_file_that_was_renamed_without_its_log(engine):
    """Its log keeps the old name, and SQLite would not find it."""
    file = engine.settings.data_dir / "recap.db"
    with engine.database.write() as tx:
        tx.execute(INSERT)
    away(file)
    with pytest.raises(DatabaseLost), engine.database.read() as tx:
        tx.connection()
    with closing(sqlite3.connect(file.parent.with_name("recap.db.away"))) as database:
        assert database.execute("SELECT count(*) FROM owners").fetchall() == [(1,)]


@pytest.mark.slow
def test_every_turn_that_a_server_acknowledges_is_in_the_file_that_is_there(tmp_path, migrated):
    with migrated_server(tmp_path, migrated, SUMMARY_DEBOUNCE="0") as server:
        chatters = [Chatter(server, name, name, stream=name in "ac", away=(503,)) for name in "abcd"]
        file = server.data_dir / "recap.db"

        def answered() -> list[int]:
            return [len(chatter.answers) for chatter in chatters]

        def refused() -> list[int]:
            return [chatter.broken for chatter in chatters]

        server.start()
        for chatter in chatters:
            chatter.start()
        assert eventually(lambda: min(answered()) > 4, 60.0)
        folder_away(file)
        assert eventually(lambda: min(refused()) > 0, 60.0)
        before = answered()
        assert eventually(lambda: min(refused()) > 5, 60.0)
        with Api(server) as api:
            assert api.http.get("/health/ready").status_code == 503
            assert answered() == before, "nothing is acknowledged"
            folder_back(file)
            assert eventually(lambda: api.http.get("/health/ready").status_code == 200)
        assert eventually(lambda: min(answered()) > max(before) + 2, 60.0), "turns go on"
        for chatter in chatters:
            chatter.finish()
            assert chatter.problems == []
            stored_once(server, chatter)
        assert server.stop() == 0
