"""What an operator does to PostgreSQL, and what PostgreSQL does to Recap, while two nodes serve clients."""

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGINT
from typing import Any

import psutil
import pytest
from flask import Flask
from flask.testing import FlaskClient
from flask_migrate import upgrade
from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.pool import NullPool

from app import build_app, engine_of, upgrade_schema
from benchmarks.serving import ROOT
from memory.recall import indexing
from models.schema import MIGRATIONS, revisions
from tests.application import an_app
from tests.conftest import empty
from tests.http import append, ask, chat, failed, good, read_all, said, stored
from tests.model_server import Delay
from tests.processes import ForkedServer, eventually

pytestmark = pytest.mark.slow

Told = list[dict[str, Any]]  # what one was answered, turn by turn

A_NEWER_REVISION = f"""
import sqlalchemy as sa
from alembic import op

revision, down_revision = "newer", "{revisions()[0]}"

def upgrade():
    op.add_column("messages", sa.Column("mood", sa.String(8), nullable=True))
    op.create_index("messages_mood", "messages", ["session_id", "mood"])
    op.execute(sa.text("DO $$ BEGIN IF nextval('tries') = 1 THEN RAISE SQLSTATE '40P01'; END IF; END $$"))
"""


@contextmanager
def talking(nodes: list[Flask]) -> Iterator[list[Told]]:
    """Two people talk at both nodes, until the end of the block: what they were answered so far, by session."""
    over, told = threading.Event(), [Told() for _ in range(4)]

    def talk(number: int) -> None:
        client, answers = nodes[number % 2].test_client(), told[number]
        while not over.is_set():
            who = {"session_id": f"s{number}", "user_id": f"user{number // 2}"}
            words = f"This is number {len(answers)} of {number}."
            answers.append(chat(client, words, key=words, **who))

    with ThreadPoolExecutor(len(told)) as pool:
        going = [pool.submit(talk, number) for number in range(len(told))]
        try:
            yield told
        finally:
            over.set()
            for one in going:
                one.result()


def all_get_on(told: list[Told]) -> None:
    """Wait until each session has had another two turns."""
    before = [len(answers) for answers in told]
    assert eventually(lambda: all(len(now) >= then + 2 for now, then in zip(told, before, strict=True)), 60.0)


def none_lost_or_doubled(app: Flask, told: list[Told]) -> None:
    for number, answers in enumerate(told):
        there = stored(app.test_client(), f"s{number}")
        assert [one["position"] for one in there] == list(range(1, len(there) + 1))
        answered = [id for one in answers for id in (one["user_message_id"], one["message_id"])]
        assert [one["id"] for one in there] == answered


def test_nodes_that_upgrade_the_database_at_once_wait_for_each_other(postgres, tmp_path):
    empty(postgres)
    nodes = [ForkedServer(tmp_path / str(number), DATABASE_URL=postgres) for number in range(3)]
    begun = [node.begin("flask", "--app", "wsgi", "db", "upgrade") for node in nodes]
    assert [process.wait(120) for process in begun] == [0, 0, 0], [node.log.read_text() for node in nodes]


def test_a_database_without_unicode_or_without_rights_is_refused_with_what_to_do(postgres, tmp_path, caplog):
    empty(postgres)
    make = "CREATE DATABASE {0} ENCODING '{0}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    refused = {"latin1": "encoding is LATIN1", "sql_ascii": "encoding is SQL_ASCII", "guest": "GRANT ALL ON SCHEMA"}
    with create_engine(postgres, isolation_level="AUTOCOMMIT").connect() as admin:
        admin.execute(text("DROP ROLE IF EXISTS guest"))
        admin.execute(text("CREATE ROLE guest LOGIN"))
        for name in ("latin1", "sql_ascii"):
            admin.execute(text(f"DROP DATABASE IF EXISTS {name}"))
            admin.execute(text(make.format(name)))
        for name, told in refused.items():
            address = make_url(postgres).set(**{"username" if name == "guest" else "database": name})
            with an_app(tmp_path, database_url=address.render_as_string(False)) as app, pytest.raises(SystemExit):
                upgrade_schema(app)
            assert told in caplog.text and caplog.text.count("Nothing was changed") >= len(caplog.records) > 0
            caplog.clear()
        admin.execute(text("DROP ROLE guest"))


