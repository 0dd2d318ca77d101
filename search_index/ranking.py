"""How well messages answer a query: profiles, and the parts they add.

A part is a pure function that gives each message a number of 0 or more; its docstring says why it is there.  A profile
is data: the parts, each with its weight.  To add or drop a part is one entry of CONTEXT.

BM25 is as Whoosh's BM25F computes it for one field (whoosh.scoring.bm25, whoosh.searching.Searcher.idf):

    idf(t)   = ln(N / (n(t) + 1)) + 1
    score(d) = sum over t of idf(t) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length(d) / average length))

Beside neighbours and sessions the idf is ln(1 + (N - n + 0.5) / (n + 0.5)), which goes to 0 for what is everywhere:
there are few sessions, and a common word is in most of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.arrays import Candidates, Floats, Ints

# Chat messages are short and say a thing once: repeats and length count for less than in the usual 1.2 and 0.75.
K1, B = 0.9, 0.4
REACH = 2  # messages on either side that belong to what was said: a question, its answer, and what was said to that
RRF_K = 60  # reciprocal rank fusion's constant (Cormack, Clarke and Büttcher 2009)
FEW_WORDS = 0.5  # of a query's words around any message, by weight: with fewer, meaning decides
NEAREST_SPAN = 5.0  # places after the nearest in which what nearness adds falls to a half
TIE = 1e-6  # by which words, then nearness, order what fits as well
NEAR_WEIGHT = 0.7  # of nearness beside words, in how well a message fits
GRACE_DAYS = 3.0  # a thing is told of in the days after it happened, not only on its day
FUZZY_HOURS = 24.0


@dataclass(frozen=True, eq=False)
class ScoringContext:
    """A query beside its candidates, and values that several features need, computed once.

    cosine_similarity: the cosine of each message's vector with the query's.
    near: how near each message is (see `yardstick`).
    nearest: the nearest are wanted if the query's words are hardly there.
    now, times: microseconds since 1970, and half-open ranges of them that the query speaks of.
    speaker, role: hashes of whose words are wanted, or 0.
    linked: weights, by id, of messages about what belongs to somebody or something that the query names.
    """

    candidates: Candidates
    cosine_similarity: Floats
    near: Floats
    nearest: bool = False
    now: int = 0
    times: Sequence[tuple[int, int]] = ()
    speaker: int = 0
    role: int = 0
    linked: Mapping[int, float] = field(default_factory=dict)

    @property
    def rows(self) -> NDArray[np.void]:
        return self.candidates.rows

    @property
    def counts(self) -> Floats:
        return self.candidates.counts

    @cached_property
    def words(self) -> Floats:
        """BM25 of each message."""
        held = np.minimum(self.counts, 1.0).sum(axis=1)
        return _bm25(self.counts, self.rows["length"], np.log(len(self.rows) / (held + 1)) + 1)

    @cached_property
    def own(self) -> Floats:
        """The share of the query's words that each message has, weighed by how few messages have a word."""
        return self._share(self.counts)

    @cached_property
    def nearby(self) -> Floats:
        """The same share of each message together with its neighbours."""
        return self._share(self.around[0])

    @cached_property
    def fit(self) -> Floats:
        """How well each message fits by itself, from 0 to 1: by its words, by its meaning, or both."""
        return 1 - (1 - self.own) * (1 - np.clip(NEAR_WEIGHT * self.near, 0.0, 1.0))

    def _share(self, counts: Floats) -> Floats:
        messages = len(self.rows)
        idf = np.log1p(messages / (np.minimum(self.counts, 1.0).sum(axis=1) + 1))
        unknown = (self.candidates.asked - len(idf)) * np.log1p(messages)  # words that nobody has used
        share: Floats = np.add.reduce(idf[:, None] * np.minimum(counts, 1.0)) / ((idf.sum() + unknown) or 1.0)
        return share

    @cached_property
    def sessions(self) -> tuple[Ints, Ints]:
        """Where each session begins, and the session of each message, numbered."""
        sessions = self.rows["session"]
        starts = np.concatenate(([0], (sessions[1:] != sessions[:-1]).nonzero()[0] + 1))
        return starts, starts.searchsorted(np.arange(len(sessions)), "right") - 1

    @cached_property
    def around(self) -> tuple[Floats, Floats]:
        """Sums over each message and its REACH neighbours on either side in its session: of the counts of each term;
        and of their lengths, their likenesses and how many they are.

        All rows are added at once, laid end to end.  REACH empty columns keep rows and sessions apart.
        """
        session = self.sessions[1]
        columns = np.arange(len(session)) + REACH * session
        rows = np.zeros((len(self.counts) + 3, int(columns[-1]) + 1 + REACH))
        rows[:-3, columns] = self.counts
        rows[-3, columns], rows[-2, columns], rows[-1, columns] = (
            self.rows["length"],
            np.maximum(self.cosine_similarity, 0),
            1.0,
        )
        line = rows.reshape(-1)
        total = line.copy()
        for distance in range(1, REACH + 1):
            total[distance:] += line[:-distance]
            total[:-distance] += line[distance:]
        total = total.reshape(rows.shape).take(columns, axis=1)
        return total[:-3], total[-3:]


