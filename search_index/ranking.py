"""Ranking: how well messages answer a query, by profiles of features.

A feature gives each message a number of 0 or more.  A profile is data: a table of features.  To add or drop one is a
row of CONTEXT.

BM25 is as Whoosh's BM25F computes it for one field (whoosh.scoring.bm25, whoosh.searching.Searcher.idf):

    idf(t)   = ln(N / (n(t) + 1)) + 1
    score(d) = sum over t of idf(t) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length(d) / average length))

Beside neighbours and sessions the idf is ln(1 + (N - n + 0.5) / (n + 0.5)), which goes to 0 for what is everywhere:
there are few sessions, and a common word is in most of them.
"""

import sys
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from time import time_ns
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from search_index.arrays import K1, Candidates, Floats, Ints, line_sums, microseconds, term_hash, window_sums
from search_index.calibration import Calibration
from search_index.query import PreparedQuery
from search_index.spelling import PAIR, characters

RRF_K = 60  # reciprocal rank fusion's constant (Cormack, Clarke and Büttcher 2009)
FEW_WORDS = 0.5  # of a query's words around any message, by weight: with fewer, meaning decides
NEAREST_SPAN = 5.0  # places after the nearest in which what nearness adds falls to a half
TIE = 1e-6  # by which words, then nearness, order what fits as well
AROUND_WEIGHT = 0.5  # of the text that a query is a part of: it says what a question is about, or something else
NEAR_WEIGHT = 0.7  # of nearness beside words, in how well a message fits
GRACE_DAYS = 3.0  # a thing is told of in the days after it happened, not only on its day
FUZZY_HOURS = 24.0


class ScoringContext:
    """Query beside its candidates, with the arrays that features and filters take, computed once.

    bm25, own: BM25 of each message, and the share of the query's words that it has, weighed by their rarity.
    neighbours, nearby: the same of each message together with its neighbours.
    semantic: the cosine of each message's vector with the query's, averaged with the neighbours' at half weight, above
    the mean of all messages.
    """

    def __init__(
        self,
        candidates: Candidates,
        prepared: PreparedQuery,
        calibration: Calibration | None,
        *,
        speaker: int,
        has_windows: bool,
    ) -> None:
        """Compute what the profile takes.

        calibration: tells how near messages are to the query; None where there is nothing to compare.
        speaker: the hash of the one speaker whom the query names; 0 if it names none, or several.
        has_windows: the profile looks at neighbours.
        """
        self.candidates = candidates
        self.query = prepared.query
        self.speaker = speaker
        self.postings = candidates.postings(prepared.terms, prepared.forms)
        self.term_count = len(prepared.terms)
        count = len(candidates.ids)
        self._content = prepared.content
        self._calibration = calibration
        self.has_near = calibration is not None and candidates.vectors.number > 0
        term, rows, counts, doc_freqs, known = self.postings
        rarity = np.log1p(count / (doc_freqs + 1))
        # Words that nobody has used count as the rarest.
        share = rarity / ((rarity.sum() + _count_unused(prepared.terms, {*known.tolist()}) * np.log1p(count)) or 1.0)
        idf = np.log(count / (doc_freqs + 1)) + 1
        self.bm25 = _sums(rows, _bm25(idf[term], counts, candidates.own_lengths[rows]), count)
        self.own = _sums(rows, share[term], count)
        self.neighbours = self.nearby = self.semantic = np.zeros(count)
        if has_windows:
            term, rows, counts = self._in_windows()
            idf = _session_idf(np.bincount(term, minlength=len(doc_freqs)), count)
            self.neighbours = _sums(rows, _bm25(idf[term], counts, candidates.near_lengths[rows]), count)
            self.nearby = _sums(rows, share[term], count)
            if prepared.vector:
                alike = np.maximum(candidates.vectors.cosines(prepared.vector), 0)
                together = (window_sums(alike, candidates.line) + alike) / (candidates.near_count + 1)
                self.semantic = np.maximum(together - np.add.reduce(together) / count, 0)

    def near(self, rows: Ints | None = None) -> Floats:
        """Return how near messages are (None: all) to the query (see `calibration`); 0 for one without a vector."""
        vectors = self.candidates.vectors if rows is None else self.candidates.vectors.at(rows)
        if self._calibration is None:
            return np.zeros(len(vectors.rows))
        return self._calibration.near(self._content, vectors)

    def _in_windows(self) -> tuple[Ints, Ints, Floats]:
        """Return each term in the messages around each message: its number, the message, and the count there."""
        message_at = self.candidates.message_at
        term, rows, counts, doc_freqs, _ = self.postings
        size = len(message_at)
        line = np.zeros(len(doc_freqs) * size, np.float32)  # of each term after the other; counts are exact
        line[term * size + self.candidates.line[rows]] = counts
        around = line_sums(line)
        found = around.nonzero()[0]
        term, places = np.divmod(found, size)
        rows = message_at[places]
        there = rows >= 0  # the empty places between sessions have none
        return term[there], rows[there], around[found[there]]


