"""The lock of the data directory: any number of servers share it, a restore has it alone.

Guarantee: while a server of this machine lives, nobody replaces its database, and none starts during a restore.  The
kernel holds the lock (flock), so it ends with the process.  Where the directory cannot be written or has no locks,
servers run without.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory.errors import Conflict


class DataLock:
    """The lock of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / "lock"
        self._descriptor: int | None = None

    def share(self) -> None:
        """Use the directory until `release`.  Raises Conflict while a restore is under way."""
        if self._descriptor is not None:
            return
        try:
            self._descriptor = self._lock(fcntl.LOCK_SH)
        except BlockingIOError:
            raise Conflict(
                "restore_under_way",
                f"The database in {self._file.parent} is being restored. Nothing was started; start again when `flask "
                "restore` has ended.",
            ) from None
        except OSError:  # the directory cannot be written, which is reported where it matters
            return

    def release(self) -> None:
        """Stop using the directory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have the directory without any server.  Raises Conflict when one runs, OSError without locks."""
        try:
            self._descriptor = self._lock(fcntl.LOCK_EX)
        except BlockingIOError:
            raise Conflict(
                "server_running",
                f"A server, or `flask jobs work`, runs on {self._file.parent}. Nothing was changed; stop it first.",
            ) from None
        try:
            yield
        finally:
            self.release()

    def _lock(self, how: int) -> int:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor
