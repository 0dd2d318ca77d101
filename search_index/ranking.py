"""How well messages answer a query: pure functions over `Candidates`.

The recipe adds five parts, each divided by its maximum:

    words       BM25 of the message
    meaning     the cosine of its vector with the query's, averaged with its neighbours' at half weight, above the mean
    neighbours  BM25 of the message taken together with REACH messages on either side in its session
    session     BM25 of the whole session
    time        1 for a message said in a time that the query speaks of, or in the GRACE_DAYS after it

BM25 is as Whoosh's BM25F computes it for one field (whoosh.scoring.bm25, whoosh.searching.Searcher.idf):

    idf(t)   = ln(N / (n(t) + 1)) + 1
    score(d) = sum over t of idf(t) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length(d) / average length))

Beside neighbours and sessions the idf is ln(1 + (N - n + 0.5) / (n + 0.5)), which goes to 0 for what is everywhere:
there are few sessions, and a common word is in most of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.arrays import Candidates, Floats, Ints

# Chat messages are short and say a thing once: repeats and length count for less than in the usual 1.2 and 0.75.
K1, B = 0.9, 0.4
REACH = 2  # messages on either side that belong to what was said: a question, its answer, and what was said to that
RRF_K = 60  # reciprocal rank fusion's constant (Cormack, Clarke and Büttcher 2009)
LIKE = 0.5  # the least cosine at which a message that shares no word with the query is found at all
# How many of the query's words the messages around one must have for it to be found without any of its own.  An answer
# seldom repeats its question, but a search for a single word asks for the messages that have it.
BESIDE = 2
GRACE_DAYS = 3.0  # a thing is told of in the days after it happened, not only on its day
FUZZY_HOURS, FUZZY_THRESHOLD, FUZZY_LIMIT = 24.0, 0.3, 5


@dataclass(frozen=True)
class Recipe:
    """What counts in a ranking, beside `words`, which counts 1.

    `formula` is `context` (the parts above) or `fuzzy`; `fusion` adds the parts by their values (`weighted`) or by
    their ranks (`rrf`).
    """

    meaning: float = 0.0
    neighbours: float = 0.0
    session: float = 0.0
    time: float = 0.0
    fusion: str = "weighted"
    formula: str = "context"


class Ranked(NamedTuple):
    """Scores of all messages, and the parts they are the sum of, a row for each of `names`; `eligible` are worth
    returning at all, and at most `most` of them."""

    total: Floats
    names: Sequence[str]
    parts: Floats
    eligible: NDArray[np.bool_]
    most: int = sys.maxsize


def rank(candidates: Candidates, recipe: Recipe, now: int, times: Sequence[tuple[int, int]] = ()) -> Ranked:
    """Score every candidate.

    `times` are the half-open ranges the query speaks of; they and `now`, from which the fuzzy formula tells a message's
    age, are in microseconds since 1970.
    """
    if recipe.formula == "fuzzy":
        return _fuzzy(candidates, now)
    rows, likeness, _, counts = candidates
    held = np.minimum(counts, 1.0).sum(axis=1)
    words = _bm25(counts, rows["length"], np.log(max(len(rows), 1) / (held + 1)) + 1)
    weights = {"meaning": recipe.meaning, "neighbours": recipe.neighbours, "session": recipe.session}
    if times and recipe.time:
        weights["time"] = recipe.time
    if not any(weights.values()) or not len(words):
        return Ranked(words, ["words"], words[None], words > 0)
    sessions, likeness = rows["session"], np.maximum(likeness, 0)
    starts = np.concatenate(([0], (sessions[1:] != sessions[:-1]).nonzero()[0] + 1))
    session = starts.searchsorted(np.arange(len(rows)), "right") - 1  # of each message, numbered
    near, (lengths, likenesses, messages) = _around(counts, rows["length"], likeness, session)
    has = np.minimum(near, 1.0)
    together = (likenesses + likeness) / (messages + 1)  # the message itself counts twice
    whole = np.add.reduceat(counts, starts, axis=1)
    parts = [
        words,
        np.maximum(together - np.add.reduce(together) / len(together), 0),
        _bm25(near, lengths, _rarity(has)),
        _bm25(whole, np.add.reduceat(rows["length"], starts), _rarity(np.minimum(whole, 1.0)))[session],
    ]
    if "time" in weights:
        parts.append(_within(rows["created"], times))
    eligible = words > 0
    if recipe.meaning:
        eligible |= likeness >= LIKE
    if recipe.neighbours:
        eligible |= np.add.reduce(has) >= BESIDE
    shares = (_ranks if recipe.fusion == "rrf" else _relative)(np.array(parts))
    shares *= np.array([1.0, *weights.values()])[:, None]
    return Ranked(np.add.reduce(shares), ["words", *weights], shares, eligible)


def _bm25(counts: Floats, lengths: Ints | Floats, idf: Floats) -> Floats:
    """BM25 of n texts with terms x n `counts`."""
    average = np.add.reduce(lengths) / max(len(lengths), 1) or 1.0
    norm = K1 * (1 - B + B * lengths / average)
    total: Floats = np.add.reduce((idf * (K1 + 1))[:, None] * counts / (counts + norm))
    return total


def _rarity(has: Floats) -> Floats:
    """The idf beside neighbours and in sessions, of terms that some of the texts have: 1, the others 0."""
    holders = np.add.reduce(has, axis=1)
    idf: Floats = np.log(1 + (has.shape[1] - holders + 0.5) / (holders + 0.5))
    return idf


def _around(counts: Floats, lengths: Ints, likeness: Floats, session: Ints) -> tuple[Floats, Floats]:
    """Sums over each message and its REACH neighbours on either side in its session: of the counts of each term; and of
    their lengths, their likenesses and how many they are.

    All rows are added at once, laid end to end.  REACH empty columns keep rows and sessions apart.
    """
    columns = np.arange(len(session)) + REACH * session
    rows = np.zeros((len(counts) + 3, int(columns[-1]) + 1 + REACH))
    rows[:-3, columns] = counts
    rows[-3, columns], rows[-2, columns], rows[-1, columns] = lengths, likeness, 1.0
    line = rows.reshape(-1)
    total = line.copy()
    for distance in range(1, REACH + 1):
        total[distance:] += line[:-distance]
        total[:-distance] += line[distance:]
    total = total.reshape(rows.shape).take(columns, axis=1)
    return total[:-3], total[-3:]


def _within(created: Ints, times: Sequence[tuple[int, int]]) -> Floats:
    """1 for what was said in one of the times or shortly after, else 0."""
    grace = int(GRACE_DAYS * 86_400e6)
    inside = np.zeros(len(created), bool)
    for after, before in times:
        inside |= (created >= after) & (created < before + grace)
    return inside.astype(float)


def _relative(values: Floats) -> Floats:
    """Each row's values as shares of its largest."""
    largest = np.maximum.reduce(values, axis=1, keepdims=True)
    largest[largest <= 0] = 1.0
    return values / largest


def _ranks(values: Floats) -> Floats:
    """Each row's reciprocal ranks, best first; equal values share a rank, and what has no value has no rank."""
    better = np.array([len(row) - np.searchsorted(np.sort(row), row, side="right") for row in values])
    return np.where(values > 0, 1 / (RRF_K + 1 + better), 0.0)


def _fuzzy(candidates: Candidates, now: int) -> Ranked:
    """For comparison: 40 % share of the query's words, 40 % cosine of the word counts, 20 % a weight of the time."""
    rows, _, asked, counts = candidates
    shared = np.minimum(counts, 1.0).sum(axis=0) / asked
    sizes = np.sqrt(np.maximum(rows["squares"], 1) * asked)
    hours = np.maximum(now - rows["created"], 0) / 3.6e9
    time = 0.2 * (1 - 0.3 * np.minimum(hours / FUZZY_HOURS, 1))
    parts = np.array([0.4 * shared, 0.4 * counts.sum(axis=0) / sizes, time])
    total: Floats = np.add.reduce(parts)
    eligible = (total >= FUZZY_THRESHOLD) & (shared > 0)
    return Ranked(total, ["overlap", "cosine", "time"], parts, eligible, FUZZY_LIMIT)
