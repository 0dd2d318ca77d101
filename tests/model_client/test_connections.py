"""Connections to model servers over real HTTP: which are kept, and where redirects, proxies and addresses lead."""

from __future__ import annotations

import gc
import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from config import Settings, SettingsError
from memory.llm import complete
from memory.llm.openai_client import OpenAIModel
from memory.llm.transport import connect
from tests.model_replies import Exchange, Reply
from tests.model_server import ModelServer, Status
from tests.openai_calls import KEY, ask, both, chunk, connected, data, failure, scripted_server

Make = Callable[..., OpenAIModel]
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
OUTSIDE = "http://model.invalid/v1"  # no name server knows it


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with scripted_server() as server:
        yield server


@pytest.fixture
def other() -> Iterator[ModelServer]:
    with scripted_server() as server:
        yield server


@pytest.fixture
def make(server: ModelServer) -> Iterator[Make]:
    """Makes models at the server, with settings of their own."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(connected(server, **settings))


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets these in the environment, and no others."""

    def use(**proxies: str) -> None:
        for name in PROXIES:
            monkeypatch.delenv(name.lower(), raising=False)
            monkeypatch.delenv(name, raising=False)
        for name, value in proxies.items():
            monkeypatch.setenv(name, value)

    return use


# --- kept connections


class AndThenGone(Reply):
    """A whole answer, after which the server closes its connection without a word of it."""

    def send(self, exchange: Exchange) -> None:
        exchange.json(exchange.completion({"content": "Done."}))
        exchange.break_off()


def test_a_connection_that_the_server_closed_meanwhile_costs_no_call(server: ModelServer, make: Make) -> None:
    server.main.queue(AndThenGone(), "Hello again.")
    model = make()
    assert complete(model, ask())[0] == "Done."
    assert server.wait_for(lambda: server.connections == 0)
    assert complete(model, ask())[0] == "Hello again."
    assert len(server.requests) == 2


def test_an_answer_that_nobody_closes_does_no_harm_when_it_is_collected(server: ModelServer, make: Make) -> None:
    model = make()
    for _ in range(5):
        parts = model.answer(ask())
        next(parts)
        circle: list[Any] = [parts]  # as a traceback and its frames are one
        circle.append(circle)
        del parts, circle
        gc.collect()  # which ends the answer and its socket in any order
        assert complete(model, ask())[0]


def test_a_connection_is_not_kept_for_long(server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.llm.connections.KEPT_SECONDS", -1.0)
    model = make()
    for _ in range(3):
        complete(model, ask())
    assert server.accepted == 3
    assert server.wait_for(lambda: server.connections == 0)


@both
def test_a_body_that_ends_with_its_connection_is_whole(server: ModelServer, make: Make, stream: bool) -> None:
    class Old(Reply):
        def send(self, exchange: Exchange) -> None:
            exchange.connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + data(chunk({"content": "Hello."}, "stop")))
            exchange.break_off()

    server.main.queue(Old(), Old())
    model = make()
    assert [complete(model, ask(stream))[0] for _ in range(2)] == ["Hello.", "Hello."]


@both
def test_a_body_that_is_shorter_than_it_said_is_no_answer(server: ModelServer, make: Make, stream: bool) -> None:
    class Short(Reply):
        def send(self, exchange: Exchange) -> None:
            exchange.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b'{"choices": ')
            exchange.break_off()

    server.main.default = lambda body: Short()
    assert failure(make(), ask(stream)).code == "model_cut_off"


def test_an_answer_that_is_compressed_unasked_is_read(server: ModelServer, make: Make) -> None:
    class Zipped(Reply):
        def send(self, exchange: Exchange) -> None:
            content = json.dumps(exchange.completion({"content": "Hello."})).encode()
            exchange.respond(200, gzip.compress(content), {"Content-Encoding": "gzip"})

    server.main.queue(Zipped())
    assert complete(make(), ask())[0] == "Hello."
    assert server.requests[0].headers["accept-encoding"] == "identity"


