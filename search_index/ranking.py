"""How well messages answer a query: pure functions over a `Collection`.

A message must rank the same whether it is indexed already or still pending, so nothing else scores.

The recipe adds five parts, each divided by its maximum:

    words       BM25 of the message
    meaning     the cosine of its vector with the query's, averaged with its neighbours' at half weight, above the mean
    neighbours  BM25 of the message taken together with REACH messages on either side in its session
    session     BM25 of the whole session
    time        1 for a message said in a time that the query speaks of, or in the GRACE_DAYS after it

What surrounds a message matters more than what an embedding says of it: an answer seldom repeats the question.
Measured on recorded chats (`make bench-recall`), recall@10 is 65.0 by words, 69.3 with meaning, 76.5 with neighbours
and session instead, 79.1 with all five; added by rank (`rrf`) the five are worth 76.1: ranks forget by how far.

BM25 is as Whoosh's BM25F computes it for one field (whoosh.scoring.bm25, whoosh.searching.Searcher.idf):

    idf(t)   = ln(N / (n(t) + 1)) + 1
    score(d) = sum over t of idf(t) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length(d) / average length))

Beside neighbours and sessions the idf is ln(1 + (N - n + 0.5) / (n + 0.5)), which goes to 0 for what is everywhere:
there are few sessions, and a common word is in most of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from search_index.collection import Collection
from search_index.held import Floats, Ints

K1 = 0.9
B = 0.4
"""Chat messages are short and say a thing once: repeats and length count for less than in the usual 1.2 and 0.75."""

REACH = 2
"""Messages on either side that belong to what was said: a question, its answer, and what was said to that."""

RRF_K = 60
"""Reciprocal rank fusion's constant (Cormack, Clarke and Büttcher 2009)."""

LIKE = 0.5
"""The least cosine at which a message that shares no word with the query is found at all."""

BESIDE = 2
"""How many of the query's words the messages around one must have for it to be found without any of its own.
An answer seldom repeats its question (found so: 0.3 to 5 points of recall@10), but who looks for a single word wants
the messages that have it."""

GRACE_DAYS = 3.0
"""A thing is told of in the days after it happened, not only on its day."""

FUZZY_HOURS = 24.0
FUZZY_THRESHOLD = 0.3
FUZZY_LIMIT = 5


@dataclass(frozen=True)
class Recipe:
    """What counts in a ranking, beside `words`, which counts 1.

    `formula` is `context` (the parts above), or `fuzzy`: 40 % share of the query's words, 40 % cosine of the word
    counts, 20 % a time weight that falls linearly to 0.7 over 24 hours; at least 0.3, at most 5 results.
    `fusion` adds the parts by their values (`weighted`) or by their ranks (`rrf`).
    """

    meaning: float = 0.0
    neighbours: float = 0.0
    session: float = 0.0
    time: float = 0.0
    fusion: str = "weighted"
    formula: str = "context"


@dataclass(frozen=True)
class Ranked:
    """Scores of all messages, and the parts they are the sum of; `eligible` are worth returning at all."""

    total: Floats
    parts: dict[str, Floats]
    eligible: np.ndarray


def rank(
    collection: Collection, query_vector: bytes, recipe: Recipe, now: int, times: Sequence[tuple[int, int]] = ()
) -> Ranked:
    """Score every message; `collection.counts` has a row for each term of the query.

    `query_vector` is packed, or empty.  `times` are the half-open ranges the query speaks of; they and `now`, which
    the fuzzy formula's time is told from, are in microseconds since 1970.
    """
    if recipe.formula == "fuzzy":
        return _fuzzy(collection, now)
    counts, sessions, lengths = collection.counts, collection.sessions, collection.lengths
    words = _bm25(counts, lengths, smooth=False)
    weights = {"meaning": recipe.meaning, "neighbours": recipe.neighbours, "session": recipe.session}
    if times and recipe.time:
        weights["time"] = recipe.time
    if not any(weights.values()) or not len(collection):
        return Ranked(words, {"words": words}, words > 0)
    likeness = np.zeros(len(collection))
    if recipe.meaning and query_vector:
        likeness = np.maximum(collection.likeness(query_vector), 0)
    # A step of numpy's costs as much for a row as for a few: what is added up over neighbours stands in one array, and
    # so do the parts.
    counts = counts[counts.any(axis=1)]  # of the other words nothing comes
    rows = np.ones((len(counts) + 3, len(collection)))
    rows[:-3], rows[-3], rows[-2] = counts, lengths, likeness
    near = _around(rows, sessions)
    beside = near[:-3]
    values = [words, _meaning(likeness, near[-2], near[-1]), _bm25(beside, near[-3]), _session(rows[:-2], sessions)]
    if "time" in weights:
        values.append(_within(collection.created, times))
    eligible = words > 0
    if recipe.meaning:
        eligible |= likeness >= LIKE
    if recipe.neighbours:
        eligible |= (beside > 0).sum(axis=0) >= BESIDE
    fuse = _ranks if recipe.fusion == "rrf" else _relative
    parts = fuse(np.array(values)) * np.array([1.0, *weights.values()])[:, None]
    return Ranked(parts.sum(axis=0), dict(zip(("words", *weights), parts, strict=True)), eligible)


