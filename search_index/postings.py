"""What Whoosh keeps of messages: a row and the terms of each, postings by term of large segments, and no more.

For each message Whoosh has one fixed-width row: its id, session, time, role, length and squared length; its terms as
numbers (see `code`), and how often it has each; and a vector, where there are vectors.  By these a small segment is
read at one go, in a fiftieth of the time that reading every posting takes.  A large one has postings as well: for each
term which messages hold it and how often, so that a search of it reads only what it looks for.  To write them is most
of what a commit costs, which is why small segments, which come with every commit, do without.  Scoring is `ranking`'s,
so that it is the same for what is not indexed.  How a segment is written is told in `commits`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from whoosh.codec.whoosh3 import W3Codec
from whoosh.columns import FixedBytesColumn, VarBytesColumn
from whoosh.fields import COLUMN, FieldType, Schema
from whoosh.filedb.filestore import FileStorage
from whoosh.formats import Existence
from whoosh.reading import SegmentReader, TermNotFound

from search_index.remembered import remembered
from search_index.sums import Place
from search_index.vectors import PACKED_BYTES

POSTINGS_FROM = 1_000
"""Messages from which on a segment has postings.  All terms of a smaller one are read in a millisecond; small ones come
and go with every commit, and postings were three quarters of its work."""

NUMBERS = 6
TERM = np.dtype([("code", "<u8"), ("count", "<u4")])
"""A term of a message as a number, see `code`, and how often the message has it."""


@remembered(16_384)
def code(term: str) -> int:
    """A term as a number: 64 bits of its hash.  Two of a million terms share one at odds of one to 40 million."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


_NO_VECTOR = bytes(PACKED_BYTES)


class Damaged(Exception):
    """Whoosh could not make sense of its own files; the reason is the cause.  Never leaves the package."""


class Entry(NamedTuple):
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


@dataclass(frozen=True, eq=False)
class Columns:
    """n messages as they are written, and searched while they are not indexed yet.

    `rows` are n x 6, as `Entry.numbers`.  `terms` are those of the first message, then those of the second, `many` says
    how many each has.  `vectors` are packed, n x 256, zeros where there is none.
    """

    rows: NDArray[np.int64]
    terms: NDArray[Any]
    many: NDArray[np.int64]
    vectors: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Columns:
        """`entries`, in their order."""
        rows = np.array([entry.numbers for entry in entries], np.int64).reshape(-1, NUMBERS)
        counts = [entry.counts for entry in entries]
        many = np.array([len(one) for one in counts], np.int64)
        terms = np.empty(many.sum(), TERM)
        terms["code"] = np.fromiter(map(code, chain.from_iterable(counts)), np.uint64, len(terms))
        terms["count"] = np.fromiter(chain.from_iterable([one.values() for one in counts]), np.uint32, len(terms))
        vectors = np.frombuffer(b"".join([entry.vector or _NO_VECTOR for entry in entries]), np.int8)
        return cls(rows, terms, many, vectors.reshape(-1, PACKED_BYTES))

    def where(self, staying: NDArray[np.bool_]) -> Columns:
        """Those of the messages for which it says so."""
        terms = self.terms[np.repeat(staying, self.many)]
        return Columns(self.rows[staying], terms, self.many[staying], self.vectors[staying])


def has_postings(messages: int) -> bool:
    """Whether a segment of so many messages has them."""
    return messages >= POSTINGS_FROM


@lru_cache(maxsize=64)
def role_number(role: str) -> int:
    """A role as it is kept in the index: 64 bits of its hash, whatever its length."""
    digest = hashlib.blake2b(role.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class _Counts(FieldType):
    """A field of terms that come analysed: no analyzers, lengths and payloads of Whoosh's."""

    def __init__(self) -> None:
        super().__init__(format=Existence(), analyzer=None)


SCHEMA = Schema(
    terms=_Counts(),
    row=COLUMN(FixedBytesColumn(8 * NUMBERS)),
    bag=COLUMN(VarBytesColumn()),
    vector=COLUMN(FixedBytesColumn(PACKED_BYTES)),
)


class Segment:
    """An immutable part of an index, open for reading, and its file's place.

    Whoosh's own reader is made only for postings: it costs ten times what reading the columns does.
    """

    def __init__(self, storage: FileStorage, written: Any, place: Place) -> None:
        """`written`: what the table of contents has of it."""
        self._open = ExitStack()
        self._files = written.open_compound_file(storage)
        self._open.callback(self._files.close)
        self.place = place
        self.written = written
        self._storage = storage
        rows = np.frombuffer(self._column("row"), "<i8").reshape(-1, NUMBERS)
        if len(rows) != written.doc_count_all():
            raise Damaged(f"{len(rows)} rows of {written.doc_count_all()} messages")
        self.rows: NDArray[np.int64] = rows.astype(np.int64)

    def close(self) -> None:
        self._open.close()

    def _column(self, name: str) -> bytes:
        """All of a column at one go, nothing of which stays with the file; none where no message has a value."""
        file_name = W3Codec.column_filename(self.written, name)
        if not self._files.file_exists(file_name):
            return b""
        with closing(self._files.open_file(file_name)) as file:
            return bytes(file.get(0, self._files.file_length(file_name)))

    def bags(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The TERMs of all its messages, and how many of them each message has."""
        data, messages = self._column("bag"), len(self.rows)
        end = len(data) - 1
        if data[end:] == b"X":  # behind the lengths of a very large column stand the places, which follow from them
            end -= 2
            end_of_lengths = end - messages * np.dtype(chr(data[end + 1])).itemsize
        else:
            end_of_lengths = end
        kind = np.dtype(chr(data[end])).newbyteorder(">")
        lengths = np.frombuffer(data, kind, messages, end_of_lengths - messages * kind.itemsize)
        many = lengths.astype(np.int64) // TERM.itemsize
        return np.frombuffer(data, TERM, many.sum()), many

    def vectors(self) -> NDArray[np.int8] | None:
        """A packed vector for each message, zeros where it has none; None when no message has one."""
        data = self._column("vector")
        if not data:
            return None
        missing = len(self.rows) * PACKED_BYTES - len(data)  # Whoosh's own writer left out the last empty ones
        return np.frombuffer(data + bytes(missing) if missing else data, np.int8).reshape(len(self.rows), PACKED_BYTES)

    def columns(self) -> Columns:
        """All that it has of its messages."""
        vectors = self.vectors()
        return Columns(
            self.rows, *self.bags(), np.zeros((len(self.rows), PACKED_BYTES), np.int8) if vectors is None else vectors
        )

    @property
    def ids(self) -> list[int]:
        """The ids of its messages, by position."""
        ids: list[int] = self.rows[:, 0].tolist()
        return ids

    def beside(self, message_ids: Collection[int], session_id: int | None) -> NDArray[np.bool_]:
        """Which of its messages are others than these, and not of this session."""
        others = ~np.isin(self.rows[:, 0], np.array(list(message_ids), np.int64))
        return others if session_id is None else others & (self.rows[:, 1] != session_id)

    def postings(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The positions of the messages that have `term`, ascending, and how often each has it."""
        if not has_postings(len(self.rows)):
            terms, rows = self._terms
            found = np.flatnonzero(terms["code"] == code(term))
            return rows[found], terms["count"][found].astype(float)
        at: list[int] = []
        counts: list[float] = []
        try:
            matcher = self._reader.postings("terms", code(term).to_bytes(8, "big"))
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
        reader = SegmentReader(self._storage, SCHEMA, self.written)
        self._open.callback(reader.close)
        return reader


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
