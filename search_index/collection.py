"""One owner's messages as arrays: what the index holds and what it does not yet, in one order.

The order is by session and then by id, which is how the messages were said.  So a message's neighbours are the rows
beside it, a session is a run of rows, and sums come out the same to the last bit wherever a message is kept.

A search of some hundred messages costs as many steps as numpy is asked for, not as many as there are numbers: terms are
looked up and counted all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from search_index.held import Floats, Held, Ints
from search_index.pending import Pending
from search_index.postings import code
from search_index.vectors import cosines

_ID, _SESSION, _CREATED, _ROLE, _LENGTH, _SQUARES = range(6)  # as in Entry.numbers


@dataclass(frozen=True, eq=False)
class Collection:
    """n messages: columns of length n, and one row of `counts` (terms x n) for each term."""

    held: Held
    pending: Pending
    order: Ints
    """Where each message is found: among those held, and then among the pending ones."""
    ids: Ints
    sessions: Ints
    counts: Floats

    def __len__(self) -> int:
        return len(self.order)

    @property
    def created(self) -> Ints:
        """In microseconds since 1970, UTC."""
        return self._column(_CREATED)

    @property
    def roles(self) -> Ints:
        return self._column(_ROLE)

    @property
    def lengths(self) -> Floats:
        return self._column(_LENGTH).astype(float)

    @property
    def squares(self) -> Floats:
        """The sums of the messages' squared counts."""
        return self._column(_SQUARES).astype(float)

    def _column(self, number: int) -> Ints:
        return np.concatenate([self.held.numbers[number], self.pending.numbers[number]])[self.order]

    def likeness(self, vector: bytes) -> Floats:
        """The cosine of each message's vector with a packed one; 0 where either is missing."""
        held, pending = self.held, self.pending
        known = np.zeros(len(held)) if held.vectors is None else cosines(held.vectors, vector, held.sizes)
        return np.concatenate([known, cosines(pending.vectors, vector, pending.sizes)])[self.order]

    @classmethod
    def of(
        cls, held: Held, pending: Pending, terms: Sequence[str], *, without: AbstractSet[int] = frozenset()
    ) -> Collection:
        """The union of `held` and `pending`; a message in both counts once, as `pending` has it.

        Those that are in `without` are left out, as if they had never been said.
        """
        ids = np.concatenate([held.numbers[_ID], pending.numbers[_ID]])
        sessions = np.concatenate([held.numbers[_SESSION], pending.numbers[_SESSION]])
        shown = np.ones(len(ids), bool)
        shown[held.places_of(np.array([*without, *pending.marks], np.int64))] = False
        shown[[len(held) + row for row in pending.rows_of(without)]] = False
        order = np.lexsort((ids, sessions))
        order = order[shown[order]]
        counts = _counted(held, pending, terms, order)
        return cls(held, pending, order, ids[order], sessions[order], counts)


def _counted(held: Held, pending: Pending, terms: Sequence[str], order: Ints) -> Floats:
    """How often each message of `order` has each of `terms`."""
    place = np.full(len(held) + len(pending), len(order))  # of a message: where it stands in the order; behind its
    place[order] = np.arange(len(order))  # end what is left out
    counts = np.zeros((len(terms), len(order) + 1))
    codes = np.fromiter(map(code, terms), np.uint64, len(terms))
    for part, first in (held, 0), (pending, len(held)):
        starts = part.codes.searchsorted(codes, "left")
        found = part.codes.searchsorted(codes, "right") - starts
        ends = found.cumsum()
        if len(ends) and ends[-1]:
            at = (starts - ends + found).repeat(found) + np.arange(ends[-1])
            counts[np.arange(len(terms)).repeat(found), place[first + part.places[at]]] = part.counts[at]
    return counts[:, :-1]
