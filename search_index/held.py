"""What an owner's index holds, as arrays that are ready to be searched.

A commit of the index never changes, so a search that finds the same commit as the last one needs nothing from the disk:
`Held` is kept from search to search (see `whoosh_index`) while `Snapshot` says that it is that commit still.  No file
is held open for it.  What is kept was verified when it was read: bytes that are overwritten on the disk later do no
harm here, and when a file's time, size or place says that somebody touched it, it is read and verified again.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from search_index.postings import NUMBERS, TERM, Segment, code
from search_index.sums import Place
from search_index.vectors import PACKED_BYTES, sizes_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]

WHOLE_AT_MOST = 8 << 20
"""Bytes of segments that are read as a whole, and kept: some 10,000 messages, and as much in memory as on the disk.  Of
a larger index a search reads the postings it needs, and keeps nothing."""

_ALIGNED = 64  # bytes: where an array may begin


@dataclass(frozen=True)
class Snapshot:
    """Which commit of which index something was read from."""

    generation: str
    commit: Place
    files: tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class Held:
    """n messages, by session and then by id: `numbers` is 6 x n, as `Entry.numbers`.

    `by_id` are their places in the order of their ids.  `vectors` are packed, n x 256, or None where no message has
    one, and `sizes` their lengths.  The terms of all messages (`codes`, ascending; at which places; how often) are
    those of every message, or only those that were `wanted`.
    """

    numbers: Ints
    by_id: Ints
    ids: Ints
    vectors: NDArray[np.int8] | None
    sizes: Floats32
    codes: NDArray[np.uint64]
    places: NDArray[np.int32]
    counts: Floats32

    def __len__(self) -> int:
        return self.numbers.shape[1]

    @property
    def bytes(self) -> int:
        """What it takes up."""
        arrays = (self.numbers, self.by_id, self.ids, self.vectors, self.sizes, self.codes, self.places, self.counts)
        return sum(array.nbytes for array in arrays if array is not None)

    @classmethod
    def of(cls, segments: Sequence[Segment], wanted: Sequence[str] | None = None) -> Held:
        """What `segments` hold, with all terms or only those `wanted`."""
        rows = np.concatenate([np.zeros((0, NUMBERS), np.int64), *(segment.rows for segment in segments)])
        order = np.lexsort((rows[:, 0], rows[:, 1]))
        place = np.empty(len(order), np.int32)  # of a row: where it stands in the order
        place[order] = np.arange(len(order), dtype=np.int32)
        numbers = np.ascontiguousarray(rows[order].T)
        by_id = np.argsort(numbers[0], kind="stable")
        vectors = _vectors(segments, order)
        sizes = np.zeros(0, np.float32) if vectors is None else sizes_of(vectors)
        codes, at, counts = _all_terms(segments) if wanted is None else _terms(segments, wanted)
        sort = np.argsort(codes, kind="stable")
        return cls(numbers, by_id, numbers[0][by_id], vectors, sizes, codes[sort], place[at[sort]], counts[sort])

    def apart(self) -> Held:
        """The same in memory of its own, which goes back to the system when nobody uses it any more: for what is kept.

        Each commit makes an owner's arrays a little larger.  In the heap they would leave behind holes that the next
        ones don't fit into.
        """
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        there = {name: array for name, array in arrays.items() if array is not None and array.size}
        ends = list(accumulate(-(-array.nbytes // _ALIGNED) * _ALIGNED for array in there.values()))
        if not ends:
            return self
        memory = mmap.mmap(-1, ends[-1], flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for (name, array), start in zip(there.items(), (0, *ends), strict=False):
            copy = np.frombuffer(memory, array.dtype, array.size, start).reshape(array.shape)
            copy[...] = array
            arrays[name] = copy
        return Held(**arrays)

    def places_of(self, message_ids: Ints) -> Ints:
        """The places of those of `message_ids` that it holds, in no order."""
        if not len(self.ids):
            return np.zeros(0, np.int64)
        at = self.ids.searchsorted(message_ids)
        return self.by_id[at[self.ids.take(at, mode="clip") == message_ids]]


def _vectors(segments: Sequence[Segment], order: Ints) -> NDArray[np.int8] | None:
    parts = [segment.vectors() for segment in segments]
    if all(part is None for part in parts):
        return None
    none = [np.zeros((len(segment.rows), PACKED_BYTES), np.int8) for segment in segments]
    return np.concatenate([zeros if part is None else part for part, zeros in zip(parts, none, strict=True)])[order]


def _all_terms(segments: Sequence[Segment]) -> tuple[NDArray[np.uint64], Ints, Floats32]:
    """Code, row and count of every term of every message."""
    bags = [segment.bags() for segment in segments]
    terms = np.concatenate([np.zeros(0, TERM), *(terms for terms, _ in bags)])
    many = np.concatenate([np.zeros(0, np.int64), *(lengths for _, lengths in bags)])
    return terms["code"].astype(np.uint64), np.repeat(np.arange(len(many)), many), terms["count"].astype(np.float32)


def _terms(segments: Sequence[Segment], wanted: Sequence[str]) -> tuple[NDArray[np.uint64], Ints, Floats32]:
    """The same of `wanted` terms alone, by Whoosh's postings."""
    codes, rows, counts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for term in wanted:
        base = 0
        for segment in segments:
            at, how_often = segment.postings(term)
            codes.append(np.full(len(at), code(term), np.uint64))
            rows.append(at + base)
            counts.append(how_often.astype(np.float32))
            base += len(segment.rows)
    return np.concatenate(codes), np.concatenate(rows), np.concatenate(counts)


NOTHING = Held.of([])
"""Of an owner who has no index."""
