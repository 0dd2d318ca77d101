"""Relevance: how near the best hit must be to a message before it is shown unasked.

A score depends on the question: it orders hits, and does not say how good they are.  A gate compares the share of the
message's words that a hit has, and its nearness in meaning, which `search_index.calibration` makes comparable for every
embedder.  docs/performance.md shows which answers and which junk other limits would let through.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from search_index import Hit

RELEVANT_SHARE = 0.55  # of the best hit's score: beside a clear match, a message that shares a common word is noise
NEAR_ENOUGH = 0.6  # nearness of a hit without the message's words in it or beside it
_OF_WORDS = ("words", "neighbours", "time", "linked")


class Gate(NamedTuple):
    """Least share of the message's words, and least nearness in meaning: one hit must reach either."""

    words: float
    near: float

    def is_open(self, hits: Sequence[Hit]) -> bool:
        """Return whether one of the hits is near enough, or is of a time or an entity that the message names."""
        return any(
            hit.own >= self.words or hit.near >= self.near or hit.why.get("time") or hit.why.get("linked")
            for hit in hits
        )


PERSONAL = Gate(0.5, 0.9)
"""For a message about the person, or about somebody who spoke: the widest gate by words."""
OTHER = Gate(0.6, 1.1)
"""For other messages: a question that anybody could ask a model is seldom about the past."""
FOREIGN_PASSAGE, FOREIGN_QUESTION, FOREIGN = Gate(0.28, 0.9), Gate(0.28, math.inf), Gate(0.5, math.inf)
FOREIGN_SUMMARY = OTHER._replace(near=math.inf)
"""The same for a message in another language than the search: of the content words of a question one in three counts,
since static vectors find its language rather than its meaning; who adds a document means to ask about it."""
BY_MEANING = Gate(2.0, 0.9)
"""For a message of generic words, such as "work" or "old", which are in many messages."""
JUDGED = Gate(0.5, 0.7)
"""Before the mini model re-ranks the hits, since it may say that none of them fits."""


def gate_for(
    hits: Sequence[Hit],
    *,
    is_personal: bool,
    is_question: bool = True,
    is_passage: bool = False,
    is_foreign: bool = False,
) -> Gate:
    """Return the gate of a message for which these were found; one that names a speaker is about somebody.

    is_question: the message asks for something; it counts in another language than the search.
    is_passage: the best hit is of a document. Who adds one means to ask about it.
    """
    if is_passage:
        return FOREIGN_PASSAGE if is_foreign else PERSONAL
    if is_foreign:
        return FOREIGN_QUESTION if is_question else FOREIGN
    return PERSONAL if is_personal or any(hit.why.get("speaker") for hit in hits) else OTHER


def relevant(hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hit, and the other hits that are relevant beside it."""
    return [
        *hits[:1],
        *(
            hit
            for hit in hits[1:]
            if hit.score >= RELEVANT_SHARE * hits[0].score
            and (hit.near >= NEAR_ENOUGH or any(hit.why.get(part) for part in _OF_WORDS))
        ),
    ]
