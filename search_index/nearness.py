"""How near texts without an index are to each other: questions that ask for the same, facts that fit a message."""

from __future__ import annotations

import math
from collections.abc import Sequence

from search_index.analysis import Analysis
from search_index.caches import cached
from search_index.embeddings import NO_VECTOR, norms, products, quantize, rows_of, unit_sum
from search_index.yardstick import Space

WORDS, NEAR = 0.5, 2.15  # the least cosine of two sets of terms, and the least nearness, of texts that are similar
TEXTS_KEPT = 2_048  # whose vectors are cached: consecutive turns compare the same facts


class Nearness:
    """Compares texts by their meaning in a local `space`; without one nothing is near anything."""

    def __init__(self, analysis: Analysis, space: Space | None) -> None:
        self._analysis = analysis
        self._space = space
        self._vector_of = cached(TEXTS_KEPT)(self._packed)

    def near(self, text: str, others: Sequence[str], *, of_one: bool = True) -> list[float]:
        """How near each of the other texts is to `text`; 1 is as near as an answer usually is to its question.

        of_one: the others are all of one person, and so have something in common that counts for nothing.
        """
        vector = self._vector_of(self._analysis.content(text)) if others else NO_VECTOR
        if self._space is None or vector == NO_VECTOR:
            return [0.0] * len(others)
        rows = rows_of(list(map(self._vector_of, others)))
        lengths, yardstick = norms(rows), self._space.yardstick
        if yardstick is None or rows.shape[1] != len(vector):
            return [0.0] * len(others)
        measured = slice(None if of_one else 0)
        total, count = unit_sum(rows[measured], lengths[measured]), int((lengths[measured] > 0).sum())
        view = yardstick.view(vector, total, count)
        near: list[float] = view.near(products(rows, view.targets), lengths).tolist()
        return near

    def similar(self, text: str, others: Sequence[str]) -> list[bool]:
        """Which of the other texts ask for much the same: half of their words are the same, or their meaning.

        Of two LoCoMo questions about one person 0.9 % pass for similar where the evidence differs, 18 % where some is
        the same.
        """
        asked, said = self._analysis.words(text), list(map(self._analysis.words, others))
        words = [len(one & asked) / math.sqrt(len(one) * len(asked) or 1) for one in said]
        near = self.near(text, list(map(self._analysis.content, others)), of_one=False)
        return [same >= WORDS or like >= NEAR for same, like in zip(words, near, strict=True)]

    def _packed(self, text: str) -> bytes:
        return quantize(self._space.embedder, [text])[0] if self._space is not None else NO_VECTOR
