"""One owner's messages as arrays: what the index holds and what it does not yet, in one order.

The order is by session and then by id, which is how the messages were said.  So a message's neighbours are the rows
beside it, a session is a run of rows, and sums come out the same to the last bit wherever a message is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search_index.postings import Entry, Segment
from search_index.vectors import PACKED_BYTES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Collection:
    """n messages: columns of length n, one row of `counts` (terms x n) for each term, packed `vectors` n x 256 or None.

    `created` is in microseconds since 1970, UTC; `squares` are the sums of the messages' squared counts.
    """

    ids: Ints
    sessions: Ints
    created: Ints
    roles: Ints
    lengths: Floats
    squares: Floats
    counts: Floats
    vectors: NDArray[np.int8] | None

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(
        cls,
        segments: Sequence[Segment],
        pending: Sequence[Entry],
        terms: Sequence[str],
        *,
        vectors: bool,
        without: Iterable[int] = (),
    ) -> Collection:
        """The union of `segments` and `pending`; a message in both counts once, as `pending` has it.

        The messages in `without` are left out, as if they had never been said.
        """
        absent = np.fromiter(without, np.int64)
        pending = [entry for entry in pending if entry.message_id not in absent] if len(absent) else pending
        held = np.concatenate([np.zeros((0, 6), np.int64), *(segment.rows for segment in segments)])
        fresh = np.array([entry.numbers for entry in pending], np.int64).reshape(-1, 6)
        kept = np.flatnonzero(~np.isin(held[:, 0], np.r_[fresh[:, 0], absent]))
        rows = np.concatenate([held[kept], fresh])
        order = np.lexsort((rows[:, 0], rows[:, 1]))
        place = np.empty(len(order), np.int64)  # of a kept or fresh row: where it stands in the order
        place[order] = np.arange(len(order))
        of_held = np.full(len(held), -1)
        of_held[kept] = place[: len(kept)]
        of_fresh = place[len(kept) :]

        counts = np.zeros((len(terms), len(order)))
        for number, term in enumerate(terms):
            base = 0
            for segment in segments:
                at, how_often = segment.postings(term)
                where = of_held[at + base]
                counts[number, where[where >= 0]] = how_often[where >= 0]
                base += len(segment.rows)
            if pending:
                counts[number, of_fresh] = [entry.counts.get(term, 0) for entry in pending]

        ids, sessions, created, roles, lengths, squares = rows[order].T
        packed = None
        if vectors:
            none = np.zeros((0, PACKED_BYTES), np.int8)
            new = b"".join(entry.vector or bytes(PACKED_BYTES) for entry in pending)
            parts = np.concatenate([none, *(segment.vectors() for segment in segments)])[kept]
            packed = np.concatenate([parts, np.frombuffer(new, np.int8).reshape(-1, PACKED_BYTES)])[order]
        return cls(ids, sessions, created, roles, lengths.astype(float), squares.astype(float), counts, packed)
