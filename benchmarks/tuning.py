"""Chooses weights on all conversations but one and scores them on that one: the value of tuning on unseen data.

With all weights at 1, a hit's `why` contains the unweighted parts.  So one search for each question is enough for all
points of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.command import progress
from benchmarks.conversation import ANSWERABLE, Question
from benchmarks.rankings import DEFAULT, ENGLISH, Corpus, Judge, search
from search_index import Recipe, SearchIndex, WordLlamaEmbedder

GRID = {
    "meaning": (0.4, 0.8, 1.2),
    "neighbours": (0.5, 1.0, 1.5),
    "session": (0.5, 1.0, 1.5),
    "time": (1.0, 1.5, 2.0),
}
"""Values around the defaults.  A finer grid would fit noise."""

_FIGURES = ("recall@10", "hit@1", "ndcg@5", "in 1000")
_Weights = tuple[float, ...]


@dataclass(frozen=True)
class _Asked:
    """A question, the ids of all messages found for it, and the parts of their scores."""

    question: Question
    ids: NDArray[np.int64]
    parts: NDArray[np.float64]  # ids x (words, *GRID)

    def found(self, weights: _Weights) -> list[int]:
        total = self.parts @ np.array((1.0, *weights))
        best: list[int] = self.ids[np.lexsort((-self.ids, -total))].tolist()
        return best


def leave_one_out(corpora: Sequence[Corpus], root: Path) -> dict[str, Any]:
    """The weights with the best recall@10 on the other conversations, and the figures of all questions with them.

    `root` is the folder of the corpora's index with vectors.
    """
    defaults = (DEFAULT.meaning, DEFAULT.neighbours, DEFAULT.session, DEFAULT.time)
    points = [*product(*GRID.values())]
    sums = {corpus.owner: {point: np.zeros(len(_FIGURES)) for point in {*points, defaults}} for corpus in corpora}
    asked = sum(len(corpus.conversation.questions) for corpus in corpora)
    counts = {corpus.owner: np.zeros(len(_FIGURES)) for corpus in corpora}
    with progress(asked, "question", "weights") as bar:
        for corpus in corpora:
            judge = Judge(corpus)
            for one in _asked(corpus, root):
                answerable = one.question.category in ANSWERABLE
                counted = np.array([name in ("hit@1", "ndcg@5") or answerable for name in _FIGURES], float)
                counts[corpus.owner] += counted
                for point, total in sums[corpus.owner].items():
                    scores = judge.scores(one.question, one.found(point))
                    total += counted * [scores[name] for name in _FIGURES]
                bar.update()
    chosen, held_out, by_default = {}, np.zeros(len(_FIGURES)), np.zeros(len(_FIGURES))
    for owner in sums:
        others = [other for other in sums if other != owner]
        best = max(points, key=lambda point: sum(sums[other][point][0] for other in others))
        chosen[owner] = {
            "weights": dict(zip(GRID, best, strict=True)),
            **_figures(sums[owner][best] / counts[owner]),
        }
        held_out += sums[owner][best]
        by_default += sums[owner][defaults]
    every = sum(counts.values())
    return {"chosen": chosen, "held out": _figures(held_out / every), "defaults": _figures(by_default / every)}


def _asked(corpus: Corpus, root: Path) -> list[_Asked]:
    bare = Recipe(meaning=1.0, neighbours=1.0, session=1.0, time=1.0)
    index = SearchIndex(root, recipe=bare, embedder=WordLlamaEmbedder(), analysis=ENGLISH)
    asked = []
    for question in corpus.conversation.questions:
        hits = search(index, corpus.owner, corpus.query(question, len(corpus.documents)))
        parts = [[hit.why.get(name, 0.0) for name in ("words", *GRID)] for hit in hits]
        ids = np.array([hit.message_id for hit in hits], np.int64)
        asked.append(_Asked(question, ids, np.array(parts).reshape(-1, 1 + len(GRID))))
    return asked


def _figures(values: NDArray[np.float64]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(_FIGURES, values, strict=True)}
