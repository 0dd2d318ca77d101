"""Events: what the stream tells, to whom, in which order, and that it passes nothing over."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from flask.testing import FlaskClient
from sqlalchemy import insert, select, update

from app import engine_of
from memory.events import BATCH, COUNTED, KEPT, read_events
from models import EventRow, JobRow, MessageRow, OwnerRow
from models.events import Position
from tests.application import statements
from tests.http import append, chat, error, good, said
from tests.model_server import Status
from tests.processes import Api, Server, eventually, migrated_server
from tests.test_auth import with_key

START = str(Position())
ADA = {"user_id": "ada"}


def parse(text: str) -> list[dict[str, Any]]:
    """The events of a stream, each with its `at`: the place behind it."""
    events = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in lines:
            event = json.loads(lines["data"])
            assert lines["event"] == event["type"]
            events.append({**event, "at": lines["id"]})
    return events


def read(client: FlaskClient, after: str = START, **query: Any) -> list[dict[str, Any]]:
    """All events that there are after a place."""
    answer = client.get("/api/events", query_string={"seconds": 0, "after": after, **query})
    assert answer.status_code == 200 and answer.mimetype == "text/event-stream", answer.text
    return parse(answer.text)


def here(client: FlaskClient) -> str:
    """The end of the log; from now on somebody listens."""
    text = client.get("/api/events?seconds=0").text
    return text.partition("id: ")[2].split("\n")[0]


def live_one(client: FlaskClient) -> None:
    """One of everything that happens to Ada."""
    append(client, "tea", [said("I like SENTINEL tea."), said("Noted, SENTINEL.", "assistant")], **ADA)
    good(client.put("/api/sessions/tea/summary", json={"sections": {"topic": "SENTINEL tea"}}))
    fact = good(client.post("/api/facts", json={**ADA, "text": "Likes SENTINEL tea"}))
    good(client.patch(f"/api/facts/{fact['id']}", json={"text": "Likes SENTINEL coffee"}))
    good(client.patch("/api/users/ada/profile", json={"patch": [{"op": "add", "path": "/home", "value": "SENTINEL"}]}))
    good(client.put("/api/users/ada/overview", json={"sentences": [{"text": "Drinks tea, SENTINEL"}]}))
    good(client.delete(f"/api/facts/{fact['id']}"))


# -- what it tells


def test_each_change_is_an_event_in_its_order(client):
    at = here(client)
    live_one(client)
    told = read(client, at, words=True)
    assert [(event["type"], event["data"].get("action")) for event in told if event["type"] != "summary.updated"] == [
        ("message.stored", None),
        ("message.stored", None),
        ("profile.updated", None),
        ("overview.updated", None),
        ("fact.forgotten", "forgotten"),
    ], "the revisions of a forgotten fact went with it"
    first, *_ = told
    assert first["data"] == {
        "user_id": "ada",
        "session_id": "tea",
        "message_id": 1,
        "role": "user",
        "position": 1,
        "created_at": first["timestamp"],
        "content": "I like SENTINEL tea.",
        "name": None,
    }
    assert next(event["data"]["version"] for event in told if event["type"] == "summary.updated") == 1
    (overview,) = [event["data"] for event in told if event["type"] == "overview.updated"]
    assert (overview["version"], overview["author"]) == (1, "person")
    assert overview["overview"].keys() == {"sentences"}
    assert [one["text"] for one in overview["overview"]["sentences"]] == ["Drinks tea, SENTINEL"]
    assert len({event["id"] for event in told}) == len(told)


def test_facts_are_told_as_they_are_made_and_corrected_and_types_are_chosen(client):
    fact = good(client.post("/api/facts", json={**ADA, "text": "Likes tea"}))
    good(client.patch(f"/api/facts/{fact['id']}", json={"text": "Likes coffee"}))
    append(client, "tea", [said("Hello")], **ADA)
    made, corrected = read(client, words=True, types="fact.created,fact.corrected,person.erased")
    assert (made["type"], made["data"]["text"]) == ("fact.created", "Likes tea")
    assert (corrected["type"], corrected["data"]["action"]) == ("fact.corrected", "edited")
    assert (corrected["data"]["text"], corrected["data"]["fact_id"]) == ("Likes coffee", fact["id"])
    assert "fact.created" in error(client.get("/api/events?types=fact.eaten"), 422)["message"]


def test_a_job_that_failed_is_told_without_its_error(model_app, model_server):
    client, engine = model_app.test_client(), engine_of(model_app)
    at = here(client)
    model_server.mini.default = lambda body: Status(500, {"error": {"message": "SENTINEL"}})
    chat(client, "Hello there, SENTINEL", session_id="s", **ADA)
    for _ in range(10):
        with engine.database.write() as tx:
            tx.execute(update(JobRow).values(run_at=engine.now()))
        engine.job_queue.run_due(["summary"])
    (failed,) = read(client, at, types="job.failed")
    assert failed["data"]["kind"] == "summary" and failed["data"]["user_id"] == "ada"
    assert [
        job["state"] for job in good(client.get("/api/jobs"))["items"] if job["id"] == failed["data"]["job_id"]
    ] == ["failed"]
    assert "SENTINEL" not in json.dumps(failed)


def test_without_words_nobody_is_quoted(client):
    at = here(client)
    live_one(client)
    good(client.post("/api/facts", json={**ADA, "text": "Likes SENTINEL water"}))
    quiet, quoting = read(client, at), read(client, at, words=True)
    assert [event["id"] for event in quiet] == [event["id"] for event in quoting]
    assert "SENTINEL" not in json.dumps(quiet)
    assert json.dumps(quoting).count("SENTINEL") > 4


def test_a_place_that_is_none_is_refused_and_one_beyond_the_end_counts_as_the_end(client):
    """The database was restored from a backup."""
    for wrong in ("x", "1-2-3-4", "1-2-3-4-5-6", "-1-2-3-4", "1-2-3-4-٣"):
        assert error(client.get("/api/events", headers={"Last-Event-ID": wrong}), 422)["code"] == "bad_event_id"
    append(client, "tea", [said("Hello")], **ADA)
    beyond = str(Position(*[10**30] * len(Position._fields)))
    answer = client.get("/api/events?seconds=0", headers={"Last-Event-ID": beyond})
    assert f"id: {here(client)}\n" in answer.text and not parse(answer.text)


# -- order, and every event once


def test_many_events_come_in_batches_without_gap_or_repetition(client):
    for number in range(3):
        append(client, f"s{number}", [said(f"Message {number}-{at}") for at in range(BATCH)], user_id=f"u{number}")
    good(client.post("/api/facts", json={**ADA, "text": "Likes tea"}))
    everything = read(client)
    assert [event["data"].get("message_id") for event in everything] == [*range(1, 3 * BATCH + 1), None]
    for cut in (0, 1, BATCH - 1, BATCH, 2 * BATCH + 7, 3 * BATCH):  # the place behind any event goes on after it
        assert read(client, everything[cut]["at"]) == everything[cut + 1 :]
    assert [event["data"]["session_id"] for event in read(client, user_id="u1")] == ["s1"] * BATCH


def test_a_row_that_is_committed_late_is_not_passed_over(nodes):
    """PostgreSQL numbers rows before it commits them, so a lower number may come after a higher one."""
    one, two = (engine_of(app) for app in nodes)
    client = nodes[0].test_client()
    append(client, "tea", [said("First")], **ADA)
    row = {"owner_id": 1, "session_id": 1, "role": "user", "tokens": 1, "created_at": one.now()}
    with two.database.begin() as tx:
        late = tx.execute(
            insert(MessageRow.__table__).values(position=50, content="late", **row).returning(MessageRow.id)
        )
        late_id = late.scalar_one()
        append(client, "other", [said("Early")], user_id="bob")
        assert one.events.newest(0.1) is None, "a transaction with a lower number goes on"
        tx.commit()
    newest = one.events.newest()
    assert newest is not None
    with one.database.read() as tx:
        events, _ = read_events(tx, OwnerRow.tenant == "default", Position(), newest)
    assert [event.data["message_id"] for event in events] == [1, late_id, late_id + 1]


# -- to whom


def test_owners_are_apart(app, client):
    keys = engine_of(app).keys
    keys_of = {"acme": ("acme", None), "ada": ("acme", "ada"), "bob": ("acme", "bob"), "globex": ("globex", None)}
    clients = {name: with_key(app, keys.create(*whose)[0]) for name, whose in keys_of.items()}
    append(clients["ada"], "adas", [said("I like sencha.")])
    append(clients["bob"], "bobs", [said("I like mocha.")])
    append(clients["acme"], "nobodys", [said("I like water.")])
    append(clients["globex"], "theirs", [said("I like milk.")], user_id="ada")
    sessions = {name: [event["data"]["session_id"] for event in read(client)] for name, client in clients.items()}
    assert sessions == {
        "acme": ["adas", "bobs", "nobodys"],
        "ada": ["adas"],
        "bob": ["bobs"],
        "globex": ["theirs"],
    }
    assert [event["data"]["session_id"] for event in read(clients["acme"], user_id="bob")] == ["bobs"]
    assert read(clients["acme"], user_id="eve") == []
    error(clients["ada"].get("/api/events?user_id=bob"), 404)
    chats = with_key(app, keys.create("acme", None, ["chat"])[0])
    assert error(chats.get("/api/events"), 403)["code"] == "scope_missing"


# -- what leaves no row


def test_where_nobody_listens_only_forgotten_facts_are_kept_until_the_person_is_erased(app, client):
    live_one(client)
    document = good(client.post("/api/documents", json={**ADA, "text": "How to make tea."}))
    good(client.delete(f"/api/documents/{document['id']}", query_string=ADA))
    with engine_of(app).database.read() as tx:
        assert tx.scalars(select(EventRow.type)).all() == ["fact.forgotten"]
    assert good(client.delete("/api/users/ada"))["pending"] == []
    with engine_of(app).database.read() as tx:
        assert tx.scalars(select(EventRow.id)).all() == []
        assert tx.scalars(select(JobRow.kind).where(JobRow.kind == "events")).all() == []


def test_a_document_that_is_imported_is_told(client):
    at = here(client)
    good(client.post("/api/documents", json={**ADA, "text": "How to make tea."}))
    good(client.post("/api/import?user_id=bob", json=good(client.get("/api/users/ada/export"))))
    assert [event["type"] for event in read(client, at, user_id="bob")] == ["document.stored"]


def test_an_event_of_a_document_names_it(client):
    at = here(client)
    document = good(client.post("/api/documents", json={**ADA, "text": "How to make tea."}))["id"]
    good(client.delete(f"/api/documents/{document}", query_string=ADA))
    told = [(event["type"], event["data"]) for event in read(client, at, **ADA)]
    assert told == [(f"document.{what}", {**ADA, "document_id": document}) for what in ("stored", "erased")]


def test_an_erased_person_leaves_the_event_that_they_were_erased(app, client):
    at = here(client)
    live_one(client)
    append(client, "bobs", [said("Hello")], user_id="bob")
    receipt = good(client.delete("/api/users/ada"))
    assert receipt["pending"] == ["events"]
    told = read(client, at)
    assert [(event["type"], event["data"]["user_id"]) for event in told] == [
        ("message.stored", "bob"),
        ("person.erased", "ada"),
    ]
    assert told[-1]["data"] == {"user_id": "ada"}
    assert read(client, at, user_id="ada") == []
    data = engine_of(app).settings.data_dir
    assert not [path for path in data.rglob("*") if path.is_file() and b"SENTINEL" in path.read_bytes()]


def test_what_tells_of_forgotten_facts_goes_after_thirty_days(app, client):
    engine, counted = engine_of(app), list[tuple[int, int]]()
    for age in (timedelta(0), COUNTED - timedelta(hours=1), timedelta(hours=2)):
        with engine.database.write() as tx:
            for row in tx.scalars(select(EventRow)):
                row.at -= age
        live_one(client)
        with engine.database.read() as tx:
            kept = len(tx.scalars(select(EventRow.id)).all())
        counted.append((good(client.get("/api/users/ada"))["facts_forgotten"], kept))
    assert counted == [(1, 1), (2, 2), (2, 2)]


def test_what_tells_only_an_event_goes_after_a_week(app, client):
    here(client)
    live_one(client)
    good(client.delete("/api/users/ada"))
    engine = engine_of(app)
    with engine.database.write() as tx:
        assert tx.scalar(select(JobRow.run_at).where(JobRow.kind == "events")) > engine.now() + KEPT
        tx.execute(update(EventRow).values(at=engine.now() - KEPT - timedelta(seconds=1)))
        tx.execute(update(JobRow).where(JobRow.kind == "events").values(run_at=engine.now()))
    engine.job_queue.run_due(["events"])
    with engine.database.read() as tx:
        assert tx.scalars(select(EventRow.id)).all() == []


# -- over a live server


class Reader:
    """Reads a stream in a thread, as a client does, and comes back with Last-Event-ID when it ends."""

    def __init__(self, server: Server, **query: Any) -> None:
        self.server, self.query, self.events, self.last = server, query, list[dict[str, Any]](), ""
        self.connections, self.over = 0, False
        threading.Thread(target=self._run, daemon=True).start()
        assert eventually(lambda: self.last)

    def _run(self) -> None:
        while not self.over:
            headers = {"Last-Event-ID": self.last} if self.last else {}
            try:
                url, query = f"{self.server.url}/api/events", self.query
                with httpx2.stream("GET", url, params=query, headers=headers, timeout=30.0, trust_env=False) as answer:
                    self.connections += answer.status_code == 200
                    self._read(answer.iter_lines())
            except httpx2.TransportError:
                time.sleep(0.05)

    def _read(self, lines: Iterator[str]) -> None:
        for line in lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.last = value
            elif name == "data":
                self.events.append(json.loads(value))
            if self.over:
                return

    def messages(self) -> list[str]:
        return [event["data"]["content"] for event in self.events if event["type"] == "message.stored"]


@pytest.mark.slow
def test_a_stream_sees_all_workers_goes_on_after_a_kill_and_holds_up_no_end(tmp_path, migrated):
    with migrated_server(tmp_path, migrated, WEB_WORKERS="2") as server:
        server.start()
        reader = Reader(server, user_id="ada", words="true", types="message.stored")
        sent = list[str]()

        def say(count: int) -> None:
            with Api(server) as api:
                for number in range(len(sent), len(sent) + count):  # on connections of their own, so on both workers
                    with Api(server) as other:
                        other.append("tea", [said(f"Message {number}")], user_id="ada")
                    api.append("bobs", [said("Not for Ada")], user_id="bob")
                    sent.append(f"Message {number}")

        say(10)
        assert eventually(lambda: reader.messages() == sent)
        server.kill()
        server.start()
        say(10)
        assert eventually(lambda: reader.messages() == sent), (reader.messages(), sent)
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        server.wait()
        assert time.monotonic() - began < 8, "an open stream holds up the end of the server"
        assert reader.connections >= 2
        reader.over = True


@contextmanager
def open_streams(client: FlaskClient, count: int, **query: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(count):
            answer = client.get("/api/events", query_string=query, buffered=False)
            stack.callback(answer.close)
            assert answer.status_code == 200
            next(answer.iter_encoded())
        yield


def test_streams_leave_threads_to_everything_else(make_app):
    client = make_app(threads=32).test_client()
    with open_streams(client, 4, user_id="ada"):
        assert error(client.get("/api/events?user_id=ada"), 429)["code"] == "too_many_at_once"
        with open_streams(client, 4, user_id="bob"):
            refused = client.get("/api/events?user_id=eve")
            assert error(refused, 503)["code"] == "server_busy" and refused.headers["Retry-After"]
    with open_streams(client, 4, user_id="ada"):
        chat(client, "Hello there", **ADA)


def test_a_turn_costs_no_statement_more_whoever_listens(app, client):
    engine = engine_of(app)

    def turn(number: int) -> list[str]:
        with statements(engine.database) as sent:
            chat(client, f"What did I say about the bakery {number}?", session_id="s", **ADA)
        return sent

    for number in range(3):
        turn(number)
    before = turn(3)
    here(client)
    good(client.post("/api/webhooks", json={"url": "https://example.com/"}))
    with engine.database.read() as tx:
        assert tx.scalar(select(OwnerRow.listened_at).where(OwnerRow.kind == "tenant")) is not None
    assert len(turn(4)) == len(before)
