"""Which texts ask for much the same: half of their words are the same, or they mean it in other words.

Of two LoCoMo questions about one person 0.6 % pass for alike where the evidence differs, 18 % where some is the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from search_index.analysis import Analysis
from search_index.vectors import Embedder, cosines, lengths_of, packed, rows_of

WORDS, MEANING = 0.5, 0.65  # the least cosines, of two sets of terms and of two vectors


def alike(analysis: Analysis, embedder: Embedder | None, text: str, others: Sequence[str]) -> list[bool]:
    """Which of the other texts are like this one.  Without an `embedder` that is told by their words alone."""
    asked, said = analysis.words(text), list(map(analysis.words, others))
    words = [len(one & asked) / math.sqrt(len(one) * len(asked) or 1) for one in said]
    meaning = [0.0] * len(others)
    if embedder is not None and others:
        vector, *vectors = packed(embedder, [text, *others])
        rows = rows_of(vectors)
        meaning = cosines(rows, vector, lengths_of(rows)).tolist()
    return [same >= WORDS or near >= MEANING for same, near in zip(words, meaning, strict=True)]
