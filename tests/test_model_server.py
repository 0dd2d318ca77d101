"""The model server that an administrator sets: stored encrypted, tried before, in use on every process soon."""

import logging
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from cryptography.fernet import Fernet

from app import engine_of
from memory.access.encryption import KEY_FILE
from tests.application import rows_of
from tests.http import ask, chat, failed, good, meanwhile
from tests.model_server import ModelServer, Status, at
from tests.processes import eventually
from tests.test_auth import with_key

PATH = "/api/model-server"
KEY = "sk-sentinel-of-the-model-server-7319"
ENCRYPTION = Fernet.generate_key().decode()
BUILTIN = "recap-extractive"


@pytest.fixture
def app(make_app):
    return make_app(encryption_key=ENCRYPTION, model_timeout=5.0)


@pytest.fixture
def other():
    with ModelServer(reply="I am the other server.") as server:
        yield server


def draft(server: ModelServer, **changes: Any) -> dict[str, Any]:
    return {"base_url": server.url, "api_key": KEY, "main": "main-model", "mini": "mini-model", **changes}


def test_a_stored_server_answers_from_then_on_on_every_process(app, make_app, model_server):
    client, elsewhere = app.test_client(), make_app(encryption_key=ENCRYPTION).test_client()
    assert good(client.get(PATH))["source"] == "none"
    assert chat(elsewhere, "Hello")["model"] == BUILTIN
    stored = good(client.put(PATH, json=draft(model_server)))
    models = {"base_url": model_server.url, "main": "main-model", "mini": "mini-model"}
    assert stored == {"source": "stored", **models, "key_end": "7319", "refusal": None, "problem": None}
    assert stored == good(client.get(PATH))
    answer = chat(client, "Hello", session_id="s")
    assert (answer["model"], "notice" in answer) == ("main-model", False)
    assert good(client.get("/health/ready"))["model"] == {"main": "main-model", "mini": "mini-model", "builtin": False}
    assert eventually(lambda: good(elsewhere.get("/health/ready"))["model"]["main"] == "main-model", 5.0)
    assert chat(elsewhere, "Hello")["model"] == "main-model"
    engine_of(app).job_queue.run_due()
    assert "mini-model" in [request.body.get("model") for request in model_server.requests]
    assert model_server.keys == {KEY}
    assert good(client.delete(PATH))["source"] == "none"
    assert chat(client, "Hello again", session_id="s")["model"] == BUILTIN


def test_the_key_is_in_no_answer_no_log_and_no_byte_of_the_data(app, model_server, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    client = app.test_client()
    model_server.main.queue(Status(401, {"error": {"message": f"The key {KEY} is wrong."}}))
    told = [client.post(f"{PATH}/test", json=draft(model_server)), client.put(PATH, json=draft(model_server))]
    chat(client, "Hello", user_id="ada")
    told += [client.get(path) for path in (PATH, "/health/ready", "/api/models", "/api/users/ada/export")]
    assert [answer.status_code for answer in told] == [502, 200, 200, 200, 200, 200]
    assert not any(KEY in answer.text for answer in told) and KEY not in caplog.text
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert any(path.name == "recap.db" for path in files)
    assert not any(KEY.encode() in path.read_bytes() for path in files)


def test_without_an_encryption_key_a_key_file_is_made_once(model_server, make_app, tmp_path):
    file = tmp_path / "data" / KEY_FILE
    client, elsewhere = make_app().test_client(), make_app().test_client()
    assert good(client.get(PATH))["refusal"] is None
    good(client.post(f"{PATH}/test", json=draft(model_server)))
    assert not file.exists(), "a try stores nothing"
    with meanwhile(lambda: good(elsewhere.put(PATH, json=draft(model_server)))):
        good(client.put(PATH, json=draft(model_server)))
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir() if KEY_FILE in path.name] == [KEY_FILE]
    key = file.read_bytes()
    for app in (client, elsewhere, make_app().test_client()):
        good(app.put(PATH, json=draft(model_server)))
        assert chat(app, "Hello")["model"] == "main-model"
    assert file.read_bytes() == key and model_server.keys == {KEY}
    file.unlink()
    error = failed(ask(make_app().test_client(), "Hello"), 503, "model_server_unusable")
    assert KEY_FILE in error["message"] and "Your message is kept" in error["message"]
    file.write_text("no key")
    failed(client.put(PATH, json=draft(model_server)), 409, "model_server_not_storable")


@pytest.mark.slow
@pytest.mark.parametrize("nodes", ["keyless"], indirect=True)
def test_on_postgresql_no_file_is_made_and_it_is_said_what_nodes_need(nodes, model_server):
    client, file = nodes[0].test_client(), engine_of(nodes[0]).settings.data_dir / KEY_FILE
    error = failed(client.put(PATH, json=draft(model_server)), 409, "model_server_not_storable")
    assert "ENCRYPTION_KEY on every node" in error["message"] and not file.exists()
    for node in nodes:
        (engine_of(node).settings.data_dir / KEY_FILE).write_text(ENCRYPTION)
    good(client.put(PATH, json=draft(model_server)))
    assert eventually(lambda: chat(nodes[1].test_client(), "Hello")["model"] == "main-model", 5.0)


def test_what_the_environment_names_holds(app, make_app, model_server, other):
    good(app.test_client().put(PATH, json=draft(other)))
    client = make_app(**at(model_server), encryption_key=ENCRYPTION).test_client()
    assert chat(client, "Hello")["model"] == "main-model" and not other.requests
    shown = good(client.get(PATH))
    assert (shown["source"], shown["base_url"], shown["key_end"]) == ("environment", model_server.url, None)
    refused = failed(client.put(PATH, json=draft(other)), 409, "model_server_not_storable")
    assert shown["refusal"] in refused["message"]
    assert good(client.post(f"{PATH}/test", json=draft(model_server, api_key=None)))["model"] == "main-model"
    assert model_server.keys == {"test-key"}


