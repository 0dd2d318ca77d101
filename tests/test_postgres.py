"""The same application on a PostgreSQL server, alone and as two nodes that share it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import create_engine, event, make_url, select, text, update
from sqlalchemy.exc import OperationalError

from app import engine_of
from config import SettingsError
from memory.access.owners import get_session, get_user
from memory.engine import utc_now
from memory.errors import Conflict, ModelError
from memory.knowledge.supersession import find_corrections
from memory.ops.health import Health
from memory.recall import indexing
from memory.recall.excerpts import load_windows, messages_of
from memory.sessions.refused_messages import mark_refused
from models import FactRow, ItemRow, JobRow, for_update
from models.jobs import JobRequest
from models.owners import Caller
from models.store import Get, Put, Search
from search_index import SearchIndex
from tests.http import append, ask, chat, error, failed, good, read_all, said, stream, streamed_text
from tests.knowledge import Talk
from tests.processes import eventually
from tests.test_stop import speaking, stop

pytestmark = pytest.mark.slow

TURNS = 6  # of each client
WARM = 14  # statements of a turn, as on SQLite; one of them reads the budget


def test_a_conversation_is_remembered_corrected_found_and_erased(nodes):
    client = nodes[0].test_client()
    who = {"session_id": "s", "user_id": "ana"}
    for message in ("My name is Ana and I live in Lyon.", "I work at a bakery.", "No, I moved to Paris last week."):
        chat(client, message, **who)
        engine_of(nodes[0]).job_queue.run_due()
    first = chat(client, "What did I say about the bakery?", key="once", **who)
    assert chat(client, "What did I say about the bakery?", key="once", **who)["id"] == first["id"]
    assert "I work at a bakery." in first["reply"]
    assert stream(client, "And where do I live?", **who)[-1] == "[DONE]"
    facts = [fact["text"] for fact in client.get("/api/facts?user_id=ana").json["items"]]
    assert any("Paris" in fact for fact in facts) and not any("Lyon" in fact for fact in facts)
    assert client.get("/api/search?q=bakery&user_id=ana").json["results"]
    assert sum(count for _, count in indexing.rebuild(engine_of(nodes[0]))) == 10
    (verified,) = indexing.verify(engine_of(nodes[1]))
    assert verified.consistent and verified.indexed == 10, "both nodes search one index"
    assert nodes[1].test_client().get("/api/search?q=bakery&user_id=ana").json["results"]
    assert client.get("/api/sessions/s/summary").json["state"] in ("current", "pending")
    receipt = client.delete("/api/users/ana").json
    assert receipt["erased"]["messages"] == 10
    engine_of(nodes[0]).job_queue.run_due()
    assert client.get("/api/sessions/s").status_code == 404
    with engine_of(nodes[0]).database.engine.connect() as connection:
        assert not connection.scalar(text("SELECT count(*) FROM search_indexes"))
        assert not connection.scalar(text("SELECT count(*) FROM search_messages"))
    assert client.get("/api/jobs").json["items"] == []


def test_a_session_id_is_its_persons_and_its_first_turns_may_come_at_once(nodes):
    people = [f"person-{number}" for number in range(6)]
    clients = [nodes[number % 2].test_client() for number in range(12)]
    with ThreadPoolExecutor(len(clients)) as pool:
        turns = [
            pool.submit(chat, client, f"I am {person}.", session_id="main", user_id=person)
            for client, person in zip(clients, people * 2, strict=True)
        ]
        assert all(turn.result()["reply"] for turn in turns)
    client = clients[0]
    sessions = read_all(client, "/api/sessions")
    assert sorted(one["user_id"] for one in sessions) == people and {one["message_count"] for one in sessions} == {4}
    failed(ask(client, "Hello", session_id="main"), 422, "session_ambiguous")
    append(client, "other", [said("Nobody's.")])
    append(client, "other", [said("Mine.")], user_id="ada")
    chat(client, "And on.", session_id="other")
    assert good(client.get("/api/sessions/other"))["message_count"] == 3


def test_references_summaries_and_related_conversations_are_read_as_on_sqlite(nodes):
    client, engine = nodes[0].test_client(), engine_of(nodes[0])
    ada = {"user_id": "ada"}
    append(client, "roof", [said("I want to repair the roof of the summer house."), said("Noted.", "assistant")], **ada)
    append(client, "costs", [said("I want to repair the roof of the shed."), said("I see.", "assistant")], **ada)
    chat(client, "SECRET roof", session_id="private", remember=False, **ada)
    engine.job_queue.run_due()
    answer = chat(client, "Where did we leave off?", temporary=True, **ada)
    assert answer["memory"]["recall"]["kind"] == "latest"
    assert {one["session_id"] for one in answer["memory"]["excerpts"]} == {"costs", "roof"}
    found = chat(client, "Repair the roof", session_id="new", **ada)["memory"]["excerpts"]
    assert found and "SECRET" not in str(found)
    related = good(client.get("/api/sessions/roof/related?user_id=ada"))["items"]
    assert [one["session_id"] for one in related] == ["costs"]


def test_what_was_corrected_is_read_as_on_sqlite(nodes, model_server):
    talk = Talk(nodes[0], model_server, "home", "ada")
    talk.hear("I live in Tartu, near the bridge.")
    talk.hear(*(said("Hm.", "assistant") for _ in range(6)), "I live in Riga.")
    (fact,) = talk.facts()
    engine = engine_of(nodes[1])
    with engine.database.connect() as tx:
        messages = messages_of(load_windows(tx, 1, [1, fact["source_message_id"]], 0))
        corrections = find_corrections(engine, tx, 1, messages)
    assert {number: [one.id for one in facts] for number, facts in corrections.of_messages.items()} == {1: [fact["id"]]}
    assert not corrections.of_sessions


def test_a_refused_message_is_left_out_on_every_node(nodes):
    client, other, engine = nodes[0].test_client(), nodes[1].test_client(), engine_of(nodes[0])
    messages = [said("How does the zebra vault open?"), said("A lion.", "assistant"), said("The code is 1111.")]
    ids = append(client, "s", messages, user_id="ana")["message_ids"]
    engine.job_queue.run_due(["index"])
    assert client.get("/api/search?q=zebra&user_id=ana").json["results"]
    with engine.database.write() as tx:
        mark_refused(tx, ids[:1], ModelError("model_content_refused", "It was refused."), utc_now())
    for _ in range(2):
        assert "zebra" not in other.get("/api/search?q=zebra&user_id=ana").text
        first, second, _ = read_all(other, "/api/sessions/s/messages")
        assert (first["refused"]["code"], second["content"]) == ("model_content_refused", "A lion.")
        with engine.database.write() as tx:  # the index is made anew when no more changes
            tx.execute(update(JobRow).values(run_at=JobRow.created_at))
        engine.job_queue.run_due(["unindex", "index"])
    (verified,) = indexing.verify(engine_of(nodes[1]))
    assert verified.consistent and verified.indexed == 2
    assert good(client.get("/api/sessions/s"))["tokens"] == sum(
        one["tokens"] for one in read_all(other, "/api/sessions/s/messages")
    )
    chat(client, "And the code?", session_id="s", user_id="ana")
    document = good(client.get("/api/users/ana/export"))
    assert document["sessions"][0]["messages"][0]["refused"]["code"] == "model_content_refused"


def test_where_pgvector_can_not_be_had_recap_says_what_to_do(nodes, postgres):
    with create_engine(postgres, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("CREATE ROLE nobody LOGIN"))
        try:
            engine = create_engine(make_url(postgres).set(username="nobody"))
            with pytest.raises(SettingsError, match=r"CREATE EXTENSION vector.* SEARCH=whoosh works without them"):
                SearchIndex(engine).warm_up()
            engine.dispose()
        finally:
            connection.execute(text("DROP ROLE nobody"))


def test_items_below_a_namespace_are_found_as_on_sqlite(nodes):
    """Whatever the server's collation says of a dot and a dash.  (Filters: test_store.)"""
    items, ada = engine_of(nodes[0]).items, Caller(user_id="ada")
    items.run(ada, [Put(tuple(name.split(".")), "0", 1) for name in ("a", "a.b", "a-b", "a.B.c")])
    assert {".".join(item.namespace) for item in items.run(ada, [Search(("a",))])[0]} == {"a", "a.b", "a.B.c"}
    with pytest.raises(Conflict):
        items.run(ada, [Put(("a",), "0", 1, version=7)])


