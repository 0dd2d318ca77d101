"""Where memory breaks, a client gets its answer all the same; where the client goes, what was written is kept."""

import logging
import threading
from typing import Any

import pytest

from app import engine_of
from memory import jobs as jobs_module
from memory.jobs import BACKOFF_FIRST
from memory.leases import LEASE_SECONDS
from tests.application import locked
from tests.http import events, good, history, meanwhile, stored, streamed_text
from tests.jobs import Bench, Clock
from tests.knowledge import digest_of
from tests.model_server import Delay, Dictation, ModelServer, at
from tests.openai import Person, complete, failed, post, sent, stream, talk, user
from tests.processes import eventually

LIST = [{"role": "system", "content": "Be brief."}, *talk("Hello", "Hi!", "What is my name?")]


@pytest.fixture
def app(model_app, model_server):
    model_server.main.default = lambda body: "An answer."
    return model_app


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """No test waits seconds for a database that it has locked itself."""
    for patience in (
        "api.protocols.client_requests.CLIENT_LOCK_TIMEOUT_SECONDS",
        "memory.access.budgets.USAGE_LOCK_SECONDS",
        "memory.leases.RELEASE_TIMEOUT_SECONDS",
    ):
        monkeypatch.setattr(patience, 0.2)
    monkeypatch.setattr("models.sqlite.BUSY_TIMEOUT_MS", 50)


