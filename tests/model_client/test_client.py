"""The OpenAI-compatible client over real HTTP: what it asks, failures in every place, retries, time, connections."""

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from config import Server, Settings, SettingsError
from memory.llm import Waiting, complete
from memory.llm.openai import ProviderClient
from memory.llm.openai_model import BUSY_SECONDS, LASTING_MAX
from tests import model_server as replies
from tests.llm import KEY, SCHEMA, ask, both, chunk, data, failure
from tests.model_server import Json, ModelServer, Raw, Status, Text

TEXT = Text.text
CUT = '{"choices": [{"message": '


@pytest.fixture
def server():
    with ModelServer() as server:
        yield server


@pytest.fixture
def model(make):
    return make()


@pytest.mark.parametrize("url", ["127.0.0.1:11434/v1", "localhost", "ftp://x/v1", "http://", "http://[::1/v1"])
def test_a_base_url_that_is_none_stops_the_start(url):
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL"):
        ProviderClient(Server(url), 5.0)


def test_a_key_that_is_none_stops_the_start_and_stays_hidden():
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
        ProviderClient(Settings(openai_api_key="sk-hidden\nkey").servers.main, 5.0)
    assert "hidden" not in str(caught.value)


def test_a_parameter_is_not_dropped_for_good_unless_that_helped(server, model):
    server.main.queue(Status(400, "response_format"), Status(400, "and still not"))
    assert failure(model, ask(schema=SCHEMA)).code == "model_rejected_request"
    complete(model, ask(schema=SCHEMA))
    assert "response_format" in server.requests[-1].body


def openai_error(code: str, message: str = "They say no.") -> dict[str, Any]:
    return {"error": {"message": message, "type": "x", "param": None, "code": code}}


FAILURES = [
    (Status(401), "model_key_refused", 502, "OPENAI_API_KEY"),
    (Status(404), "model_not_found", 502, "OPENAI_MODEL"),
    (Status(403, openai_error("model_not_found")), "model_not_found", 502, "gpt-4o"),
    (Status(429), "model_busy", 503, "later"),
    (Status(429, openai_error("insufficient_quota")), "model_quota_exhausted", 503, "credit"),
    (Status(500), "model_failed", 502, "HTTP 500"),
    (Status(400, openai_error("bad_thing")), "model_rejected_request", 502, "They say no."),
    (Status(400, openai_error("context_length_exceeded")), "model_context_exceeded", 502, "CONTEXT_TOKENS"),
    (Status(400, "maximum context length is 2048"), "model_context_exceeded", 502, "CONTEXT_TOKENS"),
    (replies.Html(), "model_bad_answer", 502, "It works!"),
    (Json({"choices": []}), "model_bad_answer", 502, "no message"),
    (Status(200, CUT), "model_bad_answer", 502, "not JSON"),
    (Status(200, "data: [1]\n\n"), "model_bad_answer", 502, "not an object"),
    (Status(200, ""), "model_bad_answer", 502, "nothing"),
    (Status(200, "[" * 99999), "model_bad_answer", 502, "[[["),
    (Status(200, "zipped", {"Content-Encoding": "gzip"}), "model_bad_answer", 502, "compression"),
    (Text(""), "model_empty_answer", 502, "without any text"),
    (Text("", finish="length"), "model_empty_answer", 502, "limit of tokens"),
    (Text("", finish="content_filter"), "model_content_refused", 422, "filter"),
    (replies.HangUp(), "model_unreachable", 502, "OPENAI_BASE_URL"),
    (replies.SseError(0), "model_failed", 502, "fell over"),
    (replies.SseError(0, {"message": "Slow down", "code": 429}), "model_busy", 503, "Slow down"),
    (Status(200, {"object": "error", "message": "In here", "code": 404}), "model_not_found", 502, "In here"),
]


@both
@pytest.mark.parametrize(("reply", "code", "status", "words"), FAILURES)
def test_failures_are_sentences_with_a_code(shared, stream, reply, code, status, words):
    server, model = shared
    server.main.default = lambda body: reply
    error = failure(model, ask(stream))
    assert (error.code, error.status) == (code, status)
    assert words in error.message
    assert len(error.message) < 800
    assert error.message.isprintable()


@both
def test_the_key_never_shows(server, make, caplog, stream):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, "httpcore2")  # as in every process of Recap
    model = make(openai_base_url=server.url.replace("http://", "http://me:pass-word-42@"))
    said = f"Wrong key {KEY}, header 'Bearer {KEY}', " + "x" * 260 + KEY
    for reply in (
        Status(401, openai_error("x", said)),
        Status(500, said),
        Status(200, said),
        Status(200, {"error": said}),
        replies.SseError(0, said),
        Status(302, "", {"Location": f"http://me:pass-word-42@host/?key={KEY}"}),
    ):
        server.main.queue(*[reply] * 3)
        error = failure(model, ask(stream))
        while server.main.next():
            pass  # the tries that were not made
        logging.getLogger("test").warning("A call failed.", exc_info=error)
        caplog.handler.stream.write(repr(error) + error.message)
    assert "A call failed." in caplog.text
    assert KEY[:12] not in caplog.text
    assert "pass-word-42" not in caplog.text
    assert KEY not in repr(model.provider)


