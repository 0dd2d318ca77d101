"""Slow clients of a real server: they hold its threads for as long as REQUEST_TIMEOUT says, and no longer."""

import socket
import time

import pytest

from tests.processes import Api, Server, eventually, migrated_server

THREADS = 2
TIMEOUT = 2.0  # seconds
CHAT = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory, migrated):
    """A server of one worker with few threads."""
    settings = {"WEB_WORKERS": "1", "WEB_THREADS": str(THREADS), "REQUEST_TIMEOUT": str(TIMEOUT)}
    with migrated_server(tmp_path_factory.mktemp("slow"), migrated, **settings) as server:
        server.start()
        yield server


def connected(server: Server, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60.0)
    connection.sendall(sent)
    return connection


def rest_of(connection: socket.socket, trickle: bytes = b"") -> bytes:
    """What the server says until it closes the connection, while it is sent a byte now and then."""
    connection.settimeout(0.1)
    said = b""
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        try:
            if trickle:
                connection.sendall(trickle)
            piece = connection.recv(65536)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return said
        if not piece:
            return said
        said += piece
    raise AssertionError("the server keeps the connection")


def test_clients_that_trickle_a_head_do_not_keep_others_out(server):
    trickling = [connected(server, b"GET /health/live HTTP/1.1\r\nX-Slow: a") for _ in range(3 * THREADS)]
    with Api(server) as api:
        assert api.get("/health/live") == {"status": "ok"}
    for connection in trickling:
        with connection:
            assert rest_of(connection, b"a") == b""


@pytest.mark.parametrize("kind", [b"Content-Length: 100000", b"Transfer-Encoding: chunked"])
def test_a_body_that_trickles_is_answered_so_and_nothing_is_stored(server, kind):
    begun = b'{"message": "Slow", "session_id": "slow", "x": "'
    begun = b"186a0\r\n" + begun if b"chunked" in kind else begun
    with connected(server, CHAT + kind + b"\r\n\r\n" + begun) as connection:
        answer = rest_of(connection, b"a")
    assert answer.startswith(b"HTTP/1.1 408 ") and b'"code":"request_timeout"' in answer
    with Api(server) as api:
        assert api.http.get("/api/sessions/slow").status_code == 404


def test_a_body_that_keeps_coming_may_take_longer(server):
    """Pieces of 48 KB a second for twice REQUEST_TIMEOUT, each well above the least rate."""
    piece = b" " * 12_288
    count = int(2 * TIMEOUT / 0.25)
    body = b'{"message": "Hello", "session_id": "steady"' + b"," + piece * count + b'"stream": false}'
    with connected(server, CHAT + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)) as connection:
        begun = time.monotonic()
        for place in range(0, len(body), len(piece)):
            connection.sendall(body[place : place + len(piece)])
            eventually(lambda due=begun + place / 49_152: time.monotonic() >= due)
        assert time.monotonic() - begun > 1.5 * TIMEOUT
        assert rest_of(connection).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_does_not_take_its_answer_is_let_go(server):
    """While it keeps its connection: an export that nobody reads takes no place from others for longer than that."""

    def in_flight(count: int) -> bool:
        return f"recap_http_requests_in_flight {count}.0\n" in api.http.get("/metrics").text

    with Api(server) as api:
        for number in range(4):
            messages = [{"role": "user", "content": f"{number} {place} " + "x" * 90_000} for place in range(40)]
            api.append(f"large-{number}", messages, user_id="ada")
        with connected(server, b"GET /api/users/ada/export HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            assert eventually(lambda: in_flight(2)), "its export, and the call that reads this"
            assert api.get("/health/live") == {"status": "ok"}
            assert eventually(lambda: in_flight(1))
        assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("head", [CHAT, CHAT.replace(b"/json", b"/xml")], ids=["read", "not read"])
def test_the_rest_of_a_body_that_comes_too_late_is_no_other_request(server, head):
    """The connection ends with the answer: a proxy would give what follows to the next client that it serves."""
    with connected(server, head + b"Content-Length: 1000\r\n\r\n{") as connection:
        answer = rest_of(connection)
        assert answer[:13] in (b"HTTP/1.1 408 ", b"HTTP/1.1 415 ") and answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(("path", "kind"), [(b"/api/chat", "length"), (b"/v1/chat/completions", "chunked")])
def test_who_still_sends_a_body_that_is_too_large_can_read_so(server, path, kind):
    piece, count = b" " * 1_000_000, 40
    framing = b"Content-Length: %d" % (count * len(piece)) if kind == "length" else b"Transfer-Encoding: chunked"
    with connected(server, CHAT.replace(b"/api/chat", path) + framing + b"\r\n\r\n") as connection:
        for _ in range(count):
            connection.sendall(piece if kind == "length" else b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"" if kind == "length" else b"0\r\n\r\n")
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 413 ") and b'"code":"body_too_large"' in answer


@pytest.mark.parametrize(("size", "kept"), [(1000, True), (300_000, False)])
def test_an_answer_says_whether_the_connection_is_kept_after_a_body_that_was_not_read(server, size, kept):
    with Api(server) as api:
        for _ in range(20):  # a client that trusts what it reads goes on at once
            answer = api.http.post("/api/chat", content=b" " * size, headers={"Content-Type": "application/xml"})
            assert answer.status_code == 415 and answer.headers["Connection"] == ("keep-alive" if kept else "close")
            assert api.get("/health/live") == {"status": "ok"}


def test_a_body_without_end_is_cut_off(server):
    piece = b"f4240\r\n%b\r\n" % (b" " * 1_000_000)
    endless = connected(server, CHAT + b"Transfer-Encoding: chunked\r\n\r\n")
    with endless, pytest.raises((BrokenPipeError, ConnectionResetError)):
        for _ in range(1000):
            endless.sendall(piece)