def _count_unused(terms: Sequence[str], used: Set[int]) -> int:
    """Return how many terms nobody has used; not pairs of characters that lie across the joint of a used pair's word.

    terms: in the order of the text, in which pairs of an unspaced script overlap.
    """
    overlaps = {
        at
        for at, (left, right) in enumerate(pairwise(terms))
        if PAIR.match(left) and right.startswith(characters(left)[-1])
    }
    across = {at + 1 for at in overlaps if at in used} | {at for at in overlaps if at + 1 in used}
    return len(terms) - len(used | across)


def _sums(at: NDArray[Any], values: Any, size: int) -> Floats:
    """Return the sum of the values at each number below `size`."""
    sums: Any = np.bincount(at, values, size)
    return cast(Floats, sums)


def _bm25(idf: Floats, counts: Floats, lengths: Floats) -> Floats:
    """Return what terms with these counts add to BM25 of texts with these lengths (see `bm25_lengths`)."""
    return idf * (K1 + 1) * counts / (counts + lengths)


def _session_idf(doc_freqs: Ints, texts: int) -> Floats:
    """Return the idf beside neighbours and in sessions."""
    idf: Floats = np.log(1 + (texts - doc_freqs + 0.5) / (doc_freqs + 0.5))
    return idf


# The features that need more than a line.


def _session(context: ScoringContext) -> Floats:
    candidates, (term, rows, counts, doc_freqs, _) = context.candidates, context.postings
    sessions = len(candidates.session_lengths)
    totals = _sums(term * sessions + candidates.session_of[rows], counts, len(doc_freqs) * sessions)
    totals = totals.reshape(len(doc_freqs), sessions)
    idf = _session_idf(np.count_nonzero(totals, axis=1), sessions)
    return _bm25(idf[:, None], totals, candidates.session_lengths).sum(axis=0)[candidates.session_of]


def _time(context: ScoringContext) -> Floats:
    created = context.candidates.created
    grace = int(GRACE_DAYS * 86_400e6)
    inside = np.zeros(len(created), bool)
    for after, before in context.query.times:
        inside |= (created >= microseconds(after)) & (created < microseconds(before) + grace)
    return inside.astype(float)


def _speaker(context: ScoringContext) -> Floats:
    if context.speaker:
        return (context.candidates.speaker == context.speaker).astype(float)
    if context.query.about:
        return (context.candidates.role == term_hash(context.query.about)).astype(float)
    return np.zeros(len(context.own))


def _linked(context: ScoringContext) -> Floats:
    weights = np.zeros(len(context.own))
    for message_id, weight in context.query.linked.items():  # a few
        weights[context.candidates.ids == message_id] = weight
    return weights


