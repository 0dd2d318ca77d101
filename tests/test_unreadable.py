"""What gunicorn can't read as HTTP: a real server refuses it as it refuses anything else, and keeps nobody waiting."""

import json
import socket
from contextlib import ExitStack
from http.client import HTTPResponse
from typing import Any

import pytest

from tests.http import good
from tests.processes import Api, Server, migrated_server
from tests.test_logs import read

HEAD = " HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = f"{HEAD}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = "a" * 8200
SENT = [  # the method, what follows the path, the status and the error's code
    ("GET", f"?q={LONG}{HEAD}\r\n", 414, "uri_too_long"),
    ("GET", f"?q={LONG * 200}", 414, "uri_too_long"),
    ("GET", f"{HEAD}X-Long: {LONG}\r\n\r\n", 431, "headers_too_large"),
    ("GET", HEAD + "X-Many: a\r\n" * 100 + "\r\n", 431, "headers_too_large"),
    ("GET", f"?q=two words{HEAD}\r\n", 400, "invalid_http"),
    ("GET", "\r\n\r\n", 400, "invalid_http"),
    ("GE(T", f"{HEAD}\r\n", 400, "invalid_http"),
    ("GET", f"{HEAD}no colon\r\n\r\n", 400, "invalid_http"),
    ("GET", f"{HEAD}X-A: a\r\n folded\r\n\r\n", 400, "invalid_http"),
    ("GET", f"{HEAD}Host: localhost\r\n\r\n", 400, "invalid_http"),
    ("GET", " HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "invalid_http"),
    ("GET", f"{HEAD}X-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off\r\n\r\n", 400, "invalid_http"),
    ("GET", " HTTP/2.0\r\nHost: localhost\r\n\r\n", 505, "http_version_unknown"),
    ("GET", " HTTP/one\r\nHost: localhost\r\n\r\n", 400, "invalid_http"),
    ("POST", f"{HEAD}Content-Length: many\r\n\r\n", 400, "invalid_http"),
    ("POST", f"{HEAD}Transfer-Encoding: zip\r\n\r\n", 501, "transfer_coding_unknown"),
    ("POST", f"{HEAD}Expect: wonders\r\n\r\n", 417, "expectation_failed"),
    ("POST", f"{CHUNKED}many\r\n", 400, "invalid_http"),
    ("POST", f"{CHUNKED}2\r\n{{}}too long\r\n", 400, "invalid_http"),
    ("POST", f"{CHUNKED}2;=\r\n{{}}\r\n0\r\n\r\n", 400, "invalid_http"),
    ("POST", f"{CHUNKED}0\r\nX-Long: {LONG}\r\n\r\n", 431, "headers_too_large"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory, migrated):
    with migrated_server(tmp_path_factory.mktemp("unreadable"), migrated, WEB_WORKERS="1") as server:
        server.start()
        yield server


def answer_to(server: Server, sent: str) -> tuple[HTTPResponse, Any, bytes]:
    """The answer to `sent`, its body, and what comes after it until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30.0) as connection:
        connection.sendall(sent.encode("latin-1"))
        answer = HTTPResponse(connection)
        answer.begin()
        body = json.loads(answer.read())
        return answer, body, connection.recv(65536)


def lines(server: Server) -> list[dict[str, str]]:
    return [read(line) for line in server.log.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "rest", "status", "code"), SENT)
@pytest.mark.parametrize("path", ["/api/chat", "/v1/chat/completions"])
def test_it_is_refused_as_anything_else_is(server, path, method, rest, status, code):
    before = len(lines(server))
    answer, body, after = answer_to(server, f"{method} {path}{rest}")
    error = body["error"]
    assert (answer.status, error["code"], after) == (status, code, b"")
    assert answer.headers["Content-Type"] == "application/json" and answer.headers["Connection"] == "close"
    assert answer.headers["X-Request-ID"] and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Nothing was" in error["message"]
    assert error.keys() == {"message", "type", "code"} | ({"param"} if path.startswith("/v1/") else set())
    logged = lines(server)[before:]
    assert [(line["status"], line["code"]) for line in logged] == [(str(status), code)]


@pytest.mark.slow
def test_a_body_that_nobody_reads_gets_no_second_answer(server):
    before = len(lines(server))
    answer, body, after = answer_to(server, f"GET /health/live{CHUNKED}many\r\n")
    assert (answer.status, body, after) == (200, {"status": "ok"}, b"")
    assert lines(server)[before:] == []


@pytest.mark.slow
def test_nobody_chooses_which_part_of_an_address_counts(server):
    for path, status in (("/health/live", 200), ("/api/health/live", 404)):
        head = f"GET {path}{HEAD}Connection: close\r\nSCRIPT_NAME: /api\r\n\r\n"
        assert answer_to(server, head)[0].status == status


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent", ["GET /health/live HTTP/1.0\r\n\r\n", f"GET /health/live{HEAD}\r\n", ""], ids=["answered", "kept", "new"]
)
def test_clients_that_keep_a_connection_open_keep_nobody_out(server, sent):
    """gunicorn would wait seconds for each to send, or to close what it has answered."""
    with ExitStack() as silent:
        for _ in range(900):  # more than a worker takes
            connection = silent.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(sent.encode())
        with Api(server) as api:
            assert api.get("/health/live") == {"status": "ok"}
        if not sent:  # the last test that needs the server
            assert server.stop() == 0


def test_every_call_that_takes_something_documents_it(client):
    for path, calls in good(client.get("/openapi.json"))["paths"].items():
        for call in (calls[method] for method in calls if method != "parameters" and not path.startswith("/health/")):
            assert {"400", "414", "431"} <= call["responses"].keys(), path