def _bm25(counts: Floats, lengths: Floats, *, smooth: bool = True) -> Floats:
    """BM25 of n texts with terms x n `counts`."""
    documents = max(len(lengths), 1)
    average = lengths.sum() / documents or 1.0
    norm = K1 * (1 - B + B * lengths / average)
    having = (counts > 0).sum(axis=1)
    idf = np.log(1 + (documents - having + 0.5) / (having + 0.5)) if smooth else np.log(documents / (having + 1)) + 1
    total: Floats = ((idf * (K1 + 1))[:, None] * counts / (counts + norm)).sum(axis=0)
    return total


def _around(values: Floats, sessions: Ints) -> Floats:
    """Each value (along the last axis) with those of REACH neighbours on either side in the same session added."""
    total = values.copy()
    alone = sessions[0] == sessions[-1]  # they are in order
    for distance in range(1, REACH + 1):
        before, after = values[..., :-distance], values[..., distance:]
        if not alone:
            same = (sessions[distance:] == sessions[:-distance]).astype(float)
            before, after = before * same, after * same
        total[..., distance:] += before
        total[..., :-distance] += after
    return total


def _meaning(likeness: Floats, around: Floats, many: Floats) -> Floats:
    """How much more than the average message each is like the query, its neighbours counting half as much as itself.

    `around` are the likenesses of each message and its neighbours, added up, and `many` says of how many.
    """
    together = (around + likeness) / (many + 1)
    return np.maximum(together - together.sum() / len(together), 0)


def _session(rows: Floats, sessions: Ints) -> Floats:
    """For each message, BM25 of its whole session; `rows` are its counts, and last its length."""
    ends = (sessions[1:] != sessions[:-1]).nonzero()[0] + 1
    starts = np.concatenate([[0], ends])
    whole = np.add.reduceat(rows, starts, axis=1)
    sizes = np.concatenate([ends, [len(sessions)]]) - starts
    return _bm25(whole[:-1], whole[-1]).repeat(sizes)


def _within(created: Ints, times: Sequence[tuple[int, int]]) -> Floats:
    """1 for what was said in one of the times or shortly after, else 0."""
    grace = int(GRACE_DAYS * 86_400e6)
    inside = np.zeros(len(created), bool)
    for after, before in times:
        inside |= (created >= after) & (created < before + grace)
    return inside.astype(float)


def _relative(values: Floats) -> Floats:
    """Each row's values as shares of its largest."""
    largest = values.max(axis=1, keepdims=True)
    return values / np.where(largest > 0, largest, 1.0)


def _ranks(values: Floats) -> Floats:
    """Each row's reciprocal ranks, best first; equal values share a rank, and what has no value has no rank."""
    better = np.array([len(row) - np.searchsorted(np.sort(row), row, side="right") for row in values])
    return np.where(values > 0, 1 / (RRF_K + 1 + better), 0.0)


def _fuzzy(collection: Collection, now: int) -> Ranked:
    """The formula of a study of how people keep a conversation in mind, for comparison."""
    wanted = len(collection.counts)
    shared = np.count_nonzero(collection.counts, axis=0) / wanted
    sizes = np.sqrt(np.maximum(collection.squares, 1) * wanted)
    hours = np.maximum(now - collection.created, 0) / 3.6e9
    parts = {
        "overlap": 0.4 * shared,
        "cosine": 0.4 * collection.counts.sum(axis=0) / sizes,
        "time": 0.2 * (1 - 0.3 * np.minimum(hours / FUZZY_HOURS, 1)),
    }
    total = np.sum(list(parts.values()), axis=0)
    return Ranked(total, parts, (total >= FUZZY_THRESHOLD) & (shared > 0))
