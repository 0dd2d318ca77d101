"""Bad input and faults: the right status, a sentence that says what to do, the message kept once and nothing lost."""

import json
import uuid
from typing import Any

import pytest

from tests.application import an_app
from tests.http import ask, chat, failed, history, sessions, stream, streamed_text
from tests.model_server import CutStream, Delay, ModelServer, Status, Text, at, prompts

QUICK = 0.9  # seconds a model may take here


@pytest.fixture
def client(make_app, model_server):
    return make_app(**at(model_server, model_timeout=QUICK)).test_client()


@pytest.fixture(scope="module")
def one_app(migrated, tmp_path_factory):
    """One application and server for the tables below: whatever one case left behind, the next would find."""
    settings = tmp_path_factory.mktemp("failures"), migrated
    with ModelServer() as server, an_app(*settings, **at(server, model_timeout=QUICK)) as app:
        yield app, server


@pytest.fixture
def shared(one_app):
    app, server = one_app
    server.reset()
    return app.test_client(), server


def body(value: Any) -> dict[str, Any]:
    return {"data": json.dumps(value), "content_type": "application/json"}


def raw(data: str | bytes, content_type: str = "application/json") -> dict[str, Any]:
    return {"data": data, "content_type": content_type}


BAD_REQUESTS: list[Any] = [
    (raw('{"message": "hi"'), 400, "invalid_json", None),
    (raw("[" * 100_000), 400, "invalid_json", None),
    (raw(f'{{"message": "hi", "replaces": {"1" * 5_000}}}'), 400, "invalid_json", None),  # more than Python reads
    (raw('{"message": "hi"}', "text/plain"), 415, "not_json", None),
    (raw(""), 422, "invalid_fields", "message"),
    (body("hi"), 422, "invalid_fields", "body"),
    (body({}), 422, "invalid_fields", "message"),
    *(
        (body({"message": value}), 422, "invalid_fields", "message")
        for value in (None, True, {}, "", " \n\t\u3000", "a\x00b", {"role": "user", "content": 5})
    ),
    (body({"message": ["hi"]}), 422, "invalid_fields", "message.0"),
    (body({"message": {"role": "assistant", "content": "hi"}}), 422, "invalid_fields", "message"),
    (raw('{"message": "a\\ud800b"}'), 422, "invalid_fields", "message"),
    (raw('{"message": NaN}'), 422, "invalid_fields", "message"),
    (body({"message": "hi", "sesion_id": "s"}), 422, "invalid_fields", "sesion_id"),
    *(
        (body({"message": "hi", name: value}), 422, "invalid_fields", name)
        for name, values in {
            "session_id": ("", "a b", "a/b", "x" * 129, "\ud800", 2**63, {"id": "s"}),
            "user_id": ("", "x" * 257, "a\x00", "\ud800", 7),
            "name": ("x" * 129,),
            "stream": ("perhaps",),
            "recall": ("sometimes",),
            "system_prompt": ("x" * 20_001, 5),
        }.items()
        for value in values
    ),
    (body({"message": "hi", "prompt": "missing"}), 404, "prompt_not_found", "prompt"),
    (body({"message": "hi", "prompt": "../../etc/passwd"}), 404, "prompt_not_found", "prompt"),
    (body({"message": "x" * 1_000_000}), 413, "message_too_large", "message"),
]


def test_a_request_that_cannot_be_taken_is_told_why_and_leaves_nothing(shared):
    client, server = shared
    before = (sessions(client), client.get("/api/jobs").json)
    for request, status, code, param in BAD_REQUESTS:
        error = failed(client.post("/api/chat", **request), status, code)
        assert error.get("param") == param, request
        if status == 422:
            assert param in error["fields"] and error["fields"][param][0] in error["message"]
    assert before == (sessions(client), client.get("/api/jobs").json) and server.requests == []


