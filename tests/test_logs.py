"""Logs: one line an event, which says what it is about and names nobody."""

import json
import logging
import re
import stat
import sys
from functools import partial
from typing import Any

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from app import engine_of
from memory.ops import logs
from tests.application import run_command
from tests.http import ask, chat

_PAIR = re.compile(r'([\w.]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?: |$)')


def read(line: str) -> dict[str, str]:
    """A line of logfmt; AssertionError when it is none."""
    assert _PAIR.sub("", line) == "", f"not logfmt: {line!r}"
    return {key: json.loads(value) if value.startswith('"') else value for key, value in _PAIR.findall(line)}


@pytest.fixture
def log(capsys):
    """What was logged since the last call, by lines."""
    return lambda: [read(line) for line in capsys.readouterr().err.splitlines()]


@pytest.fixture
def told(log, make_app):
    """An application that logs at info, from now on."""
    app = make_app(log_level="info")
    log()
    return app


# -- what has a line


def test_a_turn_has_one_line_with_its_phases(told, log):
    answer = ask(told.test_client(), "My cat is called Miso.", session_id="cats", user_id="ada")
    (line,) = log()
    assert (line["level"], line["event"]) == ("info", "turn")
    assert line["logger"].startswith("memory.turn.")
    assert line["request"] == answer.headers["X-Request-ID"]
    assert (line["api"], line["outcome"]) == ("chat", "answered")
    assert int(line["prompt_tokens"]) == answer.json["usage"]["prompt_tokens"]
    assert int(line["saved_tokens"]) == answer.json["usage"]["saved_tokens"]
    assert line["recalled"] == "0"
    for phase in ("admit", "recall", "compose", "answer", "record"):
        assert float(line[f"{phase}_ms"]) >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"])


def test_a_request_that_is_no_turn_has_one_line(told, log):
    too_long = {"message": "x" * 100_001}
    for method, path, body, route, status, code in (
        ("GET", "/api/prompts", None, "/api/prompts", "200", None),
        ("GET", "/api/sessions/nobodys", None, "/api/sessions/<session_id>", "404", "session_not_found"),
        ("GET", "/nothing/here", None, "none", "404", "not_found"),
        ("POST", "/api/chat", too_long, "/api/chat", "413", "message_too_large"),
    ):
        answer = told.test_client().open(path, method=method, json=body)
        (line,) = log()
        assert (line["level"], line["event"], line["method"]) == ("info", "request", method)
        assert (line["route"], line["status"], line.get("code")) == (route, status, code)
        assert line["bytes"] == str(len(answer.data)) and float(line["seconds"]) > 0


def test_a_turn_that_the_database_fails_has_the_code_that_the_caller_gets(told, log):
    with engine_of(told).database.write() as tx:
        tx.execute(text("DROP TABLE turns"))
    refused = ask(told.test_client(), "My cat is called Miso.", session_id="cats", user_id="ada")
    (turn,) = (line for line in log() if line["event"] == "turn")
    assert refused.status_code == 503 and turn["outcome"] == "failed"
    assert turn["code"] == refused.json["error"]["code"] == "database_schema"


def test_what_is_asked_all_the_time_has_no_line(told, log):
    client = told.test_client()
    for path in ("/health/live", "/health/ready", "/metrics", "/api/sessions", "/api/jobs", "/api/facts?user_id=ada"):
        client.get(path)
    assert log() == []
    client.post("/api/sessions", json={})
    assert [line["route"] for line in log()] == ["/api/sessions"], "what changes something has one"


def test_a_job_says_which_and_whose_it_is(told, log):
    chat(told.test_client(), "My cat is called Miso.", session_id="cats", user_id="ada")
    (turn,) = log()
    engine_of(told).job_queue.run_due(["summary"])
    (line,) = log()
    assert (line["event"], line["kind"], line["version"]) == ("summary", "summary", "1")
    assert int(line["job"]) > 0
    assert (line["owner"], line["session"]) == (turn["owner"], turn["session"])


