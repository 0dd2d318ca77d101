"""Responses as servers send them, read off a connection: whole, in any pieces, broken off, and not HTTP at all."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm.response import LONGEST, Response

SIZED = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\ncontent-LENGTH: 11\r\n\r\nHello there"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nHello\r\n0006;a=b\r\n there\r\n0\r\nA: b\r\n\r\n"
UNSIZED = b"HTTP/1.1 200\r\n\r\nHello there"


class Arriving(socket.socket):
    """A connection on which these parts arrive, one at a time, and then its end."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        super().__init__()
        self._parts = [part for part in parts if part]

    def recv(self, size: int, flags: int = 0) -> bytes:
        return self._parts.pop(0) if self._parts else b""


def read(*parts: bytes) -> tuple[Response, bytes]:
    """The response that arrives in `parts`, and its body."""
    with Arriving(parts) as connection:
        response = Response(connection, time.monotonic() + 5.0)
        pieces = list(response.pieces())
    assert all(pieces)
    return response, b"".join(pieces)


@given(st.sampled_from([SIZED, CHUNKED, UNSIZED]), st.lists(st.integers(0, 120)))
def test_it_does_not_matter_how_the_bytes_arrive(sent: bytes, cuts: list[int]) -> None:
    cuts = [0, *sorted(cuts), len(sent)]
    response, body = read(*(sent[a:b] for a, b in pairwise(cuts)))
    assert (response.status, body) == (200, b"Hello there")
    assert response.whole is response.marks_its_end is (sent is not UNSIZED)


@pytest.mark.parametrize("sent", [SIZED, CHUNKED])
def test_what_comes_after_the_end_is_of_no_response(sent: bytes) -> None:
    response, body = read(sent + b"HTTP/1.1 200 OK\r\n\r\n")
    assert body == b"Hello there"
    assert not response.whole


@pytest.mark.parametrize(
    ("head", "body", "again"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED, b"Hello there", True),
        (SIZED.replace(b"\r\n", b"\n"), b"Hello there", True),
        (SIZED.replace(b"x\r\n", b"x\r\nConnection: Close\r\n"), b"Hello there", False),
        (SIZED.replace(b"1.1", b"1.0"), b"Hello there", False),
        (SIZED.replace(b"1.1", b"1.0").replace(b"x\r\n", b"x\r\nConnection: Keep-Alive\r\n"), b"Hello there", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.1 503 \r\nRetry-After:5 \r\nContent-Length: 0\r\n\r\n", b"", True),
    ],
)
def test_servers_take_liberties(head: bytes, body: bytes, again: bool) -> None:
    response, came = read(head)
    assert came == body
    assert (response.whole and response.marks_its_end) is again


def test_of_fields_with_one_name_the_first_counts() -> None:
    response, _ = read(b"HTTP/1.1 429 Too Many\r\nRetry-After: 5\r\nRETRY-AFTER: 9\r\n\r\n")
    assert (response.status, response.headers) == (429, {"retry-after": "5"})


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02F",  # TLS does not like what it is told
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Ty",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2 * LONGEST + b"\r\n\r\n",
        SIZED[:-1],
        SIZED.replace(b"11", b"eleven"),
        SIZED.replace(b"11", b"9" * 5000),
        SIZED.replace(b"x\r\n", b"x\r\nContent-Length: 5\r\n"),
        SIZED.replace(b"x\r\n", b"x\r\nodd\r\n"),
        CHUNKED.removesuffix(b"A: b\r\n\r\n"),
        CHUNKED[:-20],
        CHUNKED.replace(b"0006", b"six"),
        CHUNKED.replace(b"0006", b"-6"),
        CHUNKED.replace(b"5\r\n", b"4\r\n"),
        CHUNKED.replace(b"5\r\nHello\r\n", b"5" * 2 * LONGEST),
    ],
)
def test_what_breaks_raises_and_is_no_response(sent: bytes) -> None:
    with pytest.raises(OSError):
        read(*(sent[at : at + 1000] for at in range(0, len(sent), 1000)))


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 2", SIZED[:-3], CHUNKED[:-20], UNSIZED])
def test_silence_ends_at_the_deadline(sent: bytes) -> None:
    there, here = socket.socketpair()
    with there, here:
        there.sendall(sent)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            list(Response(here, began + 0.02).pieces())
        assert 0.02 <= time.monotonic() - began < 2.0


def test_a_head_that_drips_ends_there_too() -> None:
    class Dripping(Arriving):
        def recv(self, size: int, flags: int = 0) -> bytes:
            time.sleep(0.005)
            return super().recv(size)

    with Dripping([bytes([byte]) for byte in SIZED]) as connection, pytest.raises(TimeoutError):
        Response(connection, time.monotonic() + 0.03)
