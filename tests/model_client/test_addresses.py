"""Where requests to model servers go: addresses, redirects and proxies, over real HTTP."""

from base64 import b64encode

import pytest

from config import Settings, SettingsError
from memory.llm import complete
from memory.llm.openai import ProviderClient
from tests.llm import KEY, ask, connected, failure
from tests.model_server import ModelServer, Status

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
OUTSIDE = "http://model.invalid/v1"  # no name server knows it


@pytest.fixture
def server():
    with ModelServer() as server:
        yield server


@pytest.fixture
def proxies(monkeypatch):
    """Sets these in the environment, and no others."""

    def use(**proxies: str) -> None:
        for name in PROXIES:
            monkeypatch.delenv(name.lower(), raising=False)
            monkeypatch.delenv(name, raising=False)
        for name, value in proxies.items():
            monkeypatch.setenv(name, value)

    return use


def test_a_redirect_repeats_the_request_with_the_key_only_where_it_was_sent(server, make):
    here = "/elsewhere/chat/completions"
    with ModelServer() as other:
        there = f"{other.url}/chat/completions"
        server.main.queue(Status(307, {}, {"Location": here}), Status(308, {}, {"Location": there}))
        assert complete(make(), ask(content="Hello?"))[0] == "Reply to: Hello?"
        first, second = server.requests
        (third,) = other.requests
    assert [first.path, second.path, third.path] == ["/v1/chat/completions", here, "/v1/chat/completions"]
    assert first.body == second.body == third.body
    assert first.headers["authorization"] == second.headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in third.headers


@pytest.mark.parametrize("where", ["/v1/chat/completions", "ftp://model.invalid/", "http://"])
def test_a_redirect_that_leads_nowhere_is_told(server, make, where):
    server.main.default = lambda body: Status(307, {}, {"Location": where})
    assert failure(make(), ask()).code == "model_unreachable"


def test_the_address_of_a_call_is_taken_as_the_address_of_the_server(server, make):
    complete(make(openai_base_url=f"{server.url}/chat/completions/"), ask())
    assert server.requests[0].path == "/v1/chat/completions"


def test_a_user_and_password_in_the_address_take_the_keys_place(server, make):
    complete(make(openai_base_url=server.url.replace("//", "//ada:pass%40word@")), ask())
    assert server.requests[0].headers["authorization"] == f"Basic {b64encode(b'ada:pass@word').decode()}"
    assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"


def test_traffic_to_this_machine_never_takes_a_proxy(server, make, proxies):
    proxies(HTTP_PROXY="http://127.0.0.1:9", ALL_PROXY="http://127.0.0.1:9")
    assert complete(make(), ask())
    assert complete(make(openai_base_url=server.url.replace("127.0.0.1", "localhost")), ask())


def test_a_proxy_is_asked_for_what_is_outside(server, make, proxies):
    proxies(HTTP_PROXY=f"http://ada:secret@127.0.0.1:{server.port}")
    assert complete(make(openai_base_url=OUTSIDE), ask())
    (came,) = server.requests
    assert came.path == "http://model.invalid/v1/chat/completions"
    assert came.headers["host"] == "model.invalid"
    assert came.headers["authorization"] == f"Bearer {KEY}"
    assert came.headers["proxy-authorization"] == f"Basic {b64encode(b'ada:secret').decode()}"


def test_a_proxy_that_can_not_be_used_stops_the_start_if_it_is_needed(server, proxies):
    proxies(ALL_PROXY="socks5://127.0.0.1:9")
    with pytest.raises(SettingsError, match="proxy"):
        ProviderClient(Settings(openai_base_url=OUTSIDE).servers.main, 5.0)
    with connected(server) as model:
        assert complete(model, ask())
