"""Who holds a lease, and whether they are dead.

A process that takes leases holds a lock (flock) on a file of its own, in `processes` of the data directory, and its
leases' tokens name that file.  The kernel lets go of the lock when the process ends, however it ends: whoever finds
the file unlocked knows at once that the leases which name it are nobody's.

Guarantee: a living holder is never taken for dead.  A token names the running kernel and the file system too, and
what is under another (another machine on the same database, the same directory mounted a second time) says nothing
here; nor does a file that is missing.  Where locks don't work or the directory can't be written, tokens name no file.
Such leases run out by their time, as all do whose holder lives and does not renew them.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import secrets
import threading
import time
from pathlib import Path

from memory.ops import logs

log = logging.getLogger(__name__)

SWEPT_AFTER = 3600.0  # seconds after which a dead process's file is of no use: its leases have long run out
_TOKEN = re.compile(r"(?P<where>[0-9a-f]{8})-(?P<name>[0-9a-f]{16})\.[0-9a-f]{32}")


class Holder:
    """This process as a holder of leases, and its view of the others.  Thread-safe, also after a fork."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._pid = 0
        self._name: str | None = None
        self._descriptor: int | None = None

    def token(self) -> str:
        """A new lease's token."""
        with self._lock:
            if self._pid != os.getpid():  # the first, or the first after a fork: what was inherited is the parent's
                self._close()
                self._pid = os.getpid()
                self._name = self._begin()
            return f"{self._name}.{secrets.token_hex(16)}" if self._name else secrets.token_hex(16)

    def is_dead(self, token: str) -> bool:
        """Whether the process that made `token` has ended, as far as that can be told."""
        if self._pid == os.getpid() and self._name and token.startswith(f"{self._name}."):
            return False  # it is our own, and most are: no file has to be opened
        named = _TOKEN.fullmatch(token)
        if named is None:
            return False
        try:
            descriptor = os.open(self._folder / named["name"], os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return _where(descriptor) == named["where"] and _unlocked(descriptor)
        finally:
            os.close(descriptor)

    def end(self) -> None:
        """This process holds no lease any more, and takes none: its file goes."""
        with self._lock:
            if self._pid == os.getpid() and self._name:
                (self._folder / self._name.partition("-")[2]).unlink(missing_ok=True)
            self._close()
            self._pid, self._name = 0, None

    def _begin(self) -> str | None:
        """Lock a file of our own: what tokens are to call it, None when there is no relying on it."""
        name = secrets.token_hex(8)
        path = self._folder / name
        try:
            self._folder.mkdir(exist_ok=True)
            self._sweep()
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            where = _where(self._descriptor)
            if where is not None and not self._seems_free(path):
                return f"{where}-{name}"
        except OSError as error:
            log.info("no locks: what a killed process held is not free at once", extra=logs.fields(error=str(error)))
        if self._descriptor is not None:
            path.unlink(missing_ok=True)
        self._close()
        return None

    def _seems_free(self, path: Path) -> bool:
        """Whether the lock just taken is not noticed: some file systems only pretend."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _unlocked(descriptor)
        finally:
            os.close(descriptor)

    def _sweep(self) -> None:
        for path in self._folder.iterdir():
            try:
                if time.time() - path.stat().st_mtime > SWEPT_AFTER and self._seems_free(path):
                    path.unlink()
            except OSError as error:  # another sweeps too, or it is another user's
                log.debug("%s stays: %s", path, error)

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # of an inherited one, the parent goes on holding the lock
            self._descriptor = None


def _unlocked(descriptor: int) -> bool:
    """Whether nobody holds the lock on a file: taken for a moment, together with whoever else looks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # BlockingIOError; any other reason tells nothing, and counts the same
        return False
    return True


def _where(descriptor: int) -> str | None:
    """A name for this run of the kernel and the file system of a file; None where the kernel has none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    except OSError:
        return None
    return hashlib.sha256(f"{boot.strip()} {os.fstat(descriptor).st_dev}".encode()).hexdigest()[:8]
