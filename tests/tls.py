"""A server behind TLS: what comes encrypted is passed on to it as it is, and back."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


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