def test_the_models_of_a_typed_address_are_listed_before_it_is_stored(app, other):
    client, before = app.test_client(), rows_of(engine_of(app))
    assert good(client.post(f"{PATH}/models", json=draft(other, main="")))["items"] == ["gpt-4o", "gpt-4o-mini"]
    assert other.keys == {KEY} and rows_of(engine_of(app)) == before
    good(client.put(PATH, json=draft(other)))
    elsewhere = {"base_url": "http://127.0.0.1:9/v1", "api_key": None}
    failed(client.post(f"{PATH}/models", json=elsewhere), 422, "api_key_needed")
    other.close()
    failed(client.post(f"{PATH}/models", json=draft(other)), 502, "model_unreachable")


def test_a_try_shows_the_answer_and_the_time_and_stores_nothing(app, other):
    client, before = app.test_client(), rows_of(engine_of(app))
    tried = good(client.post(f"{PATH}/test", json=draft(other)))
    assert (tried["model"], tried["reply"]) == ("main-model", "I am the other server.") and 0 < tried["seconds"] < 5
    assert [(one["task"], one["model"], one["works"]) for one in tried["checks"]] == [
        ("main", "main-model", True),
        ("mini", "mini-model", True),
    ]
    assert other.keys == {KEY} and rows_of(engine_of(app)) == before
    assert chat(client, "Hello")["model"] == BUILTIN
    other.close()
    error = failed(client.post(f"{PATH}/test", json=draft(other)), 502, "model_unreachable")
    assert other.url in error["message"] and "the container itself" in error["message"]


@pytest.mark.parametrize("call", ["put", "post"])
def test_a_key_goes_to_its_own_address_only(app, model_server, other, call):
    client = app.test_client()
    good(client.put(PATH, json=draft(model_server)))
    path = PATH if call == "put" else f"{PATH}/test"
    elsewhere = getattr(client, call)(path, json=draft(other, api_key=None))
    refused = failed(elsewhere, 422, "api_key_needed")
    assert refused["param"] == "api_key" and "is sent to http://127.0.0.1:" in refused["message"]
    assert not other.requests and good(client.get(PATH))["base_url"] == model_server.url
    good(getattr(client, call)(path, json=draft(model_server, api_key=None, main="main-2")))
    chat(client, "Hello")
    assert model_server.keys == {KEY}


def test_what_can_be_no_server_is_refused(app, model_server):
    client = app.test_client()
    for changes in (
        {"base_url": "ftp://127.0.0.1/v1"},
        {"base_url": "http://ada:secret@127.0.0.1/v1"},
        {"api_key": "sk-ключ"},
        {"base_url": "", "api_key": ""},
    ):
        body = draft(model_server, **changes)
        failed(client.put(PATH, json=body), 422, "bad_model_server")
        failed(client.post(f"{PATH}/test", json=body), 422, "bad_model_server")
        if "base_url" in changes:
            failed(client.post(f"{PATH}/models", json=body), 422, "bad_model_server")
    assert not model_server.requests and rows_of(engine_of(app))["model_server"] == 0


def test_with_another_encryption_key_no_model_answers_and_all_is_said(app, make_app, model_server):
    good(app.test_client().put(PATH, json=draft(model_server)))
    for changes in ({"encryption_key": Fernet.generate_key().decode()}, {}):
        client = make_app(**changes).test_client()
        error = failed(ask(client, "Hello", session_id="s"), 503, "model_server_unusable")
        assert "ENCRYPTION_KEY" in error["message"] and "Your message is kept" in error["message"]
        ready = good(client.get("/health/ready"))
        assert ready["notice"] == good(client.get(PATH))["problem"] and ready["model"]["builtin"] is False
    assert not model_server.requests
    good(app.test_client().put(PATH, json=draft(model_server)))
    assert chat(app.test_client(), "Hello", session_id="s")["model"] == "main-model"


def test_while_the_database_cannot_be_read_the_models_stay(make_app, model_server, tmp_path, monkeypatch):
    monkeypatch.setattr("memory.llm.model_server.KNOWN_SECONDS", 0.0)  # each turn looks again
    client = make_app(encryption_key=ENCRYPTION).test_client()
    good(client.put(PATH, json=draft(model_server)))
    chat(client, "Hello")
    with closing(sqlite3.connect(tmp_path / "data" / "recap.db")) as database:
        database.execute("ALTER TABLE model_server RENAME TO gone")
    assert chat(client, "Hello")["model"] == "main-model"


def test_only_an_administrator_of_the_whole_server_sees_or_changes_it(app, model_server):
    engine = engine_of(app)

    def statuses(key: str) -> set[tuple[int, str]]:
        client = with_key(app, key)
        body = draft(model_server)
        answers = [client.get(PATH), client.put(PATH, json=body), client.post(f"{PATH}/test", json=body)]
        return {(answer.status_code, answer.json.get("error", {}).get("code", "")) for answer in answers}

    admin, _ = engine.keys.create("acme", scopes=["admin"])
    assert statuses(engine.keys.create("acme", scopes=["read", "chat"])[0]) == {(403, "scope_missing")}
    assert statuses(engine.keys.create("acme", "ada")[0]) == {(403, "key_of_one_person")}
    assert statuses(admin) == {(200, "")}
    engine.keys.create("globex")
    asked = len(model_server.requests)
    assert statuses(admin) == {(403, "several_tenants")} and len(model_server.requests) == asked
