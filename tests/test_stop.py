"""A reply that is stopped: what was said is kept, on whatever worker it was being written."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import engine_of
from tests.application import statements
from tests.http import ask, chat, events, failed, history, meanwhile, stream, streamed_text
from tests.model_server import Delay, Exchange, ModelServer, Reply, Status, ToolCalls, at, prompts
from tests.processes import eventually


class Silent(Reply):
    """Says some words, or not even that it will answer, and then nothing more.

    `said` is set once it is silent, and `cut_off` once it finds that nobody listens.
    """

    def __init__(self, *words: str) -> None:
        self.words = words
        self.said, self.cut_off = threading.Event(), threading.Event()

    def send(self, exchange: Exchange) -> None:
        if self.words:
            exchange.begin()
        for word in self.words:
            exchange.event(exchange.chunk({"content": word}))
        self.said.set()
        exchange.connection.settimeout(20.0)
        if not exchange.connection.recv(1):
            self.cut_off.set()
        raise ConnectionAbortedError


def stop(client: FlaskClient, session: str = "s") -> bool:
    answer = client.post(f"/api/sessions/{session}/stop")
    assert answer.status_code == 202, answer.text
    stopping: bool = answer.json["stopping"]
    return stopping


@contextmanager
def speaking(server: ModelServer, app: Flask, **more: Any) -> Iterator[tuple[Silent, list[Any]]]:
    """A streamed turn in session `s` whose model has said "One two " and falls silent; its events, once it is over."""
    reply, heard = Silent("One ", "two "), threading.Event()
    server.main.queue(reply)

    def listen() -> list[Any]:
        with ask(app.test_client(), "Count.", stream=True, session_id="s", **more) as response:
            text = ""
            for chunk in response.iter_encoded():
                text += chunk.decode()
                if '"two "' in text:
                    heard.set()
            return events(text)

    with meanwhile(listen) as parts:
        assert heard.wait(5.0)
        yield reply, parts


def test_what_was_said_is_stored_and_the_stream_ends_regularly(apps, model_server):
    first, second = apps
    with speaking(model_server, first) as (reply, result):
        assert stop(second.test_client())
    assert reply.cut_off.wait(5.0)  # the model need not go on
    (parts,) = result
    assert streamed_text(parts) == "One two " and parts[-1] == "[DONE]"
    last = parts[-2]
    assert last["choices"][0]["finish_reason"] == "interrupted" and last["message_id"]
    assert last["usage"]["estimated"] and last["usage"]["prompt_tokens"] > 0 and last["usage"]["completion_tokens"] > 0
    assert history(second.test_client(), "s") == [("user", "Count."), ("assistant", "One two ")]
    assert chat(first.test_client(), "Go on.", session_id="s")["reply"]
    assert [message["content"] for message in prompts(model_server)[-1][1:-1]] == ["Count.", "One two "]


@pytest.mark.parametrize("streaming", [False, True])
def test_stopped_before_the_first_word_the_message_is_kept_and_sent_again_answered(apps, model_server, streaming):
    """A streamed turn ends at once.  A plain one ends when the model begins to answer."""
    first, second = apps
    begin = threading.Event()
    model_server.main.queue(Delay(begin, "One two three."))
    with meanwhile(lambda: ask(first.test_client(), "Count.", session_id="s", stream=streaming)) as answers:
        model_server.wait_for_requests(1)
        assert stop(second.test_client())
        with statements(engine_of(first).database, every_thread=True) as sent:
            # A process looks for stops that others noted; with its second look, it has acted on the first.
            assert eventually(lambda: answers if streaming else sum("stop_token" in one for one in sent) > 1)
        begin.set()
    error = failed(answers[0], 409, "turn_stopped")
    assert "Your message is kept" in error["message"]
    client = second.test_client()
    assert history(client, "s") == [("user", "Count.")]
    assert chat(client, "Count.", session_id="s")["reply"]
    assert [role for role, _ in history(client, "s")] == ["user", "assistant"]


def test_where_nothing_is_being_written_there_is_nothing_to_stop(client):
    failed(client.post("/api/sessions/s/stop"), 404, "session_not_found")
    chat(client, "Hello", session_id="s", user_id="ada")
    assert not stop(client)
    failed(client.post("/api/sessions/s/stop?user_id=bob"), 404, "session_not_found")


def test_a_stop_is_for_the_turn_that_runs_not_for_the_next(model_app, model_server):
    """The turn ends by itself at the moment it is stopped; the one that waited for it is not stopped."""
    app, client = model_app, model_app.test_client()
    release = threading.Event()
    model_server.main.queue(Delay(release, "First."), "Second.")
    with meanwhile(lambda: ask(client, "one", session_id="s")):
        model_server.wait_for_requests(1)
        with meanwhile(lambda: chat(app.test_client(), "two", session_id="s")) as second:
            stop(app.test_client())
            release.set()
    assert second[0]["reply"] == "Second." and second[0]["choices"][0]["finish_reason"] == "stop"


def test_stopped_between_two_tries_it_does_not_try_again(make_app, model_server):
    app = make_app(**at(model_server, model_timeout=30.0))
    model_server.main.queue(Status(429, headers={"Retry-After": "5"}))
    with meanwhile(lambda: ask(app.test_client(), "Count.", session_id="s")) as answers:
        model_server.wait_for_requests(1)
        stop(app.test_client())
    failed(answers[0], 409, "turn_stopped")
    assert len(model_server.requests) == 1


def test_stopped_while_the_model_looks_back_what_it_said_before_is_kept(make_app, model_server):
    app = make_app(**at(model_server, model_timeout=30.0))
    silent = Silent()
    model_server.main.queue(ToolCalls((("conversation_search", {"query": "tea"}),), text="Let me look."), silent)
    with meanwhile(lambda: stream(app.test_client(), "Which tea?", session_id="s", recall="tools")) as result:
        assert silent.said.wait(5.0)
        stop(app.test_client())
    (parts,) = result
    assert streamed_text(parts) == "Let me look." and parts[-2]["choices"][0]["finish_reason"] == "interrupted"
    assert parts[-2]["usage"]["estimated"]
    assert history(app.test_client(), "s")[-1] == ("assistant", "Let me look.")
