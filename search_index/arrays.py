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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.caches import cached
from search_index.vectors import PACKED_BYTES, cosines, lengths_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A message's numbers: `created` in microseconds since 1970, `role` as a hash, the number of its terms, the sum of their
# squared counts, and the checksum of all its columns.
ROW = np.dtype([(name, "<i8") for name in ("id", "session", "created", "role", "length", "squares", "checksum")])
POSTING = np.dtype([("code", "<i8"), ("count", "<i8")])  # a term of a message as a hash, and how often it has it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = np.iinfo(np.int64).max
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
def code(word: str) -> int:
    """A term, or a role, as a 64-bit hash."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def microseconds(moment: datetime) -> int:
    """Since 1970, in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


class Entry(NamedTuple):
    """An analysed message: its terms in their order, and the bytes of its columns."""

    document: Document
    terms: list[str]
    row: bytes
    bag: bytes
    vector: bytes

    @classmethod
    def of(cls, document: Document, terms: list[str], vector: bytes) -> Entry:
        """`vector` is packed (see `vectors`)."""
        counts = Counter(terms)
        squares = sum(count * count for count in counts.values())
        created, role = microseconds(document.created_at), code(document.role)
        row = np.array((document.message_id, document.session_id, created, role, len(terms), squares, 0), ROW)
        bag = np.array([(code(term), count) for term, count in counts.items()], POSTING).tobytes()
        row["checksum"] = checksum(row.tobytes(), bag, vector)
        return cls(document, terms, row.tobytes(), bag, vector)

    @property
    def nbytes(self) -> int:
        text = 4 * len(self.document.content) + 8 * len(self.terms)
        return _OBJECT_BYTES + text + len(self.row) + len(self.bag) + len(self.vector)


def checksum(row: bytes, bag: bytes, vector: bytes) -> int:
    """Of all columns of a message, without the checksum at the end of its row."""
    return zlib.crc32(vector, zlib.crc32(bag, zlib.crc32(row[:-8])))


@dataclass(frozen=True, eq=False)
class Block:
    """n messages: their `rows`, and their packed `vectors` (n x 256, zeros where there is none) with their lengths.

    The postings of all their terms are sorted by `codes`: at which `places` among the messages, with which `counts`.
    """

    rows: NDArray[Any]
    vectors: NDArray[np.int8]
    lengths: NDArray[np.float32]
    codes: Ints
    places: NDArray[np.int32]
    counts: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in vars(self).values())

    @classmethod
    def of(cls, rows: Sequence[bytes], bags: Sequence[bytes], vectors: Sequence[bytes]) -> Block:
        """The messages with these columns."""
        packed = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, PACKED_BYTES)
        postings = np.frombuffer(b"".join(bags), POSTING)
        places = np.arange(len(rows), dtype=np.int32).repeat([len(bag) // POSTING.itemsize for bag in bags])
        order = postings["code"].argsort(kind="stable")
        codes, counts = postings["code"][order], postings["count"][order].astype(np.float32)
        return cls(np.frombuffer(b"".join(rows), ROW), packed, lengths_of(packed), codes, places[order], counts)


EMPTY = Block.of((), (), ())


class Candidates(NamedTuple):
    """The messages to rank, as `rows` by session and then by id, and how often each has the query's terms.

    `likeness` is the cosine of each message's vector with the query's, 0 where either is missing.  The query asks for
    `asked` terms; `counts` has a row for each that any message has, and a column for each message.
    """

    rows: NDArray[Any]
    likeness: Floats
    asked: int
    counts: Floats


def gather(
    indexed: Sequence[Block], waiting: Block, terms: Sequence[str], vector: bytes, exclude: Collection[int] = ()
) -> Candidates:
    """The messages of all blocks; of one that is both `indexed` and `waiting` the waiting one counts.

    Indexed messages with an id in `exclude` are left out, as if they had never been said.
    """
    blocks = [*indexed, waiting] if len(waiting.rows) or not indexed else indexed
    rows = np.frombuffer(b"".join([block.rows.tobytes() for block in blocks]), ROW)
    ids = np.ascontiguousarray(rows["id"])
    hidden = np.array([*sorted({*exclude, *waiting.rows["id"].tolist()}), _LARGEST])
    shown = hidden[hidden.searchsorted(ids)] != ids
    shown[len(rows) - len(waiting.rows) :] = True
    order = np.lexsort((ids, rows["session"]))
    order = order[shown[order]]
    place = np.full(len(rows), -1)  # of each message among those shown
    place[order] = np.arange(len(order))
    likeness = cosines(
        np.concatenate([block.vectors for block in blocks]),
        vector,
        np.concatenate([block.lengths for block in blocks]),
    )

    codes = np.fromiter(map(code, terms), np.int64, len(terms))
    term, at, times, base = [], [], [], 0
    for block in blocks:
        begins, ends = block.codes.searchsorted(codes), block.codes.searchsorted(codes, "right")
        many = ends - begins
        found = (ends - many.cumsum()).repeat(many)  # the runs of all terms, one after the other
        found += np.arange(len(found))
        term.append(np.arange(len(codes)).repeat(many))
        at.append(block.places[found] + base)
        times.append(block.counts[found])
        base += len(block.rows)
    where = place[np.concatenate(at)]
    there = where >= 0
    which = np.concatenate(term)[there]
    held = np.bincount(which, minlength=len(codes)) > 0
    counts = np.zeros((int(held.sum()), len(order)))
    counts[(held.cumsum() - 1)[which], where[there]] = np.concatenate(times)[there]
    return Candidates(rows[order], likeness[order], len(terms), counts)
