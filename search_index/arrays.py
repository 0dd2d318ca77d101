"""Messages as numpy arrays, ready to be ranked.

A `Block` holds the messages of one segment of the index, or those that are not indexed yet; it never changes.
`Candidates` are the messages of all blocks, by session and in the order in which they were said.  So the rows beside a
message are its neighbours, and every sum is the same to the last bit wherever a message is stored.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.caches import cached
from search_index.vectors import PACKED_BYTES, cosines, sizes_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROW = np.dtype(
    [("id", "<i8"), ("session", "<i8"), ("created", "<i8"), ("role", "<i8"), ("length", "<i8"), ("squares", "<i8")]
)
"""A message's numbers: `created` in microseconds since 1970, `role` as a hash, the number of its terms, and the sum of
their squared counts."""

POSTING = np.dtype([("code", "<u8"), ("count", "<u4")])
"""A term of a message as a number (see `code`), and how often the message has it."""

CHECKSUM_BYTES = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_VECTOR = bytes(PACKED_BYTES)
_OBJECT_BYTES = 400  # what Python takes for an entry beside its arrays and text


class Damaged(Exception):
    """The index can't be read, or holds other bytes than were written.  The cause says what was wrong."""


class Document(NamedTuple):
    """A message as the index sees it.  `session_id` and `message_id` are the caller's own 64-bit integers.

    `created_at` is exact to the microsecond; without a zone it is UTC.
    """

    message_id: int
    session_id: int
    role: str
    created_at: datetime
    content: str
    name: str | None = None

    @property
    def spoken(self) -> str:
        """What was said, and by whom."""
        return f"{self.name}: {self.content}" if self.name else self.content


@cached(16_384)
def code(term: str) -> int:
    """A term as a 64-bit hash."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=64)
def role_number(role: str) -> int:
    """A role as a 64-bit hash, so that roles of any length fit a column."""
    digest = hashlib.blake2b(role.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def microseconds(moment: datetime) -> int:
    """Since 1970, in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, eq=False)
class Entry:
    """An analysed message: its terms in their order, and the bytes of its columns."""

    document: Document
    terms: tuple[str, ...]
    row: bytes
    bag: bytes
    vector: bytes

    @classmethod
    def of(cls, document: Document, terms: Sequence[str], vector: bytes) -> Entry:
        """`vector` is packed (see `vectors`), or empty."""
        counts = Counter(terms)
        squares = sum(count * count for count in counts.values())
        created, role = microseconds(document.created_at), role_number(document.role)
        row = np.array((document.message_id, document.session_id, created, role, len(terms), squares), ROW)
        bag = np.array([(code(term), count) for term, count in counts.items()], POSTING)
        return cls(document, tuple(terms), row.tobytes(), bag.tobytes(), vector or _NO_VECTOR)

    @property
    def nbytes(self) -> int:
        text = 4 * len(self.document.content) + 8 * len(self.terms)
        return _OBJECT_BYTES + text + len(self.row) + len(self.bag) + len(self.vector)

    @property
    def checked_row(self) -> bytes:
        """The row and a checksum of all columns."""
        return self.row + _checksum(self.row, self.bag, self.vector)


def _checksum(row: bytes, bag: bytes, vector: bytes) -> bytes:
    return zlib.crc32(vector, zlib.crc32(bag, zlib.crc32(row))).to_bytes(CHECKSUM_BYTES, "little")


