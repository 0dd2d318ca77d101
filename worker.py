"""gunicorn's threaded worker, with a bound on how long clients may keep a thread waiting.

A thread belongs to a request from its first byte to the end of its answer.  Without a bound a few dozen connections
that send a byte now and then, or take one, hold all threads there are, and nobody else is answered.  gunicorn has such
a bound for workers of one thread only.

Guarantee: a request's head has to arrive within REQUEST_TIMEOUT of its first byte, its body within as long and a second
more for every BODY_RATE bytes, and a piece of an answer has to be taken within REQUEST_TIMEOUT; else the connection is
closed.  Of a request that did not arrive nothing is stored; a turn whose listener is cut off is finished and stored.
And nothing of a request that can't be read gets into the log: gunicorn would quote it there.
"""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections.abc import Callable
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import ThreadWorker

from config import Settings

BODY_RATE = 16 * 1024  # bytes a second: a bad line, but one that gets through


class TimelySocket(socket.socket):
    """A client's connection.  What comes in by it has to come before a deadline, or it counts as gone."""

    seconds = 0.0
    rate: int | None = None
    deadline = 0.0

    def expect(self, seconds: float, rate: int | None = None) -> None:
        """From now on, what is received has `seconds` to come, and one more for every `rate` bytes of it."""
        self.seconds, self.rate, self.deadline = seconds, rate, time.monotonic() + seconds

    def recv(self, *args: Any) -> bytes:
        left = self.deadline - time.monotonic()
        if left <= 0:
            return b""
        before = self.gettimeout()
        self.settimeout(left if before is None else min(left, before))
        try:
            data = super().recv(*args)
        except TimeoutError:
            return b""
        finally:
            self.settimeout(before)
        if self.rate is not None:
            self.deadline += len(data) / self.rate
        return data

    def sendall(self, *args: Any) -> None:
        before = self.gettimeout()
        self.settimeout(self.seconds)
        try:
            super().sendall(*args)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "the client does not take its answer") from None
        finally:
            self.settimeout(before)


class TimelyWorker(ThreadWorker):
    """The worker that gunicorn.conf.py names."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = Settings.from_env().request_timeout

    def handle(self, conn: Any) -> Any:
        """A connection has something to say, be it new or kept."""
        given = conn.sock
        if type(given) is socket.socket:  # one that speaks TLS has its own ways; Recap leaves that to a proxy
            conn.sock = TimelySocket(given.family, given.type, given.proto, fileno=given.detach())
        _expect(conn, self._seconds)
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """The head is there."""
        _expect(conn, self._seconds, BODY_RATE)
        req.body.read = _readable(req.body.read)
        return super().handle_request(req, conn)


class EventLogger(Logger):
    """The log that gunicorn.conf.py names: of gunicorn's own events.

    What a request came to is said by `api.requests`.  gunicorn says it nowhere, as it is set up here, but would still
    gather for each request what it might say, every header included.
    """

    def access(self, *_: Any) -> None:
        """Nothing."""


def _readable(read: Callable[..., bytes]) -> Callable[..., bytes]:
    """A body's `read` that fails as streams do, whatever gunicorn's parser finds wrong with it."""

    def readable(*args: Any) -> bytes:
        try:
            return read(*args)
        except ParseException as error:
            raise OSError(type(error).__name__) from None

    return readable


def _quote_nothing(record: logging.LogRecord) -> bool:
    """A filter of gunicorn's log."""
    message = str(record.msg)
    if message.startswith("Invalid request from"):
        record.msg, record.args = "a request that can't be read was refused", ()
    elif message.startswith("Error handling request"):  # with the address, and the words that are looked for in it
        record.msg, record.args = "a request broke off", ()
    return True


logging.getLogger("gunicorn.error").addFilter(_quote_nothing)


def _expect(conn: Any, seconds: float, rate: int | None = None) -> None:
    if isinstance(conn.sock, TimelySocket):
        conn.sock.expect(seconds, rate)
