"""Reading a JSON document that may be larger than memory, item by item, with ijson.

A document is an array of items, or an object with arrays of items.  Guarantee: memory holds one item at a time, of at
most ITEM_BYTES_MAX.  `ijson.items` has no such limit, and 100,000 brackets make it fill the memory with their prefixes;
so items are built here from its events.  ijson refuses NaN, infinity and integers of more than 64 bits, and reads half
a surrogate pair as `?`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

import ijson

ITEM_BYTES_MAX = 1 << 26
DEPTH_MAX = 500
_BOM = b"\xef\xbb\xbf"


class NotJson(ValueError):
    """The document is not JSON that can be read here.  The message says why, as the end of a sentence."""


def is_array(file: IO[bytes]) -> bool:
    """Whether the document is an array; an object otherwise.  Raises NotJson if it is neither."""
    _rewind(file)
    first = file.read(64).lstrip()[:1]
    if first not in (b"[", b"{"):
        raise NotJson("it begins with neither [ nor {")
    return first == b"["


def walk(file: IO[bytes]) -> Iterator[tuple[str | None, Any]]:
    """The document's items, from its start: (None, element) for each element of an array; for each key of an object
    (key, value), or (key, element) for each element where the value is an array.  Raises NotJson."""
    _rewind(file)
    source = _Source(file)
    number = 0
    try:
        for item in _items(source):
            source.bytes = 0
            number += 1
            yield item
    except (ijson.JSONError, UnicodeDecodeError) as error:
        reason = re.search(r"error: ([^.\\\n]+)", str(error))
        raise NotJson(f"{reason[1] if reason else 'it is not UTF-8'} (after {number} items)") from None


def _rewind(file: IO[bytes]) -> None:
    """Go to the start of the text, after a byte order mark."""
    file.seek(0)
    if file.read(3) != _BOM:
        file.seek(0)


class _Source:
    """The file, as long as the current item is not too large."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.bytes = 0

    def read(self, size: int) -> bytes:
        self.bytes += size
        if self.bytes > ITEM_BYTES_MAX:
            raise NotJson(f"one item has more than {ITEM_BYTES_MAX:,} bytes")
        return self._file.read(size)


def _items(source: _Source) -> Iterator[tuple[str | None, Any]]:
    root = key = builder = None
    depth = start = 0
    for event, value in ijson.basic_parse(source, use_float=True):
        opens, closes = event.startswith("start"), event.startswith("end")
        if root is None:
            root = event
        elif builder is None:
            in_root = root == "start_map" and depth == 1
            if event == "map_key":
                key = value
            elif not closes and not (in_root and event == "start_array"):
                builder, start = ijson.ObjectBuilder(), depth
        if builder is not None:
            builder.event(event, value)
        depth += opens - closes
        if depth > DEPTH_MAX:
            raise NotJson("it is nested too deeply")
        if builder is not None and depth == start:
            yield key, builder.value
            builder = None
