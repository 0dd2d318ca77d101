"""One owner's messages as arrays: what the index holds and what it does not yet, in one order.

The order is by session and then by id, which is how the messages were said.  So a message's neighbours are the rows
beside it, a session is a run of rows, and sums come out the same to the last bit wherever a message is kept.

A search of some hundred messages costs as many steps as numpy is asked for, not as many as there are numbers: terms are
looked up and counted all at once.
"""

from __future__ import annotations

from collections.abc import Collection as Container
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from search_index.held import Floats, Held, Ints
from search_index.pending import Pending
from search_index.postings import code
from search_index.vectors import cosines

_ID, _SESSION, _CREATED, _ROLE, _LENGTH, _SQUARES = range(6)  # as in Entry.numbers


class Found(NamedTuple):
    """Where the terms of a query are, entry by entry: which term, at which message, and how often that has it.

    `terms` says how many are anywhere, which are numbered 0, 1, ... in the query's order; the entries of a message are
    in that order as well.
    """

    terms: int
    term: Ints
    at: Ints
    often: Floats


@dataclass(frozen=True, eq=False)
class Collection:
    """n messages: `numbers` is 6 x n, as `Entry.numbers`."""

    held: Held
    pending: Pending
    order: Ints
    """Where each message is found: among those held, and then among the pending ones."""
    numbers: Ints
    asked: int
    """How many terms were looked for."""
    found: Found

    def __len__(self) -> int:
        return len(self.order)

    @property
    def ids(self) -> Ints:
        return self.numbers[_ID]

    @property
    def sessions(self) -> Ints:
        return self.numbers[_SESSION]

    @property
    def created(self) -> Ints:
        """In microseconds since 1970, UTC."""
        return self.numbers[_CREATED]

    @property
    def roles(self) -> Ints:
        return self.numbers[_ROLE]

    @property
    def lengths(self) -> Floats:
        return self.numbers[_LENGTH].astype(float)

    @property
    def squares(self) -> Floats:
        """The sums of the messages' squared counts."""
        return self.numbers[_SQUARES].astype(float)

    def likeness(self, vector: bytes) -> Floats:
        """The cosine of each message's vector with a packed one; 0 where either is missing."""
        held, pending = self.held, self.pending
        known = np.zeros(len(held)) if held.vectors is None else cosines(held.vectors, vector, held.sizes)
        return np.concatenate([known, cosines(pending.vectors, vector, pending.sizes)])[self.order]

    @classmethod
    def of(cls, held: Held, pending: Pending, terms: Sequence[str], *, without: Container[int] = ()) -> Collection:
        """The union of `held` and `pending`; a message in both counts once, as `pending` has it.

        Those with an id in `without` are left out, as if they had never been said.
        """
        numbers = np.concatenate([held.numbers, pending.numbers], axis=1)
        order = np.lexsort((numbers[_ID], numbers[_SESSION]))
        shown = np.ones(len(order), bool)
        others = np.concatenate([pending.numbers[_ID], np.fromiter(without, np.int64, len(without))])
        shown[held.places_of(others)] = False
        if hidden := pending.marks.keys() & without:
            shown[[len(held) + row for row in pending.rows_of(hidden)]] = False
        order = order[shown[order]]
        place = np.full(len(shown), len(order))  # of a message: where it stands in the order; behind its end what is
        place[order] = np.arange(len(order))  # left out
        found = _found(held, pending, terms, place, len(order))
        return cls(held, pending, order, numbers.take(order, axis=1), len(terms), found)


def _found(held: Held, pending: Pending, terms: Sequence[str], place: Ints, end: int) -> Found:
    """Where `terms` are, in messages whose `place` is before the `end`."""
    codes = np.fromiter(map(code, terms), np.uint64, len(terms))
    ends = np.concatenate([part.codes.searchsorted(codes, "right") for part in (held, pending)])
    many = ends - np.concatenate([part.codes.searchsorted(codes) for part in (held, pending)])
    entries = (ends - many.cumsum()).repeat(many)  # where they stand in `held`, term by term, then in `pending`
    entries += np.arange(len(entries))
    split = many[: len(codes)].sum()
    of_held, of_pending = entries[:split], entries[split:]
    at = place[np.concatenate([held.places[of_held], pending.places[of_pending] + len(held)])]
    often = np.concatenate([held.counts[of_held], pending.counts[of_pending]]).astype(float)
    anywhere = many[: len(codes)] + many[len(codes) :] > 0
    number = anywhere.cumsum() - 1
    term = np.concatenate([number, number]).repeat(many)
    shown = (at < end).nonzero()[0]
    return Found(int(np.count_nonzero(anywhere)), term[shown], at[shown], often[shown])
