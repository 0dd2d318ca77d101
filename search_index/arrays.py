"""Messages as numpy arrays, ready to be ranked.

A `Segment` holds the messages of one segment of the index, or those that are not indexed yet; it never changes.
`Candidates` are the messages of all segments, by session and in the order in which they were said.  So the rows beside
a message are its neighbours, and every sum is the same to the last bit wherever a message is stored.
"""

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import mul
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from search_index.caches import cached
from search_index.embeddings import Vectors

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A message's numbers: `created` in microseconds since 1970; `role`, and the first term of the `speaker`'s name, as
# hashes (0: no name); the number of its terms, and the sum of their squared counts; the `size` of its text, and which
# share of it `asks`; and the checksum of all its columns.
ROW = np.dtype(
    [(name, "<i8") for name in ("id", "session", "created", "role", "speaker")]
    + [("length", "<i4"), ("squares", "<f4"), ("size", "<i4"), ("asks", "<f2"), ("checksum", "<u4")]
)
POSTING = np.dtype([("code", "<i8"), ("count", "<i8")])  # a term of a message as a hash, and how often it has it
# BM25's constants.  Chat messages are short and say a thing once: repeats and length count for less than in the usual
# 1.2 and 0.75.
K1, B = 0.9, 0.4
# Bytes of text, as UTF-8: of a question that tells as much as it asks, since people explain at length what they need;
# and of a text of which a longer one has rare terms because of its length.
TELLING_SIZE, RARE_SIZE = 350, 500
REACH = 2  # messages on either side that belong to a message: a question, its answer, and what was said to that
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A sentence with the marks that end it.
_SENTENCES = re.compile(r"[^.!?。！？\n]++[.!?。！？\s]*+|[.!?。！？\s]++")
_ENTRY_BYTES = 400  # what Python takes for an entry beside its arrays and text
_COLUMNS_BYTES = 1_200  # and for columns beside what is in their arrays


