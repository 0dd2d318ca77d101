"""The OpenAI protocol over HTTP: what a client sends reaches the model, what the model answers reaches the client."""

import json
from typing import Any

import pytest

from tests.http import good, history, sessions, stored
from tests.llm import chunk, data
from tests.model_server import CutStream, Json, Raw, SseError, Status, Text, at
from tests.openai import ADDRESS, BODIES, assistant, complete, failed, post, sent, stream, talk, user

pytestmark = pytest.mark.scripted

PARAMETERS: dict[str, Any] = {
    "temperature": 0.25,
    "max_completion_tokens": 50,
    "logit_bias": {"50256": -100},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "metadata": {"topic": "tea"},
    "user": "ada",
    "of_another_server": {"nested": [1, None, {"deep": True}]},
}


def test_what_memory_has_nothing_to_add_to_reaches_the_model_untouched(client, model_server):
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]},
        *talk("Hello", "Hi!"),
        {"role": "developer", "content": "Answer in French."},
        user([{"type": "text", "text": "How are you?"}], name="ada", of_theirs=1),
        {"role": "system", "content": "Now."},
    ]
    complete(client, messages, **PARAMETERS)
    stream(client, talk("Hello again"), "t", **PARAMETERS, stream_options={"include_obfuscation": False})
    plain, streamed = sent(model_server)
    assert plain == {"model": "gpt-9", "messages": messages, "stream": False, **PARAMETERS}
    options = {"include_obfuscation": False, "include_usage": True}  # so that usage is known here
    assert streamed == {**plain, "messages": talk("Hello again"), "stream": True, "stream_options": options}
    client.post(ADDRESS, json={"messages": talk("Hello")})
    assert sent(model_server)[-1]["model"] == "main-model"  # where none is named


def test_an_answer_comes_with_every_field_it_has(client, model_server):
    message = {**assistant("Hello."), "refusal": None, "reasoning_content": "Hm.", "annotations": []}
    logprobs = {"content": [{"token": "Hello", "logprob": -0.5}]}
    answer = {
        "id": "chatcmpl-7",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-9-2026",
        "of_theirs": "fp",
        "choices": [
            {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"},
            {"index": 1, "message": assistant("Hi."), "logprobs": None, "finish_reason": "stop"},
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    }
    model_server.main.queue(Json(answer))
    assert post(client, talk("Hello"), n=2).json == answer
    assert history(client, "s") == [("user", "Hello"), ("assistant", "Hello.")]  # of several choices the first
    (turn,) = client.get("/api/sessions/s/turns").json["items"]
    assert (turn["model"], turn["usage"]["prompt_tokens"], turn["finish_reason"]) == ("gpt-9-2026", 3, "stop")


FIRST = {"role": "assistant", "reasoning_content": "Hm."}
STREAM = [
    {"id": "c", "object": "chat.completion.chunk", "choices": [], "prompt_filter_results": [{"ok": 1}]},
    {"id": "c", "choices": [{"index": 0, "delta": FIRST}], "obfuscation": "x"},
    {"id": "c", "choices": [{"index": 0, "delta": {"content": "He"}, "logprobs": {"content": [{"token": "He"}]}}]},
    {"id": "c", "choices": [{"index": 1, "delta": {"content": "Hi."}}]},
    {"id": "c", "choices": [{"index": 0, "delta": {"content": "llo."}, "finish_reason": None}], "usage": None},
    {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "system_fingerprint": "fp_1"},
]
USAGE = {"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}


@pytest.mark.parametrize("choices", [[], [{"index": 0, "delta": {}}]], ids=["openai", "litellm"])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_stream_comes_chunk_by_chunk_with_usage_for_who_asked(client, model_server, wanted, choices):
    usage = USAGE | {"choices": choices}
    model_server.main.queue(Raw([data(*(json.dumps(one).encode() for one in [*STREAM, usage]), b"[DONE]")]))
    options = {"stream_options": {"include_usage": True}} if wanted else {}
    *chunks, done = stream(client, talk("Hello"), n=2, **options)
    without = [{name: value for name, value in one.items() if name != "usage"} for one in STREAM]
    assert chunks == ([*STREAM, usage] if wanted else without) and done == "[DONE]"
    assert history(client, "s")[-1] == ("assistant", "Hello.")
    (turn,) = client.get("/api/sessions/s/turns").json["items"]
    assert (turn["usage"]["prompt_tokens"], turn["usage"]["completion_tokens"]) == (9, 3)


def test_a_plain_answer_to_a_streamed_request_comes_as_a_chunk(client, model_server):
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = assistant("Hello.", tool_calls=[call])
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer = {"id": "c", "created": 123, "model": "gpt-9-2026", "of_theirs": "fp", "usage": USAGE["usage"]}
    model_server.main.queue(Json({**answer, "object": "chat.completion", "choices": [choice]}))
    chunk, done = stream(client, talk("Hello"))
    (delta,) = chunk.pop("choices")
    assert (chunk, done) == ({**answer, "object": "chat.completion.chunk"}, "[DONE]")
    streamed = {**message, "tool_calls": [{"index": 0, **call}]}
    assert delta == {"index": 0, "delta": streamed, "finish_reason": "tool_calls"}
    assert stored(client, "s")[-1]["extra"] == {"tool_calls": [call]}


def test_a_stream_in_answer_to_a_plain_request_comes_as_one_completion(client, model_server):
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}
    rest = {"index": 0, "function": {"arguments": ":1}"}}
    events = [
        chunk({"role": "assistant", "content": "He", "reasoning_content": "Hm"}, id="c", model="m", usage=None),
        chunk({"content": "llo"}),
        chunk({"tool_calls": [first]}),
        chunk({"tool_calls": [rest]}),
        chunk({}, "tool_calls", usage={"prompt_tokens": 1, "completion_tokens": 2}),
    ]
    model_server.main.queue(Raw([data(*events, b"[DONE]")]))
    shown = post(client, talk("Hello")).json
    (choice,) = shown["choices"]
    assert (shown["id"], shown["model"], shown["object"]) == ("c", "m", "chat.completion")
    assert shown["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", "Hello")
    whole = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    assert choice["message"]["tool_calls"] == [whole]
    assert [(one["content"], one["extra"]) for one in stored(client, "s")[1:]] == [("Hello", {"tool_calls": [whole]})]


def test_an_answer_without_words_is_passed_on_and_leaves_the_question_unanswered(client, model_server):
    for reason, streamed in (("length", True), ("content_filter", False)):
        model_server.main.queue(Text("", finish=reason), "Now then.")
        if streamed:
            assert stream(client, talk("Hello"), reason)[-2]["choices"][0]["finish_reason"] == reason
        else:
            assert post(client, talk("Hello"), reason).json["choices"][0]["finish_reason"] == reason
        assert history(client, reason) == [("user", "Hello")]
        assert complete(client, talk("Hello"), reason) == "Now then."
        assert history(client, reason) == [("user", "Hello"), ("assistant", "Now then.")]


# -- errors


ODD = [  # pieces of a stream, beside good ones
    {"choices": ["x", None]},
    {"choices": {"a": 1}},
    {"choices": [{"index": 0, "delta": "x"}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": "x"}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": ["x", {"index": 0, "function": "y"}]}}]},
]


