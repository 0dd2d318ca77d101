"""RERANK=model: the mini model orders what a search for a prompt found, or leaves it as it was."""

import threading
from typing import Any

import pytest
from flask.testing import FlaskClient

from memory import tokens
from memory.recall import reranking
from tests.http import append, good, said
from tests.model_server import Delay, HangUp, ModelServer, Status, at

QUESTION = "Which tea does the zeppelin's cook brew?"


@pytest.fixture
def client(make_app, model_server):
    client = make_app(**at(model_server, rerank="model")).test_client()
    for number in range(40):
        words = f"The zeppelin's cook brews tea number {number}. " + "It is a long story. " * number
        append(client, f"s{number}", [said(words)], user_id="ada")
    return client


def recalled(client: FlaskClient, message: str = QUESTION, **more: str) -> list[dict[str, Any]]:
    answer = good(client.post("/api/recall", json={"message": message, "user_id": "ada", **more}))
    excerpts: list[dict[str, Any]] = answer["memory"]["excerpts"]
    return excerpts


def asked(server: ModelServer) -> list[dict[str, Any]]:
    return [request.body for request in server.requests if request.model == "mini"]


def shown(body: dict[str, Any]) -> list[str]:
    """The messages that the model read, in its order."""
    lines: list[str] = body["messages"][1]["content"].partition("<messages>\n")[2].splitlines()
    return [line for line in lines if line.startswith("[")]


def test_what_the_model_finds_helpful_comes_first(client, model_server):
    model_server.mini.queue({"best": [20, 3, 99, 0, 3]})
    first, second, *_ = recalled(client)
    (body,) = asked(model_server)
    read = shown(body)
    for excerpt, number in ((first, 20), (second, 3)):
        line = read[number - 1]
        assert line.startswith(f"[{number}] ") and excerpt["messages"][0]["content"][:40] in line
        assert sum(excerpt["why"].values()) == pytest.approx(excerpt["score"])
    assert first["why"]["model"] > 0
    assert body["response_format"]["json_schema"]["strict"] is True
    assert len(read) == reranking.MOST
    assert max(map(tokens.estimate, read)) <= reranking.MESSAGE_TOKENS + 15  # its number, day and speaker
    assert good(client.get("/api/users/ada"))["tokens_today"] > 0
    recalled(client, "Hello!")  # looks for nothing
    assert len(asked(model_server)) == 1


def test_whatever_goes_wrong_leaves_the_ranking_as_it_was(client, model_server, monkeypatch):
    def spent() -> int:
        tokens_today: int = good(client.get("/api/users/ada"))["tokens_today"]
        return tokens_today

    monkeypatch.setattr(reranking, "SECONDS", 0.3)
    model_server.mini.queue({"best": []})
    before = [(one["hits"], one["score"]) for one in recalled(client, recall="always")]
    never = Delay(threading.Event())
    for reply in (Status(400), HangUp(), "Seven.", {"best": ["first"]}, {"worst": [1]}, never):
        had = spent()
        model_server.mini.queue(reply)
        assert [(one["hits"], one["score"]) for one in recalled(client, recall="always")] == before
        assert (spent() > had) == (reply != Status(400)), "a call that the server took is charged"