# The parts.  Each figure is what recall@10, and the evidence in 1,000 tokens, lose without the part.


def words(asked: ScoringContext) -> Floats:
    """It has the words of the question: its BM25."""
    return asked.words


def meaning(asked: ScoringContext) -> Floats:
    """It says something similar in other words: the cosine of the vectors, averaged with the neighbours' at half
    weight, above the mean of all messages."""
    _, (_, likenesses, messages) = asked.around
    together = (likenesses + np.maximum(asked.cosine_similarity, 0)) / (messages + 1)  # the message itself counts twice
    return np.maximum(together - np.add.reduce(together) / len(together), 0)


def neighbours(asked: ScoringContext) -> Floats:
    """An answer seldom repeats its question: BM25 of the message together with REACH messages on either side."""
    counts, (lengths, _, _) = asked.around
    return _bm25(counts, lengths, _rarity(np.minimum(counts, 1.0)))


def session(asked: ScoringContext) -> Floats:
    """Its session was about this: BM25 of the whole session."""
    starts, of = asked.sessions
    counts = np.add.reduceat(asked.counts, starts, axis=1)
    return _bm25(counts, np.add.reduceat(asked.rows["length"], starts), _rarity(np.minimum(counts, 1.0)))[of]


def time(asked: ScoringContext) -> Floats:
    """It was said in a time that the question speaks of, or in the GRACE_DAYS after it."""
    created, grace = asked.rows["created"], int(GRACE_DAYS * 86_400e6)
    inside = np.zeros(len(created), bool)
    for after, before in asked.times:
        inside |= (created >= after) & (created < before + grace)
    return inside.astype(float)


def speaker(asked: ScoringContext) -> Floats:
    """It was said by who is asked about: the one speaker that the question names, else the role it asks for."""
    if asked.speaker:
        return (asked.rows["speaker"] == asked.speaker).astype(float)
    return ((asked.rows["role"] == asked.role) & (asked.role != 0)).astype(float)


def linked(asked: ScoringContext) -> Floats:
    """It tells of what belongs to somebody or something that the question names ("my sister's city"), maybe without
    any of the question's words."""
    weights = np.zeros(len(asked.rows))
    for message_id, weight in asked.linked.items():  # a few
        weights[asked.rows["id"] == message_id] = weight
    return weights


def rare(asked: ScoringContext) -> Floats:
    """It says something that is seldom said: the idf of its rarest_term term, whatever the question."""
    doc_freqs = asked.candidates.rarest_term()
    return np.where(doc_freqs > 0, np.log1p(len(doc_freqs) / (doc_freqs + 1)), 0.0)


def tells(asked: ScoringContext) -> Floats:
    """It tells something: the share of its text that is no question."""
    return 1 - asked.rows["asks"].astype(float)


def nearest(asked: ScoringContext) -> Floats:
    """It is among the nearest in meaning, if they are asked for and hardly any message has the query's words."""
    if not asked.nearest or not asked.near.any() or asked.nearby.max() >= FEW_WORDS:
        return np.zeros(len(asked.rows))
    place = np.empty(len(asked.rows))
    place[np.lexsort((-asked.rows["id"], -asked.near))] = np.arange(len(place))
    return NEAREST_SPAN / (NEAREST_SPAN + place)


def jaccard(asked: ScoringContext) -> Floats:
    """How many of its and the query's distinct words both have, by their stems: other forms of a word match."""
    common = np.minimum(asked.counts, 1.0).sum(axis=0)
    return common / np.maximum(asked.candidates.sizes + asked.candidates.asked - common, 1)


def cosine(asked: ScoringContext) -> Floats:
    """The cosine of the word counts."""
    return asked.counts.sum(axis=0) / np.sqrt(np.maximum(asked.rows["squares"], 1) * asked.candidates.asked)


def age(asked: ScoringContext) -> Floats:
    """1 for what was said now, falling to 0.7 in FUZZY_HOURS."""
    hours = np.maximum(asked.now - asked.rows["created"], 0) / 3.6e9
    return 1 - 0.3 * np.minimum(hours / FUZZY_HOURS, 1)


class Feature(NamedTuple):
    """A part of a ranking, under its function's name."""

    score: Callable[[ScoringContext], Floats]
    weight: float = 1.0

    @property
    def name(self) -> str:
        return self.score.__name__