@pytest.mark.parametrize("tools", ["on", "off"])
@pytest.mark.parametrize("path", BODIES)
def test_a_piece_of_no_form_is_passed_over(client, model_server, path, tools):
    for place, piece in enumerate(ODD):
        parts = json.dumps(piece).encode(), chunk({"content": "So be it."}), chunk({}, "stop"), b"[DONE]"
        model_server.main.queue(Raw([data(*parts)]))
        headers = {"X-Memory-Tools": tools, "X-Session-Id": str(place)}
        response = client.post(path, json={**BODIES[path]([user("Hello?")]), "stream": True}, headers=headers)
        assert response.status_code == 200 and "So be it." in response.text, piece
        assert len(stored(client, str(place))) == 2


def test_an_answer_whose_id_no_database_takes_is_stored(client, model_server):
    said = {"role": "assistant", "content": "Hello."}
    ended = {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}
    for place, id in enumerate(("a\ud800", "b\0", 7, {"c": 1})):
        model_server.main.queue(Json({"id": id, "model": "m", **ended}))
        response = post(client, [user("Hello?")], f"s{place}")
        assert response.status_code == 200 and "X-Memory-Error" not in response.headers
        assert history(client, f"s{place}") == [("user", "Hello?"), ("assistant", "Hello.")]


def test_what_the_model_server_refuses_is_refused_in_its_own_words(client, model_server):
    for status, streamed in ((400, True), (401, False), (429, True), (500, False)):
        error = {"message": "Unknown parameter: 'x'.", "type": "its own", "param": "x", "code": f"unknown_{status}"}
        model_server.main.queue(*[Status(status, {"error": error}, {"Retry-After": "7"})] * 3)
        response = post(client, talk("Hello"), f"s{status}", stream=streamed)
        model_server.reset()
        assert failed(response, status) == error
        assert (response.headers.get("Retry-After") == "7") == (status in (429, 500))
        assert history(client, f"s{status}") == [("user", "Hello")]  # and the next request takes it up


def refusal(message: str) -> Status:
    return Status(400, {"error": {"message": message, "type": "invalid_request_error"}})


