"""Turns and other long calls never hold all threads, nobody holds those of others, and no place is lost."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import engine_of
from config import ApiKey
from tests.application import locked, rows_of
from tests.http import append, ask, chat, failed, good, said
from tests.model_server import CutStream, Delay, ModelServer, Status, at, prompts
from tests.processes import Api, eventually, migrated_server, model_settings
from tests.test_auth import bearer, routes, with_key

ACME, GLOBEX = "key-of-acme-0123456789", "key-of-globex-0123456789"
KEYS = (ApiKey("acme", ACME), ApiKey("globex", GLOBEX))


@pytest.fixture
def app(make_app, model_server):
    """An application of two threads: one place, and one thread for the rest."""
    return make_app(**at(model_server, threads=2, model_timeout=60.0))


@contextmanager
def held(server: ModelServer, *clients: FlaskClient, **more: Any) -> Iterator[None]:
    """A turn of each client, in sessions of their own, whose model works all through the block."""
    release = threading.Event()
    with ThreadPoolExecutor(len(clients)) as pool:
        came = len(server.requests)
        server.main.queue(*[Delay(release) for _ in clients])
        turns = [pool.submit(chat, client, "Wait.", **more) for client in clients]
        try:
            server.wait_for_requests(came + len(clients))
            yield
        finally:
            release.set()
    assert all(turn.result()["reply"] for turn in turns)


def test_while_turns_have_all_places_long_calls_are_refused_and_others_served(app, client, model_server):
    append(client, "s", [said("My cat is called Miso.")], user_id="ada")
    slow = [
        route for route in routes(app) if is_slow(app, *route) and "oauth" not in route[1]
    ]  # it has a form of its own
    assert len(slow) > 20
    with held(model_server, app.test_client()):
        before = rows_of(engine_of(app))
        for method, address in slow:
            answer = client.open(address, method=method, json={"message": "And my dog Rex.", "messages": []})
            if address.startswith("/v1/"):
                told, kind = answer.json["error"], "overloaded_error" if "messages" in address else "server_error"
                assert (answer.status_code, told["type"], told["code"]) == (503, kind, "server_busy")
            elif address == "/mcp":
                assert (answer.status_code, answer.json["error"]["data"]) == (503, {"code": "server_busy"})
            else:
                failed(answer, 503, "server_busy")
            assert int(answer.headers["Retry-After"]) >= 1, (method, address)
        assert rows_of(engine_of(app)) == before
        for address in ("/health/live", "/health/ready", "/api/sessions", "/api/facts?user_id=ada", "/api/jobs"):
            good(client.get(address))
        assert good(client.get("/api/search?q=cat&user_id=ada"))["results"]
        assert good(client.patch("/api/sessions/s?user_id=ada", json={"title": "Miso"}))["title"] == "Miso"
        assert good(client.post("/api/sessions/s/stop?user_id=ada"))["stopping"] is False
    chat(client, "And my dog Rex.")


def is_slow(app: Flask, method: str, address: str) -> bool:
    endpoint, _ = app.url_map.bind("").match(address, method)
    return bool(getattr(app.view_functions[endpoint], "slow", False))


def test_the_document_says_that_calls_may_be_refused_so(client):
    for path, calls in client.get("/openapi.json").json["paths"].items():
        for method in calls.keys() & {"post", "put", "patch", "delete"}:
            texts = [calls[method]["responses"][status]["description"] for status in ("429", "503")]
            assert "too many at once" in texts[0] and "all threads" in texts[1].lower(), (method, path)


@pytest.mark.parametrize("thing", ["person", "key"])
def test_who_is_at_a_limit_is_refused_and_others_are_not(make_app, model_server, thing):
    app = make_app(**at(model_server, api_keys=KEYS, model_timeout=60.0, **{f"turns_per_{thing}": 2}))
    acme, globex = with_key(app, ACME), with_key(app, GLOBEX)
    with held(model_server, with_key(app, ACME), with_key(app, ACME), user_id="ada"):
        before = rows_of(engine_of(app))
        answer = ask(acme, "Me too.", user_id="ada" if thing == "person" else "bob")
        told = failed(answer, 429, "too_many_at_once")
        assert told["type"] == "rate_limit_error" and f"TURNS_PER_{thing.upper()}" in told["message"]
        assert int(answer.headers["Retry-After"]) >= 1
        assert rows_of(engine_of(app)) == before
        good(acme.get("/api/sessions?user_id=ada"))
        chat(globex, "I am another.", user_id="ada")
        if thing == "person":
            chat(acme, "I am another.", user_id="bob")
            chat(acme, "I am nobody.")
    chat(acme, "Me too.", user_id="ada")


def test_without_keys_this_machine_is_not_limited(make_app, model_server):
    app = make_app(**at(model_server, turns_per_person=1, turns_per_key=1))
    with held(model_server, *(app.test_client() for _ in range(6)), user_id="ada"):
        pass


def test_while_writes_wait_for_the_database_reads_are_served(make_app):
    app = make_app(threads=8)
    client = app.test_client()
    append(client, "s", [said("Hello")])

    def rename() -> TestResponse:
        return app.test_client().patch("/api/sessions/s", json={"title": "Tea"})

    with ThreadPoolExecutor(8) as pool:
        with locked(app):
            renamed = [pool.submit(rename) for _ in range(8)]
            failed(next(as_completed(renamed)).result(), 503, "server_busy")
            assert good(client.get("/api/sessions"))["items"][0]["title"] == "Hello"
        assert sorted(one.result().status_code for one in renamed) == [200] * 7 + [503]


# -- no place is lost


def without_model(client: FlaskClient, model: ModelServer) -> None:
    model.main.queue(Status(401), CutStream())
    failed(ask(client, "Hello"), 502, "model_key_refused")
    assert "cut_off" in ask(client, "Hello", stream=True).text


def left(client: FlaskClient, _: ModelServer) -> None:
    """A listener who goes at once, and one who goes in between."""
    ask(client, "Hello", stream=True).close()
    answer = ask(client, "Hello", stream=True)
    next(iter(answer.response))
    answer.close()


def exported(client: FlaskClient, _: ModelServer) -> None:
    """The head alone, and all of it."""
    append(client, "s", [said("Hello")], user_id="ada")
    assert client.head("/api/users/ada/export").status_code == 200
    assert client.get("/api/users/ada/export").text


def refused(client: FlaskClient, _: ModelServer) -> None:
    client.post("/api/chat", data="{", content_type="application/json")
    client.delete("/api/sessions/none")
    client.post("/api/chats", json={})


def test_a_place_is_given_back_however_the_answer_ends(client, model_server):
    """There is one: where an answer kept it, the next call that needs it would be refused."""
    for way in (refused, without_model, left, exported):
        way(client, model_server)
        chat(client, "Hello")


@pytest.mark.parametrize(
    "what", ["memory.turn.turn.finish_turn", "memory.turn.turn.begin_turn", "api.middleware.log_request"]
)
def test_a_place_is_given_back_when_what_nobody_expects_happens(app, client, monkeypatch, what):
    """Also when it happens where a stream is closed that nobody listens to any more."""

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    for streaming in (False, True):
        with monkeypatch.context() as patched:
            patched.setattr(what, broken)
            try:
                ask(client, "Hello", stream=streaming).close()
            except ZeroDivisionError:
                pass  # the server logs it
        chat(client, "Hello")
    assert "recap_http_requests_in_flight 1.0" in client.get("/metrics").text or what == "api.middleware.log_request"


# -- whole processes


@pytest.mark.slow
def test_a_worker_full_of_turns_serves_others_and_refuses_turns_at_once(tmp_path, migrated, model_server):
    """Eight threads: six turns, and 34 that are refused while those wait for the model."""
    release = threading.Event()
    model_server.main.default = lambda _: Delay(release, "Done.")
    keys = {"RECAP_API_KEYS": f"acme:{ACME},globex:{GLOBEX}", "WEB_WORKERS": "1", "WEB_THREADS": "8"}
    with (
        migrated_server(tmp_path, migrated, **{**model_settings(model_server.url), **keys}) as server,
        ExitStack() as s,
    ):
        server.start()
        api, other = s.enter_context(Api(server)), s.enter_context(Api(server))
        api.http.headers |= bearer(ACME)
        other.http.headers |= bearer(GLOBEX)
        refused = threading.Semaphore(0)

        def mains(count: int) -> None:
            assert model_server.wait_for(lambda: len(prompts(model_server)) >= count, 20.0)

        def turn(number: int) -> int:
            answer = api.http.post("/api/chat", json={"message": "Hello", "session_id": f"s{number}"})
            if answer.status_code == 503:
                assert answer.json()["error"]["code"] == "server_busy" and int(answer.headers["Retry-After"]) >= 1
                assert answer.headers["Connection"] == "close", "another worker may be free"
                refused.release()
            return answer.status_code

        with ThreadPoolExecutor(40) as pool:
            turns = [pool.submit(turn, number) for number in range(40)]
            try:
                assert all(refused.acquire(timeout=30.0) for _ in range(34))
                mains(6)
                assert other.get("/api/sessions")["items"] == []
                assert len(api.get("/api/sessions")["items"]) == 6
                assert other.get("/health/live") == {"status": "ok"}
            finally:
                release.set()
        assert sorted(turn.result() for turn in turns) == [200] * 6 + [503] * 34
        release.clear()
        for number in range(6):
            body = b'{"message": "Hello", "stream": true}'
            head = f"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ACME}\r\n".encode()
            more = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(head + more + body)
                mains(7 + number)
        release.set()
        assert eventually(lambda: api.http.post("/api/chat", json={"message": "Hello"}).status_code == 200)
