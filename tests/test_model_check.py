"""`recap models check`, and the test on the page: each model is asked once, and what is wrong is told."""

from typing import Any

import pytest
from cryptography.fernet import Fernet
from flask import Flask

from app import engine_of
from config import FallbackModel
from tests.application import rows_of, run_command
from tests.http import good
from tests.model_server import ModelServer, Status, at

KEY = "sk-sentinel-of-the-check-5521"


@pytest.fixture
def other():
    with ModelServer() as server:
        yield server


def told(app: Flask, code: int = 0) -> str:
    """What the command says, in one line."""
    result = run_command(app, "models", "check")
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_each_model_is_asked_once_and_nothing_is_stored(make_app, model_server, other):
    app = make_app(
        **at(model_server, openai_api_key=KEY, embeddings="openai"),
        openai_fallback_models=(FallbackModel("spare", other.url),),
        openai_fallback_api_key=KEY,
    )
    before = rows_of(engine_of(app))
    text = told(app)
    for line in (
        f"main-model at {model_server.url}",
        f"mini-model at {model_server.url}",
        f'text-embedding-3-small at {model_server.url} answered: "256 numbers a text"',
        f"spare at {other.url}",
        'answered: "Reply to: Answer with one short sentence: are you there?"',
        "JSON by schema",
    ):
        assert line in text
    assert text.count("works") == 4 and "FAILS" not in text and "Warning" not in text and KEY not in text
    asked = [one.body["model"] for server in (model_server, other) for one in server.requests if one.model != "other"]
    assert sorted(asked) == ["main-model", "mini-model", "spare", "text-embedding-3-small"]
    assert rows_of(engine_of(app)) == before


def test_a_model_that_fails_fails_the_command_and_the_others_are_asked(make_app, model_server, other):
    model_server.main.default = lambda body: Status(401, {"error": {"message": f"The key {KEY} is wrong."}})
    none_there = "This server does not support embeddings. Start it with `--embeddings`"  # llama.cpp's
    model_server.embeddings.default = lambda body: Status(501, {"error": {"message": none_there, "code": 501}})
    app = make_app(
        **at(model_server, openai_api_key=KEY, embeddings="openai"),
        openai_fallback_models=(FallbackModel("spare", other.url),),
    )
    text = told(app, 1)
    assert "main FAILS" in text and "refused the key" in text and "Check OPENAI_API_KEY" in text and KEY not in text
    assert "mini works" in text and "fallback works" in text
    assert "embeddings FAILS" in text and f"no such endpoint: {none_there}. Check OPENAI_EMBEDDING_MODEL" in text


def test_without_a_model_server_the_built_in_model_is_told(make_app):
    assert "built-in model answers" in told(make_app())


def test_what_a_server_does_not_take_is_told(make_app, model_server):
    model_server.main.queue(Status(400, {"error": {"message": "Unrecognized request argument: stream_options"}}))
    refusal = {"error": {"message": "This response_format type is unavailable now"}}
    model_server.mini.queue(Status(400, refusal), Status(400, refusal))
    text = told(make_app(**at(model_server)))
    assert "does not take stream_options" in text and "JSON by instruction alone" in text


def test_a_mini_model_that_does_not_write_what_was_asked_is_warned_of(make_app, model_server):
    app = make_app(**at(model_server))
    for answer, warning in (("I am a {poet}.", "it wrote no JSON"), ("{}", "its JSON lacks the field")):
        model_server.mini.default = lambda body, answer=answer: answer
        text = told(app)
        assert f"Warning: {warning}" in text
        assert ("JSON by schema" in text) == (answer == "{}"), "prose says that the server passes schemas over"
    model_server.mini.default = lambda body: 'Sure: {"answer": "yes"}'
    assert "Warning" not in told(app)


SHOWN = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}, "parameters": 'stop "x"'}
RUNNING = {"models": [{"name": "main-model:latest", "context_length": 8192}]}
LOADED = {"data": [{"id": "main-model", "max_context_length": 40_960, "loaded_context_length": 5000}]}
LIST = "/v1/models"


WINDOWS: tuple[tuple[dict[str, Any], int | None, str | None], ...] = (
    ({LIST: {"data": [{"id": "main-model", "max_model_len": 8192}]}}, 8192, "CONTEXT_TOKENS=6553"),
    ({LIST: {"data": [{"id": "main-model", "context_length": 131_072}]}}, 131_072, None),
    ({LIST: {"data": [{"id": "models/main-model", "context_window": 9000}]}}, 9000, "CONTEXT_TOKENS=7200"),
    ({LIST: {"data": [{"id": "main-model", "max_context_length": True}, 7]}}, None, None),
    ({LIST: ["main-model"]}, None, None),
    ({LIST: {"data": [{"id": "/models/q.gguf", "meta": {"n_ctx_train": 40_960, "n_ctx": 4096}}]}}, 4096, "=3276"),
    ({LIST: {"data": [{"id": "a", "max_model_len": 8192}, {"id": "b", "max_model_len": 8192}]}}, None, None),
    ({"/api/show": SHOWN}, 4096, "OLLAMA_CONTEXT_LENGTH=20000"),
    ({"/api/show": {**SHOWN, "parameters": "top_k 20\nnum_ctx      32768"}}, 32_768, None),
    ({"/api/show": SHOWN, "/api/ps": RUNNING}, 8192, "OLLAMA_CONTEXT_LENGTH=20000"),
    ({"/api/show": {"model_info": {"bert.context_length": 512}}}, 512, "OLLAMA_CONTEXT_LENGTH=20000"),
    ({"/api/show": {"error": "Unexpected provider"}}, None, None),
    ({"/api/v0/models": LOADED}, 5000, "CONTEXT_TOKENS=4000"),
)


def test_a_window_below_context_tokens_is_warned_of_with_the_setting_to_change(make_app, model_server):
    app = make_app(**at(model_server, context_tokens=16_000))
    for pages, window, setting in WINDOWS:
        model_server.pages = pages
        text = told(app)
        assert ("tokens at a time" in text) == (window is not None), pages
        assert window is None or f"reads {window} tokens at a time" in text
        assert (setting in text) if setting else ("Warning" not in text)


def test_the_page_shows_the_same_report(make_app, model_server):
    client = make_app(encryption_key=Fernet.generate_key().decode(), model_timeout=5.0).test_client()
    model_server.pages = {"/api/show": SHOWN}
    model_server.mini.default = lambda body: Status(402)
    body = {"base_url": model_server.url, "api_key": KEY, "main": "main-model", "mini": "mini-model"}
    answer = client.post("/api/model-server/test", json=body)
    main, mini = good(answer)["checks"]
    assert (main["task"], main["works"], main["window"], main["problem"]) == ("main", True, 4096, None)
    assert "OLLAMA_CONTEXT_LENGTH" in main["warnings"][0]
    assert (mini["task"], mini["works"]) == ("mini", False) and "no credit left" in mini["problem"]
    assert KEY not in answer.text
