"""Fallback models: another model answers when one fails before its first word, and everything says which one did."""

import logging
from contextlib import ExitStack
from typing import Any

import pytest

from app import engine_of
from config import FallbackModel
from memory.llm import Cancelled, complete
from memory.llm.fallback import WithFallback
from tests import openai
from tests.http import ask, chat, events, failed, good, history, stream, streamed_text
from tests.llm import ask as request
from tests.llm import both, connected
from tests.model_server import CutStream, Delay, HangUp, Html, ModelServer, SseError, Status, Text, at
from tests.openai import talk, user
from tests.test_metrics import scraped

BACKUP = "backup-model"
LASTING = Status(401)  # which no retry helps
REFUSED = {"error": {"message": "The response was filtered.", "code": "content_filter", "param": "prompt"}}


@pytest.fixture
def other():
    with ModelServer(reply="The other server answers.") as server:
        yield server


@pytest.fixture
def app(make_app, model_server, other):
    return make_app(**with_backup(model_server, other))


def with_backup(server: ModelServer, other: ModelServer, **changes: Any) -> dict[str, Any]:
    models = (FallbackModel(BACKUP, other.url),)
    return at(server, openai_fallback_models=models, openai_fallback_api_key="other-key", model_timeout=1.5) | changes


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
def test_a_model_that_fails_before_its_first_word_is_replaced(app, model_server, other, streamed):
    client, limit = app.test_client(), Status(400, "maximum context length is 2048")
    failures = (LASTING, Status(429), Status(500), limit, HangUp(), CutStream(0), Html(), Text(""), SseError(0))
    for number, reply in enumerate(failures):
        session = f"s{number}"
        model_server.main.default = lambda body, reply=reply: reply
        if streamed:
            first, *parts, last, done = stream(client, "Hello", session_id=session)
            assert (first["model"], last["model"], done) == (BACKUP, BACKUP, "[DONE]")
            assert streamed_text(parts) == "The other server answers."
        else:
            answer = chat(client, "Hello", session_id=session)
            assert (answer["model"], answer["reply"]) == (BACKUP, "The other server answers.")
        assert history(client, session) == [("user", "Hello"), ("assistant", "The other server answers.")]
        (turn,) = good(client.get(f"/api/sessions/{session}/turns"))["items"]
        assert turn["model"] == BACKUP
    assert {request.headers["authorization"] for request in other.requests} == {"Bearer other-key"}


def test_a_refusal_of_the_words_or_of_the_request_stays_a_refusal(app, model_server, other):
    model_server.main.queue(Status(400, REFUSED), Status(400))
    failed(ask(app.test_client(), "Hello"), 422, "model_content_refused")
    failed(ask(app.test_client(), "Hello"), 502, "model_rejected_request")
    assert not other.requests


def test_after_the_first_word_nobody_else_is_asked_and_the_reply_is_stored_under_its_models_name(
    app, model_server, other
):
    client = app.test_client()
    model_server.main.queue(CutStream(2))
    *_, last, _ = stream(client, "Hello", session_id="cut")
    assert history(client, "cut")[-1][1].startswith("piece 0 piece 1") and last["model"] == "main-model"
    assert not other.requests
    model_server.main.default = lambda body: LASTING
    other.main.queue(CutStream(2))
    first, *_, last, _ = stream(client, "Hello", session_id="s")
    (turn,) = good(client.get("/api/sessions/s/turns"))["items"]
    assert [named["model"] for named in (first, last, turn)] == [BACKUP] * 3


def test_a_stopped_turn_asks_nobody_else(model_server, other):
    with connected(model_server) as first, connected(other) as second:
        model = WithFallback(first, [second], lambda *_: None)
        asked = request(stream=True)
        model_server.main.queue(lambda body: (asked.cancel.cancel(), LASTING)[1])
        with pytest.raises(Cancelled):
            complete(model, asked)
        assert not other.requests


def test_the_first_of_several_that_answers_is_taken(make_app, model_server, other):
    gone = FallbackModel("gone", "http://127.0.0.1:9/v1")
    models = (FallbackModel("spare-main"), gone, FallbackModel(BACKUP, other.url))
    settings = with_backup(model_server, other, openai_fallback_models=models)
    client, fresh = make_app(**settings).test_client(), make_app(**settings).test_client()
    model_server.main.default = lambda body: LASTING
    assert chat(client, "Hello")["model"] == BACKUP
    assert [one.body["model"] for one in model_server.requests] == ["main-model", "spare-main"]
    model_server.main.default = lambda body: LASTING if body["model"] == "main-model" else "Spare."
    assert chat(fresh, "Hello")["reply"] == "Spare."


