"""Turns of one session run one after another, on any thread or process; turns of different sessions do not wait."""

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import engine_of
from models import SessionRow
from tests.application import rows_of
from tests.http import answering, ask, chat, failed, good, history, jobs, meanwhile, stored, stream, streamed_text
from tests.model_server import Body, Status, at, prompts, question
from tests.traces import traces

pytestmark = pytest.mark.scripted


def set_lease(app: Flask, token: str | None, seconds: float) -> None:
    """Leave a holder's lease in the only session there is."""
    with engine_of(app).database.write() as tx:
        row = tx.query(SessionRow).one()
        row.lease_token, row.lease_until = token, datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.fixture(autouse=True)
def to_the_point(model_server):
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])}"


@pytest.mark.parametrize("streaming", [False, True])
def test_a_turn_waits_for_the_one_before(apps, model_server, streaming):
    first, second = apps
    client = second.test_client()
    talk = stream if streaming else chat
    with (
        answering(model_server, first, "one", session_id="s") as release,
        meanwhile(lambda: talk(client, "two", session_id="s")),
    ):
        assert not model_server.wait_for(lambda: len(model_server.requests) > 1, 0.2)
        release.set()
    assert [words for _, words in history(client, "s")] == ["one", "Answer to one", "two", "Answer to two"]
    assert [m["content"] for m in prompts(model_server)[1][1:-1]] == ["one", "Answer to one"]


def test_reading_and_editing_do_not_wait(apps, model_server):
    first, second = apps
    client = second.test_client()
    with answering(model_server, first, "one", session_id="s"):
        assert history(client, "s") == [("user", "one")]
        assert client.patch("/api/sessions/s", json={"title": "New"}).status_code == 200
        assert client.put("/api/sessions/s/summary", json={"sections": {"topic": "Tea"}}).status_code == 200
        assert client.get("/api/search", query_string={"q": "one", "session_id": "s"}).json["results"]
    assert client.get("/api/sessions/s").json["title"] == "New" and len(history(client, "s")) == 2


def test_many_turns_at_once_keep_order(apps, model_server):
    def talk(number: int) -> str:
        return str(chat(apps[number % 2].test_client(), f"m{number}", session_id="s")["reply"])

    with ThreadPoolExecutor(4) as pool:  # one and those that wait for it
        assert list(pool.map(talk, range(24))) == [f"Answer to m{n}" for n in range(24)]
    messages = stored(apps[0].test_client(), "s")
    assert [m["position"] for m in messages] == list(range(1, 49))
    for asked, answered in zip(messages[::2], messages[1::2], strict=True):
        assert answered["content"] == f"Answer to {asked['content']}"
    sent = {question(prompt): prompt for prompt in prompts(model_server)}
    for message in messages[::2]:
        tail = [m["content"] for m in sent[message["content"]][1:-1]]
        assert tail == [m["content"] for m in messages[: message["position"] - 1]]


def test_a_retry_with_the_key_waits_and_gets_the_same_answer(apps, model_server):
    first, second = apps

    def retry() -> list[Any]:
        return stream(second.test_client(), "one", session_id="s", key="k")

    with answering(model_server, first, "one", session_id="s", key="k") as release, meanwhile(retry) as parts:
        assert not model_server.wait_for(lambda: len(model_server.requests) > 1, 0.1)
        release.set()
    assert streamed_text(parts[0]) == "Answer to one" and len(prompts(model_server)) == 1


def test_three_requests_wait_for_a_session_and_the_fourth_is_refused_at_once(app, client, model_server):
    """Turns, an append and an erasure: whichever comes last."""
    over = queue.SimpleQueue[TestResponse]()
    with ThreadPoolExecutor(4) as pool, answering(model_server, app, "one", session_id="s") as release:
        (one,) = stored(client, "s")
        body = {"messages": [{"role": "user", "content": "later"}]}
        calls: list[Callable[[FlaskClient], TestResponse]] = [
            lambda client: ask(client, "two", session_id="s"),
            lambda client: ask(client, "three", session_id="s"),
            lambda client: client.post("/api/sessions/s/messages", json=body),
            lambda client: client.delete(f"/api/sessions/s/messages/{one['id']}"),
        ]
        for call in calls:
            pool.submit(call, app.test_client()).add_done_callback(lambda done: over.put(done.result()))
        refused = over.get(timeout=20.0)
        failed(refused, 409, "session_busy")
        assert int(refused.headers["Retry-After"]) > 0
        chat(client, "elsewhere", session_id="other")
        assert over.empty()
        release.set()
        assert [over.get(timeout=20.0).status_code for _ in range(3)] == [200] * 3
    chat(client, "four", session_id="s")