def passed_on(model_server: ModelServer, answer: Any, problem: str) -> None:
    """Assert that the model got the request as it came, and the client the model's answer and the reason."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["X-Memory-Error"] == problem
    assert (answer.headers["X-Memory-Recalled"], answer.headers["X-Memory-Tokens-Saved"]) == ("0", "0")
    assert sent(model_server)[-1]["messages"] == LIST
    if answer.is_json:
        assert answer.json["choices"][0]["message"]["content"] == "An answer."
    else:
        assert streamed_text(events(answer.text)[:-1]) == "An answer."


@pytest.mark.parametrize("streamed", [True, False])
def test_a_locked_database_keeps_nobody_from_an_answer(app, client, model_server, streamed, caplog):
    with locked(app), caplog.at_level(logging.ERROR):
        passed_on(model_server, post(client, LIST, stream=streamed), "database_unavailable")
    assert "without memory" in caplog.text
    ada = Person(client)
    ada.messages = [*LIST, {"role": "assistant", "content": "An answer."}]
    ada.says("And now?")
    assert "X-Memory-Error" not in ada.headers
    assert history(client, "s") == ada.said[1:]  # what was missed is stored with the next request


def test_a_search_that_fails_keeps_nobody_from_an_answer(app, client, model_server, monkeypatch):
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(engine_of(app).index, "search", broken)
    passed_on(model_server, post(client, LIST, user="ada"), "memory_failed")
    assert history(client, "s")[-2:] == [("user", "What is my name?"), ("assistant", "An answer.")]  # it is remembered


def test_a_mistake_of_our_own_keeps_nobody_from_an_answer(client, model_server, monkeypatch, caplog):
    def mistaken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("reconciling went wrong")

    monkeypatch.setattr("memory.transcripts.matching.reconcile", mistaken)
    passed_on(model_server, post(client, LIST), "memory_failed")
    assert "reconciling went wrong" in caplog.text
    failed(client.get("/v1/nothing"), 404)
    assert client.get("/api/sessions").json["items"] == []  # nothing half done


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_process_that_ended_is_no_failure_of_memory(make_app, model_server, how, monkeypatch):
    """Its summary is made by another one; only when that never succeeds has memory failed."""
    monkeypatch.setattr(jobs_module, "ATTEMPTS", 2)
    bench = Bench(make_app(**at(model_server, model_timeout=2.0)), Clock())
    ada = Person(bench.client)
    ada.says("My name is Ada.")
    model_server.mini.default = lambda body: Delay(threading.Event(), digest_of(topic="Too late"))
    for tries in (1, 2):
        process, asked = bench.process(bench.app), len(model_server.requests)
        process.job_queue.start()
        model_server.wait_for_requests(asked + 1)
        if how == "killed":  # nobody renews its lease
            process.leases.close()
            bench.clock.tick(LEASE_SECONDS + 1)
            bench.engine.job_queue.run_due(["summary"])
        process.stop(timeout=0.0)
        assert eventually(lambda: bench.jobs(session_id="s")[0]["state"] != "running")
        ada.says("Who am I?")
        (job,) = bench.jobs(session_id="s")
        summary = good(bench.client.get("/api/sessions/s/summary"))
        if tries == 1:
            assert "X-Memory-Error" not in ada.headers
            assert (job["state"], job["attempts"], job["error"], summary["error"]) == ("pending", 1, None, None)
            assert summary["state"] == "pending"
        bench.clock.tick(BACKOFF_FIRST)
    assert ada.headers["X-Memory-Error"] == "summary_failed" and "ended before" in job["error"]
    assert "recap_turns_without_memory_total 1.0" in bench.client.get("/metrics").text


def test_an_answer_that_cannot_be_stored_is_an_answer(app, client, model_server):
    answering = threading.Event()
    model_server.main.queue(Delay(answering))
    with meanwhile(lambda: post(client, LIST)) as answers:
        model_server.wait_for_requests(1)
        with locked(app):
            answering.set()
            assert eventually(lambda: bool(answers))
    (answer,) = answers
    assert answer.json["choices"][0]["message"]["content"] == "An answer."
    assert answer.headers["X-Memory-Error"] == "database_unavailable"


def test_a_session_whose_answer_does_not_end_keeps_nobody_from_an_answer(app, client, model_server, monkeypatch):
    monkeypatch.setattr("memory.leases.WAIT_SECONDS", 0.3)
    held = threading.Event()
    model_server.main.queue(Delay(held))
    with meanwhile(lambda: post(app.test_client(), talk("Hello"))):
        model_server.wait_for_requests(1)
        passed_on(model_server, post(client, LIST), "session_busy")
        held.set()


def test_what_is_wrong_with_a_request_is_no_failure_of_memory(client, model_server):
    complete(client, talk("Hello"), user="ada", headers={"Idempotency-Key": "k"})
    complete(client, talk("Hello"), user="bob")
    assert failed(post(client, LIST), 400)["code"] == "session_ambiguous"  # of two persons, and none is named
    failed(post(client, LIST, user="ada", headers={"Idempotency-Key": "k"}), 409)  # the key of another request
    assert len(sent(model_server)) == 2


def test_what_was_written_until_the_client_went_is_kept(client, model_server):
    reply = Dictation()
    model_server.main.queue(reply)
    reply.say("One ")
    reply.say("two ")
    response = post(client, talk("Count."), stream=True)
    chunks = iter(response.response)
    received = ""
    while "two" not in received:
        chunk = next(chunks)
        received += chunk.decode() if isinstance(chunk, bytes) else chunk
    response.close()
    reply.end()
    assert history(client, "s") == [("user", "Count."), ("assistant", "One two ")]
    (turn,) = client.get("/api/sessions/s/turns").json["items"]
    assert (turn["state"], turn["finish_reason"]) == ("interrupted", "interrupted")
    complete(client, [*talk("Count.", "One"), user("Go on.")])  # what the client had received of it
    assert history(client, "s")[1:3] == [("assistant", "One"), ("user", "Go on.")]
    assert sent(model_server)[-1]["messages"] == [*talk("Count.", "One"), user("Go on.")]


@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_that_is_stopped_ends_as_openais_do(app, client, model_server, streamed):
    begin = threading.Event()
    reply = Dictation() if streamed else Delay(begin, "One two.")
    model_server.main.queue(reply)
    with meanwhile(lambda: (stream if streamed else post)(client, talk("Count."))) as answers:
        if isinstance(reply, Dictation):
            reply.say("One ")
            assert eventually(lambda: reply.asked.is_set())
        model_server.wait_for_requests(1)
        assert eventually(lambda: app.test_client().post("/api/sessions/s/stop").json["stopping"])
        begin.set()
    (answer,) = answers
    if isinstance(reply, Dictation):
        reply.break_off()
        assert answer[-1] == "[DONE]" and answer[-2]["choices"][0]["finish_reason"] == "stop"
    else:
        (choice,) = answer.json["choices"]
        assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", None)
    assert [one["content"] for one in stored(client, "s")][:1] == ["Count."]
