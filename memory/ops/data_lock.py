"""Who may use the data directory: any number of servers, or one restore alone.

Guarantee: while a server of this machine lives, nobody else replaces its database, and none starts while that is being
done.  The lock is the kernel's (flock), so it ends with the process, however that ends.  Where the directory can't be
written or knows no locks, servers go without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from memory.errors import Conflict

FILE = "lock"


class DataLock:
    """The lock of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        self._descriptor: int | None = None

    def share(self) -> None:
        """Use the directory until `release`.  Raises Conflict while a restore is under way."""
        if self._descriptor is not None:
            return
        try:
            self._descriptor = self._take(fcntl.LOCK_SH)
        except BlockingIOError:
            raise Conflict(
                "restore_under_way",
                f"The database in {self._path.parent} is being restored. Nothing was started; start again when "
                "`flask restore` has ended.",
            ) from None
        except OSError:  # a directory that can't be written is told of where it is needed
            return

    def release(self) -> None:
        """Let others have it; no error when it was not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Have the directory without any server.  Raises Conflict when one runs, OSError where that can't be told."""
        try:
            descriptor = self._take(fcntl.LOCK_EX)
        except BlockingIOError:
            raise Conflict(
                "server_running",
                f"A server, or `flask jobs work`, runs on {self._path.parent}. Nothing was changed; stop it first.",
            ) from None
        try:
            yield
        finally:
            os.close(descriptor)

    def _take(self, how: int) -> int:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