# -- whom it names


def test_the_same_person_has_the_same_hash_after_a_restart_and_another_elsewhere(make_app, log, tmp_path):
    def owner(app: Flask, user_id: str) -> str:
        log()
        app.test_client().get("/api/graph", query_string={"user_id": user_id})
        (line,) = log()
        return line["owner"]

    ada = owner(make_app(log_level="info"), "ada")
    assert re.fullmatch("[0-9a-f]{12}", ada)
    assert owner(make_app(log_level="info"), "ada") == ada
    assert owner(make_app(log_level="info"), "bob") != ada
    (tmp_path / "data" / logs.SALT_FILE).unlink()
    assert owner(make_app(log_level="info"), "ada") != ada, "it can't be computed without this installation's salt"


def test_the_command_says_whose_lines_are_whose(told, log, make_app):
    chat(told.test_client(), "Hello", session_id="cats", user_id="ada")
    (line,) = log()
    other = make_app()
    run = partial(run_command, other, "logs", "hash")
    assert run("ada").stdout.strip() == line["owner"]
    assert run("cats", "--session").stdout.strip() == line["session"]
    assert run("ada", "--tenant", "acme").stdout.strip() not in (line["owner"], "")


def test_the_salt_is_for_its_owners_eyes_and_made_again_where_a_full_disk_left_it_empty(tmp_path):
    """Each process would take one of its own, and `recap logs hash` find nobody's lines."""
    (tmp_path / logs.SALT_FILE).touch()
    name = logs.Pseudonym("user", "default", "ada")
    first, second = (logs.Pseudonymizer.of(tmp_path).hash(name) for _ in range(2))
    assert first == second
    (path,) = tmp_path.iterdir()
    assert (path.name, stat.S_IMODE(path.stat().st_mode), len(path.read_bytes())) == (logs.SALT_FILE, 0o600, 32)


# -- errors


def test_an_unexpected_error_is_told_by_its_type_and_place():
    try:
        raise ValueError("'tangerine' is no number")
    except ValueError:
        record = logging.LogRecord("l", logging.ERROR, "f", 1, "it failed", (), sys.exc_info())
    line = read(logs.formatter(logs.Pseudonymizer(b"s" * 32)).format(record))
    assert (line["event"], line["error"]) == ("it failed", "ValueError")
    assert re.fullmatch(r"tests/test_logs\.py:\d+ test_an_unexpected\w+", line["at"])
    assert "said" not in line


# -- the form


def _record(event: str = "event", **fields: Any) -> logging.LogRecord:
    record = logging.LogRecord("l", logging.INFO, "f", 1, "%s", (event,), None)
    vars(record).update(logs.fields(**fields))
    return record


@given(st.text(), st.text())
def test_any_text_is_one_value_of_one_line(event, value):
    line = logs.formatter(logs.Pseudonymizer(b"s" * 32)).format(_record(event, said=value))
    assert len(line.splitlines()) == 1
    if (event + value).isprintable() and "\\" not in event + value:  # other text has escapes, never another line or key
        assert (read(line)["event"], read(line)["said"]) == (event, value)


def test_json_has_the_same(capsys, make_app):
    client = make_app(log_level="info", log_format="json").test_client()
    capsys.readouterr()
    chat(client, "My cat is called Miso.", session_id="s")
    (line,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (line["event"], line["api"], line["recalled"]) == ("turn", "chat", 0)
    assert isinstance(line["answer_ms"], float) and re.fullmatch("[0-9a-f]{12}", line["session"])


def test_addresses_that_servers_log_are_left_out(told, log):
    logging.getLogger("werkzeug").info('127.0.0.1 - - [12/May/2026] "GET /api/users/ada HTTP/1.1" 200 -')
    logging.getLogger("gunicorn.error").handlers.clear()
    logging.getLogger("gunicorn.error").propagate = True
    logging.getLogger("gunicorn.error").error("Error handling request %s", "/api/users/ada")
    (line,) = log()
    assert line["event"] == "a request broke off"
