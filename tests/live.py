"""A Recap that a browser can visit: in this process, background workers started, on a port of loopback that it keeps.

    live = Live(lambda: make_app())        # in browser tests: the fixtures `live` and `serve`
    live.client.post("/api/chat", ...)     # the API beside the browser, without HTTP
    live.settle()                          # the mini model's work is done
    live.stop(); live.start()              # a restart on the same data: every connection is cut in between

Guarantee: once `stop` has returned, nothing of the application runs any more.  What gunicorn does when it is killed in
mid-stream is for `tests.processes`.
"""

import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from app import engine_of
from models import JobRow
from tests.processes import eventually

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

END_SECONDS = 30.0


class Live:
    """See the module.  `make` makes the application, anew at each start."""

    def __init__(self, make: Callable[[], Flask]) -> None:
        self._make = make
        self._server: Loopback | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    def start(self) -> None:
        """Make the application and serve it."""
        assert self._server is None, "it runs already"
        self.app = self._make()
        engine_of(self.app).start()
        self._server = Loopback(self.app, self.port)
        self.port = self._server.port

    def stop(self) -> None:
        """End it; no error when it has ended.  AssertionError when a reply is held: let the model's go first."""
        if self._server is not None:
            server, self._server = self._server, None
            server.stop()
            engine_of(self.app).stop()
            engine_of(self.app).database.engine.dispose()

    def settle(self, *kinds: str) -> None:
        """Wait until no job of these kinds is left (default: no summary is being made); AssertionError otherwise."""
        wanted = kinds or ("summary",)

        def left() -> list[Any]:
            with engine_of(self.app).database.read() as tx:
                rows = tx.execute(select(JobRow.kind, JobRow.state, JobRow.error).where(JobRow.kind.in_(wanted)))
                return [tuple(row) for row in rows]

        assert eventually(lambda: not left(), END_SECONDS), f"these jobs do not end: {left()}"


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # a body of unknown length comes in chunks: a stream that was cut shows as cut

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Requests are not logged; errors are."""


class Loopback(ThreadedWSGIServer):
    """Serves one WSGI application in threads, from its making to `stop`."""

    daemon_threads = True  # `stop` waits for them itself: a browser keeps connections open that it may never use

    def __init__(self, application: "WSGIApplication", port: int = 0) -> None:
        self._changed = threading.Condition()
        self._connections: set[socket.socket] = set()
        super().__init__("127.0.0.1", port, application, handler=_Handler)
        self._accepting = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._accepting.start()

    def stop(self) -> None:
        """Refuse new connections, cut those there are, and wait until the last request is over."""
        self.shutdown()
        self._accepting.join()
        self.server_close()
        with self._changed:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the browser was first
            over = self._changed.wait_for(lambda: not self._connections, END_SECONDS)
            assert over, f"{len(self._connections)} requests are still being answered"

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()
