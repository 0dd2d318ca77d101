"""Messages as numpy arrays, ready to be ranked.

A `Segment` holds the messages of one segment of the index, or those that are not indexed yet; it never changes.
`Candidates` are the messages of all segments, by session and in the order in which they were said.  So the rows beside
a message are its neighbours, and every sum is the same to the last bit wherever a message is stored.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.caches import cached
from search_index.embeddings import cosines, norms, rows_of, unit_sum
from search_index.yardstick import Yardstick

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A message's numbers: `created` in microseconds since 1970; `role`, and the first term of the `speaker`'s name, as
# hashes (0: no name); the number of its terms, and the sum of their squared counts; which share of its text `asks`; and
# the checksum of all its columns.
ROW = np.dtype(
    [(name, "<i8") for name in ("id", "session", "created", "role", "speaker")]
    + [("length", "<i4"), ("squares", "<f4"), ("asks", "<f2"), ("checksum", "<u4")]
)
POSTING = np.dtype([("code", "<i8"), ("count", "<i8")])  # a term of a message as a hash, and how often it has it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = np.iinfo(np.int64).max
# A sentence with the marks that end it.
_SENTENCES = re.compile(r"[^.!?。！？\n]++[.!?。！？\s]*+|[.!?。！？\s]++")
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


@cached(16_384)
def term_hash(word: str) -> int:
    """A term, or a role, as a 64-bit hash."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def microseconds(moment: datetime) -> int:
    """Since 1970, in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


class IndexedMessage(NamedTuple):
    """An analysed message: its terms in their order, and the bytes of its columns."""

    document: Document
    terms: list[str]
    row: bytes
    bag: bytes
    vector: bytes

    @classmethod
    def of(cls, document: Document, terms: list[str], vector: bytes, speaker: int = 0) -> IndexedMessage:
        """`vector` is packed (see `embeddings`)."""
        content, counts = document.content, Counter(terms)
        row = np.zeros((), ROW)
        row["id"], row["session"] = document.message_id, document.session_id
        row["created"], row["role"], row["speaker"] = (
            microseconds(document.created_at),
            term_hash(document.role),
            speaker,
        )
        row["length"], row["squares"] = len(terms), sum(count * count for count in counts.values())
        questions = sum(len(sentence) for sentence in _SENTENCES.findall(content) if sentence.rstrip()[-1:] in "?？")
        row["asks"] = questions / max(len(content), 1)
        bag = np.array([(term_hash(term), count) for term, count in counts.items()], POSTING).tobytes()
        row["checksum"] = checksum(row.tobytes(), bag, vector)
        return cls(document, terms, row.tobytes(), bag, vector)

    @property
    def nbytes(self) -> int:
        text = 4 * len(self.document.content) + 8 * len(self.terms)
        return _OBJECT_BYTES + text + len(self.row) + len(self.bag) + len(self.vector)


def checksum(row: bytes, bag: bytes, vector: bytes) -> int:
    """Of all columns of a message, without the checksum at the end of its row."""
    return zlib.crc32(vector, zlib.crc32(bag, zlib.crc32(row[:-4])))


@dataclass(frozen=True, eq=False)
class Segment:
    """n messages: their `rows`, and their packed `embeddings` (zeros where there is none) with their lengths and
    their sum (see `unit_sum`).

    Each has `sizes` distinct terms; message by message, `terms` are their numbers in the sorted `vocabulary`.  Term by
    term, `doc_freqs` is how many messages have it, and `places` are which, with `counts`, up to where it `ends`.
    """

    rows: NDArray[Any]
    vectors: NDArray[np.int8]
    lengths: NDArray[np.float32]
    unit_sum: Ints
    vocabulary: Ints
    sizes: Ints
    terms: NDArray[np.int32]
    doc_freqs: Ints
    ends: Ints
    places: NDArray[np.int32]
    counts: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in vars(self).values())

    @classmethod
    def of(cls, rows: Sequence[bytes], bags: Sequence[bytes], vectors: Sequence[bytes]) -> Segment:
        """The messages with these columns."""
        packed = rows_of(vectors)
        postings = np.frombuffer(b"".join(bags), POSTING)
        sizes = np.array([len(bag) // POSTING.itemsize for bag in bags], np.int64)
        vocabulary, terms = np.unique(postings["code"], return_inverse=True)
        doc_freqs = np.bincount(terms, minlength=len(vocabulary))
        order = terms.argsort(kind="stable")
        return cls(
            rows=np.frombuffer(b"".join(rows), ROW),
            vectors=packed,
            lengths=(lengths := norms(packed)),
            unit_sum=unit_sum(packed, lengths),
            vocabulary=vocabulary,
            sizes=sizes,
            terms=terms.astype(np.int32),
            doc_freqs=doc_freqs,
            ends=doc_freqs.cumsum(),
            places=np.arange(len(rows), dtype=np.int32).repeat(sizes)[order],
            counts=postings["count"][order].astype(np.float32),
        )


EMPTY = Segment.of((), (), ())


@dataclass(frozen=True, eq=False)
class Candidates:
    """The messages to rank, as `rows` by session and then by id: those of `segments`, laid end to end, at `order`.

    The query asks for `asked` terms; `counts` has a row for each that any message has, and a column for each message.
    """

    segments: Sequence[Segment]
    order: Ints
    rows: NDArray[Any]
    asked: int
    counts: Floats

    def cosine_similarity(self, vector: bytes) -> Floats:
        """The cosine of each message's vector with the packed `vector`, 0 where either is missing."""
        found = [cosines(segment.vectors, vector, segment.lengths) for segment in self.segments]
        return np.concatenate(found)[self.order]

    def near(self, vector: bytes, yardstick: Yardstick) -> Floats:
        """How near each message is to the packed `vector` (see `yardstick`); 0 where it has no such vector."""
        total, count = np.zeros(len(vector), np.int64), 0
        for segment, shown in zip(self.segments, self.shown, strict=True):
            if segment.vectors.shape[1] == len(vector):
                total += segment.unit_sum
                count += int(np.count_nonzero(segment.lengths[shown]))
                if not shown.all():
                    total -= unit_sum(segment.vectors[~shown], segment.lengths[~shown])
        view = yardstick.view(vector, total, count)
        compared, lengths = list[NDArray[np.float32]](), list[NDArray[np.float32]]()
        for segment in self.segments:
            is_alike = segment.vectors.shape[1] == len(vector)
            compared.append(
                view.products(segment.vectors) if is_alike else np.zeros((2, len(segment.rows)), np.float32)
            )
            lengths.append(segment.lengths if is_alike else np.zeros_like(segment.lengths))
        return view.near(np.concatenate(compared, axis=1), np.concatenate(lengths))[self.order]

    @cached_property
    def shown(self) -> list[NDArray[np.bool_]]:
        """For each segment, which of its messages are among these."""
        ends = np.cumsum([len(segment.rows) for segment in self.segments])
        among = np.zeros(ends[-1], bool)
        among[self.order] = True
        return np.split(among, ends[:-1])

    @property
    def sizes(self) -> Ints:
        """How many distinct terms each message has."""
        return np.concatenate([segment.sizes for segment in self.segments])[self.order]

    def rarest_term(self) -> NDArray[np.int32]:
        """In how many messages the rarest_term term of each message is, 0 where it has no term."""
        starts = np.cumsum([0, *(len(segment.rows) for segment in self.segments)])
        vocabulary = np.sort(
            np.concatenate([segment.vocabulary for segment in self.segments])
        )  # of repeats the first counts
        doc_freqs = np.zeros(len(vocabulary), np.int32)
        where = [vocabulary.searchsorted(segment.vocabulary) for segment in self.segments]
        for segment, held, at in zip(self.segments, self.shown, where, strict=True):
            doc_freqs[at] += segment.doc_freqs
            if not held.all():
                doc_freqs[at] -= np.bincount(segment.terms[~held.repeat(segment.sizes)], minlength=len(at))
        least = np.zeros(starts[-1], np.int32)
        for segment, start, at in zip(self.segments, starts, where, strict=False):
            if len(segment.terms):
                held = segment.sizes > 0
                begins = segment.sizes.cumsum() - segment.sizes
                found = np.minimum.reduceat(doc_freqs[at].take(segment.terms), begins[held])
                least[start : start + len(segment.rows)][held] = found
        return least[self.order]


