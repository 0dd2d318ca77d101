"""An owner's messages that are not indexed yet, as arrays that are ready to be searched.

The same ones wait search after search, and a message never changes once it was said.  So what was made of them is kept
from one search to the next, which is told what is new alone, and works on nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.held import Floats32, Ints
from search_index.postings import NUMBERS, TERM, Columns
from search_index.vectors import PACKED_BYTES, sizes_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OWN_BYTES, _MARK_BYTES = 2_000, 400  # what Python takes for the objects, and for a mark and its parts


class Document(NamedTuple):
    """A message as the index sees it.  `session_id` and `message_id` are the caller's own integers, of 64 bits.

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


class Told(NamedTuple):
    """What a caller tells a search: the messages that wait, all of them, or only what came `since` it told the last.

    `as_of` is the moment of that, in the caller's own terms; the next search gives it back.  `since`: what was told as
    of the moment that was given back waits still, and as it was.
    """

    documents: Sequence[Document]
    as_of: object = None
    since: bool = False


class Mark(NamedTuple):
    """By what a message is known again: that it is the same id does not tell, after a backup was restored."""

    session_id: int
    created_at: datetime
    said: int

    @classmethod
    def of(cls, document: Document) -> Mark:
        said = hash((document.role, document.content, document.name))
        return cls(document.session_id, document.created_at, said)


@dataclass(frozen=True, eq=False)
class Pending:
    """m messages: `numbers` is 6 x m, as `Entry.numbers`, `vectors` m x 256 (zeros where there is none), `sizes` their
    lengths.  The terms of all of them are `codes`, ascending, with the rows they are at and how often they are there.

    `marks` are the messages' by their ids, in the order of the rows.  What was told and left `aside` has still to be
    analysed; with that it is all that waited `as_of` a moment, as `Told`.
    """

    marks: Mapping[int, Mark]
    numbers: Ints
    vectors: NDArray[np.int8]
    sizes: Floats32
    codes: NDArray[np.uint64]
    places: NDArray[np.int32]
    counts: Floats32
    aside: Sequence[Document] = ()
    as_of: object = None

    def __len__(self) -> int:
        return len(self.marks)

    @property
    def nbytes(self) -> int:
        """What it takes up."""
        arrays = (self.numbers, self.vectors, self.sizes, self.codes, self.places, self.counts)
        aside = sum([_MARK_BYTES + 4 * len(one.content) for one in self.aside])
        return _OWN_BYTES + _MARK_BYTES * len(self.marks) + sum([array.nbytes for array in arrays]) + aside

    def missing(self, documents: Sequence[Document]) -> list[Document]:
        """Those of `documents` that it does not have as they are."""
        return [one for one in documents if self.marks.get(one.message_id) != Mark.of(one)]

    def rows_of(self, message_ids: Container[int]) -> list[int]:
        """The rows of those of `message_ids` that it has."""
        return [row for row, message_id in enumerate(self.marks) if message_id in message_ids]

    def columns(self, message_ids: Container[int]) -> Columns:
        """Those of `message_ids` that it has, as they are written."""
        rows = self.rows_of(message_ids)
        place = np.full(len(self), -1, np.int32)
        place[rows] = np.arange(len(rows))
        places = place[self.places]
        by_message = np.argsort(places, kind="stable")[np.count_nonzero(places < 0) :]
        terms = np.empty(len(by_message), TERM)
        terms["code"], terms["count"] = self.codes[by_message], self.counts[by_message]
        many = np.bincount(places[by_message], minlength=len(rows))
        return Columns(self.numbers.T[rows], terms, many, self.vectors[rows])

    def without(self, message_ids: Collection[int]) -> Pending:
        """What it has beside these."""
        if not message_ids:
            return self
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

    def with_new(self, documents: Sequence[Document], new: Columns) -> Pending:
        """What it has, and `documents`, which are `new` when they are analysed."""
        places = np.arange(len(self), len(self) + len(new), dtype=np.int32).repeat(new.many)
        codes = np.concatenate([self.codes, new.terms["code"]])
        sort = np.argsort(codes, kind="stable")
        return Pending(
            {**self.marks, **{one.message_id: Mark.of(one) for one in documents}},
            np.concatenate([self.numbers, new.rows.T], axis=1),
            np.concatenate([self.vectors, new.vectors]),
            np.concatenate([self.sizes, sizes_of(new.vectors)]),
            codes[sort],
            np.concatenate([self.places, places])[sort],
            np.concatenate([self.counts, new.terms["count"].astype(np.float32)])[sort],
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
