"""Prioritisation: which facts a prompt shows, and why.  Nothing here asks the database."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from config import Settings
from memory import tokens
from memory.domain import Fact, FactScore
from memory.languages import analysis_in
from memory.rendering import fact_line
from search_index.caches import cached

OFTEN = 32  # times that a fact was relevant, beyond which more make no difference
FACTS_KEPT = 2048  # facts whose words are cached: consecutive turns rank the same ones
MESSAGES_KEPT = 8  # and messages: a turn ranks the facts of the head and then the others


class Ranking:
    """Scores facts, and chooses those that fit a budget of tokens: half of it is for the head, half for the message."""

    def __init__(self, settings: Settings) -> None:
        self._weights = settings.fact_weights
        self._half_life_days = settings.fact_half_life_days
        words = analysis_in(settings.search_language).words
        self._words, self._asked = cached(FACTS_KEPT)(words), cached(MESSAGES_KEPT)(words)

    def for_head(self, facts: Sequence[Fact], budget: int, now: datetime) -> tuple[Fact, ...]:
        """The facts of the head, whatever the message."""
        return self.prioritise(facts, "", budget // 2, now)

    def for_message(self, facts: Sequence[Fact], message: str, budget: int, now: datetime) -> tuple[Fact, ...]:
        """Of facts that are not in the head, those that are pinned or share words with the message."""
        asked = self._asked(message) if facts else frozenset()
        fitting = [fact for fact in facts if fact.pinned or not asked.isdisjoint(self._words(fact.text))]
        return self.prioritise(fitting, message, budget - budget // 2, now)

    def prioritise(self, facts: Sequence[Fact], message: str, budget: int, now: datetime) -> tuple[Fact, ...]:
        """The facts to show within `budget` tokens, best first, each with its score.

        Pinned facts come first, then the higher score, then the newer fact.  One that does not fit is passed over for
        a shorter one.
        """
        chosen: list[Fact] = []
        ranked = self.scored(facts, message, now)
        for fact in sorted(ranked, key=lambda fact: (fact.pinned, fact.score.total, fact.id), reverse=True):
            cost = tokens.estimate(fact_line(fact))
            if cost <= budget:
                chosen.append(fact)
                budget -= cost
        return tuple(chosen)

    def scored(self, facts: Sequence[Fact], message: str, now: datetime) -> tuple[Fact, ...]:
        """The facts, in their order, with their scores for `message` (empty: there is none)."""
        asked = self._asked(message) if facts else frozenset()
        return tuple(replace(fact, score=self._score(fact, asked, now)) for fact in facts)

    def _score(self, fact: Fact, asked: frozenset[str], now: datetime) -> FactScore:
        """The weighted parts, each in 0..1 times its weight, and their sum.

        importance: of 5; recency: halves every FACT_HALF_LIFE_DAYS; use: the logarithm of how often the fact was
        relevant, of OFTEN times; relevance: the cosine between its words and the message's, as sets.
        """
        weights, half_life = self._weights, self._half_life_days
        days = max(timedelta(), now - fact.valid_from) / timedelta(days=1)
        words = self._words(fact.text) if asked else asked
        shared = len(words & asked)
        parts = (
            weights.importance * fact.importance / 5,
            weights.recency * 0.5 ** (days / half_life if half_life else math.inf),
            weights.use * min(1.0, math.log1p(fact.recalled_count) / math.log(OFTEN)),
            weights.relevance * (shared / math.sqrt(len(asked) * len(words)) if shared else 0.0),
        )
        return FactScore(sum(parts), *parts)