@dataclass(frozen=True)
class RankingProfile:
    """The parts of a score, which `fusion` adds: `plain`, as they are; `weighted`, each divided by its maximum for this
    query; or `rrf`, by their ranks.  At most `most` messages are found, with scores of `least` or more."""

    parts: tuple[Feature, ...]
    fusion: str = "weighted"
    least: float = 0.0
    most: int = sys.maxsize

    def weighing(self, **weights: float) -> RankingProfile:
        """The profile with these weights; a part of weight 0 is left out."""
        parts = [part._replace(weight=weights.get(part.name, part.weight)) for part in self.parts]
        return replace(self, parts=tuple(part for part in parts if part.weight))

    def only(self, *names: str) -> RankingProfile:
        """The profile with only these parts."""
        return replace(self, parts=tuple(part for part in self.parts if part.name in names))

    def uses(self, name: str) -> bool:
        return any(part.name == name for part in self.parts)


CONTEXT = RankingProfile(
    (
        Feature(words),
        Feature(meaning),
        Feature(neighbours),
        Feature(session, 0.5),
        Feature(time, 1.75),
        Feature(speaker, 0.65),
        Feature(linked, 1.5),
        Feature(rare, 2.0),
        Feature(tells, 0.9),
        Feature(nearest, 2.0),
    )
)
WORDS = RankingProfile((Feature(words),), "plain")
# For comparison: a study's formula, with its threshold and its number of hits.
FUZZY = RankingProfile((Feature(jaccard, 0.4), Feature(cosine, 0.4), Feature(age, 0.2)), "plain", least=0.3, most=5)
MEANING = ("meaning", "nearest")  # the parts that need vectors
RANKING_PROFILES = {"context": CONTEXT, "words": WORDS, "fuzzy": FUZZY}


class Scores(NamedTuple):
    """Scores of all messages, and the parts they are the sum of, a row for each of the profile's."""

    total: Floats
    parts: Floats


def rank(asked: ScoringContext, profile: RankingProfile) -> Scores:
    """Score every candidate, of which there has to be one."""
    parts = np.array([part.score(asked) for part in profile.parts])
    if profile.fusion != "plain":
        parts = _ranks(parts) if profile.fusion == "rrf" else _relative(parts)
    parts *= np.array([part.weight for part in profile.parts])[:, None]
    return Scores(np.add.reduce(parts), parts)


ALONE = ("words", "meaning")


def alone(asked: ScoringContext) -> Scores:
    """Score texts that have nothing around them by how well they fit; the parts are ALONE."""
    less = 1.1 - np.minimum(asked.own, 1.0) - np.clip(asked.near, 0.0, 1.0) / 10  # several may fit wholly
    total = asked.fit * (1 - TIE * less)
    return Scores(total, np.array([asked.own, np.clip(NEAR_WEIGHT * asked.near, 0.0, 1.0)]))


def found(asked: ScoringContext, profile: RankingProfile, total: Floats) -> NDArray[np.bool_]:
    """Which messages a query finds: all, if meaning tells how near each is; else those with its words around them."""
    if profile.fusion == "plain":
        return (asked.words > 0) & (total >= profile.least)
    if asked.near.any():
        return np.ones(len(total), bool)
    has_words = asked.nearby if profile.uses("neighbours") else asked.own
    return (has_words > 0) | (linked(asked) > 0)


def _bm25(counts: Floats, lengths: Ints | Floats, idf: Floats) -> Floats:
    """BM25 of n texts with terms x n `counts`."""
    average = np.add.reduce(lengths) / len(lengths) or 1.0
    norm = K1 * (1 - B + B * lengths / average)
    total: Floats = np.add.reduce((idf * (K1 + 1))[:, None] * counts / (counts + norm))
    return total


def _rarity(has: Floats) -> Floats:
    """The idf beside neighbours and in sessions, of terms that some of the texts have: 1, the others 0."""
    doc_freqs = np.add.reduce(has, axis=1)
    idf: Floats = np.log(1 + (has.shape[1] - doc_freqs + 0.5) / (doc_freqs + 0.5))
    return idf


def _relative(values: Floats) -> Floats:
    """Each row's values as shares of its largest."""
    largest = np.maximum.reduce(values, axis=1, keepdims=True)
    largest[largest <= 0] = 1.0
    return values / largest


def _ranks(values: Floats) -> Floats:
    """Each row's reciprocal ranks, best first; equal values share a rank, and what has no value has no rank."""
    better = np.array([len(row) - np.searchsorted(np.sort(row), row, side="right") for row in values])
    return np.where(values > 0, 1 / (RRF_K + 1 + better), 0.0)
