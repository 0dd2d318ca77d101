"""What a correction takes out of a summary.

The mini model is told to correct what was corrected, and may forget.  An item that says just what a superseded fact
said is then given the new fact's words; other items are the model's to write, since a sentence may well speak of what
was so before.

Guarantee: pure; nothing but such items changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory.domain import TEXT_SECTIONS, Fact, Sections
from memory.facts.grounding import same_text, told_back, words_of


def corrected(sections: Sections, corrections: Mapping[Fact, str]) -> Sections:
    """`sections` with the new words for what the facts, which they supersede, said."""
    instead = {words: new for old, new in corrections.items() for words in words_of(old)}
    if not instead:
        return sections
    changed: dict[str, Any] = {
        name: tuple(dict.fromkeys(instead.get(told_back(item), item) for item in getattr(sections, name)))
        for name in TEXT_SECTIONS
    }
    return replace(sections, topic=instead.get(told_back(sections.topic), sections.topic), **changed)


def says(sections: Sections, facts: Sequence[Fact]) -> bool:
    """Whether a summary says what one of the facts did."""
    text = same_text(str(sections))
    return any(
        re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None for fact in facts for words in words_of(fact)
    )