@pytest.mark.parametrize("owner", ["ana", None])
def test_only_writes_of_one_owner_wait_for_each_other(nodes, owner):
    one, two = (engine_of(app).database for app in nodes)
    for session, user in (("a", owner), ("b", "bo")):
        chat(nodes[0].test_client(), "I like tea.", session_id=session, user_id=user)
    with one.write() as tx:
        get_session(tx, Caller(user_id=owner), "a").title = "held"
        chat(nodes[1].test_client(), "I like coffee.", session_id="b", user_id="bo")
        with pytest.raises(OperationalError), two.write(lock_timeout=0.01) as other:
            get_session(other, Caller(user_id=owner), "a")
        assert nodes[1].test_client().get("/api/sessions/a").json["title"] == "I like tea.", "readers never wait"
    with two.write(lock_timeout=0.01) as other:
        assert get_session(other, Caller(user_id=owner), "a").title == "held"


def test_a_name_in_an_address_with_a_character_that_can_not_be_stored_is_unknown(nodes):
    client = nodes[0].test_client()
    for path in ("/api/sessions/%00", "/api/sessions/a%00/messages", "/api/sessions/%00/summary", "/api/prompts/%00"):
        for method in ("GET", "POST", "PUT", "DELETE"):
            error(client.open(path, method=method, json={}), 404)


