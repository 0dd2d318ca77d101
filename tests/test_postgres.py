"""The same application on a PostgreSQL server, alone and as two nodes that share it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask_migrate import upgrade
from sqlalchemy import create_engine, make_url, text

from app import create_app, services_of
from benchmarks.serving import Server
from config import Settings, SettingsError
from memory.domain import Caller
from memory.errors import Conflict
from memory.store.values import Put, Search
from search_index import SearchIndex
from tests.talking import ask, chat, stream
from tests.test_store import meets

pytestmark = pytest.mark.slow

TURNS = 6  # of each client


def empty(server: str) -> None:
    with create_engine(server, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))


def test_nodes_that_upgrade_the_database_at_once_wait_for_each_other(postgres: str, tmp_path: Path) -> None:
    empty(postgres)
    with ThreadPoolExecutor(3) as pool:
        starting = [Server(tmp_path / str(number), DATABASE_URL=postgres) for number in range(3)]
        ended = list(pool.map(lambda node: node.flask("db", "upgrade"), starting))
    assert [one.returncode for one in ended] == [0, 0, 0], ended


@pytest.fixture
def nodes(postgres: str, tmp_path: Path) -> Iterator[list[Flask]]:
    """Two nodes on an empty database, each with a folder of its own."""
    empty(postgres)
    made: list[Flask] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        told: dict[str, Any] = {"data_dir": tmp_path / name, "database_url": postgres, "daily_tokens": 1_000_000}
        made.append(create_app(Settings(log_level="warning", summary_debounce=0.0, **told)))
    with made[0].app_context():
        upgrade()
    yield made
    for app in made:
        services_of(app).stop()
        services_of(app).database.engine.dispose()


def test_a_conversation_is_remembered_corrected_found_and_erased(nodes: list[Flask]) -> None:
    client = nodes[0].test_client()
    who = {"session_id": "s", "user_id": "ana"}
    for message in ("My name is Ana and I live in Lyon.", "I work at a bakery.", "No, I moved to Paris last week."):
        chat(client, message, **who)
        services_of(nodes[0]).outbox.run_due()
    first = chat(client, "What did I say about the bakery?", key="once", **who)
    assert chat(client, "What did I say about the bakery?", key="once", **who)["id"] == first["id"]
    assert "I work at a bakery." in first["reply"]
    assert stream(client, "And where do I live?", **who)[-1] == "[DONE]"
    facts = [fact["text"] for fact in client.get("/api/facts?user_id=ana").json["items"]]
    assert any("Paris" in fact for fact in facts) and not any("Lyon" in fact for fact in facts)
    assert client.get("/api/search?q=bakery&user_id=ana").json["results"]
    assert sum(count for _, count in services_of(nodes[0]).indexing.rebuild()) == 10
    (verified,) = services_of(nodes[1]).indexing.verify()
    assert verified.consistent and verified.indexed == 10, "both nodes search one index"
    assert nodes[1].test_client().get("/api/search?q=bakery&user_id=ana").json["results"]
    assert client.get("/api/sessions/s/summary").json["state"] in ("current", "pending")
    receipt = client.delete("/api/users/ana").json
    assert receipt["erased"]["messages"] == 10
    services_of(nodes[0]).outbox.run_due()
    assert client.get("/api/sessions/s").status_code == 404
    with services_of(nodes[0]).database.engine.connect() as connection:
        assert not connection.scalar(text("SELECT count(*) FROM search_indexes"))
        assert not connection.scalar(text("SELECT count(*) FROM search_messages"))
    assert client.get("/api/jobs").json["items"] == []


def test_where_pgvector_can_not_be_had_recap_says_what_to_do(nodes: list[Flask], postgres: str) -> None:
    with create_engine(postgres, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("CREATE ROLE nobody LOGIN"))
        try:
            engine = create_engine(make_url(postgres).set(username="nobody"))
            with pytest.raises(SettingsError, match=r"CREATE EXTENSION vector.* SEARCH=whoosh works without it"):
                SearchIndex(engine).warm_up()
            engine.dispose()
        finally:
            connection.execute(text("DROP ROLE nobody"))


def test_items_are_stored_filtered_and_ordered_as_on_sqlite(nodes: list[Flask]) -> None:
    items, ada = services_of(nodes[0]).items, Caller(user_id="ada")
    values = [
        {"a": there} for there in (None, True, 1, 1.5, 2**53 + 1, "1", "é", "Z", [1, "x"], {"b": 10}, {"b": "10"})
    ]
    names = ["a", "a.b", "a-b", "a.B.c"]
    puts = [
        Put(tuple(name.split(".")), str(number), {**value}) for name in names for number, value in enumerate(values)
    ]
    items.run(ada, puts)
    for wanted in (
        *({"a": value["a"]} for value in values),
        *({"a": {name: operand}} for name in ("$gt", "$gte", "$lt", "$lte") for operand in (1, 1.5, "1", "a")),
        *({"a": {name: 1}} for name in ("$eq", "$ne")),
        {"a": {"$in": [None, True, "Z", 2**53]}},
        {"a": {"b": {"$gte": 9}}},
        {"missing": {"deep": None}},
        {"a,b": {"$ne": 'x"y'}},
    ):
        (found,) = items.run(ada, [Search(("a", "b"), wanted, limit=100)])
        assert {item.key for item in found} == {str(n) for n, value in enumerate(values) if meets(value, wanted)}, (
            wanted
        )
    assert {item.namespace for item in items.run(ada, [Search(("a",), limit=100)])[0]} == {
        tuple(name.split(".")) for name in names if name != "a-b"
    }
    with pytest.raises(Conflict):
        items.run(ada, [Put(("a",), "0", 1, version=7)])


def test_two_nodes_take_turns_in_one_session_and_each_finds_what_was_said_at_the_other(nodes: list[Flask]) -> None:
    failed: list[str] = []

    def talk(app: Flask, name: str) -> None:
        client = app.test_client()
        for number in range(TURNS):
            said = ask(client, f"I am {name}, and this is number {number}.", session_id="s", user_id="ana")
            if said.status_code != 200:
                failed.append(said.text)

    talking = [threading.Thread(target=talk, args=(nodes[at % 2], f"client {at}")) for at in range(4)]
    for thread in talking:
        thread.start()
    for thread in talking:
        thread.join()
    assert not failed, failed[0]
    client = nodes[1].test_client()
    said = client.get("/api/sessions/s/messages?limit=100").json["items"]
    assert [message["position"] for message in said] == list(range(1, 8 * TURNS + 1))
    assert [message["role"] for message in said] == ["user", "assistant"] * (4 * TURNS)
    assert len({message["content"] for message in said if message["role"] == "user"}) == 4 * TURNS
    for app in nodes:
        services_of(app).outbox.run_due()
        found = app.test_client().get("/api/search?q=client number&user_id=ana&limit=100").json["results"]
        assert len(found) >= 4 * TURNS, "its own index holds it, or its rows do"
