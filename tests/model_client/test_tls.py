"""Model servers over TLS: who can't be trusted is told nothing."""

import ssl
import threading
import time
from collections.abc import Iterator

import pytest
import trustme

from memory.llm import Cancelled, TextDelta, complete
from tests.llm import ask, chunk, data, failure
from tests.model_server import ModelServer, Raw


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def server(authority):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with ModelServer(tls=context) as server:
        yield server


@pytest.fixture
def trusted(authority, tmp_path, monkeypatch):
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))


def test_a_server_that_nobody_vouches_for_is_told_nothing(server, make):
    error = failure(make(), ask())
    assert error.code == "model_unreachable" and "certificate" in error.message.lower()
    assert server.requests == []


@pytest.mark.usefixtures("trusted")
def test_an_answer_that_does_not_go_on_can_be_ended(server, make):
    over = threading.Event()

    def chunks() -> Iterator[bytes]:
        yield data(chunk({"content": "Hi"}))
        over.wait(10)

    server.main.queue(Raw(chunks()), "And on.")
    request, model = ask(stream=True), make()
    parts = model.answer(request)
    assert next(parts) == TextDelta("Hi")
    stopping = threading.Timer(0.05, request.cancel.cancel)
    stopping.start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        next(parts)
    assert time.monotonic() - started < 5.0
    over.set()
    stopping.join()
    assert complete(model, ask())[0] == "And on."
