"""Ending a model's answer from outside, also while the thread that reads it waits for the next byte.

The idea: a blocked read ends when its socket is shut down, and only then; so an `Interrupt` is told which connection
its call is on (`works_on`), and when it no longer is (`called`).

Guarantee: only the connection of the interrupted call is cut, never one that went back to the pool.
"""

from __future__ import annotations

import contextlib
import socket
import threading


class Interrupted(Exception):
    """An answer was ended by its `Interrupt` before its end."""


class Interrupt:
    """Ends one answer.  `ask` may be called from any thread, any number of times, before, during and after it.

    `asked`: it was; looked at between any two pieces, and so no more than an attribute.
    """

    def __init__(self) -> None:
        self.asked = False
        self._told = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def ask(self) -> None:
        """End the answer now: the connection it comes on is cut, and whoever reads it gets an error at once."""
        with self._lock:
            self.asked = True
            self._told.set()
            self._cut()

    def wait(self, seconds: float) -> bool:
        """Sleep, at most until the answer is to end: whether it is."""
        return self._told.wait(seconds)

    def works_on(self, connection: socket.socket) -> None:
        """The answer will come on this connection; it is the answer's until `called`."""
        with self._lock:
            self._socket = connection
            if self.asked:
                self._cut()

    def called(self) -> None:
        """The answer is over: its connection may go back to the pool."""
        with self._lock:
            self._socket = None

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # the other side was first
                # Not the SSL socket's own shutdown, which takes the session away under the reading thread.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
