"""What Whoosh keeps of messages: postings by term and a row each, and no more.

For each term Whoosh has which messages hold it and how often; for each message one fixed-width row: its id, session,
time, role and length.  Scoring is `ranking`'s, so that it is the same for what is not indexed.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from whoosh.columns import FixedBytesColumn
from whoosh.fields import COLUMN, FieldType, Schema
from whoosh.formats import Existence
from whoosh.reading import SegmentReader, TermNotFound
from whoosh.writing import SegmentWriter

MERGE_AT_MOST = 8_000
"""Documents up to which segments are merged; bounds what one commit rewrites to about a second of work."""

_ROW = struct.Struct("<5q")


class Damaged(Exception):
    """Whoosh could not make sense of its own files; the reason is the cause.  Never leaves the package."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message ready to be written.  `created` is in microseconds since 1970, UTC; numbers fit 64 bits."""

    message_id: int
    session_id: int
    created: int
    role: int
    length: int
    counts: Mapping[str, int]

    def row(self) -> bytes:
        return _ROW.pack(self.message_id, self.session_id, self.created, self.role, self.length)


@lru_cache(maxsize=64)
def role_number(role: str) -> int:
    """A role as it is kept in the index: 64 bits of its hash, whatever its length."""
    digest = hashlib.blake2b(role.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class _Counts(FieldType):
    """A field whose value comes analysed, as counts by term: saves Whoosh's analyzers, tokens, lengths and payloads."""

    def __init__(self) -> None:
        super().__init__(format=Existence(), analyzer=None)

    def index(self, value: Mapping[str, int], **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        for term, count in value.items():
            yield term.encode(), count, float(count), b""


class _Rows(FixedBytesColumn):
    """A column of five numbers a message, read all at one go: a search needs most of them, and slices are cheap."""

    def reader(self, dbfile: Any, basepos: int, length: int, doccount: int) -> _Rows.Reader:
        return _Rows.Reader(dbfile, basepos, length, doccount, self._fixedlen, self._default)

    class Reader(FixedBytesColumn.Reader):
        def load(self) -> array[int]:
            numbers = array("q", bytes(self._dbfile.get(self._basepos, self._count * self._fixedlen)))
            if len(numbers) != 5 * self._doccount:
                raise Damaged(f"{len(numbers)} numbers in the rows of {self._doccount} messages")
            if sys.byteorder == "big":
                numbers.byteswap()
            return numbers


SCHEMA = Schema(terms=_Counts(), row=COLUMN(_Rows(_ROW.size)))


class Segment:
    """An immutable part of an opened index: columns by position, postings by term."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        rows = reader.column_reader("row", translate=False).load()
        self.ids, self.sessions, self.created, self.roles, self.lengths = (rows[i::5] for i in range(5))

    def frequency(self, term: str) -> int:
        """How many messages have `term`."""
        return self._reader.doc_frequency("terms", term.encode())

    def postings(self, term: str) -> Iterator[tuple[int, float]]:
        """The positions of the messages that have `term`, ascending, and how often each has it."""
        try:
            matcher = self._reader.postings("terms", term.encode())
        except TermNotFound:
            return
        while matcher.is_active():
            yield matcher.id(), matcher.weight()
            matcher.next()


def merge(writer: SegmentWriter, segments: list[Any]) -> list[Any]:
    """Whoosh's merge policy: rewrite the small segments into the new one, and every segment that lost a message.

    A segment goes in while it is no larger than what is going in already, as in a binary counter: some log2(n)
    segments for n messages, each message rewritten log2(n) times at most.
    """
    kept, going_in = [], writer.doc_count()
    for segment in sorted(segments, key=lambda s: s.doc_count()):
        small = segment.doc_count() <= going_in and going_in < MERGE_AT_MOST
        if not small and not segment.has_deletions():
            kept.append(segment)
        elif segment.doc_count():
            reader = SegmentReader(writer.storage, writer.schema, segment)
            try:
                writer.add_reader(reader)
            finally:
                reader.close()
            going_in += segment.doc_count()
    return kept


@contextmanager
def damage_recognised() -> Iterator[None]:
    """Whatever Whoosh trips over in its files becomes Damaged; a full disk, a forbidden file and the like stay."""
    try:
        yield
    except Damaged:
        raise
    except Exception as error:  # a bad file raises whatever its parser meets: struct, pickle, assert...
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise
        raise Damaged(f"{type(error).__name__}: {error}") from error
