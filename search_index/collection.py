"""One owner's messages as arrays: what the index holds and what it does not yet, in one order.

The order is by session and then by id, which is how the messages were said.  So a message's neighbours are the rows
beside it, a session is a run of rows, and sums come out the same to the last bit wherever a message is kept.

A search of some hundred messages costs as many steps as numpy is asked for, not as many as there are numbers: terms are
looked up and counted all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from search_index.held import Floats, Held, Ints
from search_index.postings import NUMBERS, TERM, Packed, code
from search_index.vectors import PACKED_BYTES, cosines


@dataclass(frozen=True, eq=False)
class Collection:
    """n messages: columns of length n, and one row of `counts` (terms x n) for each term.

    `created` is in microseconds since 1970, UTC; `squares` are the sums of the messages' squared counts.
    """

    ids: Ints
    sessions: Ints
    created: Ints
    roles: Ints
    lengths: Floats
    squares: Floats
    counts: Floats
    held: Held
    pending: Sequence[Packed]
    order: Ints
    """Where each message is found: among those held, and then among the pending ones."""

    def __len__(self) -> int:
        return len(self.ids)

    def likeness(self, vector: bytes) -> Floats:
        """The cosine of each message's vector with a packed one; 0 where either is missing."""
        held, blank = self.held, bytes(PACKED_BYTES)
        known = np.zeros(len(held)) if held.vectors is None else cosines(held.vectors, vector, held.sizes)
        if self.pending:
            new = np.frombuffer(b"".join([one.vector or blank for one in self.pending]), np.int8)
            known = np.concatenate([known, cosines(new.reshape(-1, PACKED_BYTES), vector)])
        return known[self.order]

    @classmethod
    def of(
        cls, held: Held, pending: Sequence[Packed], terms: Sequence[str], *, without: Iterable[int] = ()
    ) -> Collection:
        """The union of `held` and `pending`; a message in both counts once, as `pending` has it.

        Those of `held` that are in `without` are left out, as if they had never been said.
        """
        numbers, leave = held.numbers, [np.fromiter(without, np.int64)]
        if pending:
            fresh = np.frombuffer(b"".join([one.row for one in pending]), np.int64).reshape(-1, NUMBERS)
            numbers = np.concatenate([numbers, fresh.T], axis=1)
            leave.append(fresh[:, 0])
        shown = np.ones(numbers.shape[1], bool)
        shown[held.places_of(np.concatenate(leave))] = False
        order = np.flatnonzero(shown)
        if pending:
            order = order[np.lexsort((numbers[0, order], numbers[1, order]))]
        columns = numbers[:, order]
        counts = _counted(held, pending, terms, order, numbers.shape[1])
        ids, sessions, created, roles, lengths, squares = columns
        return cls(
            ids, sessions, created, roles, lengths.astype(float), squares.astype(float), counts, held, pending, order
        )


def _counted(held: Held, pending: Sequence[Packed], terms: Sequence[str], order: Ints, many: int) -> Floats:
    """How often each message of `order` has each of `terms`."""
    place = np.full(many, len(order))  # of a message: where it stands in the order; behind its end what is left out
    place[order] = np.arange(len(order))
    counts = np.zeros((len(terms), len(order) + 1))
    codes = np.array([code(term) for term in terms], np.uint64)
    first = np.searchsorted(held.codes, codes, "left")
    found = np.searchsorted(held.codes, codes, "right") - first
    ends = np.cumsum(found)
    if len(ends) and ends[-1]:
        at = np.repeat(first - ends + found, found) + np.arange(ends[-1])
        counts[np.repeat(np.arange(len(terms)), found), place[held.places[at]]] = held.counts[at]
    if pending:
        said = np.frombuffer(b"".join([one.terms for one in pending]), TERM)
        at = np.searchsorted(codes, said["code"], sorter=(sort := np.argsort(codes)))
        at[at == len(codes)] = 0
        row = sort[at]
        match = np.flatnonzero(codes[row] == said["code"])
        sizes = [len(one.terms) // TERM.itemsize for one in pending]
        of = np.repeat(np.arange(len(held), many), sizes)[match]
        counts[row[match], place[of]] = said["count"][match]
    return counts[:, :-1]
