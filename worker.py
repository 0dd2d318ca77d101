"""gunicorn's threaded worker, with a bound on how long a slow client may keep a thread.

A thread serves one request from its first byte to the end of the answer.  gunicorn sets no bound on either for threaded
workers, so a few dozen connections that trickle bytes would hold every thread.

Guarantee: the head of a request must arrive within REQUEST_TIMEOUT of its first byte, its body within as long plus a
second for every BODY_RATE bytes, and the client must take each piece of the answer within REQUEST_TIMEOUT.  Otherwise
the connection is closed: nothing of an incomplete request is stored, and a turn that lost its client is finished.
"""

from __future__ import annotations

import errno
import socket
import time
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import ThreadWorker

from config import Settings

BODY_RATE = 16 * 1024  # bytes a second: a bad connection still reaches it


class TimedSocket(socket.socket):
    """A client's connection that counts as closed when data arrives after its deadline."""

    seconds = 0.0  # for a piece of the answer to be taken
    rate: int | None = None  # bytes that move the deadline by a second
    deadline = 0.0

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


class Worker(ThreadWorker):
    """The worker class that gunicorn.conf.py names."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = Settings.from_env().request_timeout

    def handle(self, conn: Any) -> Any:
        """Serve a connection that has data, new or kept alive."""
        given = conn.sock
        if type(given) is socket.socket:  # TLS sockets stay as they are: a proxy speaks TLS, and bounds its clients
            conn.sock = TimedSocket(given.family, given.type, given.proto, fileno=given.detach())
        self._expect(conn)
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Serve a request whose head has arrived.  A body that gunicorn's parser refuses fails as a stream does."""
        read = req.body.read

        def readable(*args: Any) -> bytes:
            try:
                return bytes(read(*args))
            except ParseException as error:
                raise OSError(type(error).__name__) from None

        self._expect(conn, BODY_RATE)
        req.body.read = readable
        return super().handle_request(req, conn)

    def _expect(self, conn: Any, rate: int | None = None) -> None:
        if isinstance(conn.sock, TimedSocket):
            conn.sock.seconds, conn.sock.rate = self._seconds, rate
            conn.sock.deadline = time.monotonic() + self._seconds


class EventLogger(Logger):
    """gunicorn's log of its own events."""

    def access(self, *_: Any) -> None:
        """Nothing: api.door logs the requests."""
