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
TERMS_REMEMBERED = 4096  # texts of facts whose words are kept in mind: each turn ranks the same ones


class Ranking:
    """Scores facts, and chooses those that fit FACT_TOKENS."""

    def __init__(self, settings: Settings) -> None:
        self._budget = settings.fact_tokens
        self._weights = settings.fact_weights
        self._half_life_days = settings.fact_half_life_days
        self._terms = partial(_terms, analysis_for(settings.search_language))
        self._terms_of_fact = remembered(TERMS_REMEMBERED)(self._terms)

    def for_head(self, facts: Iterable[Fact], now: datetime) -> tuple[Fact, ...]:
        """The facts that stand in the head, whatever is asked next: HEAD_SHARE of the tokens for facts."""
        return self.prioritise(facts, int(self._budget * HEAD_SHARE), now=now)

    def for_message(self, facts: Iterable[Fact], message: str, now: datetime) -> tuple[Fact, ...]:
        """Of facts that are not in the head, those that go with this message: pinned, or sharing words with it."""
        fitting = [fact for fact in self.scored(facts, message, now) if fact.pinned or relevant(fact)]
        return _chosen(fitting, self._budget - int(self._budget * HEAD_SHARE))

    def prioritise(self, facts: Iterable[Fact], budget: int, *, message: str = "", now: datetime) -> tuple[Fact, ...]:
        """The facts to show within `budget` tokens, best first, each with its score.

        Pinned facts come first, then by score; one that doesn't fit is passed over for a shorter one.
        """
        return _chosen(self.scored(facts, message, now), budget)

    def scored(self, facts: Iterable[Fact], message: str, now: datetime) -> tuple[Fact, ...]:
        """The facts, in their order, with their scores in view of `message` (empty: none in view)."""
        message_terms = self._terms(message)
        return tuple(fact.scored(self._score(fact, message_terms, now)) for fact in facts)

    def _score(self, fact: Fact, message_terms: frozenset[str], now: datetime) -> FactScore:
        """A weighted sum of four parts in 0..1.

        importance: of 5; recency: halves every FACT_HALF_LIFE_DAYS; use: how often it was relevant, saturating at
        some 30 times; relevance: the cosine between the fact's words and the message's, as sets.
        """
        age_days = max(0.0, (now - fact.valid_from).total_seconds() / 86_400)
        own = self._terms_of_fact(fact.text) if message_terms else frozenset()
        shared = len(own & message_terms)
        weights = self._weights
        score = (
            weights.importance * fact.importance / 5,
            weights.recency * 0.5 ** (age_days / self._half_life_days if self._half_life_days else math.inf),
            weights.use * min(1.0, math.log1p(fact.recalled_count) / math.log(32)),
            weights.relevance * (shared / math.sqrt(len(own) * len(message_terms)) if shared else 0.0),
        )
        return FactScore(sum(score), *score)


def relevant(fact: Fact) -> bool:
    """Whether a fact shares words with the message it was scored for."""
    return fact.score is not None and fact.score.relevance > 0


def _terms(analysis: Analysis, text: str) -> frozenset[str]:
    return frozenset(analysis.terms(text))


def _chosen(scored: Iterable[Fact], budget: int) -> tuple[Fact, ...]:
    """Of facts with their scores, the best that fit."""
    ranked = sorted(
        scored, key=lambda fact: (fact.pinned, fact.score.total if fact.score else 0.0, fact.id), reverse=True
    )
    chosen: list[Fact] = []
    for fact in ranked:
        cost = tokens.estimate(fact_line(fact))
        if cost <= budget:
            chosen.append(fact)
            budget -= cost
    return tuple(chosen)
