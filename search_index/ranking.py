"""How well documents answer a query: pure functions over counts.

A message must rank the same whether it is indexed already or still pending.  So nothing else scores: the index
hands out counts, pending documents are counted here, and both go through one formula with the statistics of the two
together.

The formula is BM25 as Whoosh's BM25F computes it for one field (whoosh.scoring.bm25, whoosh.searching.Searcher.idf):
    idf(t)   = ln(N / (n(t) + 1)) + 1
    score(d) = sum over t of idf(t) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length(d) / average length))
Its idf is never below ln(1/2) + 1, so a word that is everywhere still counts a little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

K1 = 0.9
B = 0.4
"""Chat messages are short and say a thing once: repeats and length count for less than in the usual 1.2 and 0.75."""


@dataclass(frozen=True, slots=True)
class Bag:
    """A document as its terms' counts; `length` is their sum."""

    counts: Mapping[str, int]
    length: int

    @classmethod
    def of(cls, terms: Iterable[str]) -> Bag:
        counts = Counter(terms)
        return cls(counts, counts.total())


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs to know of a collection: how many documents, their lengths' sum, how many have each term."""

    documents: int
    length: int
    frequencies: Mapping[str, int]

    @classmethod
    def of(cls, bags: Sequence[Bag], terms: Iterable[str]) -> Statistics:
        frequencies = {term: sum(term in bag.counts for bag in bags) for term in terms}
        return cls(len(bags), sum(bag.length for bag in bags), frequencies)

    def __add__(self, other: Statistics) -> Statistics:
        """The statistics of two collections that share no document, for the terms of either."""
        both = self.frequencies.keys() | other.frequencies.keys()
        frequencies = {t: self.frequencies.get(t, 0) + other.frequencies.get(t, 0) for t in both}
        return Statistics(self.documents + other.documents, self.length + other.length, frequencies)


class Scorer:
    """BM25 for one query: `terms` in a fixed order over a collection with `statistics`.

    The order matters only because it makes the sums of floats come out the same wherever a document is kept.
    """

    def __init__(self, terms: Sequence[str], statistics: Statistics) -> None:
        self.terms = terms
        documents = max(statistics.documents, 1)
        self._average = statistics.length / documents or 1.0
        self._factors = {
            term: (log(documents / (statistics.frequencies.get(term, 0) + 1)) + 1) * (K1 + 1) for term in terms
        }

    def factor(self, term: str) -> float:
        """What every occurrence of `term` is multiplied by: idf * (K1 + 1)."""
        return self._factors[term]

    def norm(self, length: int) -> float:
        """What a document's length adds to the divisor: K1 * (1 - B + B * length / average)."""
        return K1 * (1 - B + B * length / self._average)

    def score(self, bag: Bag) -> float:
        """The document's score; 0.0 when it has none of the terms."""
        norm = self.norm(bag.length)
        total = 0.0
        for term in self.terms:
            if count := bag.counts.get(term):
                total += self._factors[term] * count / (count + norm)
        return total
