"""The values that a language's module fills in: tables of words and patterns, no code.

Patterns are regular expressions without anchors, matched with case ignored.  In a spaced language a pattern matches
whole words only.  A table written as text has one alternative, or several separated by "|", on each line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def lines(table: str) -> str:
    """The lines of a table as one pattern of alternatives."""
    return "|".join(line.strip() for line in table.strip().splitlines())


def words(table: str) -> frozenset[str]:
    return frozenset(table.split())


@dataclass(frozen=True)
class Times:
    """How a language names times; `memory.recall.times` is the grammar.

    In a phrase `<unit>` stands for a group of that name that matches the keys of the table `units`, and likewise
    `<named>`, `<shift>`, `<count>`, `<month>`, `<weekday>`, `<part>`, `<day>` and `<year>`.  The group `ago` counts
    back from now, and `past` counts until now.  Of two phrases that begin at the same place the one listed first
    counts.
    """

    phrases: tuple[str, ...]
    named: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # yesterday: ("day", -1)
    shifts: Mapping[str, int] = field(default_factory=dict)  # last: -1
    last_is_latest: bool = True  # "last Friday" is the latest one, not that of the week before
    numbers: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # at least, at most; a few: (2, 6)
    units: Mapping[str, str] = field(default_factory=dict)
    years: Mapping[str, int] = field(default_factory=dict)  # beside digits; last year: -1
    months: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # of a month; early: (1, 10)
    days: Mapping[str, int] = field(default_factory=dict)  # of a month, beside digits
    weekdays: Mapping[str, int] = field(default_factory=dict)  # Monday is 0
    capitalised: frozenset[str] = frozenset()  # months and weekdays that are other words in small letters
    never_after: str = ""  # words before a phrase that make it no time of the past: "every Monday", "next week"
    verbs: str = ""  # the group `past` has those of the past; all others speak of the future


@dataclass(frozen=True)
class Language:
    """What Recap knows of a language.  Every part but the code may be left out."""

    code: str  # ISO 639-1
    spaced: bool = True  # words are separated by spaces

    # What is left out of the index and of searches; None where the search library's own list serves.
    stop_words: frozenset[str] | None = None
    # Words that are not worth a search of their own: function words and vague nouns, unless capitalised, and times.
    idle_words: frozenset[str] = frozenset()
    time_words: frozenset[str] = frozenset()
    # Generic verbs: idle too, but not after a determiner ("the plan").
    generic_verbs: frozenset[str] = frozenset()
    determiners: frozenset[str] = frozenset()
    # The same for an unspaced language: what is cut out of a run, and characters cut off where a run begins.
    idle: str = ""
    idle_leading: str = ""

    # A message that begins with small talk, after any padding, and has no other content is small talk.
    small_talk: str = ""
    padding: str = ""
    courtesies: frozenset[str] = frozenset()  # words that are no content beside small talk

    references: str = ""  # the past in so many words: "as I said"
    pointers: str = ""  # what only somebody who knows the past understands: "you suggested", "where do I live"
    persons: str = ""  # pronouns for a person, and words that name one
    people: str = ""
    things: str = ""  # pronouns for a thing
    asks: str = ""  # how a sentence begins that asks for something, or what stands in it

    cardinals: Mapping[str, int] = field(default_factory=dict)  # in a fact, each must have been said
    numbers: Mapping[str, int] = field(default_factory=dict)  # other words that say a number, or may
    multipliers: Mapping[str, int] = field(default_factory=dict)
    one: str = ""  # what may stand for one
    negations: str = ""
    negatives: str = ""  # what says "not" without a negation: "hates", "vegan"
    dates: str = ""
    relative_times: str = ""  # what a date may have been worked out from

    times: Times | None = None
