"""An owner's messages that are not indexed yet, as arrays that are ready to be searched.

The same ones wait search after search, and a message never changes once it was said.  So what was made of them is kept
from one search to the next, which works on what is new alone, and is told the words of nothing else (`known`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.held import Floats32, Ints
from search_index.postings import NUMBERS, TERM, Entry
from search_index.vectors import PACKED_BYTES, sizes_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OWN_BYTES, _MARK_BYTES = 2_000, 400  # what Python takes for the objects, and for a mark and its parts


class Document(NamedTuple):
    """A message as the index sees it.  `session_id` and `message_id` are the caller's own integers, of 64 bits.

    `created_at` is exact to the microsecond; without a zone it is UTC.  Without `content` it is one whose words were
    told before (see `SearchIndex.search`).
    """

    message_id: int
    session_id: int
    role: str
    created_at: datetime
    content: str | None
    name: str | None = None

    @property
    def spoken(self) -> str:
        """What was said, and by whom."""
        assert self.content is not None, "the words are left out only of what is known"
        return f"{self.name}: {self.content}" if self.name else self.content


class Mark(NamedTuple):
    """By what a message is known again: that it is the same id does not tell, after a backup was restored."""

    session_id: int
    created_at: datetime
    said: int

    @classmethod
    def of(cls, document: Document) -> Mark:
        said = hash((document.role, document.content, document.name))
        return cls(document.session_id, document.created_at, said)

    def fits(self, document: Document) -> bool:
        """Whether it is the mark of `document`, as far as that is told."""
        if document.content is not None:
            return self == Mark.of(document)
        return self.created_at == document.created_at and self.session_id == document.session_id


@dataclass(frozen=True, eq=False)
class Pending:
    """m messages: `numbers` is 6 x m, as `Entry.numbers`, `vectors` m x 256 (zeros where there is none), `sizes` their
    lengths.  The terms of all of them are `codes`, ascending, with the rows they are at and how often they are there.

    `marks` are the messages' by their ids, in the order of the rows.
    """

    marks: Mapping[int, Mark]
    numbers: Ints
    vectors: NDArray[np.int8]
    sizes: Floats32
    codes: NDArray[np.uint64]
    places: NDArray[np.int32]
    counts: Floats32
    known: int = 0
    """It has every message with an id up to this that waited when it was made: their words need not be told again."""

    def __len__(self) -> int:
        return len(self.marks)

    @property
    def nbytes(self) -> int:
        """What it takes up."""
        arrays = (self.numbers, self.vectors, self.sizes, self.codes, self.places, self.counts)
        return _OWN_BYTES + _MARK_BYTES * len(self.marks) + sum(array.nbytes for array in arrays)

    def missing(self, documents: Sequence[Document]) -> list[Document]:
        """Those of `documents` that it does not have as they are."""
        marks = self.marks
        return [one for one in documents if (mark := marks.get(one.message_id)) is None or not mark.fits(one)]

    def rows_of(self, message_ids: Container[int]) -> list[int]:
        """The rows of those of `message_ids` that it has."""
        return [row for row, message_id in enumerate(self.marks) if message_id in message_ids]

    def vectors_of(self, documents: Sequence[Document]) -> dict[str, bytes]:
        """The vectors of those that it has as they are, by what is said in them; b"" where there is none."""
        rows = {message_id: row for row, message_id in enumerate(self.marks)}
        missing = {one.message_id for one in self.missing(documents)}
        known = [(one, self.vectors[rows[one.message_id]]) for one in documents if one.message_id not in missing]
        return {one.spoken: vector.tobytes() if vector.any() else b"" for one, vector in known}

    def without(self, message_ids: Container[int]) -> Pending:
        """What it has beside these."""
        marks = {message_id: mark for message_id, mark in self.marks.items() if message_id not in message_ids}
        rows = [row for row, message_id in enumerate(self.marks) if message_id in marks]
        place = np.full(len(self), -1, np.int32)
        place[rows] = np.arange(len(rows))
        places = place[self.places]
        there = places >= 0
        return Pending(
            marks,
            self.numbers[:, rows],
            self.vectors[rows],
            self.sizes[rows],
            self.codes[there],
            places[there],
            self.counts[there],
        )

    def with_new(self, documents: Sequence[Document], entries: Sequence[Entry]) -> Pending:
        """What it has, and `documents`, which are `entries` when they are analysed."""
        packed = [entry.packed() for entry in entries]
        numbers = np.frombuffer(b"".join([one.row for one in packed]), np.int64).reshape(-1, NUMBERS)
        blank = bytes(PACKED_BYTES)
        vectors = np.frombuffer(b"".join([one.vector or blank for one in packed]), np.int8).reshape(-1, PACKED_BYTES)
        terms = np.frombuffer(b"".join([one.terms for one in packed]), TERM)
        rows = np.arange(len(self), len(self) + len(packed), dtype=np.int32)
        places = np.repeat(rows, [len(one.terms) // TERM.itemsize for one in packed])
        codes = np.concatenate([self.codes, terms["code"]])
        sort = np.argsort(codes, kind="stable")
        return Pending(
            {**self.marks, **{one.message_id: Mark.of(one) for one in documents}},
            np.concatenate([self.numbers, numbers.T], axis=1),
            np.concatenate([self.vectors, vectors]),
            np.concatenate([self.sizes, sizes_of(vectors)]),
            codes[sort],
            np.concatenate([self.places, places])[sort],
            np.concatenate([self.counts, terms["count"].astype(np.float32)])[sort],
        )


NOTHING_WAITS = Pending(
    {},
    np.zeros((NUMBERS, 0), np.int64),
    np.zeros((0, PACKED_BYTES), np.int8),
    np.zeros(0, np.float32),
    np.zeros(0, np.uint64),
    np.zeros(0, np.int32),
    np.zeros(0, np.float32),
)


def microseconds(moment: datetime) -> int:
    """Since 1970, in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
