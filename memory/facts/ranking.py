"""Prioritisation: which facts a prompt shows, and why.  Nothing here asks the database."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from functools import partial

from config import Settings
from memory import tokens
from memory.domain import Fact, FactScore
from memory.quoting import fact_line
from search_index.analysis import Analysis, analysis_for
from search_index.remembered import remembered

HEAD_SHARE = 0.5  # of the tokens for facts; the rest is for facts that fit the message
TEXTS_REMEMBERED = 2048  # facts and messages of which words and lengths are kept, 3 kB each: turns rank the same ones
Parts = tuple[float, float, float, float]


class Ranking:
    """Scores facts, and chooses those that fit FACT_TOKENS."""

    def __init__(self, settings: Settings) -> None:
        self._budget = settings.fact_tokens
        self._weights = settings.fact_weights
        self._half_life_days = settings.fact_half_life_days
        self._cost = remembered(TEXTS_REMEMBERED)(_cost)
        self._terms = remembered(TEXTS_REMEMBERED, longest=500)(partial(_terms, analysis_for(settings.search_language)))

    def for_head(self, facts: Iterable[Fact], now: datetime) -> tuple[Fact, ...]:
        """The facts that stand in the head, whatever is asked next: HEAD_SHARE of the tokens for facts."""
        return self.prioritise(facts, int(self._budget * HEAD_SHARE), now=now)

    def for_message(self, facts: Iterable[Fact], message: str, now: datetime) -> tuple[Fact, ...]:
        """Of facts that are not in the head, those that go with this message: pinned, or sharing words with it."""
        terms = self._terms(message)
        sharing = (fact for fact in facts if fact.pinned or not terms.isdisjoint(self._terms(fact.text)))
        ranked = self._ranked(sharing, terms, now)
        fitting = ((fact, parts) for fact, parts in ranked if fact.pinned or _relevance(parts) > 0)
        return self._chosen(fitting, self._budget - int(self._budget * HEAD_SHARE))

    def prioritise(self, facts: Iterable[Fact], budget: int, *, message: str = "", now: datetime) -> tuple[Fact, ...]:
        """The facts to show within `budget` tokens, best first, each with its score.

        Pinned facts come first, then by score; one that doesn't fit is passed over for a shorter one.
        """
        return self._chosen(self._ranked(facts, self._terms(message), now), budget)

    def scored(self, facts: Iterable[Fact], message: str, now: datetime) -> tuple[Fact, ...]:
        """The facts, in their order, with their scores in view of `message` (empty: none in view)."""
        terms = self._terms(message)
        return tuple(_with_score(fact, self._parts(fact, terms, now)) for fact in facts)

    def _ranked(self, facts: Iterable[Fact], terms: frozenset[str], now: datetime) -> list[tuple[Fact, Parts]]:
        """The facts, best first, and what their scores are made of: hundreds, of which a prompt shows a dozen."""
        ranked = [(fact, self._parts(fact, terms, now)) for fact in facts]
        return sorted(ranked, key=lambda one: (one[0].pinned, sum(one[1]), one[0].id), reverse=True)

    def _parts(self, fact: Fact, message_terms: frozenset[str], now: datetime) -> Parts:
        """The weighted parts of a fact's score, each in 0..1 times its weight.

        importance: of 5; recency: halves every FACT_HALF_LIFE_DAYS; use: how often it was relevant, saturating at
        some 30 times; relevance: the cosine between the fact's words and the message's, as sets.
        """
        age_days = max(0.0, (now - fact.valid_from).total_seconds() / 86_400)
        own = self._terms(fact.text) if message_terms else frozenset()
        shared = len(own & message_terms)
        weights = self._weights
        return (
            weights.importance * fact.importance / 5,
            weights.recency * 0.5 ** (age_days / self._half_life_days if self._half_life_days else math.inf),
            weights.use * min(1.0, math.log1p(fact.recalled_count) / math.log(32)),
            weights.relevance * (shared / math.sqrt(len(own) * len(message_terms)) if shared else 0.0),
        )

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


def _relevance(parts: Parts) -> float:
    return parts[-1]


def _with_score(fact: Fact, parts: Parts) -> Fact:
    return fact.scored(FactScore(sum(parts), *parts))


def _terms(analysis: Analysis, text: str) -> frozenset[str]:
    return frozenset(analysis.terms(text))


def _cost(fact: Fact) -> int:
    """Tokens of a fact's line."""
    return tokens.estimate(fact_line(fact))
