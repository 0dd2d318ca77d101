"""Duplicates: which facts of a person say the same, as far as their words tell.

Two facts surely say the same if they have the same words in the same order, wherever it begins ("in May she moved to
Porto", "she moved to Porto in May").  If they share many words, somebody has to read them.

Guarantee: facts that were stated by two people, or differ in a name, a number, a date or a "not", do not say the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from memory.knowledge.grounding import (
    DATE,
    NEGATION,
    NEGATIVE,
    names_in,
    numbers_in,
    plain_apostrophes,
    stems,
    tokens,
)
from memory.knowledge.supersession import Sole, excludes, may_correct, sole_value
from models.facts import Fact

ALIKE = 0.3  # the share of all their words that two facts have in common, if they say the same
NEARLY = 0.5  # that of two facts which are one but for a value
NEAREST = 3  # older facts that are shown beside one
FRAMES = frozenset(("the", "a", "an", "user", "user's", "person", "person's"))  # words that say nothing in a fact


@dataclass(frozen=True)
class Pair:
    """Two facts, of which the `verdict` is `same`, `contradicts` (the newer one says otherwise), or empty if somebody
    has to read them; `same` is right only if they `may_be_same`."""

    older: Fact
    newer: Fact
    verdict: str
    may_be_same: bool


@dataclass(frozen=True)
class _Statement:
    """A fact, who stated it (None: the person), and the names in all of the person's facts."""

    fact: Fact
    speaker: str | None
    names: frozenset[str]

    @cached_property
    def words(self) -> list[str]:
        return [word for word in map(str.casefold, tokens(self.fact.text)) if word not in FRAMES]

    @cached_property
    def marks(self) -> frozenset[str]:
        """By what it is found: what it is about, and what it says of which a person has one at a time."""
        return frozenset(stems(self.fact.text)).difference(FRAMES).union(self.sole[:1] if self.sole else ())

    @cached_property
    def sole(self) -> Sole:
        return sole_value(self.fact.text)

    @cached_property
    def particulars(self) -> tuple[object, ...]:
        """What is equal in facts that say the same.  A plan is not what came of it."""
        text = plain_apostrophes(self.fact.text)
        names = self.names.intersection(word.partition("'")[0].casefold() for word in tokens(text))
        numbers = frozenset(map(frozenset, numbers_in(text)))
        dates = frozenset(date.group().casefold() for date in DATE.finditer(text))
        negated = NEGATION.search(text) is not None
        twice = frozenset(stems(NEGATION.sub(" ", " ".join(NEGATIVE.findall(text))))) if negated else frozenset()
        return self.speaker, names, numbers, dates, negated, twice, self.fact.category == "plan"

    def beside(self, other: _Statement, likeness: float) -> Pair | None:
        """The pair of two facts that may say the same, or contradict each other."""
        alike, of_one = self.particulars == other.particulars, self.speaker == other.speaker
        mine, theirs = self.words, other.words
        if alike and len(mine) == len(theirs) and any(mine == theirs[at:] + theirs[:at] for at in range(len(mine))):
            verdict = "same"
        elif of_one and excludes(self.sole, other.sole):
            verdict = "contradicts"
        elif alike or (of_one and likeness >= NEARLY and may_correct(self.fact.text, other.fact.text)):
            verdict = ""
        else:
            return None
        older, newer = sorted((self.fact, other.fact), key=lambda fact: (fact.valid_from, fact.id))
        return Pair(older, newer, verdict, alike)


def duplicate_candidates(facts: Sequence[tuple[Fact, str | None]], through: int) -> Iterator[Pair]:
    """The pairs of facts of which one has an id after `through`.  `facts` are with their speakers, by their ids."""
    names = frozenset(name for fact, _ in facts for text in (fact.text, fact.quote) for name in names_in(text))
    read: list[_Statement] = []
    holders: dict[str, list[int]] = defaultdict(list)  # which of them have a mark
    for one in (_Statement(fact, speaker, names) for fact, speaker in facts):
        found = list(islice(_near(one, read, holders), NEAREST)) if one.fact.id > through else []
        same = next((at for at, pair in found if pair.verdict == "same"), None)
        if same is not None:
            read[same] = one  # it stands for both from now on
        else:
            for mark in one.marks:
                holders[mark].append(len(read))
            read.append(one)
        yield from (pair for _, pair in found if pair.verdict or same is None)


def _near(
    one: _Statement, read: Sequence[_Statement], holders: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, Pair]]:
    """The pairs of a fact with those before it that are most like it, the likest and newest first, with its place."""
    shared = Counter(at for mark in one.marks for at in holders.get(mark, ()))
    size, likeness = len(one.marks), dict[int, float]()
    for at, count in shared.items():
        share = count / (size + len(read[at].marks) - count)
        if share >= ALIKE or excludes(one.sole, read[at].sole):
            likeness[at] = share
    for at in sorted(likeness, key=lambda at: (likeness[at], at), reverse=True):
        if pair := one.beside(read[at], likeness[at]):
            yield at, pair
