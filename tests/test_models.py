"""Choosing a model: those there are, the one a chat asks for, and those that the operator lists."""

from typing import Any

import pytest

from app import engine_of
from tests import openai
from tests.application import rows_of
from tests.http import ask, chat, failed, good
from tests.model_server import ModelServer, Status, at, echo
from tests.openai import talk

pytestmark = pytest.mark.scripted

OFFERED = {"main": "main-model", "items": ["main-model", "gpt-4o", "gpt-4o-mini"]}


def asked(server: ModelServer) -> list[str]:
    return [request.body["model"] for request in server.requests if request.model == "main"]


def test_the_servers_models_are_listed_and_its_list_is_kept(client, model_server):
    assert good(client.get("/api/models")) == good(client.get("/api/models")) == OFFERED
    assert [request.path for request in model_server.requests] == ["/v1/models"]


def test_models_that_answer_no_chat_are_not_offered(client, model_server):
    offered = ["embers-7b-chat", "gpt-4o-audio-preview", "gpt-5", "llama3.2:3b", "llava"]
    others = "nomic-embed-text:latest text-embedding-3-small whisper-1 tts-1 gpt-4o-mini-tts omni-moderation-latest"
    names = [*f"{others} dall-e-3 bge-m3".split(), *offered[::-1]]
    model_server.pages = {"/v1/models": {"object": "list", "data": [{"id": name} for name in names]}}
    assert good(client.get("/api/models"))["items"] == ["main-model", *offered]


def test_a_list_is_read_in_every_form(make_app, model_server):
    forms: tuple[Any, ...] = (
        [{"id": "one"}, {"id": "two"}],  # Together's
        {"data": [{"id": "one"}, {"id": None}, {"name": "two"}, None]},
        {"models": [{"name": "two"}, {"name": "one"}]},
        {"result": [{"name": "one"}, {"name": "two"}], "success": True},
        {"data": ["one", "two"]},
    )
    for listed in forms:
        model_server.pages = {"/v1/models": listed}
        client = make_app(**at(model_server)).test_client()
        assert good(client.get("/api/models"))["items"] == ["main-model", "one", "two"]


def test_a_server_that_lists_no_models_offers_the_main_one(client, model_server):
    model_server.close()
    assert good(client.get("/api/models")) == {"main": "main-model", "items": ["main-model"]}


def test_what_one_model_does_not_take_another_may(client, model_server):
    model_server.main.queue(Status(400, {"error": {"message": "This model has no tools."}}))
    chat(client, "What did I say yesterday?", recall="tools", model="gpt-4o")
    chat(client, "What did I say yesterday?", recall="tools")
    assert ["tools" in request.body for request in model_server.requests] == [True, False, True]


UNKNOWN = Status(404, {"error": {"message": "No such model.", "code": "model_not_found"}})


def test_a_model_that_the_server_does_not_know_is_its_own_error(client, model_server):
    model_server.main.queue(UNKNOWN)
    error = failed(ask(client, "Hello", model="gpt-9"), 502, "model_not_found")
    assert "does not know the model gpt-9" in error["message"] and "Check `model`" in error["message"]


def only(*names: str) -> Any:
    return lambda body: echo(body) if body["model"] in names else UNKNOWN


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
def test_the_main_model_answers_a_client_whose_model_the_server_does_not_have(client, model_server, streamed):
    model_server.main.default = only("main-model")
    for number in range(3):
        response = openai.post(client, talk(f"Hello {number}"), model="gpt-4o", stream=streamed)
        assert (response.status_code, response.headers["X-Memory-Model"]) == (200, "main-model")
        assert " to:" in response.text and '"main-model"' in response.text
    assert asked(model_server) == ["gpt-4o", "main-model", "main-model", "main-model"], "it is asked for once"
    turns = good(client.get("/api/sessions/s/turns"))["items"]
    assert {turn["model"] for turn in turns} == {"main-model"}


def test_recap_is_the_main_model_by_every_protocol(client, make_app, model_server):
    assert chat(client, "Hello", model="recap")["model"] == "main-model"
    assert openai.post(client, talk("Hello"), model="recap").json["model"] == "main-model"
    assert good(client.get("/v1/models/recap"))["id"] == "recap"
    listed = make_app(**at(model_server, openai_models=("gpt-4o-mini",))).test_client()
    assert openai.post(listed, talk("Hello"), model="recap").status_code == 200
    assert asked(model_server) == ["main-model"] * 3
    builtin = make_app().test_client()
    assert openai.post(builtin, talk("Hello"), model="recap").headers["X-Memory-Model"] == "recap-extractive"


def test_a_model_that_fails_otherwise_or_with_the_main_one_is_an_error(client, model_server):
    no_tools = Status(400, {"error": {"message": "llama3 does not support tools"}})
    for reply, of_main, tried in (
        (Status(401), Status(401), ["gpt-4o"]),
        (UNKNOWN, UNKNOWN, ["gpt-4o", "main-model"]),
        (UNKNOWN, no_tools, ["gpt-4o", "main-model"]),
    ):
        model_server.reset()
        model_server.main.queue(reply, of_main)
        error = openai.failed(openai.post(client, talk("Hello"), model="gpt-4o"), of_main.code)
        assert asked(model_server) == tried
    assert "does not support tools" in error["message"]


CHAT = ("/api/chat", {"message": "Hello"}, 422)
COMPLETION = ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}]}, 400)


@pytest.mark.parametrize(("path", "body", "status"), [CHAT, COMPLETION], ids=["chat", "completions"])
def test_nobody_gets_a_model_that_the_operator_does_not_list(make_app, model_server, path, body, status):
    app = make_app(**at(model_server, openai_models=("gpt-4o-mini",)))
    client, before = app.test_client(), rows_of(engine_of(app))
    error = failed(client.post(path, json={**body, "model": "gpt-4o"}), status, "model_not_offered")
    assert error["param"] == "model" and "main-model, gpt-4o-mini" in error["message"]
    assert not model_server.requests and rows_of(engine_of(app)) == before
    assert good(client.get("/api/models")) == {"main": "main-model", "items": ["main-model", "gpt-4o-mini"]}
    assert [one["id"] for one in good(client.get("/v1/models"))["data"]] == ["recap", "main-model", "gpt-4o-mini"]
    for name in ("main-model", "gpt-4o-mini"):
        assert good(client.post(path, json={**body, "model": name}))["model"] == name