def waits_for_owner(nodes: list[Flask], work: Callable[[], Any], row: type[FactRow] | type[ItemRow]) -> Any:
    """What `work` returns, which has to wait for the owner before it locks rows of this kind."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor(1) as pool:
        with engine_of(nodes[1]).database.write() as tx:
            get_user(tx, Caller(user_id="ana"))
            done = pool.submit(work)
            with engine_of(nodes[1]).database.engine.connect() as connection:
                assert eventually(lambda: connection.scalar(waiting))
            tx.execute(select(row.id).with_for_update(nowait=True))  # raises where the work has locked one
        return done.result()


def test_a_job_that_counts_the_use_of_facts_meets_nobody_who_changes_them_in_a_circle(nodes):
    engine, client = engine_of(nodes[0]), nodes[0].test_client()
    good(client.post("/api/facts", json={"user_id": "ana", "text": "Likes green tea"}))
    for session in ("s", "t"):
        chat(client, "Which tea do I like?", session_id=session, user_id="ana")
    with engine.database.write() as tx:
        tx.execute(update(JobRow).values(run_at=JobRow.created_at))
    assert waits_for_owner(nodes, lambda: engine.job_queue.run_due(["index"]), FactRow) == 1
    (fact,) = good(client.get("/api/facts?user_id=ana"))["items"]
    assert fact["recalled_count"] > 0


def test_reads_that_refresh_items_meet_nobody_in_a_circle(nodes):
    client, named = nodes[0].test_client(), {"namespace": ["n"], "key": "k"}
    item = {"user_id": "ana", **named, "value": 1, "ttl": 60, "refresh_on_read": True}
    stored = good(client.put("/api/store/items", json=item))
    batch = {"user_id": "ana", "operations": [{"op": "get", **named}]}
    answer = waits_for_owner(nodes, lambda: client.post("/api/store/batch", json=batch), ItemRow)
    assert good(answer)["results"][0]["item"]["expires_at"] > stored["expires_at"]


def test_a_node_with_a_wrong_clock_says_so_once(nodes, caplog):
    engine = engine_of(nodes[0])
    for seconds, times in ((0, 0), (30, 1), (-30, 1)):
        health = Health(
            engine.database,
            engine.settings.data_dir,
            None,
            engine.metrics,
            lambda late=timedelta(0, seconds): utc_now() + late,
        )
        for _ in range(2):
            assert health.check().ready
        assert caplog.text.count(f"the database server's by {seconds} seconds: set it by NTP") == times


def test_leases_of_locked_rows_do_not_keep_another_from_being_renewed(nodes, monkeypatch):
    monkeypatch.setattr("memory.leases.RENEW_SECONDS", 0.7)
    monkeypatch.setattr("memory.leases.LOOK_SECONDS", 0.05)
    queue, database = engine_of(nodes[0]).job_queue, engine_of(nodes[1]).database
    with database.write() as tx:
        engine_of(nodes[1]).job_queue.enqueue(tx, *(JobRequest("feedback", key, "default") for key in range(6)))
    *locked, free = [job for _ in range(6) if (job := queue.claim_next("feedback")) is not None]

    def expiry() -> Any:
        with database.read() as tx:
            return tx.scalar(select(JobRow.lease_until).where(JobRow.id == free.id))

    claimed = expiry()
    with database.write() as tx:
        tx.execute(select(JobRow.id).where(JobRow.id.in_([job.id for job in locked])).with_for_update())
        assert eventually(lambda: expiry() > claimed, 3.0)


def test_a_worker_does_not_wait_for_a_job_that_another_is_claiming(nodes):
    one, two = map(engine_of, nodes)
    with one.database.write() as tx:
        one.job_queue.enqueue(tx, *(JobRequest("probe", tenant, tenant) for tenant in ("a", "b")))
    with one.database.write() as tx:
        first = tx.scalars(for_update(tx, select(JobRow).where(JobRow.key == "a"), JobRow)).one()
        claimed = two.job_queue.claim_next("probe")
        assert claimed is not None and claimed.key == "b"
        assert two.job_queue.claim_next("probe") is None, "it is not taken twice"
    third = two.job_queue.claim_next("probe")
    assert third is not None and third.id == first.id


def together(*work: Callable[[], Any]) -> list[Any]:
    """What these return, begun at one moment."""
    ready = threading.Barrier(len(work))

    def run(one: Callable[[], Any]) -> Any:
        ready.wait()
        return one()

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(run, work))


def counted_up(app: Flask, key: str) -> int:
    """Add one to a number in the store, as a program does that others may overtake; how often that happened."""
    items, ana = engine_of(app).items, Caller(user_id="ana")
    for overtaken in range(1000):
        item = items.run(ana, [Get(("n",), key)])[0]
        value, version = (item.value["n"], item.version) if item is not None else (0, 0)
        try:
            items.run(ana, [Put(("n",), key, {"n": value + 1}, version=version)])
        except Conflict:
            continue
        return overtaken
    raise AssertionError("no attempt got through")


def test_many_clients_of_two_nodes_lose_double_and_mix_up_nothing(nodes, monkeypatch):
    """All begin with what is not there yet: the person, the shared session, the prompt, the item."""
    monkeypatch.setattr("memory.leases.WAITING_MAX", 8)
    clients, workers = 8, [threading.Event(), threading.Event()]

    def talk(app: Flask, name: str) -> int:
        client, tokens = app.test_client(), 0
        for number in range(TURNS):
            for session in ("s", name):
                told = chat(client, f"I am {name}, and this is number {number}.", session_id=session, user_id="ana")
                tokens += told["usage"]["total_tokens"]
            good(client.put("/api/prompts/mine", json={"text": f"{name} {number} {{{{ sections }}}}"}))
            good(client.post("/api/facts", json={"user_id": "ana", "text": f"{name} likes the number {number}"}))
            append(client, "log", [said(f"{name} {number}", external_id=f"{name} {number}")], user_id="ana")
            counted_up(app, "k")
        return tokens

    def work(app: Flask, over: threading.Event) -> None:
        while not over.is_set():
            engine_of(app).job_queue.run_due()
        engine_of(app).job_queue.run_due()

    with ThreadPoolExecutor(2) as background:
        working = [background.submit(work, app, over) for app, over in zip(nodes, workers, strict=True)]
        try:
            spent = together(*(partial(talk, nodes[number % 2], f"client{number}") for number in range(clients)))
        finally:
            for over in workers:
                over.set()
        for one in working:
            one.result()
    client, all_of_them = nodes[1].test_client(), clients * TURNS
    for session, turns in (("s", all_of_them), *((f"client{number}", TURNS) for number in range(clients))):
        line = read_all(client, f"/api/sessions/{session}/messages", user_id="ana")
        assert [one["position"] for one in line] == list(range(1, 2 * turns + 1))
        assert [one["role"] for one in line] == ["user", "assistant"] * turns
        assert len({one["content"] for one in line if one["role"] == "user"}) == turns
        assert client.get(f"/api/sessions/{session}").json["message_count"] == 2 * turns
    log = read_all(client, "/api/sessions/log/messages", user_id="ana")
    assert len({one["content"] for one in log}) == len(log) == all_of_them
    (item,) = engine_of(nodes[0]).items.run(Caller(user_id="ana"), [Get(("n",), "k")])
    assert (item.value, item.version) == ({"n": all_of_them}, all_of_them)
    stated = [one["text"] for one in read_all(client, "/api/facts", user_id="ana") if "likes the number" in one["text"]]
    assert len({*stated}) == len(stated) == all_of_them
    assert client.get("/api/prompts/mine").json["version"] == all_of_them
    with engine_of(nodes[0]).database.read() as tx:
        assert tx.scalar(text("SELECT sum(tokens) FROM spending")) >= sum(spent)
        versions = "SELECT session_id, version FROM summaries ORDER BY session_id, version"
        by_session: dict[int, list[int]] = {}
        for session_id, version in tx.execute(text(versions)):
            by_session.setdefault(session_id, []).append(version)
    assert by_session and all(found == list(range(1, len(found) + 1)) for found in by_session.values())
    assert read_all(client, "/api/jobs", state="failed") == []
    for app in nodes:
        found = app.test_client().get("/api/search?q=client number&user_id=ana&limit=100").json["results"]
        assert len(found) >= all_of_them, "its own index holds it, or its rows do"


@pytest.mark.parametrize("session", ["s", None])
def test_a_message_sent_to_two_nodes_with_one_key_is_answered_once(nodes, session):
    who = {"user_id": "ana", **({"session_id": session} if session else {})}
    for number in range(5):
        told = together(*(partial(chat, app.test_client(), "Hi.", key=str(number), **who) for app in nodes * 2))
        assert len({(one["id"], one["session_id"]) for one in told}) == 1
    client = nodes[0].test_client()
    sessions = read_all(client, "/api/sessions", user_id="ana")
    assert sum(one["message_count"] for one in sessions) == 10 and len(sessions) == (1 if session else 5)


@pytest.mark.parametrize("nodes", ["scripted"], indirect=True)
def test_a_reply_is_stopped_or_its_session_erased_from_another_node(nodes, model_server):
    one, two = (app.test_client() for app in nodes)
    with speaking(model_server, nodes[0]) as (_, parts):
        assert stop(two)
    assert streamed_text(parts[0]) == "One two "

    def erase(_: Any) -> str:
        good(two.delete("/api/sessions/s"))
        return "too late"

    model_server.main.queue(erase)
    failed(ask(one, "Go on.", session_id="s"), 409, "turn_lost")
    assert one.get("/api/sessions/s").status_code == 404


def test_a_warm_turn_sends_no_more_statements_than_on_sqlite_and_an_index_serves_each(nodes):
    client, database, sent = nodes[0].test_client(), engine_of(nodes[0]).database, list[tuple[str, Any]]()

    def note(_connection: Any, _cursor: Any, statement: str, given: Any, *_: Any) -> None:
        sent.append((statement, given[0] if isinstance(given, list) else given))

    for number in range(3):
        chat(client, f"I like tea number {number}.", session_id="s", user_id="ana")
    engine_of(nodes[0]).job_queue.run_due()
    chat(client, "And I like coffee.", session_id="s", user_id="ana")
    event.listen(database.engine, "before_cursor_execute", note)
    try:
        chat(client, "Which tea did I mention?", session_id="s", user_id="ana")
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    asked = [one for one in sent if "set_config" not in one[0]]
    of_rows = [one for one, _ in asked if "search_" not in one]
    assert len(of_rows) <= WARM, "\n".join(of_rows)
    with database.engine.connect() as connection:
        connection.execute(text("SET enable_seqscan = off"))
        for statement, given in asked:
            plan = list(connection.exec_driver_sql(f"EXPLAIN {statement}", given).scalars())
            whole = [step for step in plan if "Seq Scan" in step and "search_notices" not in step]  # which has one row
            assert not whole, (statement, plan)
