"""A client's connection, with the deadlines that gunicorn does not set for threaded workers."""

from __future__ import annotations

import errno
import socket
import time
from contextlib import suppress
from typing import Any

from gunicorn import util

BODY_RATE = 16 * 1024  # bytes a second: a bad connection still reaches it
LEFT_MAX = 64 * 1024 * 1024  # bytes of a refused request that are read and dropped: more than all bodies but imports
LEFT_SECONDS = 1.0  # for which a client that was refused may send nothing before the connection is closed


class Connection(socket.socket):
    """A socket that counts as broken when data arrives, or is taken, after its deadline."""

    seconds = 0.0  # for a piece of the answer to be taken
    rate: int | None = None  # bytes that move the deadline by a second
    deadline = 0.0
    head = b""  # the first bytes of the request
    unread = False  # whether it was answered without being read to its end

    def expect(self, seconds: float, rate: int | None = None) -> None:
        """Let data arrive for `seconds`, and longer as `rate` says; let each piece of the answer be taken as long."""
        self.seconds, self.rate, self.deadline = seconds, rate, time.monotonic() + seconds
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
