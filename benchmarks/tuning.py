"""Chooses weights on all conversations but one and scores them on that one: the value of tuning on unseen data.

With all weights at 1, a hit's `why` contains the unweighted parts.  So one search for each question is enough for all
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.command import progress
from benchmarks.conversation import ANSWERABLE, Question
from benchmarks.rankings import DEFAULT, ENGLISH, Corpus, Scorer, search
from search_index import SearchIndex, WordLlamaEmbedder

STEPS = (0.6, 1.5)
"""Each weight in turn is multiplied by these, and what is best is kept.  Finer steps would fit noise."""

_FIGURES = ("recall@10", "recall@10, several messages", "in 1000", "hit@1", "ndcg@5")
_EVERY = ("hit@1", "ndcg@5")  # are over all questions
_NAMES = tuple(part.name for part in DEFAULT.parts)
_Weights = tuple[float, ...]


@dataclass(frozen=True)
class _Asked:
    """A question, the ids of all messages found for it, and the parts of their scores."""

    question: Question
    ids: NDArray[np.int64]
    parts: NDArray[np.float64]  # ids x _NAMES

    def found(self, weights: _Weights) -> list[int]:
        total = self.parts @ np.array(weights)
        best: list[int] = self.ids[np.lexsort((-self.ids, -total))].tolist()
        return best


def leave_one_out(corpora: Sequence[Corpus], root: Path) -> dict[str, Any]:
    """The weights with the best sum of recall@10 and evidence in 1,000 tokens on the other conversations, where Hit@1
    is not below that of the defaults; and the figures of all questions with them.

    `root` is the folder of the corpora's index with vectors.
    """
    asked = {corpus.owner: (Scorer(corpus), _asked(corpus, root)) for corpus in corpora}

    @cache
    def sums(owner: str, weights: _Weights) -> NDArray[np.float64]:
        """Of the figures of one conversation, and below how many questions each is over."""
        scorer, questions = asked[owner]
        total = np.zeros((2, len(_FIGURES)))
        for one in questions:
            scores = scorer.scores(one.question, one.found(weights))
            scores["recall@10, several messages"] = scores["recall@10"]
            several = one.question.category == ANSWERABLE[0]
            counted = [
                name in _EVERY or (several if "several" in name else one.question.category in ANSWERABLE)
                for name in _FIGURES
            ]
            total += np.array(counted) * np.array([[scores[name] for name in _FIGURES], [1.0] * len(_FIGURES)])
        return total

    def figures(owners: Sequence[str], weights: _Weights) -> NDArray[np.float64]:
        totals = np.sum([sums(owner, weights) for owner in owners], axis=0)
        mean: NDArray[np.float64] = totals[0] / totals[1]
        return mean

    defaults = tuple(part.weight for part in DEFAULT.parts)
    chosen, held_out = {}, np.zeros((2, len(_FIGURES)))
    with progress(len(asked) * len(defaults), "weight", "leave one out") as bar:
        for owner in asked:
            others = [other for other in asked if other != owner]
            best, least = defaults, figures(others, defaults)
            reached = least
            for at in range(len(defaults)):
                for step in STEPS:
                    trial = tuple(defaults[at] * step if i == at else weight for i, weight in enumerate(best))
                    found = figures(others, trial)
                    if found[0] + found[2] > reached[0] + reached[2] and found[3] >= least[3]:
                        best, reached = trial, found
                bar.update()
            chosen[owner] = dict(zip(_NAMES, best, strict=True))
            held_out += sums(owner, best)
    return {
        "chosen": chosen,
        "held out": _named(held_out[0] / held_out[1]),
        "defaults": _named(figures([*asked], defaults)),
    }


def _asked(corpus: Corpus, root: Path) -> list[_Asked]:
    bare = DEFAULT.weighing(**dict.fromkeys(_NAMES, 1.0))
    index = SearchIndex(root, profile=bare, embedder=WordLlamaEmbedder(), analysis=ENGLISH)
    asked = []
    for question in corpus.conversation.questions:
        hits = search(index, corpus.owner, corpus.query(question, len(corpus.documents)))
        parts = [[hit.why[name] for name in _NAMES] for hit in hits]
        ids = np.array([hit.message_id for hit in hits], np.int64)
        asked.append(_Asked(question, ids, np.array(parts).reshape(-1, len(_NAMES))))
    return asked


def _named(values: NDArray[np.float64]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(_FIGURES, values, strict=True)}
