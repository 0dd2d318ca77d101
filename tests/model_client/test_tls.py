"""Model servers over TLS: who can't be trusted is told nothing."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from memory.llm import Interrupted, Piece, complete
from tests.model_server import ModelServer, Raw
from tests.openai_calls import ask, both, chunk, connected, data, failure, scripted_server


@contextmanager
def behind_tls(url: str, context: ssl.SSLContext) -> Iterator[str]:
    """The address at which the server of `url` is reached by TLS meanwhile."""
    to = urlsplit(url)
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as outside:
            inside = socket.create_connection((to.hostname or "", to.port or 80))
            threading.Thread(target=pump, args=(inside, outside), daemon=True).start()
            pump(outside, inside)

    def pump(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while piece := one.recv(65536):
                other.sendall(piece)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield url.replace("http://", "https://").replace(str(to.port), str(listener.getsockname()[1]))
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


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
    yield


@both
@pytest.mark.usefixtures("trusted")
def test_a_trusted_server_is_asked_and_its_connection_kept(server: ModelServer, secure: str, stream: bool) -> None:
    server.main.queue("One.", "Two.", "Three.")
    with connected(server, openai_base_url=secure) as model:
        assert [complete(model, ask(stream))[0] for _ in range(3)] == ["One.", "Two.", "Three."]
    assert server.accepted <= 1 + stream  # the rest of a stream is read in the background


def test_a_server_that_nobody_vouches_for_is_told_nothing(server: ModelServer, secure: str) -> None:
    with connected(server, openai_base_url=secure) as model:
        error = failure(model, ask())
    assert error.code == "model_unreachable" and "certificate" in error.message.lower()
    assert server.requests == []


@pytest.mark.usefixtures("trusted")
def test_an_answer_that_does_not_go_on_can_be_ended(server: ModelServer, secure: str) -> None:
    over = threading.Event()

    def chunks() -> Iterator[bytes]:
        yield data(chunk({"content": "Hi"}))
        over.wait(10)

    server.main.queue(Raw(chunks()), "And on.")
    request = ask(stream=True)
    with connected(server, openai_base_url=secure) as model:
        parts = model.answer(request)
        assert next(parts) == Piece("Hi")
        stopping = threading.Timer(0.05, request.call.stop)
        stopping.start()
        started = time.monotonic()
        with pytest.raises(Interrupted):
            next(parts)
        assert time.monotonic() - started < 5.0
        over.set()
        stopping.join()
        assert complete(model, ask())[0] == "And on."
