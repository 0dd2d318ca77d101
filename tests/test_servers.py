"""Model servers: one for each task, each with its own key; and Azure's older addresses."""

from typing import Any

import pytest
from cryptography.fernet import Fernet

from app import engine_of
from config import FallbackModel, Settings, SettingsError
from memory.llm import complete
from memory.llm.openai import ProviderClient
from memory.llm.openai_model import OpenAIModel
from tests.http import chat, good
from tests.llm import ask as request
from tests.llm import failure
from tests.model_server import ModelServer, Status, at


@pytest.fixture
def mini():
    with ModelServer() as server:
        yield server


@pytest.fixture
def embedder():
    with ModelServer() as server:
        yield server


def of_tasks(mini: ModelServer, embedder: ModelServer, **changes: Any) -> dict[str, Any]:
    return {
        "openai_summary_base_url": mini.url,
        "openai_summary_api_key": "mini-key",
        "openai_summary_model": "mini-model",
        "embedding_base_url": embedder.url,
        "embedding_api_key": "embedding-key",
        "embeddings": "openai",
        "model_timeout": 5.0,
        **changes,
    }


@pytest.mark.parametrize("keys", [("mini-key", "embedding-key"), ("", "")])
def test_each_task_has_a_server_and_a_key_of_its_own(make_app, model_server, mini, embedder, keys):
    changes = dict(zip(("openai_summary_api_key", "embedding_api_key"), keys, strict=True))
    app = make_app(**{**at(model_server), **of_tasks(mini, embedder, **changes)})
    client = app.test_client()
    assert chat(client, "My cat is called Miso.", session_id="s")["model"] == "main-model"
    engine_of(app).job_queue.run_due()
    (version,) = good(client.get("/api/sessions/s/summary/versions"))["items"]
    assert version["model"] == "mini-model"
    good(client.post("/v1/embeddings", json={"model": "e", "input": ["a"]}))
    asked = [{one.model for one in server.requests} for server in (model_server, mini, embedder)]
    assert asked == [{"main"}, {"mini"}, {"embeddings"}]
    sent = [{key or "no-key-needed"} for key in keys]  # the main key goes to no other server
    assert [model_server.keys, mini.keys, embedder.keys] == [{"test-key"}, *sent]


def test_embeddings_need_a_server(make_app):
    with pytest.raises(SettingsError, match="EMBEDDING_BASE_URL"):
        make_app(embeddings="openai")


@pytest.mark.parametrize("setting", ["openai_summary_api_key", "embedding_api_key"])
def test_a_key_without_an_address_is_for_openai_and_never_for_a_stored_server(make_app, model_server, setting):
    app = make_app(**{setting: "sk-of-openai"}, encryption_key=Fernet.generate_key().decode())
    body = {"base_url": model_server.url, "api_key": "sk-stored", "main": "main-model", "mini": "mini-model"}
    good(app.test_client().put("/api/model-server", json=body))
    models = engine_of(app).model_server.models
    servers = [one.server for one in (models.provider, models.mini_provider, models.embedding_provider) if one]
    assert {(one.key, one.url) for one in servers} >= {("sk-of-openai", "https://api.openai.com/v1")}
    assert {one.url for one in servers if one.key == "sk-of-openai"} == {"https://api.openai.com/v1"}


@pytest.mark.parametrize(
    ("changes", "status", "variables"),
    [
        ({}, Status(401), ["OPENAI_SUMMARY_API_KEY"]),
        ({"openai_summary_api_key": ""}, Status(404), ["OPENAI_SUMMARY_MODEL", "OPENAI_SUMMARY_BASE_URL"]),
    ],
)
def test_an_error_names_the_settings_of_its_own_server(make_app, model_server, mini, changes, status, variables):
    own = {"openai_summary_base_url": mini.url, "openai_summary_api_key": "mini-key", **changes}
    app = make_app(**at(model_server, **own), summary_mode="inline")
    mini.mini.default = lambda body: status
    chat(app.test_client(), "My cat is called Miso.", session_id="s")
    (job,) = [one for one in app.test_client().get("/api/jobs").json["items"] if one["kind"] == "summary"]
    assert all(f"{variable}" in job["error"] for variable in variables)
    assert "OPENAI_API_KEY" not in job["error"] and "OPENAI_BASE_URL" not in job["error"]


@pytest.mark.parametrize("setting", ["openai_summary_base_url", "embedding_base_url"])
def test_a_wrong_address_names_its_variable(make_app, model_server, setting):
    with pytest.raises(SettingsError, match=f"^{setting.upper()} must be"):
        make_app(**at(model_server, **{setting: "http://model server/v1"}))


def test_a_fallback_model_without_an_address_needs_a_main_server(make_app, mini):
    changes = {"openai_summary_base_url": mini.url, "openai_summary_model": "mini-model"}
    app = make_app(**changes, openai_fallback_models=(FallbackModel("gpt-4o"), FallbackModel("spare", mini.url)))
    models = engine_of(app).model_server.models
    assert [model.provider.server.url for model in models.fallbacks] == [mini.url], "OpenAI is asked by nobody's wish"


def azure(server: ModelServer, path: str, name: str = "gpt-4o") -> OpenAIModel:
    settings = Settings(openai_base_url=server.url.removesuffix("/v1") + path, openai_api_key="azure-key")
    return OpenAIModel(ProviderClient(settings.servers.main, 5.0), name, backoff=0.005)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_azures_addresses_old_and_new_work(mini, stream):
    talker, named = "/openai/deployments/talker", "/openai/deployments/gpt-4o"
    for path, came in (
        (f"{talker}?api-version=2024-10-21", talker),
        (f"{talker}/chat/completions?api-version=2024-10-21", talker),
        ("/?api-version=2024-10-21", named),
        ("/openai?api-version=2024-10-21", named),
        (f"/hub{talker}/?api-version=2024-10-21", f"/hub{talker}"),
    ):
        assert complete(azure(mini, path), request(stream))[0] == "Reply to: Hello, how are you?"
        received = mini.requests[-1]
        assert received.path == f"{came}/chat/completions?api-version=2024-10-21"
        assert received.headers["api-key"] == "azure-key" and "authorization" not in received.headers
    for query in ("", "?api-version=preview"):  # the new address is any other
        complete(azure(mini, f"/openai/v1/{query}"), request(stream))
        assert mini.requests[-1].path == f"/openai/v1/chat/completions{query}"
        assert mini.requests[-1].headers["authorization"] == "Bearer azure-key"
    complete(azure(mini, "/?api-version=2024-10-21", "../admin?x"), request())
    assert mini.requests[-1].path.startswith("/openai/deployments/..%2Fadmin%3Fx/chat/completions?")
    missing = {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist. azure-key"}}
    mini.main.queue(Status(404, missing))
    error = failure(azure(mini, "/?api-version=2024-10-21"), request())
    assert error.code == "model_not_found" and "azure-key" not in error.message
