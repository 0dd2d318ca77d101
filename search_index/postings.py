"""What Whoosh keeps of messages: a row and the terms of each, postings by term of large segments, and no more.

For each message Whoosh has one fixed-width row: its id, session, time, role, length and squared length; its terms as
numbers (see `code`), and how often it has each; and a vector, where there are vectors.  By these a small segment is
read at one go, in a fiftieth of the time that reading every posting takes.  A large one has postings as well: for each
term which messages hold it and how often, so that a search of it reads only what it looks for.  To write them is most
of what a commit costs, which is why small segments, which come with every commit, do without.  Scoring is `ranking`'s,
so that it is the same for what is not indexed.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from whoosh.columns import FixedBytesColumn, VarBytesColumn
from whoosh.fields import COLUMN, FieldType, Schema
from whoosh.filedb.filestore import FileStorage
from whoosh.formats import Existence
from whoosh.reading import SegmentReader, TermNotFound
from whoosh.writing import SegmentWriter

from search_index.remembered import remembered
from search_index.sums import Place
from search_index.vectors import PACKED_BYTES

MERGE_AT_MOST = 8_000
"""Documents up to which segments are merged; bounds what one commit rewrites to about a second of work."""

POSTINGS_FROM = 1_000
"""Messages from which on a segment has postings.  All terms of a smaller one are read in a millisecond; small ones come
and go with every commit, and postings were three quarters of its work."""

NUMBERS = 6
_ROW = struct.Struct(f"<{NUMBERS}q")
_TERM = struct.Struct("<QI")
TERM = np.dtype([("code", "<u8"), ("count", "<u4")])
"""A term of a message as a number, see `code`, and how often the message has it."""


@remembered(16_384)
def code(term: str) -> int:
    """A term as a number: 64 bits of its hash.  Two of a million terms share one at odds of one to 40 million."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Packed(NamedTuple):
    """A message as it is searched: `Entry.numbers`, its terms (see TERM) and its vector, each as bytes."""

    row: bytes
    terms: bytes
    vector: bytes

    def fields(self, postings: bool) -> dict[str, Any]:
        """What is written of it, with or without postings of its terms."""
        fields: dict[str, Any] = {"row": self.row, "bag": self.terms}
        if postings:
            fields["terms"] = {_key(code): count for code, count in _TERM.iter_unpack(self.terms)}
        return {**fields, "vector": self.vector} if self.vector else fields


class Damaged(Exception):
    """Whoosh could not make sense of its own files; the reason is the cause.  Never leaves the package."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message ready to be written.  `created` is in microseconds since 1970, UTC; numbers fit 64 bits.

    `squares` is the sum of the squared counts, `vector` packed (see `vectors`) or empty.
    """

    message_id: int
    session_id: int
    created: int
    role: int
    length: int
    squares: int
    counts: Mapping[str, int]
    vector: bytes = b""

    @property
    def numbers(self) -> tuple[int, int, int, int, int, int]:
        return self.message_id, self.session_id, self.created, self.role, self.length, self.squares

    def packed(self) -> Packed:
        """What is written of it, and searched while it is not indexed yet."""
        terms = b"".join([_TERM.pack(code(term), count) for term, count in self.counts.items()])
        return Packed(_ROW.pack(*self.numbers), terms, self.vector)


def _key(code: int) -> bytes:
    """A term's number as postings have it."""
    return code.to_bytes(8, "big")