@dataclass(frozen=True, eq=False)
class Block:
    """n messages: their `rows`, packed `vectors` (n x 256, zeros where there is none) and the lengths of those.

    The postings of all their terms are sorted by `codes`: at which `places` among the messages, with which `counts`.
    """

    rows: NDArray[Any]
    vectors: NDArray[np.int8]
    lengths: NDArray[np.float32]
    codes: NDArray[np.uint64]
    places: NDArray[np.int32]
    counts: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        arrays = (self.rows, self.vectors, self.lengths, self.codes, self.places, self.counts)
        return sum(array.nbytes for array in arrays)

    @classmethod
    def of(cls, rows: Sequence[bytes], bags: Sequence[bytes], vectors: Sequence[bytes]) -> Block:
        """The messages of which these are the columns."""
        packed = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, PACKED_BYTES)
        postings = np.frombuffer(b"".join(bags), POSTING)
        sizes = [len(bag) // POSTING.itemsize for bag in bags]
        places = np.arange(len(rows), dtype=np.int32).repeat(sizes)
        codes = postings["code"].astype(np.uint64)
        order = codes.argsort(kind="stable")
        counts = postings["count"].astype(np.float32)
        return cls(
            np.frombuffer(b"".join(rows), ROW), packed, sizes_of(packed), codes[order], places[order], counts[order]
        )

    @classmethod
    def checked(cls, rows: Sequence[bytes], bags: Sequence[bytes], vectors: Sequence[bytes]) -> Block:
        """The same of columns as they are stored, with checksums.  Raises Damaged."""
        bare = [row[:-CHECKSUM_BYTES] for row in rows]
        for row, plain, bag, vector in zip(rows, bare, bags, vectors, strict=True):
            if row[-CHECKSUM_BYTES:] != _checksum(plain, bag, vector):
                raise Damaged("a message in the index is not as it was written")
        return cls.of(bare, bags, vectors)

    @classmethod
    def of_entries(cls, entries: Sequence[Entry]) -> Block:
        return cls.of([one.row for one in entries], [one.bag for one in entries], [one.vector for one in entries])


class Postings(NamedTuple):
    """The postings of a query's terms: which term, at which message, and how often that message has it.

    `terms` counts those that any message has; they are numbered 0, 1, ... in the query's order.
    """

    terms: int
    term: Ints
    at: Ints
    counts: Floats


@dataclass(frozen=True, eq=False)
class Candidates:
    """The messages of several blocks, as `rows` by session and then by id.

    `order` says where each stands when the blocks are laid end to end.  `postings` are those of the `asked` terms.
    """

    rows: NDArray[Any]
    asked: int
    postings: Postings
    blocks: Sequence[Block]
    order: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def likeness(self, vector: bytes) -> Floats:
        """The cosine of each message's vector with a packed one; 0 where either is missing."""
        return np.concatenate([cosines(block.vectors, vector, block.lengths) for block in self.blocks])[self.order]

    @classmethod
    def of(cls, indexed: Sequence[Block], waiting: Block, terms: Sequence[str], exclude: Collection[int]) -> Candidates:
        """The union of `indexed` and `waiting`; of a message in both the waiting one counts.

        Messages with an id in `exclude` are left out, as if they had never been said.
        """
        blocks = [*indexed, waiting]
        rows = np.concatenate([block.rows for block in blocks])
        ids = np.ascontiguousarray(rows["id"])
        shown = np.ones(len(rows), bool)
        if len(waiting):
            shown[: len(rows) - len(waiting)] = ~np.isin(ids[: len(rows) - len(waiting)], waiting.rows["id"])
        if exclude:
            shown &= ~np.isin(ids, np.fromiter(exclude, np.int64, len(exclude)))
        order = np.lexsort((ids, rows["session"]))
        order = order[shown[order]]
        place = np.full(len(rows), len(order))  # what is left out stands behind the end
        place[order] = np.arange(len(order))
        return cls(rows[order], len(terms), _postings(blocks, terms, place, len(order)), blocks, order)


def _postings(blocks: Sequence[Block], terms: Sequence[str], place: Ints, end: int) -> Postings:
    """The postings of `terms` in the messages whose `place` is before the `end`."""
    codes = np.fromiter(map(code, terms), np.uint64, len(terms))
    term, at, count = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    base = 0
    for block in blocks:
        begins, ends = block.codes.searchsorted(codes), block.codes.searchsorted(codes, "right")
        many = ends - begins
        entries = (ends - many.cumsum()).repeat(many)  # the runs of all terms, one after the other
        entries += np.arange(len(entries))
        term.append(np.arange(len(codes)).repeat(many))
        at.append(place[block.places[entries] + base])
        count.append(block.counts[entries])
        base += len(block)
    which, where, often = np.concatenate(term), np.concatenate(at), np.concatenate(count).astype(float)
    anywhere = np.bincount(which, minlength=len(codes)) > 0
    number = anywhere.cumsum() - 1
    shown = (where < end).nonzero()[0]
    return Postings(int(anywhere.sum()), number[which[shown]], where[shown], often[shown])
