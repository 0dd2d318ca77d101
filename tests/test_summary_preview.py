"""Trying a summary prompt on a conversation: what it would give, with nothing stored."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import services_of
from memory.summary.updates import BATCH_TOKENS
from tests.conftest import MakeApp
from tests.model_server import Delay, ModelServer
from tests.resources import append, digest_of, fact, good, rows_of
from tests.resources import said as words
from tests.talking import at, chat, failed, meanwhile, prompts, summary

PREVIEW = "/api/sessions/s/summary/preview"
BRIEF = "Be brief.{% if first %} Begin.{% endif %}"


@pytest.fixture
def app(make_app: MakeApp, model_server: ModelServer) -> Flask:
    return make_app(**at(model_server))


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def preview(client: FlaskClient, **body: Any) -> dict[str, Any]:
    return good(client.post(PREVIEW, json=body))


def material(server: ModelServer) -> str:
    """What the mini model was given last."""
    return prompts(server, "mini")[-1][1]["content"]


def test_a_text_gives_the_conversation_another_summary_and_nothing_is_stored(
    app: Flask, client: FlaskClient, model_server: ModelServer
) -> None:
    model_server.mini.queue(digest_of(data=["The stored one."]))
    for message in ("I like tea", "And coffee"):
        chat(client, message, session_id="s")
        services_of(app).outbox.run_due(["summary"])
    before, stored = summary(client, "s"), rows_of(services_of(app))
    model_server.mini.queue(digest_of(fact("Likes tea", 1, "I like tea"), topic="Drinks", data=["Both."]))
    made = preview(client, text=BRIEF)
    assert made["sections"]["topic"] == "Drinks" and made["sections"]["data"] == ["Both."]
    assert (made["prompt"], made["since"], made["through"], made["current_version"]) == (None, 0, 4, 2)
    assert made["model"] == "mini-model" and made["tokens"] > 0
    assert made["usage"]["calls"] == 1 and made["usage"]["prompt_tokens"] > 0
    sent = prompts(model_server, "mini")[-1]
    assert sent[0]["content"].startswith("Be brief. Begin.")
    assert "I like tea" in sent[1]["content"] and "And coffee" in sent[1]["content"]
    assert "The stored one" not in sent[1]["content"]
    assert summary(client, "s") == before and rows_of(services_of(app)) == stored


def test_a_prompt_is_tried_by_its_name(client: FlaskClient, model_server: ModelServer) -> None:
    client.put("/api/prompts/brief", json={"text": BRIEF})
    chat(client, "I like tea", session_id="s")
    assert preview(client, prompt="brief")["prompt"] == "brief@1"
    assert prompts(model_server, "mini")[-1][0]["content"].startswith("Be brief.")
    assert preview(client)["prompt"] == "summary"


def test_what_is_too_long_for_one_call_is_read_on_from_the_earliest_version_that_lets_it(
    app: Flask, client: FlaskClient, model_server: ModelServer
) -> None:
    long = "and so on " * 400
    for number in range(1, 7):
        append(client, "s", [words(f"w{number} {long}"), words(f"answer {number}", "assistant")])
        model_server.mini.queue(digest_of(data=[f"up to {number}"]))
        services_of(app).outbox.run_due(["summary"])
    made = preview(client, text=BRIEF)
    tokens = [message["tokens"] for message in client.get("/api/sessions/s/messages").json["items"]]
    assert 0 < made["since"] < 5 and made["through"] == 12
    given = material(model_server)
    assert f"up to {made['since']}" in given and f"w{made['since']} " not in given and f"w{made['since'] + 1} " in given
    assert sum(tokens[2 * made["since"] :]) <= BATCH_TOKENS < sum(tokens[2 * made["since"] - 2 :])


def test_a_long_import_that_was_never_summarised_shows_its_first_step(
    client: FlaskClient, model_server: ModelServer
) -> None:
    append(client, "s", [words(f"w{number} " + "and so on " * 400) for number in range(1, 11)])
    made = preview(client, text=BRIEF)
    assert made["since"] == made["current_version"] == 0 and 0 < made["through"] < 10
    assert "w1 " in material(model_server) and "w10 " not in material(model_server)
    client.put("/api/sessions/s/summary", json={"sections": {"topic": "Mine"}})  # which covers everything
    assert preview(client, text=BRIEF)["through"] > 0 and "w1 " in material(model_server)


def test_the_database_is_free_while_the_mini_model_works(
    app: Flask, client: FlaskClient, model_server: ModelServer
) -> None:
    chat(client, "I like tea", session_id="s")
    model_server.mini.queue(Delay(0.5))
    with meanwhile(lambda: preview(app.test_client(), text=BRIEF)):
        model_server.wait_for_requests(2)
        assert services_of(app).database.in_use == 0


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"text": "{% for x in"}, 422, "bad_prompt", "text"),
        ({"text": "{{ secret }}"}, 422, "undefined_in_prompt", "text"),
        ({"text": "Brief.", "prompt": "summary"}, 422, "invalid_fields", "text"),
        ({"prompt": "nowhere"}, 404, "prompt_not_found", "prompt"),
        ({"prompt": "repair"}, 422, "not_a_summary_prompt", "prompt"),
    ],
)
def test_what_can_not_be_a_summary_prompt_is_refused_as_when_it_is_stored(
    client: FlaskClient, model_server: ModelServer, body: dict[str, Any], status: int, code: str, param: str
) -> None:
    chat(client, "I like tea", session_id="s")
    asked = len(model_server.requests)
    assert failed(client.post(PREVIEW, json=body), status, code)["param"] == param
    assert len(model_server.requests) == asked