def test_a_migration_runs_while_clients_chat_or_gives_way_to_who_holds_a_table(nodes, postgres, tmp_path, caplog):
    newer, database = str(tmp_path / "migrations"), engine_of(nodes[0]).database
    shutil.copytree(MIGRATIONS, newer, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "migrations/versions/newer.py").write_text(A_NEWER_REVISION)
    with database.write() as tx:
        tx.execute(text("CREATE SEQUENCE tries"))
    for app in nodes:
        engine_of(app).start()
    with talking(nodes) as told, nodes[0].app_context():
        all_get_on(told)
        with database.read() as dump:
            dump.execute(text("SET LOCAL idle_in_transaction_session_timeout = '30s'"))  # or it would be waited for
            dump.execute(text("LOCK TABLE messages IN ACCESS SHARE MODE"))
            with pytest.raises(SystemExit):
                upgrade(directory=newer)
            assert "Run this again" in caplog.text
            all_get_on(told)
        upgrade(directory=newer)  # which is broken off once, and begins anew
        assert "mood" in {column["name"] for column in inspect(database.engine).get_columns("messages")}
        all_get_on(told)
    none_lost_or_doubled(nodes[1], told)
    assert read_all(nodes[0].test_client(), "/api/jobs", state="failed") == []
    checked = engine_of(nodes[1]).health.check()
    assert not checked.migrated and "newer" in checked.database, "and it does not start again"


def indexed_again(app: Flask, owner: str) -> bool:
    """Whether all of the owner's messages are indexed, once the jobs have run that are due or wait for more messages.

    A job that ran when the dump was made is taken over when its lease is over and after a pause.
    """
    client = app.test_client()
    for job in read_all(client, "/api/jobs", state="pending"):
        if job["kind"] == "index":
            assert client.post(f"/api/jobs/{job['id']}/retry").status_code in (202, 404)
    engine_of(app).job_queue.run_due()
    (verified,) = [one for one in indexing.verify(engine_of(app)) if one.owner == owner]
    return verified.consistent and verified.indexed == verified.messages