def test_a_turn_that_does_not_end_is_reported_as_busy(app, client, model_server, monkeypatch):
    monkeypatch.setattr("memory.leases.WAIT_SECONDS", 0.3)
    assert client.post("/api/sessions", json={"session_id": "s"}).status_code == 201
    set_lease(app, "somebody who works on", 60)
    response = ask(client, "Hello", session_id="s", key="k")
    error = failed(response, 409, "session_busy")
    assert error["type"] == "conflict_error" and "not stored" in error["message"]
    assert int(response.headers["Retry-After"]) > 0
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    failed(client.post("/api/sessions/s/messages", json=body), 409, "session_busy")
    assert history(client, "s") == [] and prompts(model_server) == []


@pytest.mark.parametrize("seconds", [-0.001, 0.3])
def test_a_holder_that_died_does_not_block_for_ever(app, client, model_server, seconds):
    model_server.main.queue(Status(401))
    failed(ask(client, "Hello", session_id="s"), 502, "model_key_refused")
    set_lease(app, "somebody who died", seconds)
    chat(client, "Hello", session_id="s")
    assert [role for role, _ in history(client, "s")] == ["user", "assistant"]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_lost_lease_overwrites_nothing(make_app, model_server, streaming):
    """The first process is suspended past its lease's end; the second takes the next turn; the first wakes up."""
    first, second = make_app(**at(model_server)), make_app(**at(model_server))
    client = second.test_client()

    def suspended(body: Body) -> str:
        set_lease(first, None, -1)
        chat(client, "two", session_id="s")
        return "too late"

    model_server.main.queue(suspended, "in time")
    if streaming:
        error = stream(first.test_client(), "one", session_id="s")[-1]["error"]
    else:
        error = failed(ask(first.test_client(), "one", session_id="s"), 409, "turn_lost")
    assert error["code"] == "turn_lost" and "not stored" in error["message"]
    assert history(client, "s") == [("user", "one"), ("user", "two"), ("assistant", "in time")]
    chat(first.test_client(), "three", session_id="s")


@pytest.mark.parametrize("erased", ["session", "session, made again", "person"])
def test_what_is_erased_during_a_turn_stays_erased(app, client, model_server, erased):
    chat(client, "one", session_id="s", user_id="ada")

    def erase(body: Body) -> str:
        good(app.test_client().delete("/api/users/ada" if erased == "person" else "/api/sessions/s"))
        if erased == "session, made again":
            good(app.test_client().post("/api/sessions", json={"session_id": "s", "user_id": "ada"}))
        return "Xylozarquon, too late"

    model_server.main.queue(erase)
    failed(ask(client, "two Xylozarquon", session_id="s", user_id="ada"), 409, "turn_lost")
    assert jobs(client) == []
    if erased == "session, made again":
        assert history(client, "s") == []
    else:
        assert client.get("/api/sessions/s").status_code == 404
    if erased == "person":
        assert set(rows_of(engine_of(app)).values()) == {0}
        assert traces(engine_of(app).settings.data_dir, "Xylozarquon") == {}


def test_a_summary_leaves_a_turn_that_is_being_taken_for_later(app, client, model_server):
    chat(client, "one", session_id="s")
    with answering(model_server, app, "two", session_id="s"):
        engine_of(app).job_queue.run_due(["summary"])
        assert client.get("/api/sessions/s/summary").json["latest"]["through"] == 2
    engine_of(app).job_queue.run_due(["summary"])
    assert client.get("/api/sessions/s/summary").json["latest"]["through"] == 4