BREAKING = (replies.HangUp(), replies.CutStream(0), replies.SseError(0))


@both
@pytest.mark.parametrize("reply", [Status(408), Status(409), Status(429), Status(500), Status(503), *BREAKING])
def test_passing_failures_are_tried_again_twice(server, model, stream, reply):
    server.main.queue(reply, reply, TEXT, reply, reply, reply, "never asked")
    assert complete(model, ask(stream))[0] == TEXT
    failure(model, ask(stream))
    assert len(server.requests) == 6


def test_a_short_retry_after_is_waited_for(server, model):
    server.main.queue(Status(429, headers={"Retry-After": "0.2"}), Status(503, headers={"Retry-After": "0.2"}))
    complete(model, ask())
    first, second, third = (request.at for request in server.requests)
    assert second - first >= 0.2
    assert third - second >= 0.2


LOADING = [
    Status(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
    Status(503, {"error": "Model meta-llama/Llama-3-8B is currently loading", "estimated_time": 20.0}),
    Status(500, {"error": {"message": "timed out waiting for llama runner to start - progress 0.45 - "}}),
    Status(400, {"error": "Model is unloaded."}),
    Status(429, {"message": "Model is not ready for inference. Please wait and try your request again."}),
    Text("", finish="load"),
]


@both
@pytest.mark.parametrize("client", [None, {"model": "gpt-4o"}], ids=["ours", "client's"])
def test_a_model_that_loads_is_waited_for(server, model, stream, client):
    server.main.queue(*LOADING[:-1], TEXT)
    assert complete(model, replace(ask(stream), client=client))[0] == TEXT
    assert len(server.requests) == len(LOADING)


@both
@pytest.mark.parametrize("reply", LOADING)
def test_the_wait_for_a_model_that_loads_ends_and_says_so(server, make, stream, reply):
    server.main.default = lambda body: reply
    error = failure(make(model_timeout=0.4), ask(stream))
    assert (error.code, error.status, error.retry_after) == ("model_loading", 503, BUSY_SECONDS)
    assert "is still loading the model gpt-4o" in error.kept and error.is_away
    assert 3 < len(server.requests) < 9


def test_a_pause_that_a_loading_server_asks_for_is_kept_and_the_reader_told(server, model):
    server.main.queue(replace(LOADING[0], headers={"Retry-After": "1.2"}), TEXT)
    assert Waiting() in list(model.answer(ask(stream=True)))
    first, second = (request.at for request in server.requests)
    assert second - first >= 1.2


@pytest.mark.parametrize("value", ["soon", "", "nan", "inf", "1e12", "-1", "Wed, 99 Foo 2026 00:00:00 GMT"])
def test_a_senseless_one_is_passed_over(server, model, value):
    server.main.default = lambda body: Status(429, headers={"Retry-After": value})
    assert failure(model, ask()).retry_after == BUSY_SECONDS
    assert len(server.requests) == 3


def test_no_wait_goes_past_the_deadline(server, make):
    server.main.queue(Status(500, headers={"Retry-After": "4"}))
    started = time.monotonic()
    assert failure(make(model_timeout=2.0), ask()).code == "model_failed"
    assert time.monotonic() - started < 2.0


def dripping() -> Iterator[bytes]:
    for _ in range(1000):
        time.sleep(0.02)
        yield b" "


def silent_in_the_middle() -> Iterator[bytes]:
    yield data(chunk({"content": "Hi"}))
    time.sleep(1)


SLOW = {
    "silent": lambda body: replies.Delay(threading.Event()),
    "dripping": lambda body: Raw(dripping()),
    "silent in the middle": lambda body: Raw(silent_in_the_middle()),
}


@both
@pytest.mark.parametrize("reply", SLOW.values(), ids=SLOW)
def test_time_is_up_however_slow_the_server_is(server, make, stream, reply):
    server.main.queue(reply)
    model = make(model_timeout=0.3)
    started = time.monotonic()
    error = failure(model, ask(stream))
    # Of a stream in which something comes the limit is on the silence, and a longer one on the whole.
    assert 0.29 < time.monotonic() - started < (0.3 * LASTING_MAX + 1.6 if stream else 1.9)
    assert (error.code, error.status) == ("model_timeout", 504)
    assert "MODEL_TIMEOUT" in error.message
    assert len(server.requests) == 1


@both
def test_one_connection_serves_many_calls(server, model, stream):
    server.main.queue(TEXT, Status(500), TEXT, Status(404))
    for _ in range(2):
        complete(model, ask(stream))
    failure(model, ask(stream))
    complete(model, ask(stream))
    assert server.accepted <= 1 + stream  # the rest of a stream is read in the background


def test_an_answer_that_is_not_read_to_its_end_is_hung_up_on(server, model):
    server.main.default = lambda body: Text("x " * 1000, seconds_each=0.005)
    for _ in range(5):
        answer = model.answer(ask(stream=True))
        next(answer)
        answer.close()  # type: ignore[attr-defined]
    assert server.wait_for(lambda: server.connections == 0)
    server.main.default = lambda body: TEXT
    assert complete(model, ask(stream=True))[0] == TEXT