def test_what_is_added_to_a_request_is_left_out_where_it_is_refused(make_app, model_server):
    client = make_app(**at(model_server, prompt_cache_key="on")).test_client()
    no_options = refusal("Unknown parameter: 'stream_options'.")
    model_server.main.queue(refusal("Unrecognized request argument: prompt_cache_key"), no_options)
    stream(client, talk("Hello"))
    first, second, third = sent(model_server)
    assert first["prompt_cache_key"] == "s" and first["stream_options"] == {"include_usage": True}
    assert "prompt_cache_key" not in second and "stream_options" in second and "stream_options" not in third
    stream(client, talk("Hello again"), "t")
    assert sent(model_server)[3:] == [{**third, "messages": talk("Hello again")}]  # it is not tried again
    model_server.main.queue(no_options)  # which the client itself sends now
    failed(post(client, talk("Hello"), "u", stream=True, stream_options={"include_usage": True}), 400)
    assert len(sent(model_server)) == 5


def test_a_stream_that_breaks_ends_with_an_error_in_openais_form(client, model_server):
    for session, reply in (("error", SseError(after=2)), ("cut", CutStream(after=2))):
        model_server.main.queue(reply)
        *chunks, last = stream(client, talk("Hello"), session)
        assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "piece 0 piece 1 "
        assert set(last["error"]) == {"message", "type", "param", "code"}


def test_a_request_that_is_none_is_told_which_field_is_wrong(client):
    wrong: tuple[tuple[Any, str], ...] = (
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["Hello"]}, "messages.0"),
        ({"messages": talk("Hello"), "stream": "yes"}, "stream"),
        ({"messages": talk("Hello"), "model": 7}, "model"),
        ([], "body"),
    )
    for body, param in wrong:
        error = failed(client.post(ADDRESS, json=body), 400)
        assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert sessions(client) == []


def test_everything_that_goes_wrong_under_v1_has_openais_envelope(client):
    assert failed(client.post(ADDRESS, data="{", content_type="application/json"), 400)["code"] == "invalid_json"
    assert failed(client.post(ADDRESS, data="x", content_type="text/plain"), 415)["code"] == "not_json"
    assert failed(client.get(ADDRESS), 405)["code"] == "method_not_allowed"
    assert failed(client.post("/v1/images", json={}), 404)["type"] == "invalid_request_error"
    deep = '{"messages": [' + "[" * 100_000 + "]" * 100_000 + "]}"
    assert failed(client.post(ADDRESS, data=deep, content_type="application/json"), 400)["code"] == "invalid_json"


def test_a_wrong_base_url_leads_to_the_call_that_is_meant(client):
    for address, leads_to in {
        "/chat/completions": ADDRESS,
        "/v1/v1/chat/completions": ADDRESS,
        "/v1/chat/completions/?stream=1": f"{ADDRESS}?stream=1",
        "/v1/chat/completions/chat/completions": ADDRESS,
        "/openai/v1/responses": "/v1/responses",
        "/openai/deployments/gpt-9/chat/completions?api-version=2024-10-21": f"{ADDRESS}?api-version=2024-10-21",
        "/mcp//": "/mcp",
        "/v1//chat/completions": ADDRESS,
        "/v1/responses/?x=%ff%0d%0a": "/v1/responses?x=%ff%0d%0a",
        "/api/sessions//messages": None,
        "/v1/threads/t/messages": None,
        "/api/v0/models": None,
        "/api/sessions/": None,
    }.items():
        answer = client.post(address, json={})
        assert (answer.status_code, answer.headers.get("Location")) == (308 if leads_to else 404, leads_to)
        assert client.get(address, follow_redirects=True).status_code in (404, 405)
    assert client.get("/v1/v1/models/a%3Fb").headers["Location"] == "/v1/models/a%3Fb"


def test_what_a_client_leaves_null_is_as_if_it_were_left_out(client, model_server):
    nulls = dict.fromkeys(["user", "safety_identifier", "metadata", "n", "model", "stream"])
    answer = client.post(ADDRESS, json={**nulls, "messages": [user("Hello")]}, headers={"X-Session-Id": "s"})
    assert answer.status_code == 200, answer.text
    assert history(client, "s")[0] == ("user", "Hello") and sent(model_server)[0]["n"] is None


# -- the other calls