@lru_cache(maxsize=64)
def role_number(role: str) -> int:
    """A role as it is kept in the index: 64 bits of its hash, whatever its length."""
    digest = hashlib.blake2b(role.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class _Counts(FieldType):
    """A field whose value comes analysed, as counts by term: saves Whoosh's analyzers, tokens, lengths and payloads."""

    def __init__(self) -> None:
        super().__init__(format=Existence(), analyzer=None)

    def index(self, value: Mapping[bytes, int], **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        for key, count in value.items():
            yield key, count, float(count), b""


class _Table(FixedBytesColumn):
    """A column of fixed-width rows, read all at one go: a search needs most of them, and one slice is cheap."""

    def reader(self, dbfile: Any, basepos: int, length: int, doccount: int) -> _Table.Reader:
        return _Table.Reader(dbfile, basepos, length, doccount, self._fixedlen, self._default)

    class Reader(FixedBytesColumn.Reader):
        def load(self, dtype: str, sparse: bool = False) -> NDArray[Any]:
            """The rows as numbers of `dtype`.  Of a `sparse` column Whoosh leaves out the last empty rows: zeros."""
            data = bytes(self._dbfile.get(self._basepos, self._count * self._fixedlen))
            missing = self._doccount * self._fixedlen - len(data)
            if missing < 0 or (missing and not sparse):
                raise Damaged(f"{len(data)} bytes in a column of {self._doccount} messages")
            return np.frombuffer(data + bytes(missing), dtype).reshape(self._doccount, -1)


class _Lists(VarBytesColumn):
    """A column of byte strings of any length, read all at one go."""

    class Reader(VarBytesColumn.Reader):
        def whole(self) -> tuple[bytes, NDArray[np.int64]]:
            """All of them behind one another, and their lengths."""
            lengths = np.array(self._lengths, np.int64)
            return bytes(self._dbfile.get(self._basepos, int(lengths.sum()))), lengths


SCHEMA = Schema(
    terms=_Counts(), row=COLUMN(_Table(_ROW.size)), bag=COLUMN(_Lists()), vector=COLUMN(_Table(PACKED_BYTES))
)


class Columns:
    """What a segment, an immutable part of an index, has of each message: a row of `Entry.numbers`, its terms, its
    vector."""

    def __init__(self, storage: FileStorage, segment: Any) -> None:
        self._open = ExitStack()
        files = segment.open_compound_file(storage)
        self._open.callback(files.close)
        self._columns = segment.codec().per_document_reader(files, segment)
        self._open.callback(self._columns.close)
        self.rows: NDArray[np.int64] = self._column("row").load("<i8").astype(np.int64)

    def close(self) -> None:
        self._open.close()

    def _column(self, name: str) -> Any:
        return self._columns.column_reader(name, SCHEMA[name].column_type)

    def bags(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The TERMs of all its messages, and how many of them each message has."""
        data, lengths = self._column("bag").whole()
        return np.frombuffer(data, TERM), lengths // TERM.itemsize

    def vectors(self) -> NDArray[np.int8] | None:
        """A packed vector for each message, zeros where it has none; None when no message has one."""
        if not self._columns.has_column("vector"):
            return None
        packed: NDArray[np.int8] = self._column("vector").load("i1", sparse=True)
        return packed


class Segment(Columns):
    """A segment that is searched, and its file's place.

    Whoosh's own reader is made only for postings: it costs ten times what reading the columns does.
    """

    def __init__(self, storage: FileStorage, segment: Any, place: Place) -> None:
        super().__init__(storage, segment)
        self.place = place
        self._storage, self._segment = storage, segment

    @property
    def ids(self) -> list[int]:
        """The ids of its messages, by position."""
        ids: list[int] = self.rows[:, 0].tolist()
        return ids

    @property
    def sessions(self) -> list[int]:
        """Their sessions."""
        sessions: list[int] = self.rows[:, 1].tolist()
        return sessions

    def postings(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The positions of the messages that have `term`, ascending, and how often each has it."""
        if len(self.rows) < POSTINGS_FROM:
            terms, rows = self._terms
            found = np.flatnonzero(terms["code"] == code(term))
            return rows[found], terms["count"][found].astype(float)
        at: list[int] = []
        counts: list[float] = []
        try:
            matcher = self._reader.postings("terms", _key(code(term)))
        except TermNotFound:
            pass
        else:
            while matcher.is_active():  # block by block, which Whoosh has no public way for: message by message it
                matcher.id(), matcher.weight()  # takes four calls a message
                at += matcher._ids
                counts += matcher._weights
                matcher._next_block()
        return np.array(at, np.int64), np.array(counts, float)

    @cached_property
    def _terms(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Every term of every message, and whose it is."""
        terms, many = self.bags()
        return terms, np.repeat(np.arange(len(many)), many)

    @cached_property
    def _reader(self) -> SegmentReader:
        reader = SegmentReader(self._storage, SCHEMA, self._segment)
        self._open.callback(reader.close)
        return reader


def commit(writer: SegmentWriter, entries: Sequence[Entry]) -> None:
    """Write `entries` into a new segment, together with the small ones, and every one that lost a message; commits.

    A segment goes in while it is no larger than what is going in already, as in a binary counter: some log2(n)
    segments for n messages, each message rewritten log2(n) times at most.
    """
    kept, going_in, size = [], [], len(entries)
    for segment in sorted(writer.segments, key=lambda s: s.doc_count()):
        small = segment.doc_count() <= size and size < MERGE_AT_MOST
        if not small and not segment.has_deletions():
            kept.append(segment)
        elif segment.doc_count():
            going_in.append(segment)
            size += segment.doc_count()
    for entry in entries:
        writer.add_document(**entry.packed().fields(size >= POSTINGS_FROM))

    def merge(*_: Any) -> list[Any]:
        for segment in going_in:
            _copy(writer, segment, size >= POSTINGS_FROM)
        return kept

    writer.commit(mergetype=merge)


def _copy(writer: SegmentWriter, segment: Any, postings: bool) -> None:
    """Write what a segment holds once more, message by message: Whoosh's own way, posting by posting, is no faster."""
    with closing(Columns(writer.storage, segment)) as columns:
        terms, many = columns.bags()
        vectors = columns.vectors()
        ends = np.cumsum(many)
        for at, (row, end, count) in enumerate(zip(columns.rows, ends.tolist(), many.tolist(), strict=True)):
            if not segment.is_deleted(at):
                vector = b"" if vectors is None else vectors[at].tobytes()
                packed = Packed(row.tobytes(), terms[end - count : end].tobytes(), vector)
                writer.add_document(**packed.fields(postings))


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
