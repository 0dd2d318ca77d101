"""Budgets: what model calls took is counted for the owner and the day, and above DAILY_TOKENS nothing new is begun."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import engine_of
from tests.application import execute, rows_of
from tests.http import answering, append, ask, chat, error, failed, good, jobs, said, stored, stream
from tests.jobs import jobs_done
from tests.knowledge import digest_of
from tests.model_server import Status, Text, ToolCalls, at
from tests.openai import post, talk

COST = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
HUNDRED = Text("Fine.", usage=COST)


def complete(client: FlaskClient, words: str, user: str) -> TestResponse:
    return post(client, talk(words), None, user=user)


def today(app: Flask, user_id: str) -> int:
    tokens: int = good(app.test_client().get(f"/api/users/{user_id}"))["tokens_today"]
    return tokens


def test_a_day_that_is_spent_refuses_before_anything_is_stored(make_app, model_server):
    app = make_app(**at(model_server, daily_tokens=100))
    client = app.test_client()
    model_server.main.queue(HUNDRED)
    first = chat(client, "Hello", session_id="s", user_id="ada", key="k")
    before = rows_of(engine_of(app))
    asked = len(model_server.requests)
    for body in ({"session_id": "s"}, {"session_id": "new"}, {"stream": True}, {"temporary": True}):
        answer = ask(client, "And again", user_id="ada", **body)
        told = failed(answer, 429, "daily_tokens_spent")
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        assert f"{midnight:%Y-%m-%d} 00:00 UTC" in told["message"] and told["type"] == "rate_limit_error"
        left = (midnight - datetime.now(UTC)).total_seconds()
        assert left - 5 <= int(answer.headers["Retry-After"]) <= left + 5
    assert chat(client, "Hello", session_id="s", user_id="ada", key="k")["reply"] == first["reply"], "a retry is free"
    good(client.post("/api/recall", json={"message": "Hello", "user_id": "ada"}))  # which calls no model
    assert rows_of(engine_of(app)) == before and len(model_server.requests) == asked
    reranking = make_app(**at(model_server, daily_tokens=100, rerank="model")).test_client()
    recalled = reranking.post("/api/recall", json={"message": "Hello", "user_id": "ada"})
    failed(recalled, 429, "daily_tokens_spent")
    chat(client, "Hello", temporary=True)  # of nobody
    model_server.main.queue(HUNDRED)
    chat(client, "Hello", user_id="bob", temporary=True)
    failed(ask(client, "Hello", user_id="bob", temporary=True), 429, "daily_tokens_spent")
    assert (today(app, "bob"), good(client.get("/api/users/bob"))["messages"]) == (100, 0)


def test_another_person_session_or_day_is_not_touched(make_app, model_server):
    app = make_app(**at(model_server, daily_tokens=100))
    client = app.test_client()
    model_server.main.queue(*[HUNDRED] * 5)
    for whose in ({"user_id": "ada"}, {"user_id": "bob"}, {"session_id": "nobodys"}, {"session_id": "another"}):
        chat(client, "Hello", **whose)
        failed(ask(client, "Hello", **whose), 429, "daily_tokens_spent")
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    with closing(sqlite3.connect(engine_of(app).settings.data_dir / "recap.db")) as database, database:
        database.execute("UPDATE spending SET day = ?", (yesterday.isoformat(),))
    stream(client, "Good morning", user_id="ada")
    assert (today(app, "ada"), today(app, "bob")) == (100, 0)


def test_days_that_are_over_are_deleted(make_app, model_server):
    """Nothing reads them, and each person would leave a row for each day for ever."""
    app = make_app(**at(model_server, daily_tokens=1000))
    client, file = app.test_client(), engine_of(app).settings.data_dir / "recap.db"
    for whose in ("ada", "bob"):
        model_server.main.queue(HUNDRED)
        chat(client, "I live in Lyon.", user_id=whose, session_id=whose)
    execute(file, "INSERT INTO spending SELECT owner_id, '2020-01-01', 5 FROM spending")
    jobs_done(client, "index")
    assert execute(file, "SELECT count(DISTINCT owner_id), count(*) FROM spending") == [(2, 2)]
    assert today(app, "ada") >= 100


# -- what counts


GOOD, REFUSED = (Text(text, usage=COST) for text in (json.dumps(digest_of()), '{"summary": {}}'))


@pytest.mark.parametrize(("answers", "spent"), [([GOOD], 200), ([REFUSED, Status(400)], 200)])
def test_summaries_count_also_those_refused(make_app, model_server, answers, spent):
    app = make_app(**at(model_server, daily_tokens=0))
    model_server.main.queue(HUNDRED)
    model_server.mini.queue(*answers)
    chat(app.test_client(), "My cat is called Miso.", session_id="s", user_id="ada")
    engine_of(app).job_queue.run_due()
    assert bool(jobs(app.test_client())) == (REFUSED in answers)
    assert today(app, "ada") == spent


def test_every_round_of_looking_back_counts_even_if_one_fails(make_app, model_server):
    app = make_app(**at(model_server, daily_tokens=0))
    client = app.test_client()
    model_server.main.queue(ToolCalls((("conversation_search", {"query": "cat"}),)), HUNDRED)
    answer = chat(client, "What is my cat called?", user_id="ada", recall="tools")
    assert today(app, "ada") == answer["usage"]["total_tokens"] > 100
    model_server.main.queue(ToolCalls((("conversation_search", {"query": "dog"}),)), Status(400))
    before = today(app, "ada")
    failed(ask(client, "What is my dog called?", user_id="ada", recall="tools"), 502, "model_rejected_request")
    assert today(app, "ada") > before


def test_a_turn_that_is_stopped_before_its_first_word_counts(make_app, model_server):
    app = make_app(**at(model_server, daily_tokens=0))
    client = app.test_client()
    append(client, "s", [said("My cat is called Miso.")], user_id="ada")
    before = today(app, "ada")
    with (
        pytest.raises(AssertionError, match="turn_stopped"),
        answering(model_server, app, "Hello", session_id="s", user_id="ada"),
    ):
        good(client.post("/api/sessions/s/stop"))
    assert today(app, "ada") > before


def test_a_preview_counts_and_is_refused_when_the_day_is_spent(make_app, model_server):
    app = make_app(**at(model_server, daily_tokens=1))
    client = app.test_client()
    append(client, "s", [said("My cat is called Miso.")], user_id="ada")
    good(client.post("/api/sessions/s/summary/preview", json={}))
    spent = today(app, "ada")
    assert spent > 1
    failed(client.post("/api/sessions/s/summary/preview", json={}), 429, "daily_tokens_spent")
    failed(client.post("/api/sessions/s/summary/refresh"), 429, "daily_tokens_spent")
    assert today(app, "ada") == spent


# -- clients of the OpenAI protocol


def test_a_client_does_not_get_past_a_spent_day(make_app, model_server):
    app = make_app(**at(model_server, daily_tokens=200))
    client = app.test_client()
    model_server.main.queue(HUNDRED, HUNDRED)
    title = "### Task:\nA title.\n<chat_history>\nHello\n</chat_history>"  # which is only passed on
    assert complete(client, "Hello", "ada").status_code == complete(client, title, "ada").status_code == 200
    assert today(app, "ada") == 200
    asked = len(model_server.requests)
    for words in ("And again", title):
        answer = complete(client, words, "ada")
        told = error(answer, 429)
        assert (told["type"], told["code"]) == ("rate_limit_error", "daily_tokens_spent")
        assert int(answer.headers["Retry-After"]) >= 1
    assert len(model_server.requests) == asked
    assert len(stored(client, good(client.get("/api/sessions"))["items"][0]["id"])) == 2


def test_a_database_that_is_busy_lets_no_client_past_a_spent_day(make_app, model_server, monkeypatch):
    monkeypatch.setattr("api.protocols.client_requests.CLIENT_LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr("memory.access.budgets.USAGE_LOCK_SECONDS", 0.05)
    app = make_app(**at(model_server, daily_tokens=100))
    client = app.test_client()
    model_server.main.queue(HUNDRED, HUNDRED)
    assert complete(client, "Hello", "ada").status_code == 200
    with closing(sqlite3.connect(engine_of(app).settings.data_dir / "recap.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        error(complete(client, "And again", "ada"), 429)
        through = complete(client, "Hello", "bob")
        assert through.status_code == 200 and through.headers["X-Memory-Error"] == "database_unavailable"


def test_a_space_gives_a_person_no_more_tokens_where_nothing_is_stored(make_app, model_server):
    client = make_app(**at(model_server, daily_tokens=100)).test_client()
    model_server.main.queue(Text("Fine.", usage={"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}))
    chat(client, "Hello", session_id="s", user_id="ada")
    person = {"X-OpenWebUI-User-Id": "ada", "X-Memory-Space": "team"}
    for path, body in (("/v1/responses", {"input": "Hi", "store": False}), ("/v1/completions", {"prompt": "Hi"})):
        assert client.post(path, json=body, headers=person).status_code == 429
