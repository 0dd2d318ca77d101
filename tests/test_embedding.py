"""Recap in another program: made from a mapping of settings, with a model of the program's own."""

import json
import logging
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from flask import Flask
from sqlalchemy import create_engine, text
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client

from app import create_app, engine_of
from config import SettingsError
from memory.llm import ModelEvent, ModelRequest, StreamEnd, TextDelta
from models.owners import Usage
from tests.processes import eventually

ROOT = Path(__file__).resolve().parent.parent
MEMORY = "sqlite:///:memory:"


class Fake:
    """A model that a program might bring along: it repeats what it was asked, and summarises as it is told."""

    name = "fake"
    supports_tools = False
    window = None
    down = None

    def answer(self, request: ModelRequest) -> Iterator[ModelEvent]:
        asked = str(request.messages[-1].content)
        summary = {"topic": "bees", "facts": []}
        yield TextDelta(json.dumps(summary) if request.schema else f"You said: {asked.splitlines()[-1]}")
        yield StreamEnd("stop", self.name, Usage(20, 5))


def made(**settings: Any) -> Flask:
    return create_app({"DATABASE_URL": MEMORY, "TESTING": True, "LOG_LEVEL": "warning", **settings}, model=Fake())


def chat(app: Flask, message: str, session: str = "s1", **more: Any) -> Any:
    return app.test_client().post("/api/chat", json={"session_id": session, "message": message, **more})


@pytest.mark.parametrize("has_logging", [True, False])
def test_a_program_that_has_set_up_logging_keeps_it(monkeypatch, has_logging):
    root = logging.getLogger()
    theirs = [logging.NullHandler()] if has_logging else []
    monkeypatch.setattr(root, "handlers", [*theirs])
    monkeypatch.setattr(root, "level", logging.WARNING)
    made(LOG_LEVEL="info")
    assert (root.handlers == theirs, root.level) == ((True, logging.WARNING) if has_logging else (False, logging.INFO))


@pytest.mark.parametrize(("mode", "stream"), [("inline", False), ("background", True)])
def test_a_turn_and_its_jobs_are_over_when_the_response_is(mode, stream):
    app = made(SUMMARY_MODE=mode)
    answer = chat(app, "I keep bees in Tartu.", stream=stream)
    assert answer.status_code == 200 and "bees in Tartu" in answer.get_data(as_text=True)
    answer.close()
    summary = app.test_client().get("/api/sessions/s1/summary").get_json()
    assert (summary["state"], summary["latest"]["sections"]["topic"]) == ("current", "bees")
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("recap-jobs")]
    assert app.test_client().get("/health/ready").get_json()["model"]["main"] == "fake"


def test_one_connection_in_memory_serves_many_threads_and_nobody_else():
    app, other = made(), made()

    def turn(number: int) -> int:
        return chat(app, f"Note the number {number}.", f"s{number}", user_id="ada").status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(turn, range(24))) == {200}
    client = app.test_client()
    found = client.get("/api/search", query_string={"q": "number 17", "user_id": "ada"}).get_json()["results"]
    assert found[0]["content"] == "Note the number 17."
    assert client.delete("/api/users/ada").get_json()["pending"] == []
    assert other.test_client().get("/api/sessions?user_id=ada").get_json()["items"] == []


def test_no_turn_looks_for_the_stored_model_server_while_its_transaction_is_open(monkeypatch):
    monkeypatch.setattr("memory.llm.model_server.KNOWN_SECONDS", 0.0)  # it is read each time, on the one connection
    app = create_app({"DATABASE_URL": MEMORY, "TESTING": True, "LOG_LEVEL": "warning"})
    assert [chat(app, f"I have {number} bees.").status_code for number in range(2)] == [200, 200]


def test_a_new_database_gets_its_schema_and_another_is_left_as_it_is(tmp_path):
    settings = {"RECAP_DATA_DIR": tmp_path / "data", "TESTING": True, "LOG_LEVEL": "warning"}
    chat(create_app(settings, model=Fake()), "I keep bees.")
    again = create_app(settings, model=Fake())
    assert len(again.test_client().get("/api/sessions/s1/messages").get_json()["items"]) == 2
    database = create_engine(engine_of(again).settings.sqlalchemy_url)
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.dispose()
    with pytest.raises(SettingsError, match="9999"):
        create_app(settings, model=Fake())


