"""Prioritisation: which facts a prompt shows, and why.  Nothing here asks the database.

An owner may have hundreds of facts, of which a prompt shows a dozen.  So scores are worked out column by column, not
fact by fact, and what a fact's text says (its words, its length in a prompt) is remembered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from config import Settings
from memory import tokens
from memory.domain import Fact, FactScore
from memory.languages import analysis_in
from memory.rendering import fact_line
from search_index.analysis import Analysis
from search_index.remembered import remembered

HEAD_SHARE = 0.5  # of the tokens for facts; the rest is for facts that fit the message
TEXTS_REMEMBERED = 2048  # facts and messages of which words and lengths are kept, 3 kB each: turns rank the same ones
OFTEN = 32  # times that a fact was relevant, from which on more make no difference
SHORT = 500  # characters of a text whose words are kept
SECONDS_A_DAY = 86_400

Related = tuple[Fact, float]  # a fact and its weighted relevance
Parts = tuple[float, float, float, float]  # of a score: importance, recency, use, relevance


class Ranking:
    """Scores facts, and chooses those that fit FACT_TOKENS."""

    def __init__(self, settings: Settings) -> None:
        weights = settings.fact_weights
        self._budget = settings.fact_tokens
        self._weights = weights
        self._half_life_days = settings.fact_half_life_days
        self._use = [weights.use * min(1.0, math.log1p(count) / math.log(OFTEN)) for count in range(OFTEN)]
        self._cost = remembered(TEXTS_REMEMBERED)(_cost)
        self._analysis = analysis_in(settings.search_language)
        self._read = partial(_terms, self._analysis)
        self._kept = remembered(TEXTS_REMEMBERED)(self._read)

    def for_head(self, facts: Sequence[Fact], now: datetime) -> tuple[Fact, ...]:
        """The facts that stand in the head, whatever is asked next: HEAD_SHARE of the tokens for facts."""
        return self.prioritise(facts, int(self._budget * HEAD_SHARE), now=now)

    def for_message(self, facts: Sequence[Fact], message: str, now: datetime) -> tuple[Fact, ...]:
        """Of facts that are not in the head, those that go with this message: pinned, or sharing words with it."""
        shared = zip(facts, self._relevance(facts, message), strict=True)
        fitting = [(fact, relevance) for fact, relevance in shared if fact.pinned or relevance > 0]
        return self._chosen(self._ranked(fitting, now), self._budget - int(self._budget * HEAD_SHARE))

    def prioritise(self, facts: Sequence[Fact], budget: int, *, message: str = "", now: datetime) -> tuple[Fact, ...]:
        """The facts to show within `budget` tokens, best first, each with its score.

        Pinned facts come first, then by score; one that doesn't fit is passed over for a shorter one.
        """
        related = list(zip(facts, self._relevance(facts, message), strict=True))
        return self._chosen(self._ranked(related, now), budget)

    def scored(self, facts: Sequence[Fact], message: str, now: datetime) -> tuple[Fact, ...]:
        """The facts, in their order, with their scores in view of `message` (empty: none in view)."""
        related = list(zip(facts, self._relevance(facts, message), strict=True))
        return tuple(map(_with_score, facts, self._parts(related, now)))

    def _ranked(self, related: Sequence[Related], now: datetime) -> list[tuple[Fact, Parts]]:
        """The facts, best first, and what their scores are made of: hundreds, of which a prompt shows a dozen."""
        scores = self._parts(related, now)
        keys = [(fact.pinned, total, fact.id) for (fact, _), total in zip(related, map(sum, scores), strict=True)]
        return [(related[at][0], scores[at]) for at in sorted(range(len(keys)), key=keys.__getitem__, reverse=True)]

    def _parts(self, related: Sequence[Related], now: datetime) -> list[Parts]:
        """The weighted parts of each fact's score, each in 0..1 times its weight, the last being its relevance.

        importance: of 5; recency: halves every FACT_HALF_LIFE_DAYS; use: how often it was relevant, saturating at
        OFTEN times.
        """
        weights, use, half_life = self._weights, self._use, self._half_life_days
        ages = map(timedelta.total_seconds, [now - fact.valid_from for fact, _ in related])
        days = [age / SECONDS_A_DAY if age > 0 else 0.0 for age in ages]
        importance = [weights.importance * fact.importance / 5 for fact, _ in related]
        recency = [weights.recency * 0.5 ** (age / half_life if half_life else math.inf) for age in days]
        used = [use[fact.recalled_count] if fact.recalled_count < OFTEN else weights.use for fact, _ in related]
        return list(zip(importance, recency, used, [relevance for _, relevance in related], strict=True))

    def _relevance(self, facts: Sequence[Fact], message: str) -> list[float]:
        """The weighted relevance of each fact: the cosine between its words and the message's, as sets."""
        asked = frozenset(self._analysis.query_terms(message)) if facts else frozenset()
        if not asked:
            return [0.0] * len(facts)
        weight, count, terms = self._weights.relevance, len(asked), self._terms([fact.text for fact in facts])
        shared = map(len, map(asked.intersection, terms))
        norms = map(math.sqrt, [count * size for size in map(len, terms)])
        return [weight * (both / norm) if both else 0.0 for both, norm in zip(shared, norms, strict=True)]

    def _terms(self, texts: Sequence[str]) -> list[frozenset[str]]:
        """The words of each text, remembered where it is short, as nearly all are."""
        kept, read = self._kept, self._read
        return [kept(text) if size <= SHORT else read(text) for text, size in zip(texts, map(len, texts), strict=True)]

    def _chosen(self, ranked: Iterable[tuple[Fact, Parts]], budget: int) -> tuple[Fact, ...]:
        """Of ranked facts those that fit, each with its score."""
        chosen: list[Fact] = []
        for fact, parts in ranked:
            cost = self._cost(fact)
            if cost <= budget:
                chosen.append(_with_score(fact, parts))
                budget -= cost
        return tuple(chosen)


def relevant(fact: Fact) -> bool:
    """Whether a fact shares words with the message it was scored for."""
    return fact.score is not None and fact.score.relevance > 0


def _with_score(fact: Fact, parts: Parts) -> Fact:
    return fact.scored(FactScore(sum(parts), *parts))


def _terms(analysis: Analysis, text: str) -> frozenset[str]:
    return frozenset(analysis.terms(text))


def _cost(fact: Fact) -> int:
    """Tokens of a fact's line."""
    return tokens.estimate(fact_line(fact))
