"""Read the files of a .zip in place.

Invariant: nothing is written to disk, and a .zip with too many files or too much text is refused (test_sources).
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from memory.transfer.sources.values import refused

UNPACKED_BYTES_MAX = 1 << 31  # of its text
DIRECTORY_BYTES_MAX = 1 << 23  # of its list of files, which is read at once
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
_TEXT = re.compile(r"\.(json|jsonl|ndjson|md|html)$", re.IGNORECASE)
_INNER = re.compile(r"(.*?\.zip)//(.*)", re.IGNORECASE)


def is_zip(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(4) == b"PK\x03\x04"


class Archive:
    """Files of a .zip; where it has no text, those of each .zip in it.

    Raises InvalidRequest for a damaged one, now or while it is read.
    """

    def __init__(self, file: IO[bytes], *, is_inner: bool = False) -> None:
        with _errors():
            self._zip = zipfile.ZipFile(_Bounded(file))
        files = self._zip.infolist()
        sizes = {file.filename: file.file_size for file in files if _TEXT.search(file.filename)}
        self.size = sum(sizes.values())
        self.names: list[str] = sorted(sizes)
        self.begins = ", ".join(file.filename[:60] for file in files[:3])
        for inner in files if not (is_inner or sizes) else ():
            is_zip_file = inner.filename.lower().endswith(".zip")
            self.size += inner.file_size if is_zip_file else 0
            if is_zip_file and self.size <= UNPACKED_BYTES_MAX:
                with self.open(inner.filename) as part:
                    archive = Archive(part, is_inner=True)
                # To read one of its files, what is before it in the outer one is unpacked too.
                self.size += archive.size + inner.file_size * len(archive.names)
                self.names += [f"{inner.filename}//{name}" for name in archive.names]
        if self.size > UNPACKED_BYTES_MAX:
            raise refused("zip_too_large", "This .zip holds too much to read at once. Unpack it, and import each file")

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        if inner := _INNER.fullmatch(name):
            with self.open(inner[1]) as part, Archive(part, is_inner=True).open(inner[2]) as file:
                yield file
            return
        with _errors((*_DAMAGED, RuntimeError)):  # a password, or a compression that Python does not know
            part = self._zip.open(name)
        with _errors(), part:
            yield part


class _Bounded:
    """File of a .zip, with reads below DIRECTORY_BYTES_MAX: a .zip declares the size of its list."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(DIRECTORY_BYTES_MAX if size < 0 else min(size, DIRECTORY_BYTES_MAX))
        if len(data) == DIRECTORY_BYTES_MAX:
            raise zipfile.BadZipFile
        return data


@contextmanager
def _errors(kinds: tuple[type[Exception], ...] = _DAMAGED) -> Iterator[None]:
    try:
        yield
    except kinds:
        problem = (
            "This .zip can't be read: it is damaged, cut off, has a password, or lists too many files. Download it "
            "again, or unpack it and import each file"
        )
        raise refused("bad_zip", problem) from None
