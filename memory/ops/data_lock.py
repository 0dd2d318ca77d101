"""The lock of the data directory: any number of servers share it, a restore has it alone.

Guarantee: while a server of this machine lives, nobody replaces its database, and none starts during a restore.  The
kernel holds the lock (flock), so it ends with the process.  Where the directory cannot be written or has no locks,
servers run without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from memory.errors import Conflict


class DataLock:
    """The lock of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir
        self._descriptor: int | None = None

    def share(self) -> None:
        """Use the directory until `release`.  Raises Conflict while a restore is under way."""
        under_way = Conflict(
            "restore_under_way",
            f"The database in {self._folder} is being restored. Nothing was started; start again when `flask restore` "
            "has ended.",
        )
        if self._descriptor is None:
            with contextlib.suppress(OSError):  # the directory cannot be written, which is reported where it matters
                self._lock(fcntl.LOCK_SH, under_way)

    def release(self) -> None:
        """Stop using the directory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Have the directory without any server.  Raises Conflict when one runs, OSError without locks."""
        runs = f"A server, or `flask jobs work`, runs on {self._folder}. Nothing was changed; stop it first."
        self._lock(fcntl.LOCK_EX, Conflict("server_running", runs))
        try:
            yield
        finally:
            self.release()

    def _lock(self, how: int, refusal: Conflict) -> None:
        self._descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, how | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise refusal if isinstance(error, BlockingIOError) else error from None