def test_an_openai_client_is_called_as_its_program_made_it(model_server):
    client = openai.OpenAI(
        base_url=model_server.url, api_key="mine-alone-0123456", default_headers={"X-Program": "garden"}
    )
    settings = {"DATABASE_URL": MEMORY, "TESTING": True, "OPENAI_MODEL": "main-model", "LOG_LEVEL": "warning"}
    app = create_app({**settings, "OPENAI_SUMMARY_MODEL": "mini-model"}, model=client)
    assert chat(app, "I keep bees.").status_code == 200
    sent = model_server.requests
    assert {request.model for request in sent} == {"main", "mini"}
    assert {request.headers["x-program"] for request in sent} == {"garden"}
    assert model_server.keys == {"mine-alone-0123456"}
    engine_of(app).stop()
    assert client.chat.completions.create(model="main-model", messages=[{"role": "user", "content": "Still?"}])


def test_settings_are_those_of_the_mapping_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("OPENAI_API_KEY=of-a-file\n")
    app = create_app({"DATABASE_URL": MEMORY, "TESTING": True, "LOG_LEVEL": "warning"})
    assert app.test_client().get("/health/ready").get_json()["model"]["builtin"]
    assert not (tmp_path / "data").exists()
    key = tmp_path / "key"
    key.write_text("of-a-named-file")
    named = made(OPENAI_API_KEY_FILE=key, OPENAI_MODELS=["a", "b"])
    assert engine_of(named).settings.openai_api_key == "of-a-named-file"
    assert engine_of(named).settings.openai_models == ("a", "b")
    with pytest.raises(SettingsError) as refused:
        made(DATABASE_URL="mysql://ada:sekret@db/x")
    assert "sekret" not in str(refused.value)
    with pytest.raises(SettingsError, match="SUMMARY_MOOD: neither Recap nor Flask"):
        create_app({"SUMMARY_MOOD": "inline"})
    with pytest.raises(SettingsError, match="SUMMARY_MODE cannot be used"):
        create_app({"SUMMARY_MODE": "sometimes"})


def test_it_is_served_below_a_path_and_works_in_the_background(tmp_path, capsys):
    app = create_app({"RECAP_DATA_DIR": tmp_path, "SUMMARY_DEBOUNCE": 0, "LOG_LEVEL": "warning"}, model=Fake())
    site = Client(DispatcherMiddleware(Flask("site"), {"/memory": app}))
    try:
        assert site.post("/memory/api/chat", json={"session_id": "s1", "message": "I keep bees."}).status_code == 200
        assert "/" not in {path[:1] for path in re.findall(r'(?:href|src)="([^"]+)"', site.get("/memory/").text)}
        assert eventually(lambda: site.get("/memory/api/sessions/s1/summary").get_json()["state"] == "current")
        assert capsys.readouterr().err == "", "a model of the program's own is nothing to warn of"
    finally:
        engine_of(app).stop()


def test_middleware_around_it_stays_after_the_first_request(tmp_path):
    app, paths = create_app({"RECAP_DATA_DIR": tmp_path}, model=Fake()), []
    serve = app.wsgi_app

    def count(environ: Any, start_response: Any) -> Any:
        paths.append(environ["PATH_INFO"])
        return serve(environ, start_response)

    app.wsgi_app = count  # type: ignore[method-assign]
    for _ in range(2):
        assert app.test_client().get("/health/live").status_code == 200
    assert paths == ["/health/live"] * 2
    engine_of(app).stop()


@pytest.mark.parametrize("page", ["README.md", "docs/embedding.md"])
def test_the_examples_of_the_documentation_work(page, monkeypatch, tmp_path, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    chosen = [
        block for block in blocks if "create_app(" in block or "from app import" in block or "Dispatcher" in block
    ]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"site": Flask("site")}
    for block in chosen:
        exec(block, names)
    assert len(chosen) == (1 if page == "README.md" else 7)
    assert "Miso" in capsys.readouterr().out or page != "README.md"
