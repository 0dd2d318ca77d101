"""The directory of one owner's index: it appears by one rename, complete, and goes by one rename.

It holds Whoosh's files and `generation`, a random token that lives and dies with the directory.  Whoever writes to it
or moves it away holds Whoosh's lock and compares tokens once it has the lock; readers compare before and after.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from whoosh.filedb.filestore import FileStorage
from whoosh.util.filelock import try_for

NO_INDEX = "none"
"""The generation of an owner who has no index: it holds nothing."""

INDEX_NAME = "messages"
_TOKEN = re.compile(r"[0-9a-f]{32}")


class IndexBusy(Exception):
    """Another writer held the owner's index for as long as a writer waits.  Nothing was changed; try again later."""


class Directory:
    """Where the index of one owner is, or would be."""

    def __init__(self, root: Path, owner: str, wait: float, made_with: str) -> None:
        """`wait`: seconds a writer waits for another before IndexBusy.

        `made_with` names, in one line, how the index is written.  One that was written otherwise counts as none.
        """
        self.name = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self.path = root / self.name
        self.wait = wait
        self._root = root
        self._made_with = made_with

    def generation(self) -> str:
        """The token of the index that is there now, or NO_INDEX."""
        try:
            written = (self.path / "generation").read_text("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return NO_INDEX
        token, _, made_with = written.partition("\n")
        return token if _TOKEN.fullmatch(token) and made_with == self._made_with else NO_INDEX

    def create(self, fill: Callable[[Path], object]) -> str:
        """The generation of the index that is there; if there is none, of an empty one that `fill` makes."""
        while (generation := self.generation()) == NO_INDEX:
            if self.path.exists():  # written otherwise, or no index at all
                self.discard(NO_INDEX)
            token = secrets.token_hex(16)
            new = self._root / f".new-{self.name}-{token}"
            try:
                new.mkdir(parents=True)
                fill(new)
                (new / "generation").write_text(f"{token}\n{self._made_with}", "utf-8")
                new.rename(self.path)
            except OSError as error:
                _delete(new)
                # Another process was faster, or swept this one away.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    raise
        return generation

    def discard(self, generation: str, wait: float | None = None) -> bool:
        """Delete the directory if it is still of that generation.  Raises IndexBusy."""
        lock = FileStorage(str(self.path)).lock(f"{INDEX_NAME}_WRITELOCK")
        try:
            if not try_for(lock.acquire, timeout=self.wait if wait is None else wait):
                raise IndexBusy(f"another process writes to the index {self.name}")
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            if self.generation() != generation:
                return False
            self.move_away()
            return True
        finally:
            lock.release()

    def move_away(self) -> None:
        """Take the directory from its place, then delete it.  The caller holds the lock."""
        gone = self._root / f".gone-{self.name}-{secrets.token_hex(8)}"
        with suppress(FileNotFoundError):
            self.path.rename(gone)
            _sync(self._root)
            _delete(gone)

    def drop(self) -> None:
        """Delete the directory, of whatever generation, and what is left of earlier ones.  Raises IndexBusy."""
        while self.path.exists():
            self.discard(self.generation())
        sweep(self._root, f".*-{self.name}-*")

    def sync(self) -> None:
        """Bring the index to the disk: its files, their names and its own name."""
        with suppress(FileNotFoundError, NotADirectoryError):
            for file in (*self.path.iterdir(), self.path, self._root):
                _sync(file)


def sweep(root: Path, pattern: str = ".gone-*") -> None:
    """Delete directories that killed processes left: at a start those half deleted, since only these hold messages."""
    for entry in root.glob(pattern):
        _delete(entry)


def _sync(path: Path) -> None:
    """Bring a file, or a directory's entries, to the disk; a file that is gone needs none."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _delete(path: Path) -> None:
    """Delete a directory that others may be deleting too."""
    while path.exists():
        try:
            shutil.rmtree(path)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise
