"""Checksums of segments: bytes that were overwritten are noticed, where Whoosh would read another number and go on.

A segment is one file that never changes once it is written, so its sum is taken then and kept beside its name, in the
table of contents.  It is checked when this process first meets the file, and again when the file's time, size or
place says that somebody touched it: afterwards a search pays one `stat` a segment.
"""

from __future__ import annotations

import os
import threading
import zlib
from pathlib import Path
from typing import Any, NamedTuple

FORMAT = 4
"""How an index is written; one written otherwise before counts as none, and is made again."""

_BLOCK = 1 << 20
_KNOWN_MAX = 16_384  # some 3 MB of memory; one that is forgotten is summed once more

_intact: dict[tuple[int, int, int, int, int], None] = {}  # in the order they were met
_noting = threading.Lock()


class Place(NamedTuple):
    """A file as `stat` tells it from others: when somebody writes to it or puts another in its place, this changes."""

    path: str
    device: int
    inode: int
    modified: int
    size: int

    @classmethod
    def of(cls, path: str) -> Place:
        """Raises FileNotFoundError where there is none."""
        status = os.stat(path)  # noqa: PTH116 - at every search: twice as fast as by pathlib
        return cls(path, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def intact(folder: Path, segment: Any) -> Place | None:
    """Where the segment's file is, if it is as it was written.  Raises FileNotFoundError where there is none."""
    file = file_of(folder, segment)
    place = Place.of(str(file))
    seen = (*place[1:], segment.sum)
    if seen in _intact:
        return place
    if sum_of(file) != segment.sum:
        return None
    with _noting:
        _intact[seen] = None
        if len(_intact) > _KNOWN_MAX:
            del _intact[next(iter(_intact))]
    return place


def file_of(folder: Path, segment: Any) -> Path:
    """The one file that a segment is."""
    return folder / segment.make_filename(segment.COMPOUND_EXT)


def sum_of(file: Path) -> int:
    """The checksum of a segment's file."""
    total = 0
    descriptor = os.open(file, os.O_RDONLY)
    try:
        while block := os.read(descriptor, _BLOCK):
            total = zlib.crc32(block, total)
    finally:
        os.close(descriptor)
    return total