def test_when_all_fail_the_first_error_says_so_and_the_message_is_kept(app, model_server, other):
    client = app.test_client()
    model_server.main.default = lambda body: LASTING
    other.main.default = lambda body: Status(402)
    for _ in range(2):  # the second time both are known to fail, and are asked all the same
        error = failed(ask(client, "Hello", session_id="s"), 502, "model_key_refused")
        assert f"failed as well: {BACKUP} (model_quota_exhausted)" in error["message"]
        assert "Your message is kept" in error["message"]
    model_server.main.default = lambda body: "Here I am."
    assert chat(client, "Hello", session_id="s")["reply"] == "Here I am."
    assert history(client, "s") == [("user", "Hello"), ("assistant", "Here I am.")]


@both
def test_a_failure_is_remembered_for_some_seconds(model_server, other, stream):
    now = [100.0]
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(connected(server, clock=lambda: now[0])) for server in (model_server, other)
        )
        model = WithFallback(first, [second], lambda *_: None)
        model_server.main.default = lambda body: LASTING
        for _ in range(3):
            assert complete(model, request(stream))[0] == "The other server answers."
        assert (len(model_server.requests), len(other.requests)) == (1, 3)
        model_server.main.default = lambda body: "Back again."
        now[0] += 19.0
        assert complete(model, request(stream))[0] == "The other server answers."
        now[0] += 2.0
        assert complete(model, request(stream))[0] == "Back again."
        assert len(other.requests) == 4


def test_what_one_request_did_wrong_does_not_count_against_the_model(app, model_server, other):
    client = app.test_client()
    model_server.main.queue(Status(400, "maximum context length is 2048"))
    assert [chat(client, text)["model"] for text in ("A long one", "A short one")] == [BACKUP, "main-model"]


def test_a_client_gets_the_fallbacks_answer_under_its_name(app, model_server, other):
    client = app.test_client()
    model_server.main.default = lambda body: LASTING
    parameters: dict[str, Any] = {"temperature": 0.5, "of_theirs": 1}
    response = openai.post(client, talk("Hello"), model="gpt-9", **parameters)
    assert response.headers["X-Memory-Model"] == response.json["model"] == BACKUP
    *chunks, done = openai.stream(client, talk("Hi"), "t", model="gpt-9", **parameters)
    assert {part["model"] for part in chunks} == {BACKUP} and done == "[DONE]"
    assert [part["choices"][0]["delta"].get("role") for part in chunks].count("assistant") == 1
    bodies = [one.body for one in other.requests]
    assert [body["model"] for body in bodies] == [BACKUP, BACKUP]
    assert all(parameters.items() <= body.items() for body in bodies)


def test_a_clients_stream_that_breaks_off_after_its_first_chunk_is_replaced_and_after_a_word_is_not(
    app, model_server, other
):
    client = app.test_client()
    model_server.main.queue(Text("", finish=None, done=False))  # the role alone
    *chunks, done = openai.stream(client, talk("Hello"), model="gpt-9")
    assert {part["model"] for part in chunks} == {BACKUP} and done == "[DONE]"
    assert [part["choices"][0]["delta"].get("role") for part in chunks].count("assistant") == 1
    model_server.main.queue(CutStream(1))
    count = len(other.requests)
    fresh = openai.stream(client, [user("Hello again")], "t", model="main-2")
    assert "error" in fresh[-1] and len(other.requests) == count


def test_a_model_that_is_silent_first_is_replaced_within_the_stream(app, model_server, other):
    client = app.test_client()
    model_server.main.queue(Delay(1.2, LASTING))
    with ask(client, "Hello", stream=True, session_id="s") as response:
        assert ": keep-alive" in response.text
        *_, last, done = events(response.text)
    assert (last["model"], done) == (BACKUP, "[DONE]")
    (turn,) = good(client.get("/api/sessions/s/turns"))["items"]
    assert turn["model"] == BACKUP


def test_the_mini_model_falls_back_too(app, model_server, other):
    client = app.test_client()
    model_server.mini.default = lambda body: LASTING
    other.main.default = other.mini.default
    chat(client, "My cat is called Miso.", session_id="s")
    engine_of(app).job_queue.run_due()
    (version,) = good(client.get("/api/sessions/s/summary/versions"))["items"]
    assert version["model"] == BACKUP
    assert [one.body["model"] for one in other.requests] == [BACKUP]
    assert "response_format" in other.requests[0].body


def test_log_and_metrics_say_which_fallback_answered(app, model_server, other, caplog):
    client = app.test_client()
    model_server.main.queue(LASTING)
    with caplog.at_level(logging.WARNING):
        chat(client, "A secret word")
    (line,) = [record for record in caplog.records if record.message == "another model answers"]
    assert vars(line)["fields"] == {"model": BACKUP, "instead_of": "main-model", "code": "model_key_refused"}
    assert "secret" not in caplog.text
    labels = {"model": "main", "by": BACKUP, "code": "model_key_refused"}
    assert scraped(client)("recap_model_fallbacks_total", **labels) == 1
