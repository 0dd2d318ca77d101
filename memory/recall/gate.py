"""What is worth showing unasked: whether the best that was found is near enough to the message.

A score depends on the question, so it orders hits and says nothing of how good they are.  The gate reads the share of
the message's words that a hit has, and how near its meaning is, for whatever embedder (see `search_index.yardstick`).
The limits are a point on a curve: docs/performance.md shows what others would show and what junk they would let in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from search_index import Hit


class Gate(NamedTuple):
    """The share of the words, or the nearness, that one hit has to reach."""

    words: float
    near: float

    def is_open(self, hits: Sequence[Hit]) -> bool:
        """Return whether one of the hits is near enough, or was said at a time, or of somebody, that was named."""
        return any(
            hit.own >= self.words or hit.near >= self.near or hit.why.get("time") or hit.why.get("linked")
            for hit in hits
        )


PERSONAL = Gate(0.5, 0.9)
"""For a message about the person, or about somebody who spoke."""
OTHER = Gate(0.6, 1.1)
"""For anything else: what anybody could ask a model is seldom about the past."""
JUDGED = Gate(0.5, 0.7)
"""Where a model reads what was found, and may say that none of it fits."""
