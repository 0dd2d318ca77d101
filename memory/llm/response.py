"""The response to one HTTP request, read off its connection.

The idea: what the socket gives goes to a parser as it comes (httptools, which is Node's llhttp), and what that finds of
the body goes on at once.  Python's own reader takes the head for an e-mail's and the body for a file of files, which
cost more than all else about a call.

Guarantee: what is not HTTP raises OSError, and so does a body that breaks off; when the deadline has come, the next
wait raises TimeoutError, wherever in the response that is.  A head of more than LONGEST is not read to its end.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from httptools import HttpParserError, HttpResponseParser

LONGEST = 64 * 1024  # bytes
PIECE = 64 * 1024  # bytes that are read at once, if they are there


class Response:
    """`status`, `headers` (names in small letters; of several the first), and the body's `pieces`, which come once.

    `marks_its_end`: the body ends before its connection does, which stays open.  `whole`: it was read to its end, and
    nothing came after it.  With both, the connection can be used again.
    """

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        """Read the head.  `deadline`, for the body as well, is of time.monotonic()."""
        self._connection = connection
        self._deadline = deadline
        self._heard = heard = _Heard()
        self._parser = HttpResponseParser(heard)
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)  # as some servers at home write
        came = 0
        while heard.status < 200:  # less: the answer is still to come
            came += self._hear()
            if came > LONGEST and heard.status < 200:
                raise ConnectionError("the head of the answer has no end")
        self.status, self.headers, self.marks_its_end = heard.status, heard.headers, heard.stays

    @property
    def whole(self) -> bool:
        return self._heard.over and not self._heard.more

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes, no piece of it empty."""
        heard = self._heard
        while True:
            came, heard.body = heard.body, []
            yield from came
            if heard.over or not self._hear():
                return

    def _hear(self) -> int:
        """Have the parser read what comes next, as soon as something does; how many bytes.

        At the connection's end that is 0, if the body ends with it; else it raises ConnectionError.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        data = self._connection.recv(PIECE)
        heard = self._heard
        if not data:
            if heard.ends_with_connection:
                return 0
            raise ConnectionError("the connection broke off")
        heard.parser = self._parser
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if not heard.over:
                raise ConnectionError(str(error)) from None
            heard.more = True
        finally:
            heard.parser = None  # the two would keep each other, and the socket, until the next garbage collection
        return len(data)


class _Heard:
    """What the parser has told: it calls the methods that it knows by their names."""

    def __init__(self) -> None:
        self.parser: HttpResponseParser | None = None
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body: list[bytes] = []
        self.stays = False
        self.over = False
        self.more = False  # came after that

    @property
    def ends_with_connection(self) -> bool:
        sized = "content-length" in self.headers or "transfer-encoding" in self.headers
        return self.status >= 200 and not sized

    def on_message_begin(self) -> None:
        self.more = self.over
        if not self.more:
            self.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status < 200:  # else it is of what follows the body
            self.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        if not self.more:
            assert self.parser is not None
            self.status, self.stays = self.parser.get_status_code(), self.parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        if not self.more:
            self.body.append(data)

    def on_message_complete(self) -> None:
        self.over = self.status >= 200