def load_candidates(
    indexed: Sequence[Segment], waiting: Segment, terms: Sequence[str], exclude: Collection[int] = ()
) -> Candidates:
    """The messages of all segments; of one that is both `indexed` and `waiting` the waiting one counts.

    Indexed messages with an id in `exclude` are left out, as if they had never been said.
    """
    segments = [*indexed, waiting] if len(waiting.rows) or not indexed else indexed
    rows = np.frombuffer(b"".join([segment.rows.tobytes() for segment in segments]), ROW)
    ids = np.ascontiguousarray(rows["id"])
    hidden = np.array([*sorted({*exclude, *waiting.rows["id"].tolist()}), _LARGEST])
    shown = hidden[hidden.searchsorted(ids)] != ids
    shown[len(rows) - len(waiting.rows) :] = True
    order = np.lexsort((ids, rows["session"]))
    order = order[shown[order]]
    place = np.full(len(rows), -1)  # of each message among those shown
    place[order] = np.arange(len(order))

    codes = np.fromiter(map(term_hash, terms), np.int64, len(terms))
    term, at, times, base = [], [], [], 0
    for segment in segments:
        number = segment.vocabulary.searchsorted(codes)
        there = np.append(segment.vocabulary, 0)[number] == codes
        number = number[there]
        many = segment.doc_freqs[number]
        found = (segment.ends[number] - many.cumsum()).repeat(many)  # the runs of all terms, one after the other
        found += np.arange(len(found))
        term.append(there.nonzero()[0].repeat(many))
        at.append(segment.places[found] + base)
        times.append(segment.counts[found])
        base += len(segment.rows)
    where = place[np.concatenate(at)]
    there = where >= 0
    which = np.concatenate(term)[there]
    held = np.bincount(which, minlength=len(codes)) > 0
    counts = np.zeros((int(held.sum()), len(order)))
    counts[(held.cumsum() - 1)[which], where[there]] = np.concatenate(times)[there]
    return Candidates(segments, order, rows[order], len(terms), counts)