def test_models_and_embeddings_are_passed_on(client, model_server):
    recap, *theirs = client.get("/v1/models").json["data"]
    assert recap["id"] == "recap" and theirs == [
        {"id": name, "object": "model", "of_theirs": True} for name in ("gpt-4o", "gpt-4o-mini")
    ]
    body = {"model": "embed-1", "input": ["tea"], "encoding_format": "base64", "dimensions": 8, "of_theirs": True}
    answer = client.post("/v1/embeddings", json=body)
    assert answer.status_code == 200 and len(answer.json["data"][0]["embedding"]) == 8
    assert model_server.requests[-1].body == body
    model_server.embeddings.queue(Status(400, {"error": {"message": "No such model.", "code": "model_not_found"}}))
    error = failed(client.post("/v1/embeddings", json=body), 400)
    assert (error["message"], error["type"]) == ("No such model.", "invalid_request_error")
    assert sessions(client) == []


def test_one_model_is_passed_on(client, model_server):
    assert client.get("/v1/models/gpt-4o-mini").json == {"id": "gpt-4o-mini", "object": "model", "of_theirs": True}
    for name, asked in (("gpt-9", "gpt-9"), ("org/llama:8b", "org%2Fllama%3A8b"), ("a%2F..%2Fb", "a%2F..%2Fb")):
        assert failed(client.get(f"/v1/models/{name}"), 404)["message"] == "No such model."
        assert model_server.requests[-1].path.endswith(f"/models/{asked}")
    count = len(model_server.requests)
    for elsewhere in ("..", ".", "%2e%2e"):
        assert client.get(f"/v1/models/{elsewhere}").status_code == 404 and len(model_server.requests) == count


def test_models_are_listed_in_the_form_that_an_anthropic_client_reads(client, model_server):
    model_server.pages = {"/v1/models": {"data": [{"id": "new", "created": 1_700_000_000}, {"id": "old"}]}}
    version = {"anthropic-version": "2023-06-01"}
    page = good(client.get("/v1/models", query_string={"limit": 1000}, headers=version))
    assert (page["has_more"], page["first_id"], page["last_id"]) == (False, "recap", "old")
    dates = {model["id"]: model["created_at"] for model in page["data"]}
    assert dates == {
        "recap": "1970-01-01T00:00:00+00:00",
        "new": "2023-11-14T22:13:20+00:00",
        "old": "1970-01-01T00:00:00+00:00",
    }
    assert all(model["type"] == "model" and model["display_name"] == model["id"] for model in page["data"])
    assert good(client.get("/v1/models/recap", headers=version)) == page["data"][0]
    assert good(client.get("/v1/models/recap"))["object"] == "model"
    refused = client.get("/v1/models/nope", headers=version)
    assert (refused.status_code, refused.json["type"]) == (404, "error")
    assert refused.json["error"]["type"] == "not_found_error"


@pytest.mark.parametrize("created", ["2024-05-01T00:00:00Z", 1_700_000_000_000, -1, [1], float("nan")])
def test_a_time_that_is_none_is_the_earliest_for_an_anthropic_client(client, model_server, created):
    model_server.pages = {"/v1/models": {"data": [{"id": "odd", "created": created}]}}
    page = good(client.get("/v1/models", headers={"anthropic-version": "2023-06-01"}))
    assert [model["created_at"] for model in page["data"]] == ["1970-01-01T00:00:00+00:00"] * 2


def test_the_built_in_model_speaks_openai_too(make_app):
    client = make_app().test_client()
    assert [model["id"] for model in client.get("/v1/models").json["data"]] == ["recap", "recap-extractive"]
    complete(client, talk("My name is Ada and I live in Lyon."))
    answer = post(client, talk("Where do I live?")).json
    assert answer["object"] == "chat.completion" and "Lyon" in answer["choices"][0]["message"]["content"]
    *chunks, usage, done = stream(client, talk("What is my name?"), stream_options={"include_usage": True})
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert "Ada" in text and done == "[DONE]"
    assert usage["choices"] == [] and usage["usage"]["total_tokens"] > 0
    assert len(history(client, "s")) == 6
    error = failed(client.post("/v1/embeddings", json={"input": "tea"}), 501)
    assert error["code"] == "embeddings_unavailable"


def test_prompts_go_with_the_sessions_key_where_the_server_takes_it(make_app, model_server):
    client = make_app(**at(model_server, prompt_cache_key="on")).test_client()
    complete(client, talk("Hello"))
    complete(client, talk("Hello"), "t", prompt_cache_key="mine")
    client.post("/api/chat", json={"message": "Hello", "session_id": "u"})
    assert [body.get("prompt_cache_key") for body in sent(model_server)] == ["s", "mine", "u"]
    complete(client, talk("Hello"), "s" * 128)
    assert len(sent(model_server)[-1]["prompt_cache_key"]) == 64  # which servers take
    client = make_app(**at(model_server)).test_client()  # `auto`, and this is not OpenAI's own server
    complete(client, talk("Hello"), "v")
    assert "prompt_cache_key" not in sent(model_server)[-1]
