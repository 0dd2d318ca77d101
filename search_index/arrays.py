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
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.caches import cached
from search_index.calibration import Calibration
from search_index.embeddings import cosines, norms, products, rows_of, unit_sum

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
REACH = 2  # messages on either side that belong to a message: a question, its answer, and what was said to that
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A sentence with the marks that end it.
_SENTENCES = re.compile(r"[^.!?。！？\n]++[.!?。！？\s]*+|[.!?。！？\s]++")
_ENTRY_BYTES = 400  # what Python takes for an entry beside its arrays and text


class Document(NamedTuple):
    """Message as the index sees it.  `session_id` and `message_id` are the caller's own 64-bit integers.

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
    """Return a term, or a role, as a 64-bit hash."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970, in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


class IndexedMessage(NamedTuple):
    """Analysed message: its terms in their order, and the bytes of its columns."""

    document: Document
    terms: list[str]
    row: bytes
    postings: bytes
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
        postings = np.array([(term_hash(term), count) for term, count in counts.items()], POSTING).tobytes()
        row["checksum"] = checksum(row.tobytes(), postings, vector)
        return cls(document, terms, row.tobytes(), postings, vector)

    @property
    def nbytes(self) -> int:
        text = 4 * len(self.document.content) + 8 * len(self.terms)
        return _ENTRY_BYTES + text + len(self.row) + len(self.postings) + len(self.vector)


def checksum(row: bytes, postings: bytes, vector: bytes) -> int:
    """Return the checksum of all columns of a message, but for itself at the end of its row."""
    return zlib.crc32(vector, zlib.crc32(postings, zlib.crc32(row[:-4])))


