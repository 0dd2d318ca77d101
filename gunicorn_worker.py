"""gunicorn's threaded worker, with a bound on how long a slow client may keep a thread, and with Recap's errors.

A thread serves one request from its first byte to the end of the answer.  gunicorn bounds neither.

The application is imported where it is needed: gunicorn's first process, which loads this file, has none of it where
one worker does all.

Invariants:
- The head of a request arrives within REQUEST_TIMEOUT of its first byte, its body within as long plus a second for
  every BODY_RATE bytes, and the client takes each piece of the answer within REQUEST_TIMEOUT. Otherwise the
  connection is closed: nothing of an incomplete request is stored, and a turn that lost its client is finished
  (test_slow_clients).
- A worker that has no thread left closes the connection with its answer, so that the next request may reach another
  worker: clients keep connections for hours, and those of a worker that ended are all at the others
  (test_concurrency).
- What is left of a request is never read as another one (test_slow_clients).
- A client that still sends while it is refused can read why, and that the connection is closed (test_slow_clients).
"""

import errno
import math
import signal
import socket
import time
from contextlib import closing, suppress
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn import util
from gunicorn.errors import AppImportError
from gunicorn.http import errors, get_parser, wsgi
from gunicorn.workers.gthread import ThreadWorker

from config import Settings

BODY_RATE = 16 * 1024  # bytes a second: a bad connection still reaches it
DRAINED_BYTES = 64 * 1024  # of a body that was not read: gunicorn drops fewer, and keeps the connection
LEFT_MAX = 64 * 1024 * 1024  # bytes of a refused request that are read and dropped: more than all bodies but imports
LEFT_SECONDS = 1.0  # for which a client that was refused may send nothing before the connection is closed
STATUS = {errors.LimitRequestLine: 414, errors.ExpectationFailed: 417, errors.LimitRequestHeaders: 431}
STATUS |= {errors.UnsupportedTransferCoding: 501}


class Connection(socket.socket):
    """Socket that counts as broken when data arrives, or is taken, after its deadline."""

    seconds = 0.0  # for a piece of the answer to be taken
    rate: int | None = None  # bytes that move the deadline by a second
    deadline = 0.0
    head = b""  # the first bytes of the request
    unread = False  # whether it was answered without being read to its end

    def expect(self, seconds: float, rate: int | None = None) -> None:
        """Let data arrive for `seconds`, and longer as `rate` says; let each piece of the answer be taken as long."""
        self.seconds = seconds
        self.rate = rate
        self.deadline = time.monotonic() + seconds
        self.head, self.unread = b"", False

    def recv(self, *args: Any) -> bytes:
        left = self.deadline - time.monotonic()
        data: bytes = self._within(min(left, self.gettimeout() or left), super().recv, *args)
        self.head += data[: 32 - len(self.head)]
        if self.rate is not None:
            self.deadline += len(data) / self.rate
        return data

    def sendall(self, *args: Any) -> None:
        self._within(self.seconds, super().sendall, *args)

    def end(self) -> None:
        """Read and drop what is left of the request: closed before, the client could not read its answer.

        What gunicorn reads before it closes, it would wait for in the thread that accepts connections.
        """
        if self.unread:
            with suppress(OSError), self.dup() as twin:
                twin.expect(LEFT_SECONDS, BODY_RATE)
                util.close_graceful(twin, timeout=self.seconds, max_drain=LEFT_MAX)
        self.deadline = 0.0

    def _within(self, seconds: float, call: Any, *args: Any) -> Any:
        before = self.gettimeout()
        try:
            if seconds <= 0:
                raise TimeoutError
            self.settimeout(seconds)
            return call(*args)
        except TimeoutError:  # for gunicorn, a timeout would be an error of its own
            raise ConnectionResetError(errno.ECONNRESET, "the client is too slow") from None
        finally:
            self.settimeout(before)


