"""Which known facts a new one takes the place of, where the mini model that found it did not say.

A small model often writes the new fact and forgets the old one's number.  Then the old one is found by rule, and only
where it is plain: both state one thing of which a person has one at a time (where they live, their name, their age),
or the message says that it corrects something and both are the same statement with another value.

Guarantee: pure; a statement about somebody else, a second pet or another liking takes nothing's place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory.domain import Fact
from memory.facts.grounding import DATE
from memory.llm.builtin import sentences
from memory.llm.builtin.corrections import Correction, correction
from memory.llm.builtin.personal import Statement, value_words
from memory.llm.builtin.readings import as_statement, reread_text, same_text
from memory.llm.builtin.wording import stems, straight, tokens, word_set
from search_index.caches import cached

SOLE = frozenset({"lives-in", "name", "age", "birthday"})
SAID_MAX = 4000  # characters of a message looked through for a correction
TEXTS_REMEMBERED = 4096  # of facts: each new one is compared with the same hundreds
_CORRECTS = re.compile(
    r"(?:^|[.!?;\n]\s*)(?:no|nope|sorry|wait|oops|correction)\b|\b(?:actually|i meant?|correction|instead|any ?more"
    r"|no longer|moved|changed|switched|now|make (?:it|that|this)|rather than|used to|in fact|is wrong|was wrong)\b"
    r"|\bnot\b[^.!?]{1,60}\bbut\b|,\s*not\b|不是|不对|改[成为到]|其实|现在",
    re.I,
)
_NAMES = re.compile(r"\bnamed?\b|\bcalled\b|名|叫", re.I)
_FRAME = word_set(
    "is are am the a an user person their his her my now currently called named name old years year has s"
)
_STATES = re.compile(r"^(?:is|are|:|：|是)$", re.I)


def superseded(text: str, said: str, known: Sequence[Fact]) -> list[Fact]:
    """Those of `known` that no longer hold when `text` does, which was found in the message `said`."""
    said = straight(said[:SAID_MAX])
    new = _read(text)
    corrects = _CORRECTS.search(said) is not None
    swaps = [swap for part in sentences.split(said) if (swap := correction(part.text)) is not None]
    if new is not None and not (new.attribute in SOLE or corrects):
        new = None  # which stands beside what else is said of the same thing
    if new is None and not corrects and not swaps:
        return []
    words = _words(text)
    return [
        fact
        for fact in known
        if (new is not None and _contradicts(new, _read(fact.text)))
        or (swaps and _swapped(fact, text, swaps))
        or (corrects and _another_value(words, _words(fact.text)))
    ]


@cached(TEXTS_REMEMBERED, longest=500)
def _read(text: str) -> Statement | None:
    """The statement that a fact's text makes, where a rule reads all of it: "Noted, 400 is fine" gives no name."""
    statement = reread_text(text)
    if statement is None or (statement.attribute == "name" and not _NAMES.search(text)):
        return None
    left = value_words(straight(text)) - value_words(straight(statement.text)) - _FRAME
    return None if left else statement


def _contradicts(new: Statement, old: Statement | None) -> bool:
    """Whether both can't hold: the same thing is said of, with another value or taken back."""
    if old is None or not new.replaces(old):
        return False
    mine, theirs = value_words(new.value), value_words(old.value)
    return new.ended != old.ended or not (mine <= theirs or theirs <= mine)


def _swapped(fact: Fact, text: str, swaps: Sequence[Correction]) -> bool:
    """Whether one of the corrections makes `text` of what the fact says."""
    statement = as_statement(fact)
    made = [swap.applied_to(statement) for swap in swaps]
    return any(one is not None and same_text(one.text, text) for one in made)


def _another_value(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether two texts' words are one statement but for a figure, or for what it says that something is."""
    if mine[:1] != theirs[:1] and mine[-1:] != theirs[-1:]:
        return False  # as of nearly all facts: what follows would find nothing that both say
    before = _common(mine, theirs)
    after = _common(mine[before:][::-1], theirs[before:][::-1])
    of_mine, of_theirs = mine[before : len(mine) - after], theirs[before : len(theirs) - after]
    if not of_mine or not of_theirs or not stems(" ".join(mine[:before] + mine[len(mine) - after :])):
        return False
    return all(map(_figure, of_mine + of_theirs)) or (
        before > 1 and after == 0 and _STATES.match(mine[before - 1]) is not None
    )


def _figure(word: str) -> bool:
    return any(character.isdigit() for character in word) or DATE.fullmatch(word) is not None


@cached(TEXTS_REMEMBERED, longest=500)
def _words(text: str) -> tuple[str, ...]:
    spaced = re.sub(r"([:：])", r" \1 ", text)
    return tuple(word.casefold() for part in spaced.split() for word in (tokens(part) or [part]))


def _common(mine: Sequence[str], theirs: Sequence[str]) -> int:
    """How many words both begin with."""
    for count, (one, other) in enumerate(zip(mine, theirs, strict=False)):
        if one != other:
            return count
    return min(len(mine), len(theirs))
