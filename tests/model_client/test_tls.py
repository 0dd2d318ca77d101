"""Model servers over TLS: who can't be trusted is told nothing."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from memory.llm import complete
from memory.llm import connections as of_clients
from memory.llm.interrupt import Interrupted
from tests.model_replies import Delay
from tests.model_server import ModelServer
from tests.openai_calls import ask, both, connected, failure, scripted_server
from tests.tls import behind_tls


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with scripted_server() as server:
        yield server


@pytest.fixture
def secure(server: ModelServer, authority: trustme.CA) -> Iterator[str]:
    """The address of the server by TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with behind_tls(server.url, context) as url:
        yield url


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    of_clients._tls.cache_clear()
    yield
    of_clients._tls.cache_clear()


@both
@pytest.mark.usefixtures("trusted")
def test_a_trusted_server_is_asked_and_its_connection_kept(server: ModelServer, secure: str, stream: bool) -> None:
    server.main.queue("One.", "Two.", "Three.")
    with connected(server, openai_base_url=secure) as model:
        assert [complete(model, ask(stream))[0] for _ in range(3)] == ["One.", "Two.", "Three."]
    assert server.accepted == 1


def test_a_server_that_nobody_vouches_for_is_told_nothing(server: ModelServer, secure: str) -> None:
    of_clients._tls.cache_clear()
    with connected(server, openai_base_url=secure) as model:
        error = failure(model, ask())
    assert error.code == "model_unreachable" and "certificate" in error.message.lower()
    assert server.requests == []


@pytest.mark.usefixtures("trusted")
def test_an_answer_that_does_not_come_can_be_ended(server: ModelServer, secure: str) -> None:
    server.main.queue(Delay(30.0), "And on.")
    request = ask()
    with connected(server, openai_base_url=secure) as model:

        def end_it() -> None:
            assert server.wait_for(lambda: len(server.requests) == 1)
            request.interrupt.ask()

        ending = threading.Thread(target=end_it)
        ending.start()
        with pytest.raises(Interrupted):
            complete(model, request)
        ending.join()
        assert complete(model, ask())[0] == "And on."
