"""Prioritise facts: choose those that a prompt shows, and say why. Nothing here reads the database."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Self

from config import Settings
from memory import tokens
from memory.engine import Engine
from memory.languages import analysis_in
from memory.quoting import fact_line
from models.facts import Fact, FactScore
from search_index import Nearness
from search_index.caches import cached

HALF_LIFE_DAYS = 30.0  # after which the recency of a fact has halved
OFTEN = 32  # times that a fact was of use, beyond which more make no difference
FACTS_KEPT = 2048  # facts whose tokens are cached: consecutive turns rank the same ones
USED = 0.25  # of the most that relevance counts, from which a fact was of use
NEARNESS_MIN = 0.7  # the least nearness of a fact to a message that is not about the person
NEARNESS_WEIGHT = 0.63  # of nearness, beside the cosine of the words
MESSAGE_CHARS = 2_000  # of a message whose meaning is compared


class Ranking:
    """Scores facts, and chooses those that fit a budget of tokens.

    Half of FACT_TOKENS is for the prefix, which shows the prioritised facts, and the rest for the message
    (`message_budget`).
    """

    def __init__(self, settings: Settings, nearness: Nearness | None = None) -> None:
        """Without `nearness` facts are compared with a message by their words alone."""
        self._nearness = nearness
        self._weights = settings.fact_weights
        self._analysis = analysis_in(settings.search_language)
        self._words = self._analysis.words

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """Return the ranking by the engine's settings."""
        return cls(engine.settings, engine.index.nearness)

    def message_budget(self, message: str, budget: int) -> int:
        """Return how much of the budget is for the facts that go with a message: half of it.

        It is all for a message in another language than SEARCH_LANGUAGE: there only shared words tell facts apart, so
        more are shown.
        """
        return budget if self._is_foreign(message) else budget - budget // 2

    def for_message(
        self,
        facts: Sequence[Fact],
        message: str,
        budget: int,
        now: datetime,
        *,
        is_personal: bool = True,
        first: Collection[int] = (),
    ) -> tuple[Fact, ...]:
        """Return the most relevant of the facts outside the prefix within `budget` tokens, after the pinned ones.

        is_personal: without it, only facts that share words with the message, are near it, or are in another language
        than a message that is not in SEARCH_LANGUAGE, with which they can share none. first: ids of those that come
        before all others, whatever the message.
        """
        query = self._words(message) if facts else frozenset()
        languages_of = self._analysis.likely_languages
        languages = frozenset(languages_of(message) if facts and self._is_foreign(message) else ())
        ranked = [
            (fact, self._score(fact, query, like, now))
            for fact, like in zip(facts, self._near(facts, message), strict=True)
            if fact.pinned
            or is_personal
            or fact.id in first
            or like >= NEARNESS_MIN
            or not query.isdisjoint(self._words(fact.text))
            or (languages and languages.isdisjoint(languages_of(fact.text)))
        ]
        ranked.sort(
            key=lambda pair: (pair[0].id in first, pair[0].pinned, pair[1].relevance, pair[1].total, pair[0].id),
            reverse=True,
        )
        return _within(budget, ranked)

    def prioritise(self, facts: Sequence[Fact], budget: int, now: datetime) -> tuple[Fact, ...]:
        """Return the facts to show within `budget` tokens, whatever the message, best first, each with its score.

        Pinned facts come first, then the higher score, then the newer fact.
        """
        ranked = self._with_scores(facts, "", now)
        ranked.sort(key=lambda pair: (pair[0].pinned, pair[1].total, pair[0].id), reverse=True)
        return _within(budget, ranked)

    def about(self, facts: Sequence[Fact], text: str, budget: int, now: datetime) -> tuple[Fact, ...]:
        """Return the facts that a text may be about within `budget` tokens, the most relevant first."""
        return _within(budget, [(fact, fact.score) for fact in self.by_relevance(self.scored(facts, text, now))])

    def by_relevance(self, scored: Sequence[Fact]) -> list[Fact]:
        """Return the facts, the most relevant first; of equal ones that with the higher score, then the newer one."""
        return sorted(scored, key=lambda fact: (fact.score.relevance, fact.score.total, fact.id), reverse=True)

    def scored(self, facts: Sequence[Fact], message: str, now: datetime) -> tuple[Fact, ...]:
        """Return the facts, in their order, with their scores for a message, which may be empty."""
        return tuple(replace(fact, score=score) for fact, score in self._with_scores(facts, message, now))

    def share_words(self, facts: Sequence[Fact], message: str) -> bool:
        """Return whether one of the facts has a word of the message."""
        query = self._words(message)
        return any(not query.isdisjoint(self._words(fact.text)) for fact in facts)

    def is_used(self, score: FactScore) -> bool:
        """Return whether the fact was of use for the message it was scored for, and was not just the best there is."""
        return score.relevance > USED * self._weights.relevance

    def _is_foreign(self, message: str) -> bool:
        languages = self._analysis.likely_languages(message)
        return bool(languages) and self._analysis.language not in languages

    def _near(self, facts: Sequence[Fact], message: str) -> list[float]:
        if self._nearness is None or not message:
            return [0.0] * len(facts)
        return self._nearness.near(message[:MESSAGE_CHARS], [fact.text for fact in facts])

    def _with_scores(self, facts: Sequence[Fact], message: str, now: datetime) -> list[tuple[Fact, FactScore]]:
        query = self._words(message) if facts else frozenset()
        near = self._near(facts, message)
        return [(fact, self._score(fact, query, like, now)) for fact, like in zip(facts, near, strict=True)]

    def _score(self, fact: Fact, query: frozenset[str], near: float, now: datetime) -> FactScore:
        """Return the weighted parts, each in 0..1 times its weight, and their sum.

        importance: of 5; recency: halves every HALF_LIFE_DAYS; use: the logarithm of how often the fact was of
        use, of OFTEN times; relevance: the cosine between its words and the message's, as sets, or how near their
        meanings are, whichever is more.
        """
        weights = self._weights
        days = max(timedelta(), now - fact.valid_from) / timedelta(days=1)
        words = self._words(fact.text) if query else query
        shared = len(words & query)
        alike = shared / math.sqrt(len(query) * len(words)) if shared else 0.0
        parts = (
            weights.importance * fact.importance / 5,
            weights.recency * 0.5 ** (days / HALF_LIFE_DAYS),
            weights.use * min(1.0, math.log1p(fact.recalled_count) / math.log(OFTEN)),
            weights.relevance * max(alike, min(1.0, NEARNESS_WEIGHT * near)),
        )
        return FactScore(sum(parts), *parts)


@cached(FACTS_KEPT)
def _line_tokens(text: str, valid_from: datetime) -> int:
    return tokens.estimate(fact_line(Fact(0, text, valid_from, valid_from)))


def _within(budget: int, ranked: Sequence[tuple[Fact, FactScore]]) -> tuple[Fact, ...]:
    """Return the first facts that fit into `budget` tokens, without those that are too long for the rest of it."""
    chosen: list[Fact] = []
    for fact, score in ranked:
        cost = _line_tokens(fact.text, fact.valid_from)
        if cost <= budget:
            chosen.append(replace(fact, score=score))
            budget -= cost
    return tuple(chosen)
