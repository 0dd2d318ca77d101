"""The files of a .zip, read where they are.

Guarantee: nothing is written to disk, and a .zip is refused whose list of files, or whose text, would take too much.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from memory.transfer.sources.values import refused

UNPACKED_MAX = 1 << 31  # bytes of its text
DIRECTORY_MAX = 1 << 23  # bytes of its list of files, which is read at once
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
_TEXT = re.compile(r"\.(json|jsonl|ndjson|md)$", re.IGNORECASE)


def is_zip(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(4) == b"PK\x03\x04"


class Archive:
    """A .zip.  Raises InvalidRequest for one that can't be read, now or while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        with _errors():
            self._zip = zipfile.ZipFile(_Bounded(file))
        files = self._zip.infolist()
        text = [one for one in files if _TEXT.search(one.filename)]
        self.names = sorted({one.filename for one in text})
        self.begins = ", ".join(one.filename[:60] for one in files[:3])
        if sum(one.file_size for one in text) > UNPACKED_MAX:
            raise refused("zip_too_large", "This .zip holds too much to read at once. Unpack it, and import each file")

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        with _errors((*_DAMAGED, RuntimeError)):  # a password, or a compression that Python does not know
            part = self._zip.open(name)
        with _errors(), part:
            yield part


class _Bounded:
    """A file that a .zip is read from.  Its list of files has any size that it gives itself."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(DIRECTORY_MAX if size < 0 else min(size, DIRECTORY_MAX))
        if len(data) == DIRECTORY_MAX:
            raise zipfile.BadZipFile
        return data


@contextmanager
def _errors(kinds: tuple[type[Exception], ...] = _DAMAGED) -> Iterator[None]:
    try:
        yield
    except kinds:
        problem = "This .zip can't be read: it is damaged, cut off, has a password, or lists too many files"
        raise refused("bad_zip", problem) from None