def test_what_is_not_there_is_told_in_the_same_shape_with_the_callers_request_id(shared):
    client, _ = shared
    for method, path, status, code in (
        ("GET", "/api/chat", 405, "method_not_allowed"),
        ("POST", "/api/chats", 404, "not_found"),
        ("POST", f"/api/jobs/{2**63}/retry", 404, "not_found"),
        ("POST", f"/api/jobs/{10**18 - 1}/retry", 404, "job_not_found"),
        ("POST", "/api/jobs/-1/retry", 404, "not_found"),
    ):
        failed(client.open(path, method=method), status, code)
    assert failed(client.post("/v1/api/chat"), 404, "not_found")["message"].startswith(
        "There is nothing at /v1/api/chat."
    )
    for given, back in (("abc-1", True), ("x" * 129, False), ("a b", False)):
        response = client.post("/api/chat", json={}, headers={"X-Request-ID": given})
        assert (response.headers["X-Request-ID"] == given) is back and response.headers["X-Request-ID"]


# -- the main model; `model_client` has every way to fail

MAIN_FAILURES: list[Any] = [
    (Status(401), False, 502, "model_key_refused", "Check OPENAI_API_KEY"),
    (Status(401), True, 502, "model_key_refused", "Check OPENAI_API_KEY"),
    (
        Status(400, {"error": {"code": "context_length_exceeded"}}),
        False,
        502,
        "model_context_exceeded",
        "CONTEXT_TOKENS",
    ),
    (Status(429, headers={"Retry-After": "7"}), True, 503, "model_busy", "a little later"),
    (CutStream(after=0), True, 502, "model_cut_off", "Try again"),
    (Delay(3.0, "Too late."), False, 504, "model_timeout", "MODEL_TIMEOUT"),
]


@pytest.mark.parametrize(("reply", "streaming", "status", "code", "advice"), MAIN_FAILURES)
def test_a_model_that_fails_costs_no_message_and_a_retry_adds_none(shared, reply, status, code, advice, streaming):
    client, model_server = shared
    session_id = uuid.uuid4().hex
    model_server.main.default = lambda _: reply
    response = ask(client, "Hello there", session_id=session_id, stream=streaming)
    error = failed(response, status, code)
    assert error["type"] == "model_error" and advice in error["message"], error["message"]
    assert "Your message is kept" in error["message"] and "send it again" in error["message"]
    assert ("Retry-After" in response.headers) is (error["code"] == "model_busy")
    assert history(client, session_id) == [("user", "Hello there")]
    model_server.main.queue(Text("Hello."))
    if streaming:
        assert streamed_text(stream(client, "Hello there", session_id=session_id)) == "Hello."
    else:
        assert chat(client, "Hello there", session_id=session_id)["reply"] == "Hello."
    assert history(client, session_id) == [("user", "Hello there"), ("assistant", "Hello.")]
    assert [message["role"] for message in prompts(model_server)[-1]] == ["system", "user"]


def test_a_failure_names_the_session_that_the_turn_made(client, model_server):
    model_server.main.queue(Status(401))
    error = failed(ask(client, "Hello"), 502, "model_key_refused")
    (made,) = sessions(client)
    assert f"send it again in session {made['id']}," in error["message"]
    for _ in range(2):
        chat(client, "Hello", session_id=made["id"])
    assert [role for role, _ in history(client, made["id"])] == ["user", "assistant"] * 2, "said again, it is a turn"
    model_server.main.queue(Status(401))
    error = failed(ask(client, "Hello", temporary=True), 502, "model_key_refused")
    assert "kept" not in error["message"] and len(sessions(client)) == 1, "a temporary turn keeps nothing"


def test_what_a_failing_server_says_of_one_persons_words_reaches_nobody_else(make_app, model_server):
    """Some servers repeat the prompt in their error."""
    client = make_app(**at(model_server)).test_client()

    def fail(request: Any) -> Status:
        return Status(500, {"error": {"message": f"Can't read {request['messages'][-1]['content']}"}})

    model_server.main.default = fail
    asked = {"messages": [{"role": "user", "content": "My PIN is 4711."}], "user": "ada"}
    assert "4711" in client.post("/v1/chat/completions", json=asked).text
    others = {"messages": [{"role": "user", "content": "Hello?"}], "user": "bob"}
    for answer in (ask(client, "Hello?", user_id="bob"), client.post("/v1/chat/completions", json=others)):
        assert answer.status_code in (500, 502) and "4711" not in answer.text  # /v1 has the server's own status