class SearchableText(NamedTuple):
    """Message, or other text to be ranked, as the index takes it.

    `session_id` and `message_id` are the caller's own 64-bit integers.
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

    text: SearchableText
    terms: list[str]
    row: bytes
    postings: bytes
    vector: bytes

    @classmethod
    def of(cls, text: SearchableText, terms: list[str], vector: bytes, speaker: int = 0) -> Self:
        """`vector` is packed (see `embeddings`)."""
        content = text.content
        counts = Counter(terms)
        row = np.zeros((), ROW)
        row["id"], row["session"] = text.message_id, text.session_id
        row["created"] = microseconds(text.created_at)
        row["role"] = term_hash(text.role)
        row["speaker"] = speaker
        row["length"] = len(terms)
        row["squares"] = sum(map(mul, counts.values(), counts.values()))
        questions = sum(len(sentence) for sentence in _SENTENCES.findall(content) if sentence.rstrip()[-1:] in "?？")
        row["asks"] = questions / max(len(content), 1)
        row["size"] = len(content.encode("utf-8", "surrogatepass"))
        postings = np.array([(term_hash(term), count) for term, count in counts.items()], POSTING).tobytes()
        row["checksum"] = checksum(row.tobytes(), postings, vector)
        return cls(text, terms, row.tobytes(), postings, vector)

    @property
    def nbytes(self) -> int:
        size = 4 * len(self.text.content) + 8 * len(self.terms)
        return _ENTRY_BYTES + size + len(self.row) + len(self.postings) + len(self.vector)


def checksum(row: bytes, postings: bytes, vector: bytes) -> int:
    """Return the checksum of all columns of a message, but for itself at the end of its row."""
    return zlib.crc32(vector, zlib.crc32(postings, zlib.crc32(row[:-4])))


@dataclass(frozen=True, eq=False)
class Columns:
    """Vectors and terms of messages.

    vocabulary, doc_freqs: terms as hashes, sorted, and how many messages have each; `posting_rows` are which, one term
    after the other, and `counts` how often.
    """

    vectors: Vectors
    vocabulary: Ints
    doc_freqs: Ints
    posting_rows: NDArray[np.int32]
    counts: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        columns = (*vars(self).values(), *self.vectors)
        arrays = (array.nbytes for array in columns if isinstance(array, np.ndarray))
        return _COLUMNS_BYTES + sum(arrays)


@dataclass(frozen=True, eq=False)
class Segment(Columns):
    """Messages as they are stored, with their `rows`."""

    rows: NDArray[Any]

    @classmethod
    def of(cls, rows: Sequence[bytes], postings: Sequence[bytes], vectors: Sequence[bytes]) -> Self:
        """Return the messages with these columns."""
        joined = np.frombuffer(b"".join(postings), POSTING)
        sizes = [len(column) // POSTING.itemsize for column in postings]
        order = joined["code"].argsort(kind="stable")
        vocabulary, doc_freqs = _runs(joined["code"][order])
        return cls(
            rows=np.frombuffer(b"".join(rows), ROW),
            vectors=Vectors.of(vectors),
            vocabulary=vocabulary,
            doc_freqs=doc_freqs,
            posting_rows=np.arange(len(rows), dtype=np.int32).repeat(sizes)[order],
            counts=joined["count"][order].astype(np.float32),
        )

    @classmethod
    def of_messages(cls, messages: Sequence[IndexedMessage]) -> Self:
        columns = zip(*((message.row, message.postings, message.vector) for message in messages), strict=True)
        return cls.of(*columns)


class Postings(NamedTuple):
    """Occurrences of a query's terms: the number of the term, that of the message, and the count.

    They are sorted by term.  doc_freqs: messages that have each of these terms.
    known: the numbers in the query of the terms that a message has.
    """

    terms: Ints
    rows: Ints
    counts: Floats
    doc_freqs: Ints
    known: Ints


@dataclass(frozen=True, eq=False)
class Candidates(Columns):
    """Messages to rank, sorted by session and id, with all that does not depend on the query.

    posting_ends: where the postings of each term end.
    tells: how much each message tells: the share of its text that is no question, or its share of TELLING_SIZE.
    rare: the idf of the rarest term of each message, less for a text above RARE_SIZE, 0 where it has none.
    session_of: the number of each message's session.
    line: places with REACH empty ones between sessions; message_at: which message is at a place, -1 for none.
    own_lengths, near_lengths, session_lengths: what BM25 takes for the length of each message, of each with its
    neighbours, and of each session.
    near_count: how many a message and its neighbours are.
    """

    posting_ends: Ints
    ids: Ints
    session: Ints
    created: Ints
    role: Ints
    speaker: Ints
    speakers: frozenset[int]
    tells: Floats
    rare: Floats
    session_of: Ints
    line: Ints
    message_at: Ints
    own_lengths: Floats
    near_lengths: Floats
    session_lengths: Floats
    near_count: Floats

    @classmethod
    def of(cls, segments: Sequence[Segment], hidden: NDArray[np.bool_]) -> Self:
        """Return the messages of all segments but the `hidden` ones, as if these had never been said."""
        # As bytes: numpy copies structured rows field by field, which takes several times as long.
        joined = np.concatenate([segment.rows.view(np.uint8).reshape(-1, ROW.itemsize) for segment in segments])
        rows = joined.reshape(-1).view(ROW)
        ids, session = np.ascontiguousarray(rows["id"]), np.ascontiguousarray(rows["session"])
        # Segments mostly follow each other in time: then sorting by session alone is enough, and quick.
        is_sorted = bool((ids[1:] > ids[:-1]).all())
        order = session.argsort(kind="stable") if is_sorted else np.lexsort((ids, session))
        order = order[~hidden[order]]
        rows = joined.take(order, axis=0).reshape(-1).view(ROW)
        session = session[order]
        lengths = rows["length"].astype(float)
        count = len(order)
        sizes = _runs(session)[1]
        session_of = np.arange(len(sizes)).repeat(sizes)
        line = np.arange(count) + REACH * (session_of + 1)
        message_at = np.full(count + REACH * (len(sizes) + 1), -1)
        message_at[line] = np.arange(count)
        speaker = np.ascontiguousarray(rows["speaker"])
        postings = _postings(segments, order)
        return cls(
            **postings,
            vectors=Vectors.join([segment.vectors for segment in segments], order, hidden),
            ids=ids[order],
            session=session,
            created=np.ascontiguousarray(rows["created"]),
            role=np.ascontiguousarray(rows["role"]),
            speaker=speaker,
            speakers=frozenset(speaker.tolist()) - {0},
            tells=np.maximum(1 - rows["asks"].astype(float), np.minimum(rows["size"] / TELLING_SIZE, 1)),
            rare=_rare(rows["size"], postings["posting_rows"], postings["doc_freqs"]),
            session_of=session_of,
            line=line,
            message_at=message_at,
            own_lengths=bm25_lengths(lengths),
            near_lengths=bm25_lengths(window_sums(lengths, line)),
            session_lengths=bm25_lengths(np.bincount(session_of, lengths).astype(float)),
            near_count=window_sums(np.ones(count), line),
        )

    def postings(self, terms: Sequence[str], forms: Mapping[str, str]) -> Postings:
        """Return the postings of those of these terms that a message has, in one of its forms.

        forms: other forms of terms, each with its term.
        """
        hashes = np.fromiter(map(term_hash, [*terms, *forms]), np.int64)
        number = self.vocabulary.searchsorted(hashes)
        known = (
            self.vocabulary.take(number, mode="clip") == hashes if len(self.vocabulary) else np.zeros_like(number, bool)
        )
        number = number[known]
        doc_freqs = self.doc_freqs[number]
        at = (self.posting_ends[number] - doc_freqs.cumsum()).repeat(doc_freqs) + np.arange(int(doc_freqs.sum()))
        terms_of = np.arange(len(number)).repeat(doc_freqs)
        numbers = known.nonzero()[0]
        if forms:
            term_of_form = np.array([*range(len(terms)), *map(terms.index, forms.values())])[known]
            numbers, term_of = np.unique(term_of_form, return_inverse=True)
            terms_of = term_of[terms_of]
            first = np.unique(terms_of * len(self.ids) + self.posting_rows[at], return_index=True)[1]
            terms_of, at = terms_of[first], at[first]
            doc_freqs = np.bincount(terms_of)
        return Postings(terms_of, self.posting_rows[at], self.counts[at].astype(float), doc_freqs, numbers)


def _postings(segments: Sequence[Segment], order: Ints) -> dict[str, Any]:
    """Return the fields of `Candidates` about terms."""
    sizes = [len(segment.rows) for segment in segments]
    place = np.full(sum(sizes), -1, np.int32)
    place[order] = np.arange(len(order))
    places = np.split(place, np.cumsum(sizes)[:-1])
    rows = np.concatenate([own[segment.posting_rows] for segment, own in zip(segments, places, strict=True)])
    codes = np.concatenate([segment.vocabulary.repeat(segment.doc_freqs) for segment in segments])
    at = codes.argsort(kind="stable")
    at = at[rows[at] >= 0]
    vocabulary, doc_freqs = _runs(codes[at])
    return {
        "vocabulary": vocabulary,
        "doc_freqs": doc_freqs,
        "posting_ends": doc_freqs.cumsum(),
        "posting_rows": rows[at],
        "counts": np.concatenate([segment.counts for segment in segments])[at],
    }


def _rare(sizes: NDArray[np.int32], posting_rows: NDArray[np.int32], doc_freqs: Ints) -> Floats:
    """Return `Candidates.rare` for messages with texts of these sizes."""
    count = len(sizes)
    rarest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(rarest, posting_rows, doc_freqs.repeat(doc_freqs))
    has_terms = rarest <= count
    idf = np.where(has_terms, np.log1p(count / (np.where(has_terms, rarest, 1) + 1)), 0.0)
    rare: Floats = idf * np.sqrt(np.minimum(RARE_SIZE / np.maximum(sizes, 1), 1))
    return rare


def _runs(values: Ints) -> tuple[Ints, Ints]:
    """Return the value of each run of equal values, and its size."""
    begins = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    starts = begins.nonzero()[0]
    return values[starts], np.diff(starts, append=len(values))


def bm25_lengths(lengths: Floats) -> Floats:
    """Return what BM25 adds to a term's count in texts with these lengths."""
    average = float(np.add.reduce(lengths)) / max(len(lengths), 1) or 1.0
    return K1 * (1 - B + B * lengths / average)


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
