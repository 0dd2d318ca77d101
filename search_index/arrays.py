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
from search_index.vectors import PACKED_BYTES, cosines, lengths_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROW = np.dtype(
    [(name, "<i8") for name in ("id", "session", "created", "role", "length", "squares")] + [("checksum", "<u4")]
)
"""A message's numbers: `created` in microseconds since 1970, `role` as a hash, the number of its terms, the sum of
their squared counts, and the checksum of all its columns."""

POSTING = np.dtype([("code", "<u8"), ("count", "<u4")])
"""A term of a message as a number (see `code`), and how often the message has it."""

_CHECKSUM_BYTES = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OBJECT_BYTES = 400  # what Python takes for an entry beside its arrays and text


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
        """`vector` is packed (see `vectors`)."""
        counts = Counter(terms)
        squares = sum(count * count for count in counts.values())
        created, role = microseconds(document.created_at), role_number(document.role)
        row = np.array((document.message_id, document.session_id, created, role, len(terms), squares, 0), ROW)
        bag = np.array([(code(term), count) for term, count in counts.items()], POSTING).tobytes()
        row["checksum"] = checksum(row.tobytes(), bag, vector)
        return cls(document, tuple(terms), row.tobytes(), bag, vector)

    @property
    def nbytes(self) -> int:
        text = 4 * len(self.document.content) + 8 * len(self.terms)
        return _OBJECT_BYTES + text + len(self.row) + len(self.bag) + len(self.vector)


def checksum(row: bytes, bag: bytes, vector: bytes) -> int:
    """Of all columns of a message, without the checksum in its row."""
    return zlib.crc32(vector, zlib.crc32(bag, zlib.crc32(row[:-_CHECKSUM_BYTES])))


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

    @property
    def nbytes(self) -> int:
        arrays = (self.rows, self.vectors, self.lengths, self.codes, self.places, self.counts)
        return sum(array.nbytes for array in arrays)

    @classmethod
    def of(cls, rows: Sequence[bytes], bags: Sequence[bytes], vectors: Sequence[bytes]) -> Block:
        """The messages with these columns."""
        table = np.frombuffer(b"".join(rows), ROW)
        packed = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, PACKED_BYTES)
        postings = np.frombuffer(b"".join(bags), POSTING)
        places = np.arange(len(rows), dtype=np.int32).repeat([len(bag) // POSTING.itemsize for bag in bags])
        codes = postings["code"].astype(np.uint64)
        order = codes.argsort(kind="stable")
        counts = postings["count"].astype(np.float32)
        return cls(table, packed, lengths_of(packed), codes[order], places[order], counts[order])


class Candidates(NamedTuple):
    """The messages to rank, as `rows` by session and then by id, and where the query's terms occur in them.

    Posting i says: term number `term[i]` is in the message `at[i]`, `counts[i]` times.  The query asks for `asked`
    terms; the `terms` that any message has are numbered 0, 1, ... in the query's order.  `likeness` is the cosine of
    each message's vector with the query's, 0 where either is missing.
    """

    rows: NDArray[Any]
    likeness: Floats
    asked: int
    terms: int
    term: Ints
    at: Ints
    counts: Floats


def gather(
    indexed: Sequence[Block], waiting: Block, terms: Sequence[str], vector: bytes, exclude: Collection[int] = ()
) -> Candidates:
    """The messages of all blocks; of one that is both `indexed` and `waiting` the waiting one counts.

    Indexed messages with an id in `exclude` are left out, as if they had never been said.
    """
    blocks = [*indexed, waiting]
    rows = np.concatenate([block.rows for block in blocks])
    ids = np.ascontiguousarray(rows["id"])
    hidden = [*exclude, *waiting.rows["id"].tolist()]
    shown = np.isin(ids, np.array(hidden, np.int64), invert=True)
    shown[len(rows) - len(waiting.rows) :] = True
    order = np.lexsort((ids, rows["session"]))
    order = order[shown[order]]
    place = np.full(len(rows), -1)  # of each message among those shown
    place[order] = np.arange(len(order))

    codes = np.fromiter(map(code, terms), np.uint64, len(terms))
    term, at, counts, base = [], [], [], 0
    for block in blocks:
        begins, ends = block.codes.searchsorted(codes), block.codes.searchsorted(codes, "right")
        many = ends - begins
        found = (ends - many.cumsum()).repeat(many)  # the runs of all terms, one after the other
        found += np.arange(len(found))
        term.append(np.arange(len(codes)).repeat(many))
        at.append(place[block.places[found] + base])
        counts.append(block.counts[found])
        base += len(block.rows)
    which, where = np.concatenate(term), np.concatenate(at)
    anywhere = np.bincount(which, minlength=len(codes)) > 0
    there = where >= 0
    return Candidates(
        rows=rows[order],
        likeness=np.concatenate([cosines(block.vectors, vector, block.lengths) for block in blocks])[order],
        asked=len(terms),
        terms=int(anywhere.sum()),
        term=(anywhere.cumsum() - 1)[which[there]],
        at=where[there],
        counts=np.concatenate(counts)[there].astype(float),
    )