@dataclass(frozen=True, eq=False)
class Segment:
    """n messages: their `rows`, and their packed `vectors` (zeros where there is none) with their `norms`.

    unit_sum, vector_count: the sum of the vectors (see `embeddings.unit_sum`), and how many there are.
    sizes: distinct terms of each message; `terms` are their numbers in the sorted `vocabulary`, up to `term_ends`.
    doc_freqs: messages that have each term; `posting_rows` are which, with `counts`, up to `posting_ends`.
    """

    rows: NDArray[Any]
    vectors: NDArray[np.int8]
    norms: NDArray[np.float32]
    unit_sum: Ints
    vector_count: int
    vocabulary: Ints
    sizes: Ints
    term_ends: Ints
    terms: NDArray[np.int32]
    doc_freqs: Ints
    posting_ends: Ints
    posting_rows: NDArray[np.int32]
    counts: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    @classmethod
    def of(cls, rows: Sequence[bytes], postings: Sequence[bytes], vectors: Sequence[bytes]) -> Segment:
        """Return the messages with these columns."""
        packed = rows_of(vectors)
        joined = np.frombuffer(b"".join(postings), POSTING)
        sizes = np.array([len(column) // POSTING.itemsize for column in postings], np.int64)
        vocabulary, terms = np.unique(joined["code"], return_inverse=True)
        doc_freqs = np.bincount(terms, minlength=len(vocabulary))
        order = terms.argsort(kind="stable")
        return cls(
            rows=np.frombuffer(b"".join(rows), ROW),
            vectors=packed,
            norms=(lengths := norms(packed)),
            unit_sum=unit_sum(packed, lengths),
            vector_count=int(np.count_nonzero(lengths)),
            vocabulary=vocabulary,
            sizes=sizes,
            term_ends=sizes.cumsum(),
            terms=terms.astype(np.int32),
            doc_freqs=doc_freqs,
            posting_ends=doc_freqs.cumsum(),
            posting_rows=np.arange(len(rows), dtype=np.int32).repeat(sizes)[order],
            counts=joined["count"][order].astype(np.float32),
        )

    @classmethod
    def of_messages(cls, messages: Sequence[IndexedMessage]) -> Segment:
        columns = zip(*((message.row, message.postings, message.vector) for message in messages), strict=True)
        return cls.of(*columns)

    def terms_of(self, rows: Ints) -> Ints:
        """Return the numbers of the terms of these messages, one after the other."""
        return self.terms[_runs(self.term_ends[rows], self.sizes[rows])].astype(np.int64)

    def postings_of(self, terms: Ints) -> Ints:
        """Return the places of the postings of these terms, one term after the other."""
        return _runs(self.posting_ends[terms], self.doc_freqs[terms])


def _runs(ends: Ints, sizes: Ints) -> Ints:
    """Return the numbers of runs, each of which has a size and ends before a number."""
    return (ends - sizes.cumsum()).repeat(sizes) + np.arange(int(sizes.sum()))


class Postings(NamedTuple):
    """Occurrences of a query's terms: the number of the term, that of the message, and the count.

    They are sorted by term.  doc_freqs: messages that have each of these terms.
    """

    terms: Ints
    rows: Ints
    counts: Floats
    doc_freqs: Ints


@dataclass(frozen=True, eq=False)
class Candidates:
    """Messages to rank, sorted by session and id, with all that does not depend on the query: concat(segments)[order].

    place: where each message of the concatenated segments is, -1 for hidden ones.
    rarest: in how many messages the rarest term of each message is, 0 where it has none.
    session_of, starts: the number of each message's session, and where each session begins.
    line: places with REACH empty ones between sessions.
    near_lengths, near_count: the sum of the lengths of a message and its neighbours, and how many they are.
    """

    segments: Sequence[Segment]
    order: Ints
    place: Ints
    ids: Ints
    session: Ints
    created: Ints
    role: Ints
    speaker: Ints
    lengths: Floats
    tells: Floats
    rarest: Ints
    session_of: Ints
    starts: Ints
    line: Ints
    near_lengths: Floats
    near_count: Floats

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    @classmethod
    def of(cls, segments: Sequence[Segment], hidden: NDArray[np.bool_]) -> Candidates:
        """Return the messages of all segments but the `hidden` ones, as if these had never been said."""
        # As bytes: numpy copies structured rows field by field, which takes several times as long.
        joined = np.concatenate([segment.rows.view(np.uint8).reshape(-1, ROW.itemsize) for segment in segments])
        rows = joined.reshape(-1).view(ROW)
        ids = np.ascontiguousarray(rows["id"])
        # Segments mostly follow each other in time: then sorting by session alone is enough, and quick.
        is_sorted = bool((ids[1:] > ids[:-1]).all())
        session = np.ascontiguousarray(rows["session"])
        order = session.argsort(kind="stable") if is_sorted else np.lexsort((ids, session))
        order = order[~hidden[order]]
        vocabulary = np.unique(np.concatenate([segment.vocabulary for segment in segments]))
        numbers = [vocabulary.searchsorted(segment.vocabulary) for segment in segments]
        doc_freqs, base = np.zeros(len(vocabulary), np.int64), 0
        for segment, number in zip(segments, numbers, strict=True):
            doc_freqs[number] += segment.doc_freqs
            gone = hidden[base : base + len(segment.rows)].nonzero()[0]
            if len(gone):
                np.subtract.at(doc_freqs, number[segment.terms_of(gone)], 1)
            base += len(segment.rows)
        rarest = np.concatenate(
            [_rarest(segment, doc_freqs[number]) for segment, number in zip(segments, numbers, strict=True)]
        )
        rows = joined.take(order, axis=0).reshape(-1).view(ROW)
        session, lengths = session[order], rows["length"].astype(float)
        begins = np.empty(len(session), bool)
        begins[:1] = True
        np.not_equal(session[1:], session[:-1], out=begins[1:])
        session_of = begins.cumsum() - 1
        line = np.arange(len(session)) + REACH * (session_of + 1)
        place = np.full(len(ids), -1)
        place[order] = np.arange(len(order))
        return cls(
            segments=segments,
            order=order,
            place=place,
            ids=ids[order],
            session=session,
            created=np.ascontiguousarray(rows["created"]),
            role=np.ascontiguousarray(rows["role"]),
            speaker=np.ascontiguousarray(rows["speaker"]),
            lengths=lengths,
            tells=1 - rows["asks"].astype(float),
            rarest=rarest[order],
            session_of=session_of,
            starts=begins.nonzero()[0],
            line=line,
            near_lengths=window_sums(lengths, line),
            near_count=window_sums(np.ones(len(order)), line),
        )

    def postings(self, terms: Sequence[str]) -> Postings:
        """Return the postings of these terms among the messages."""
        hashes = np.fromiter(map(term_hash, terms), np.int64, len(terms))
        columns, base = [], 0
        for segment in self.segments:
            number = segment.vocabulary.searchsorted(hashes)
            known = segment.vocabulary.take(number, mode="clip") if len(segment.vocabulary) else np.zeros_like(number)
            present = (known == hashes).nonzero()[0]
            number = number[present]
            postings = segment.postings_of(number)
            rows = self.place[segment.posting_rows[postings] + base]
            columns.append((present.repeat(segment.doc_freqs[number]), rows, segment.counts[postings]))
            base += len(segment.rows)
        term, rows, counts = (np.concatenate(column) for column in zip(*columns, strict=True))
        shown = rows >= 0
        if len(self.segments) > 1 or not shown.all():
            at = shown.nonzero()[0]
            at = at[term[at].argsort(kind="stable")]
            term, rows, counts = term[at], rows[at], counts[at]
        doc_freqs = np.bincount(term, minlength=len(terms))
        is_known = doc_freqs > 0
        return Postings((is_known.cumsum() - 1)[term], rows, counts.astype(float), doc_freqs[is_known])

    def cosines(self, vector: bytes) -> Floats:
        """Return the cosine of each message's vector with the packed `vector`, 0 where it has no such vector."""
        compared = [cosines(segment.vectors, vector, segment.norms) for segment in self.segments]
        return np.concatenate(compared)[self.order]

    def near(self, vector: bytes, calibration: Calibration, rows: Ints | None = None) -> Floats:
        """Return how near messages are to the packed `vector` (see `calibration`); 0 for one without such a vector.

        rows: the messages; None: all.
        """
        view = calibration.view(vector, *self._vector_sum(len(vector)))
        order, base = self.order if rows is None else self.order[rows], 0
        near = np.zeros(len(order))
        for segment in self.segments:
            own = ((order >= base) & (order < base + len(segment.rows))).nonzero()[0]
            if len(own) and segment.vectors.shape[1] == len(vector):
                places = order[own] - base
                if 2 * len(own) > len(segment.rows):  # cheaper in one go than picked
                    near[own] = view.near(products(segment.vectors, view.targets), segment.norms)[places]
                else:
                    near[own] = view.near(products(segment.vectors[places], view.targets), segment.norms[places])
            base += len(segment.rows)
        return near

    @property
    def has_vectors(self) -> bool:
        return any(segment.vector_count for segment in self.segments)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of ROW that few features take."""
        return np.concatenate([segment.rows[name] for segment in self.segments])[self.order]

    @property
    def sizes(self) -> Ints:
        """Return how many distinct terms each message has."""
        return np.concatenate([segment.sizes for segment in self.segments])[self.order]

    def _vector_sum(self, size: int) -> tuple[Ints, int]:
        """Return the sum of the messages' vectors of this size (see `embeddings.unit_sum`), and how many they are."""
        total, count, base = np.zeros(size, np.int64), 0, 0
        hidden = (self.place < 0).nonzero()[0]
        for segment in self.segments:
            if segment.vectors.shape[1] == size:
                total += segment.unit_sum
                count += segment.vector_count
                gone = hidden[(hidden >= base) & (hidden < base + len(segment.rows))] - base
                if len(gone):
                    total -= unit_sum(segment.vectors[gone], segment.norms[gone])
                    count -= int(np.count_nonzero(segment.norms[gone]))
            base += len(segment.rows)
        return total, count


def window_sums(values: Floats, line: Ints) -> Floats:
    """Return the sum of each message's value and those of its REACH neighbours on either side in its session."""
    places = np.zeros(int(line[-1]) + REACH + 1 if len(line) else 0)
    places[line] = values
    sums: Floats = line_sums(places)[line]
    return sums


def line_sums(line: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of each value on a line and of REACH values on either side."""
    total = line.copy()
    for step in range(1, REACH + 1):
        total[step:] += line[:-step]
        total[:-step] += line[step:]
    return total


def _rarest(segment: Segment, doc_freqs: Ints) -> Ints:
    """Return how many messages have the rarest term of each message, 0 where it has no term."""
    least, has_terms = np.zeros(len(segment.rows), np.int64), segment.sizes > 0
    if len(segment.terms):
        begins = segment.sizes.cumsum() - segment.sizes
        least[has_terms] = np.minimum.reduceat(doc_freqs.take(segment.terms), begins[has_terms])
    return least