def _nearest(context: ScoringContext) -> Floats:
    place = np.zeros(len(context.own))
    if not context.query.nearest or not context.has_near or context.nearby.max() >= FEW_WORDS:
        return place
    place[np.lexsort((-context.candidates.ids, -context.near()))] = np.arange(len(place))
    return NEAREST_SPAN / (NEAREST_SPAN + place)


def _jaccard(context: ScoringContext) -> Floats:
    common = np.bincount(context.postings.rows, minlength=len(context.own))
    sizes = np.bincount(context.candidates.posting_rows, minlength=len(context.own))
    return common / np.maximum(sizes + context.term_count - common, 1)


def _cosine(context: ScoringContext) -> Floats:
    together = _sums(context.postings.rows, context.postings.counts, len(context.own))
    candidates = context.candidates
    squares = _sums(candidates.posting_rows, np.square(candidates.counts, dtype=float), len(context.own))
    return together / np.sqrt(np.maximum(squares, 1) * context.term_count)


def _age(context: ScoringContext) -> Floats:
    hours = np.maximum(time_ns() // 1_000 - context.candidates.created, 0) / 3.6e9
    return 1 - 0.3 * np.minimum(hours / FUZZY_HOURS, 1)


class Feature(NamedTuple):
    """Feature of a profile: what gives each message its number, and the weight of that.

    looks_around: at the messages beside each. by_meaning: it needs vectors. is_sign: a message that has it answers the
    query, also if it is far from it in meaning.
    """

    name: str
    values: Callable[[ScoringContext], Floats]
    weight: float = 1.0
    looks_around: bool = False
    by_meaning: bool = False
    is_sign: bool = False


@dataclass(frozen=True)
class RankingProfile:
    """Features of a score, and the fusion that adds them.

    fusion: `plain`, as they are; `weighted`, each divided by its maximum for this query; or `rrf`, by their ranks.
    most, least: messages found at most, and the score they have at least.
    """

    features: tuple[Feature, ...]
    fusion: str = "weighted"
    least: float = 0.0
    most: int = sys.maxsize

    def weighing(self, **weights: float) -> Self:
        """Return the profile with these weights; a feature of weight 0 is left out."""
        features = [feature._replace(weight=weights.get(feature.name, feature.weight)) for feature in self.features]
        return replace(self, features=tuple(feature for feature in features if feature.weight))

    def only(self, *names: str) -> Self:
        """Return the profile with only these features."""
        return replace(self, features=tuple(feature for feature in self.features if feature.name in names))

    def uses(self, *names: str) -> bool:
        """Return whether the profile has one of these features."""
        return any(feature.name in names for feature in self.features)


CONTEXT = RankingProfile(
    (
        # It has the words of the question.
        Feature("words", lambda context: context.bm25, is_sign=True),
        # It says something similar in other words.
        Feature("meaning", lambda context: context.semantic, looks_around=True, by_meaning=True),
        # An answer seldom repeats its question: BM25 of the message together with REACH messages on either side.
        Feature("neighbours", lambda context: context.neighbours, looks_around=True, is_sign=True),
        # Its session was about this: BM25 of the whole session.
        Feature("session", _session, 0.5),
        # It was said in a time that the question speaks of, or in the GRACE_DAYS after it.
        Feature("time", _time, 1.75, is_sign=True),
        # It was said by who is asked about: the one speaker that the question names, else the role it asks for.
        Feature("speaker", _speaker, 0.65),
        # It tells of what belongs to somebody or something that the question names ("my sister's city").
        Feature("linked", _linked, 1.5, is_sign=True),
        # It says something that is seldom said, whatever the question: the idf of its rarest term.
        Feature("rare", lambda context: context.candidates.rare, 2.0),
        # It tells something: the share of its text that is no question, but for a long one.
        Feature("tells", lambda context: context.candidates.tells, 0.9),
        # It is among the nearest in meaning, if they are asked for and hardly any message has the query's words.
        Feature("nearest", _nearest, 2.0, looks_around=True, by_meaning=True),
    )
)
WORDS = replace(CONTEXT.only("words"), fusion="plain")
FUZZY = RankingProfile(
    (
        # The share of its and the query's distinct words that both have, by their stems.
        Feature("jaccard", _jaccard, 0.4),
        # The cosine of the word counts.
        Feature("cosine", _cosine, 0.4),
        # 1 for what was said now, falling to 0.7 in FUZZY_HOURS.
        Feature("age", _age, 0.2),
    ),
    "plain",
    least=0.3,
    most=5,
)
"""For comparison: a study's formula, with its threshold and its number of hits."""
RANKING_PROFILES = {"context": CONTEXT, "words": WORDS, "fuzzy": FUZZY}
BY_MEANING = [feature.name for feature in CONTEXT.features if feature.by_meaning]
SIGNS = [feature.name for feature in CONTEXT.features if feature.is_sign]
"""Parts of a score that tell that the message answers the query, whatever its nearness."""


class Scores(NamedTuple):
    """Scores of all messages, and the `parts` they are the sum of: a row for each feature in `names`."""

    total: Floats
    names: Sequence[str]
    parts: Floats

    def plus(self, other: Self, weight: float) -> Self:
        """Return these scores and those of another query for the same messages, which count `weight` times as much."""
        return self._replace(total=self.total + weight * other.total, parts=self.parts + weight * other.parts)

    def why(self, rows: Ints) -> list[dict[str, float]]:
        """Return what each feature adds for messages."""
        return [dict(zip(self.names, values, strict=True)) for values in self.parts[:, rows].T.tolist()]


def rank(context: ScoringContext, profile: RankingProfile) -> Scores:
    """Score every candidate, of which there has to be one."""
    names = [feature.name for feature in profile.features]
    values = np.array([feature.values(context) for feature in profile.features])
    factors = np.array([feature.weight for feature in profile.features])
    if profile.fusion == "rrf":
        values = np.array(list(map(_reciprocal_ranks, values)))
    elif profile.fusion == "weighted":
        largest = values.max(axis=1)
        factors = np.divide(factors, largest, out=np.zeros(len(names)), where=largest > 0)
    parts = values * factors[:, None]
    return Scores(np.add.reduce(parts, axis=0), names, parts)


def rank_alone(context: ScoringContext) -> Scores:
    """Score texts that have nothing around them by how well they fit."""
    near = context.near()
    less = 1.1 - np.minimum(context.own, 1.0) - np.clip(near, 0.0, 1.0) / 10  # several may fit wholly
    parts = np.array([context.own, np.clip(NEAR_WEIGHT * near, 0.0, 1.0)])
    return Scores(fit(context.own, near) * (1 - TIE * less), ("words", "meaning"), parts)


def fit(own: Floats, near: Floats) -> Floats:
    """Return how well messages fit by themselves, from 0 to 1: by their words, by their meaning, or both."""
    return 1 - (1 - own) * (1 - np.clip(NEAR_WEIGHT * near, 0.0, 1.0))


def is_found(context: ScoringContext, profile: RankingProfile, total: Floats) -> NDArray[np.bool_]:
    """Return which messages a query finds: all, if meaning tells how near each is; else those with its words."""
    if profile.fusion == "plain":
        return (context.bm25 > 0) & (total >= profile.least)
    if context.has_near:
        return np.ones(len(total), bool)
    has_words = context.nearby if profile.uses("neighbours") else context.own
    return (has_words > 0) | (_linked(context) > 0) | (_time(context) > 0)


def _reciprocal_ranks(values: Floats) -> Floats:
    """Return the reciprocal ranks, best first; equal values share a rank, and what has no value has no rank."""
    better = len(values) - np.sort(values).searchsorted(values, side="right")
    return np.where(values > 0, 1 / (RRF_K + 1 + better), 0.0)