def test_a_dump_that_is_made_while_clients_chat_is_restored_as_the_guide_says(
    nodes, postgres_server, postgres, tmp_path
):
    server, programs = make_url(postgres), Path(postgres_server.get_postmaster_info().process.exe()).parent
    for app in nodes:
        engine_of(app).start()
    client, who = nodes[0].test_client(), {"session_id": "tea", "user_id": "ana"}
    chat(client, "My name is Ana and I am allergic to walnuts.", **who)
    assert eventually(lambda: client.get("/api/sessions/tea/summary").json["state"] == "current", 30.0)
    guide = (ROOT / "docs/operations.md").read_text("utf-8")
    (commands,) = re.findall(r"```sh\n(pg_dump .+?)```", guide, re.S)
    dump, restore = commands.replace("@db/", f"@/?host={server.query['host']}&dbname=").split("\n", 1)
    with create_engine(postgres, isolation_level="AUTOCOMMIT").connect() as admin:
        for statement in ("DROP DATABASE IF EXISTS restored", "DROP ROLE IF EXISTS recap", "CREATE ROLE recap LOGIN"):
            admin.execute(text(statement))
        admin.execute(text("GRANT pg_read_all_data TO recap"))

    def run(command: str) -> None:
        path = f"{programs}:{os.environ['PATH']}"
        command = command.replace("dbname=recap", f"dbname={server.database}").replace(
            "=db ", f"={server.query['host']} "
        )
        command = re.sub(r"postgresql://\S+", lambda found: f"'{found[0]}'", command)
        done = subprocess.run(
            ["sh", "-eu", "-c", command], cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    with talking(nodes) as told:
        all_get_on(told)
        before = [len(answers) for answers in told]
        run(dump)
        all_get_on(told)
    run(restore)
    settings = engine_of(nodes[0]).settings
    app = build_app(
        settings.model_copy(update={"database_url": str(server.set(database="restored", username="recap"))})
    )
    client = app.test_client()
    try:
        assert good(client.get("/health/ready"))["status"] == "ready"
        assert stored(client, "tea")[0]["content"].endswith("allergic to walnuts.")
        assert "Ana" in str(good(client.get("/api/sessions/tea/summary"))["latest"])
        assert any("walnuts" in fact["text"] for fact in read_all(client, "/api/facts", user_id="ana"))
        for number, (answers, there) in enumerate(zip(told, before, strict=True)):
            assert stored(client, f"s{number}")[2 * there - 1]["id"] == answers[there - 1]["message_id"]
        found = good(client.get("/api/search?q=allergic&user_id=ana"))["results"]
        assert found[0]["content"].endswith("allergic to walnuts."), "also before it is indexed"
        assert "walnuts" in chat(client, "What am I allergic to?", **who)["reply"]
        assert eventually(lambda: indexed_again(app, "user:ana"), 30.0)
    finally:
        engine_of(app).stop()
        engine_of(app).database.close()


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_a_turn_that_meets_another_write_is_run_again_within_its_request(nodes, state):
    """Every first attempt to store a message fails, as it does when it can't be serialised, or for a deadlock."""
    client, database = nodes[0].test_client(), engine_of(nodes[0]).database
    raising = f"BEGIN IF nextval('tries') % 2 = 1 THEN RAISE SQLSTATE '{state}'; END IF; RETURN NULL; END"
    with database.write() as tx:
        tx.execute(text("CREATE SEQUENCE tries"))
        tx.execute(text(f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ {raising} $$"))
        tx.execute(text("CREATE TRIGGER fail BEFORE INSERT ON messages EXECUTE FUNCTION fail()"))
    chat(client, "Hello.", session_id="s")
    append(client, "s", [said("And more.")])
    assert [one["role"] for one in stored(client, "s")] == ["user", "assistant", "user"]
    with database.read() as tx:
        assert tx.scalar(text("SELECT last_value FROM tries")) == 6, "three were stored at the second attempt"


def test_a_change_that_meets_another_write_is_run_again(nodes):
    """The first change of a session's or message's row that each call makes fails, as for a deadlock."""
    client, database = nodes[0].test_client(), engine_of(nodes[0]).database
    first, _, last = append(client, "s", [said("one"), said("two"), said("three")])["message_ids"]
    newer = chat(client, "four", session_id="s", replaces=last)
    raising = "BEGIN IF nextval('tries') = 1 THEN RAISE SQLSTATE '40P01'; END IF; RETURN NULL; END"
    with database.write() as tx:
        tx.execute(text("CREATE SEQUENCE tries"))
        tx.execute(text(f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ {raising} $$"))
        for table in ("sessions", "messages"):
            tx.execute(text(f"CREATE TRIGGER fail AFTER UPDATE ON {table} EXECUTE FUNCTION fail()"))
    for call in (
        lambda: client.patch("/api/sessions/s", json={"title": "Numbers"}),
        lambda: client.post("/api/sessions/s/messages/hide", json={"ids": [first]}),
        lambda: client.post(f"/api/sessions/s/messages/{last}/restore"),
        lambda: client.delete(f"/api/sessions/s/messages/{first}"),
    ):
        with database.write() as tx:
            tx.execute(text("ALTER SEQUENCE tries RESTART"))
        good(call())
        with database.read() as tx:
            assert tx.scalar(text("SELECT last_value FROM tries")) > 1
    assert [one["content"] for one in stored(client, "s")] == ["two", "three"] and newer["reply"]


@contextmanager
def cutting(folder: Path, server: str) -> Iterator[list[bytes]]:
    """The server behind a wire in `folder`, which is cut once a commit of what the list names is done."""
    wire, sought = socket.socket(socket.AF_UNIX), list[bytes]()
    wire.bind(str(folder / ".s.PGSQL.5432"))
    wire.listen()

    def answer(client: socket.socket, database: socket.socket) -> None:
        with suppress(OSError):
            while piece := database.recv(1 << 16):
                client.sendall(piece)

    def carry(client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as database, suppress(OSError):
            database.connect(f"{server}/.s.PGSQL.5432")
            answering = threading.Thread(target=answer, args=(client, database))
            answering.start()
            seen = b""
            while piece := client.recv(1 << 16):
                seen += piece
                if sought and sought[0] in seen and b"COMMIT\0" in piece:
                    sought.clear()
                    client.shutdown(socket.SHUT_RDWR)  # it hears nothing more
                    database.sendall(piece)
                    break
                database.sendall(piece)
                seen = b"" if b"COMMIT\0" in piece or b"ROLLBACK\0" in piece else seen
            database.shutdown(socket.SHUT_WR)  # it ends when all is done
            answering.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=carry, args=(wire.accept()[0],)).start()

    threading.Thread(target=accept, daemon=True).start()
    with wire:
        yield sought
        wire.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("stored_then", ["Was this stored?", "assistant"], ids=["the message", "the reply"])
def test_a_commit_whose_answer_is_lost_is_told_so_and_sent_again_is_stored_once(nodes, postgres, tmp_path, stored_then):
    server = make_url(postgres)
    with cutting(tmp_path, str(server.query["host"])) as sought:
        behind = {"data_dir": tmp_path, "database_url": str(server.set(query={"host": str(tmp_path)}))}
        app = build_app(engine_of(nodes[0]).settings.model_copy(update=behind))
        client = app.test_client()
        chat(client, "Hello.", session_id="s")
        sought.append(stored_then.encode())
        told = failed(ask(client, "Was this stored?", session_id="s", key="k"), 503, "database_unavailable")["message"]
        assert "What this request wrote may be lost" in told and "not stored" not in told and "is kept" not in told
        assert sought == []
        again = chat(client, "Was this stored?", session_id="s", key="k")
        assert [one["content"] for one in stored(client, "s")][2:] == ["Was this stored?", again["reply"]]
        engine_of(app).stop()
        engine_of(app).database.close()


@pytest.mark.parametrize("nodes", ["scripted"], indirect=True)
def test_a_message_that_an_error_calls_kept_survives_the_crash_of_the_server(
    nodes, postgres_server, postgres, model_server
):
    def set_up(command: str) -> None:
        with create_engine(postgres, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as admin:
            admin.execute(text(f"ALTER SYSTEM {command}"))
            admin.execute(text("SELECT pg_reload_conf()"))

    client, crashed = nodes[0].test_client(), threading.Event()
    chat(client, "Hello.", session_id="s")
    set_up("SET wal_writer_delay = '10s'")  # nothing is written but by a commit that waits for it
    model_server.main.queue(Delay(crashed))
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, client, "Is this kept?", session_id="s")
        try:
            assert eventually(lambda: len(stored(nodes[1].test_client(), "s")) == 3)
            postmaster = postgres_server.get_postmaster_info().process
            server = [postmaster, *postmaster.children()]
            postmaster.kill()
            assert psutil.wait_procs(server, 60)[1] == []
        finally:
            crashed.set()
        assert "Your message is kept" in failed(asking.result(), 503, "database_unavailable")["message"]
    postgres_server.start()
    set_up("RESET wal_writer_delay")
    assert [one["content"] for one in stored(client, "s")][2:] == ["Is this kept?"]


def test_a_server_that_takes_no_writes_is_told_and_connections_of_that_time_are_not_kept(nodes, postgres):
    """As after a failover: what is connected stays read-only when the server takes writes again."""
    client = nodes[0].test_client()
    chat(client, "Hello.", session_id="s")
    with create_engine(postgres, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as admin:
        setting = f"ALTER DATABASE {make_url(postgres).database} {{}} default_transaction_read_only"
        admin.execute(text(f"{setting.format('SET')} = on"))
        try:
            admin.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()"))
            told = failed(ask(client, "And now?", session_id="s"), 503, "database_unavailable")["message"]
            assert "Nothing of this request was stored" in told
            assert len(stored(client, "s")) == 2, "it can be read"
            ready = client.get("/health/ready")
            assert ready.status_code == 503 and "takes no writes" in ready.json["database"]
        finally:
            admin.execute(text(setting.format("RESET")))
    assert eventually(lambda: ask(client, "And now?", session_id="s").status_code == 200, 5.0)
    assert good(client.get("/health/ready"))["status"] == "ready"
    assert len(stored(client, "s")) == 4


def test_what_the_server_cannot_do_is_told_at_once_and_passes(nodes, postgres_server, postgres):
    def unavailable(client: FlaskClient) -> None:
        answer = ask(client, "Are you there?", session_id="s")
        failed(answer, 503, "database_unavailable")
        assert int(answer.headers["Retry-After"]) > 0

    clients = [app.test_client() for app in nodes]
    for client in clients:
        chat(client, "Hello.", session_id="s")
    postgres_server.get_postmaster_info().process.send_signal(SIGINT)  # what it is doing is broken off
    postgres_server.get_postmaster_info().process.wait(60)
    unavailable(clients[0])
    postgres_server.start()
    for client in clients:
        chat(client, "Hello again.", session_id="s")
    engine = engine_of(nodes[0]).database.engine
    with engine.begin() as admin:
        for statement in (
            "DROP ROLE IF EXISTS few",
            "CREATE ROLE few LOGIN CONNECTION LIMIT 1",
            "ALTER ROLE few SET client_encoding = 'LATIN1'",
            "ALTER ROLE few SET default_transaction_isolation = 'serializable'",
            "GRANT USAGE ON SCHEMA public TO few",
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO few",
            "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO few",
        ):
            admin.execute(text(statement))
    few = make_url(postgres).set(username="few")
    settings = engine_of(nodes[0]).settings
    app = build_app(settings.model_copy(update={"database_url": str(few), "search": "whoosh"}))
    with create_engine(few, poolclass=NullPool).connect():
        unavailable(app.test_client())
    chat(app.test_client(), "Hello once more, 猫.", session_id="s")
    with engine_of(app).database.write() as tx:
        assert tx.scalar(text("SHOW transaction_isolation")) == "read committed"
    with engine.begin() as admin:
        admin.execute(text("REVOKE ALL ON sessions FROM few"))
    unavailable(app.test_client())
    engine_of(app).database.close()
    with engine.begin() as admin:
        admin.execute(text("DROP OWNED BY few"))
        admin.execute(text("DROP ROLE few"))
        admin.execute(text("ALTER TABLE sessions RENAME COLUMN head_type TO other"))
    failed(ask(clients[1], "And now?", session_id="s"), 503, "database_schema")
    with engine.begin() as admin:
        admin.execute(text("ALTER TABLE sessions RENAME COLUMN other TO head_type"))
    assert len(read_all(clients[1], "/api/sessions/s/messages")) == 10
