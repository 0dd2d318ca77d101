"""Ending a model's answer from outside, also while the thread that reads it waits for the next byte.

The idea: a blocked read ends when its socket is shut down, and only then; so an `Interrupt` has to know which socket
its call is on.  HTTP clients pool their connections and don't tell.  But they tell of every connection they open
(`traced`, for httpx's "trace"), and from then on each connection says itself for whom it works, whenever a thread
within `Interrupt.calling` writes to it.

Guarantee: only the connection of the interrupted call is cut, never one that went back to the pool.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

_here = threading.local()


class Interrupted(Exception):
    """An answer was ended by its `Interrupt` before its end."""


class Interrupt:
    """Ends one answer.  `ask` may be called from any thread, any number of times, before, during and after it."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        """End the answer now: the connection it comes on is cut, and whoever reads it gets an error at once."""
        with self._lock:
            self._asked.set()
            self._cut()

    def wait(self, seconds: float) -> bool:
        """Sleep, at most until the answer is to end: whether it is."""
        return self._asked.wait(seconds)

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """Within the block this thread sends the request; its connection is the answer's until `called`, or until
        the block raises."""
        _here.interrupt = self
        try:
            yield
        except BaseException:
            self.called()
            raise
        finally:
            _here.interrupt = None

    def called(self) -> None:
        """The answer is over: its connection may go back to the pool."""
        with self._lock:
            self._socket = None

    def _works_on(self, connection: socket.socket) -> None:
        with self._lock:
            self._socket = connection
            if self._asked.is_set():
                self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # the other side was first
                # Not the SSL socket's own shutdown, which takes the session away under the reading thread.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def let_go() -> None:
    """The connection this thread's call is on is about to go back to the pool, before the call knows."""
    interrupt: Interrupt | None = getattr(_here, "interrupt", None)
    if interrupt is not None:
        interrupt.called()


def traced(event: str, about: Mapping[str, Any]) -> None:
    """For an HTTP client's `trace`: lets a new connection say, whenever it is written to, for whom it works."""
    if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
        return
    connection = about["return_value"]
    write = connection.write

    def saying(*args: Any, **more: Any) -> None:
        interrupt: Interrupt | None = getattr(_here, "interrupt", None)
        if interrupt is not None:
            interrupt._works_on(connection.get_extra_info("socket"))
        write(*args, **more)

    connection.write = saying
