"""Reading a JSON document that may be larger than memory, item by item.

A document to be imported is an array of items, or an object with arrays of them.  Each item is read as a whole by
Python's own decoder; between them only punctuation is looked at here.
Guarantee: what is in memory is one item and a little more, and an item of more than ITEM_CHARS_MAX is refused.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any

CHUNK = 1 << 18
ITEM_CHARS_MAX = 1 << 26
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER_GOES_ON = re.compile(r"[0-9.eE+-]*\Z")


class NotJson(ValueError):
    """The document is no JSON that can be read here; the message says where and why, as the end of a sentence."""


def walk(file: IO[bytes]) -> Iterator[tuple[str | None, Any]]:
    """The document's items, in order.

    Of an array: (None, element) for each element.  Of an object: (key, value), and where the value is an array
    (key, element) for each of its elements.  Raises NotJson.
    """
    reader = _Reader(file)
    if reader.next() == "[":
        for element in reader.array():
            yield None, element
    elif reader.next() != "{":
        raise reader.error("an array or an object was expected")
    else:
        reader.take("{")
        while reader.next() != "}":
            key = reader.value()
            if not isinstance(key, str):
                raise reader.error("a key was expected")
            reader.take(":")
            if reader.next() == "[":
                for element in reader.array():
                    yield key, element
            else:
                yield key, reader.value()
            reader.comma("}")
        reader.take("}")
    if reader.next():
        raise reader.error("the end was expected")


class _Reader:
    """Reads values and punctuation from a file of UTF-8."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = codecs.getreader("utf-8-sig")(file)
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._at = 0  # in the text
        self._before = 0  # characters before the text

    def next(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            assert space is not None, "it matches anything"
            self._at = space.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        if self.next() != character:
            raise self.error(f"{character} was expected")
        self._at += 1

    def comma(self, end: str) -> None:
        """Take the comma after an item, unless `end` is next."""
        if self.next() != end:
            self.take(",")
            if self.next() == end:
                raise self.error("nothing follows a comma")

    def array(self) -> Iterator[Any]:
        self.take("[")
        while self.next() != "]":
            yield self.value()
            self.comma("]")
        self.take("]")

    def value(self) -> Any:
        """The next value, as Python's types."""
        self.next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as failure:
                place = self._before + failure.pos
                if not self._more():
                    self._at = place - self._before
                    raise self.error(failure.msg) from None
                continue
            whole = isinstance(value, list | dict | str) or not _NUMBER_GOES_ON.match(self._text, end)
            if whole or not self._more():
                self._at = end
                return value

    def error(self, problem: str) -> NotJson:
        return NotJson(f"at character {self._before + self._at + 1}: {problem}")

    def _more(self) -> bool:
        """Read on; False at the end.  What is kept doubles, so that reading an item again and again costs little."""
        kept = self._text[self._at :]
        if len(kept) > ITEM_CHARS_MAX:
            raise self.error(f"one item has more than {ITEM_CHARS_MAX:,} characters")
        try:
            read = self._file.read(max(CHUNK, len(kept)))
        except UnicodeDecodeError as failure:
            raise self.error(f"it is not UTF-8 ({failure.reason})") from None
        self._before += self._at
        self._text, self._at = kept + read, 0
        return bool(read)
