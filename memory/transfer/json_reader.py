"""Read a JSON document that may be larger than memory, part by part, with ijson.

A document is an array of items, an object with arrays of items, or items one after another as in JSON Lines. A long
list or object within an item is read part by part as well. ijson refuses NaN, infinity and integers of more than 64
bits, and reads half a surrogate pair as `?`.

Invariant: memory holds one part at a time, of a bounded size (test_json_items). `ijson.items` has no such
limit, and 100,000 brackets make it fill the memory with their prefixes; so parts are built here from its events.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import IO, Any

import ijson

from schemas.fields import JSON_DEPTH_MAX

VALUE_COST_BYTES = 40  # counted for each value: an empty array takes two bytes of a document, and far more of memory
PART_BYTES_MAX = 1 << 22
ITEM_BYTES_MAX = 1 << 27  # with all of its parts, which an importer may join
_BUFFER_BYTES = 1 << 18  # its events are in memory at once; with a smaller one ijson reads a long text many times
_BOM = b"\xef\xbb\xbf"

Parts = Mapping[str | None, Mapping[str, str]]
"""By key: the members of an item that are read part by part, `start_array` for a list, `start_map` for an object."""


class NotJson(ValueError):
    """Document that can't be read as JSON. The message says why, as the end of a sentence."""


def first_byte(file: IO[bytes]) -> bytes:
    """Return the first byte of a text, after a byte order mark and white space; empty if there is none soon."""
    file.seek(0)
    return file.read(64).lstrip(_BOM + b" \t\r\n")[:1]


def iter_items(
    file: IO[bytes],
    parts: Parts,
    *,
    lines: bool = False,
    part_bytes: int | None = None,
    large: Collection[str] = (),
    is_item: Callable[[str, Any], bool] = lambda name, value: False,
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the document's items, each with its path, from the start. Raises NotJson.

    The path is `(None, number)` in an array; in an object `(key, number)`, or `(key,)` for a member that is no array.
    lines: read a document that is no array as items one after another, also if it is a single object.
    part_bytes: of one part at most; None: PART_BYTES_MAX. large: members whose parts may be as large as items.
    is_item: whether a part, by its member and value, is an item of its own, which nobody joins to others.

    Parts come before their item, in which the member is left empty. With parts of `{"sessions": {"messages":
    "start_array"}}`, the document `{"sessions": [{"id": "a", "messages": [1, 2]}]}` gives:

        ("sessions", 0, "messages", 0), 1
        ("sessions", 0, "messages", 1), 2
        ("sessions", 0), {"id": "a", "messages": []}
    """
    first = first_byte(file)
    if lines and first not in (b"[", b"{"):
        raise NotJson("it begins with neither [ nor {")
    file.seek(0)
    if file.read(len(_BOM)) != _BOM:
        file.seek(0)
    document = _Document(file, part_bytes or PART_BYTES_MAX, lines=lines and first == b"{", large=large)
    number = 0
    try:
        for path, value in document.items(parts):
            yield path, value
            document.part = 0
            number += len(path) <= 2
            is_known = len(path) == 2 and path[0] in parts  # all unknown members count as one item
            if is_known or (len(path) == 4 and is_item(path[2], value)):
                document.item = 0
    except (ijson.JSONError, UnicodeDecodeError) as error:
        reason = re.search(r"error: ([^.\\\n]+)", str(error))
        raise NotJson(f"{reason[1] if reason else 'it is not UTF-8'} (after {number} items)") from None


class _Document:
    """Events of a document, while the current `part` and the current `item` are not too large."""

    def __init__(self, file: IO[bytes], part_bytes: int, *, lines: bool, large: Collection[str]) -> None:
        self._file, self._part_bytes, self._lines, self._large = file, part_bytes, lines, large
        self._is_large = False
        self.part = self.item = 0
        events = ijson.basic_parse(self, use_float=True, buf_size=_BUFFER_BYTES, multiple_values=lines)
        self._events: Iterator[tuple[str, Any]] = events

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._add(len(data))
        return data

    def _next(self) -> tuple[str, Any]:
        self._add(VALUE_COST_BYTES)
        return next(self._events)

    def _add(self, size: int) -> None:
        self.part += size
        self.item += size
        if (self.part > self._part_bytes and not self._is_large) or self.item > ITEM_BYTES_MAX:
            raise NotJson("one of its items is too large, or has too many values")

    def items(self, parts: Parts) -> Iterator[tuple[tuple[Any, ...], Any]]:
        if self._lines:
            for number, (event, value) in enumerate(self._events):
                yield from self._in_parts((None, number), parts.get(None, {}), event, value)
            return
        begin, _ = self._next()
        for key, event, value in self._members(begin) if begin == "start_map" else [(None, begin, None)]:
            if event == "start_array":
                for number, *first in self._members(event):
                    yield from self._in_parts((key, number), parts.get(key, {}), *first)
            else:
                yield (key,), self._whole(event, value)
        next(self._events, None)  # raises if something follows the document

    def _in_parts(
        self, path: tuple[Any, ...], kinds: Mapping[str, str], event: str, value: Any
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        item: Any = {} if event == "start_map" else self._whole(event, value)
        for name, begin, first in self._members(event) if event == "start_map" else ():
            if kinds.get(name) != begin:
                item[name] = self._whole(begin, first)
                continue
            item[name] = {} if begin == "start_map" else []
            self._is_large = name in self._large
            for place, *part in self._members(begin):
                yield (*path, name, place), self._whole(*part)
            self._is_large = False
        yield path, item

    def _members(self, begin: str) -> Iterator[tuple[Any, str, Any]]:
        """Yield the members of an array or an object: number or key, and the event that begins the value."""
        number = 0
        while not (event := self._next())[0].startswith("end"):
            yield (event[1], *self._next()) if begin == "start_map" else (number, *event)
            number += 1

    def _whole(self, event: str, value: Any) -> Any:
        builder = ijson.ObjectBuilder()
        depth = 0
        while True:
            builder.event(event, value)
            depth += event.startswith("start") - event.startswith("end")
            if depth > JSON_DEPTH_MAX:
                raise NotJson("it is nested too deeply")
            if depth == 0:
                return builder.value
            event, value = self._next()