# --- redirects


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_repeats_the_request_with_the_key_only_where_it_was_sent(
    server: ModelServer, other: ModelServer, make: Make, status: int
) -> None:
    here, there = "/elsewhere/chat/completions", f"{other.url}/chat/completions"
    server.main.queue(Status(status, {}, {"Location": here}), Status(status, {}, {"Location": there}))
    assert complete(make(), ask(content="Hello?"))[0] == "Reply to: Hello?"
    first, second = server.requests
    (third,) = other.requests
    assert [first.path, second.path, third.path] == ["/v1/chat/completions", here, "/v1/chat/completions"]
    assert first.body == second.body == third.body
    assert first.headers["authorization"] == second.headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in third.headers
    assert third.headers["host"] == f"127.0.0.1:{other.port}"


@pytest.mark.parametrize("where", ["/v1/chat/completions", "ftp://model.invalid/", "http://"])
def test_a_redirect_that_leads_nowhere_is_told(server: ModelServer, make: Make, where: str) -> None:
    server.main.default = lambda body: Status(307, {}, {"Location": where})
    error = failure(make(), ask())
    assert error.code == "model_unreachable"
    assert "redirects" in error.message


# --- addresses


def test_a_user_and_password_in_the_address_take_the_keys_place(server: ModelServer, make: Make) -> None:
    complete(make(openai_base_url=server.url.replace("//", "//ada:pass%40word@")), ask())
    assert server.requests[0].headers["authorization"] == f"Basic {b64encode(b'ada:pass@word').decode()}"
    assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"


def test_an_address_may_hold_any_letters(server: ModelServer, make: Make) -> None:
    complete(make(openai_base_url=f"{server.url}/für uns"), ask())
    assert server.requests[0].path == "/v1/f%C3%BCr%20uns/chat/completions"


# --- proxies


def test_a_proxy_is_asked_for_what_is_outside(server: ModelServer, make: Make, proxies: Callable[..., None]) -> None:
    proxies(HTTP_PROXY=f"http://ada:secret@127.0.0.1:{server.port}")
    assert complete(make(openai_base_url=OUTSIDE), ask())
    (came,) = server.requests
    assert came.path == "http://model.invalid/v1/chat/completions"
    assert came.headers["host"] == "model.invalid"
    assert came.headers["authorization"] == f"Bearer {KEY}"
    assert came.headers["proxy-authorization"] == f"Basic {b64encode(b'ada:secret').decode()}"


def test_to_a_server_that_speaks_tls_a_proxy_only_makes_the_way(
    server: ModelServer, make: Make, proxies: Callable[..., None]
) -> None:
    proxies(ALL_PROXY=f"127.0.0.1:{server.port}")
    assert failure(make(openai_base_url="https://model.invalid/v1"), ask()).code == "model_unreachable"
    came = server.requests[0]
    assert (came.method, came.path) == ("CONNECT", "model.invalid:443")
    assert KEY not in str(came)


@pytest.mark.parametrize("name", ["*", "127.0.0.2", "127.0.0.0/30", "else, 127.0.0.2:9", "else"])
def test_what_no_proxy_names_is_reached_directly(
    server: ModelServer, make: Make, proxies: Callable[..., None], name: str
) -> None:
    proxies(ALL_PROXY=f"http://127.0.0.1:{server.port}", NO_PROXY=name)
    model = make(openai_base_url="http://127.0.0.2:9/v1")  # where nobody listens
    if name == "else":
        assert complete(model, ask())
    else:
        assert failure(model, ask()).code == "model_unreachable"
        assert not server.requests


@pytest.mark.parametrize("name", ["invalid", ".invalid", "*.invalid", "MODEL.invalid"])
def test_no_proxy_names_domains(server: ModelServer, make: Make, proxies: Callable[..., None], name: str) -> None:
    proxies(ALL_PROXY=f"http://127.0.0.1:{server.port}", NO_PROXY=name)
    assert failure(make(openai_base_url=OUTSIDE), ask()).code == "model_unreachable"
    assert not server.requests


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "https://127.0.0.1:9", "http://"])
def test_a_proxy_that_can_not_be_used_stops_the_start_if_it_is_needed(
    server: ModelServer, proxies: Callable[..., None], proxy: str
) -> None:
    proxies(ALL_PROXY=proxy)
    with pytest.raises(SettingsError, match="proxy"):
        connect(Settings(openai_base_url=OUTSIDE))
    with connected(server) as model:
        assert complete(model, ask())
