"""What was imported is summarised when the person asks for it, and not before."""

import json

import pytest
from flask.testing import FlaskClient

from app import engine_of
from tests.http import Body, chat, failed, good, said
from tests.knowledge import digest_of
from tests.model_server import Text, at, prompts

ADDRESS = "/api/users/ada/summaries"
WORDS = "I drink tea in the morning. " * 60


def an_import(sessions: int) -> bytes:
    at = "2026-03-01T10:00:00Z"
    messages = [said(WORDS, created_at=at), said("Noted.", "assistant", created_at=at)]
    of = [{"id": f"s{n}", "messages": messages, "created_at": at, "updated_at": at} for n in range(sessions)]
    return json.dumps({"format": "recap-export", "version": 1, "sessions": of}).encode()


@pytest.fixture
def imported(make_app, model_server):
    """A client, of whose person four sessions were imported."""
    client = make_app(**at(model_server)).test_client()
    answer = client.post("/api/import?user_id=ada", data=an_import(4), content_type="application/json")
    assert good(answer)["created"]["sessions"] == 4
    return client


def backlog(client: FlaskClient) -> Body:
    return good(client.get(ADDRESS))


def run(client: FlaskClient) -> None:
    engine_of(client.application).job_queue.run_due(["summary"])


def test_an_import_calls_no_model_and_tells_what_its_summaries_would_take(imported, model_server):
    engine_of(imported.application).job_queue.run_due()
    assert not model_server.requests
    there = backlog(imported)
    assert (there["sessions"], there["waiting"], there["failed"]) == (4, 0, 0)
    begun = good(imported.post(ADDRESS))
    assert begun == {**there, "waiting": 4}
    run(imported)
    assert len(prompts(model_server, "mini")) == 4
    assert backlog(imported) == {"sessions": 0, "tokens": 0, "waiting": 0, "failed": 0}
    spent = good(imported.get("/api/users/ada"))["tokens_today"]
    assert spent < there["tokens"] < 4 * spent, "the prompt of a real model has more beside the messages"


def test_it_can_be_cancelled_and_resumed(imported, model_server):
    good(imported.post(ADDRESS))
    model_server.mini.queue(*[digest_of(topic="Tea")] * 4)
    done: list[str] = []

    def cancel_after_the_first(*_: object) -> None:
        done.append("")
        assert backlog(imported)["sessions"] == 3
        assert good(imported.delete(ADDRESS))["waiting"] == 0

    engine_of(imported.application).job_queue.run_due(["summary"], each=cancel_after_the_first)
    assert len(done) == 1
    assert good(imported.post(ADDRESS))["waiting"] == 3
    run(imported)
    assert backlog(imported)["sessions"] == 0
    assert len(prompts(model_server, "mini")) == 4, "what was summarised is not summarised again"


def test_it_keeps_within_the_persons_day(make_app, model_server):
    client = make_app(**at(model_server, daily_tokens=6_000)).test_client()
    good(client.post("/api/import?user_id=ada", data=an_import(6), content_type="application/json"))
    assert 1 <= good(client.post(ADDRESS))["waiting"] < 6
    model_server.main.queue(
        Text("Fine.", usage={"prompt_tokens": 6_000, "completion_tokens": 1, "total_tokens": 6_001})
    )
    chat(client, "Hello", user_id="ada")
    failed(client.post(ADDRESS), 429, "daily_tokens_spent")


def test_nobody_is_summarised_of_whom_nothing_is_stored(client):
    for call in (client.get, client.post, client.delete):
        failed(call(ADDRESS), 404, "user_not_found")