class Worker(ThreadWorker):
    """Worker class that gunicorn.conf.py names."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = Settings.from_env().request_timeout

    def init_signals(self) -> None:
        """Handle signals, and let SIGTERM come that gunicorn.conf.py held back until now."""
        super().init_signals()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def load_wsgi(self) -> None:
        """Load the application.  One that refuses to start ends the first process too."""
        try:
            super().load_wsgi()
        except SystemExit as refused:
            raise AppImportError(str(refused)) from None

    def enqueue_req(self, conn: Any) -> Any:
        """Give a connection to a thread; a new one, of which browsers open some to spare, at its first byte."""
        if conn.initialized or conn.data_ready:
            return super().enqueue_req(conn)
        conn.set_timeout()
        self.pending_conns.append(conn)
        return self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def murder_pending(self) -> None:
        """Close connections that send nothing: after a second when there is no room for others, or no time."""
        if self.nr_conns >= self.worker_connections or not self.alive:
            for conn in (*self.pending_conns, *self.keepalived_conns):
                conn.timeout = min(conn.timeout, time.monotonic() + 1)
        super().murder_pending()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End streams of events, which nothing else would: their readers come back to another process."""
        from app import engine_of

        if getattr(self, "wsgi", None) is not None:  # else the application is not loaded yet
            engine_of(self.wsgi).events.stop()
        super().handle_exit(sig, frame)

    def handle(self, conn: Any) -> Any:
        """Serve a connection that has data, new or kept alive."""
        if self.cfg.is_ssl:  # a proxy speaks TLS, and bounds its clients
            return super().handle(conn)
        if not isinstance(conn.sock, Connection):
            conn.sock = Connection(fileno=conn.sock.detach())
        conn.sock.expect(self._seconds)
        kept = super().handle(conn)
        if kept is False:
            conn.sock.end()
        return kept

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Serve a request whose head has arrived."""
        read, reader = req.body.read, req.body.reader

        def readable(*args: Any) -> bytes:
            try:
                return bytes(read(*args))
            except (OSError, errors.ParseException) as error:
                req.force_close()  # nobody knows where another request would begin
                raise _told(error) from None

        closes = req.should_close
        req.should_close = lambda: closes() or _left(reader) >= DRAINED_BYTES  # asked when the answer's head is sent
        req.body.read = readable
        req.body.close_connection = req.force_close
        if not self.cfg.is_ssl:
            conn.sock.expect(self._seconds, BODY_RATE)
        try:
            return super().handle_request(req, conn)
        finally:
            conn.sock.unread = _left(reader) > 0

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Have the application answer a request that gunicorn can't read."""
        from api.errors import REFUSED
        from memory.errors import InvalidRequest

        if isinstance(exc, (InvalidRequest, OSError)):
            return  # in what is left of a request that has its answer, or it is not TLS
        path = b"/v1/" if b" /v1/" in getattr(client, "head", b"") else b"/"
        blank = next(get_parser(self.cfg, [b"GET %s* HTTP/1.1\r\nConnection: close\r\n\r\n" % path], addr))
        answer, environ = wsgi.create(blank, client, addr, client.getsockname(), self.cfg)
        environ[REFUSED] = _told(exc)
        client.unread = True
        with closing(self.wsgi(environ, answer.start_response)) as pieces:
            for piece in pieces:
                answer.write(piece)


def _left(reader: Any) -> float:
    """Return how many bytes of a body were not read yet; nobody knows it of a body in chunks."""
    return math.inf if getattr(reader, "parser", None) else float(getattr(reader, "length", 0) or 0)


def _told(error: Exception) -> Exception:
    """Return the application's text for an error of gunicorn's, or its text for any error."""
    from api.errors import unreadable

    status = 505 if isinstance(getattr(error, "version", None), tuple) else STATUS.get(type(error), 400)
    return unreadable(status) if isinstance(error, errors.ParseException) else error
