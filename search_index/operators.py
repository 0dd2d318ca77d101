"""What a searcher typed, taken apart: plain words, "phrases", -exclusions and prefixes*.

Text never reaches Whoosh's query parser.  `Operators.query` builds Whoosh's query objects for what is indexed;
`Operators.match` gives the same answer for a message that is not indexed yet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from whoosh.query import And, AndMaybe, Every, Not, Or, Phrase, Prefix, Query, Term

from search_index.analysis import Analysis
from search_index.store import TEXT_FIELD

_OPERATOR = re.compile(
    r"""(?<!\S) (?P<minus>-)? (?: "(?P<phrase>[^"]+)" | (?P<prefix>\w+)\*(?!\S) | (?P<word>\w[^\s"]*) )""", re.VERBOSE
)


class Part(NamedTuple):
    """A phrase, its terms in a row; or with `prefix` any term that begins with it, or is among `terms`."""

    terms: list[str]
    prefix: str

    def query(self) -> Query:
        if self.prefix:
            return Or([Prefix(TEXT_FIELD, self.prefix), *(Term(TEXT_FIELD, term) for term in self.terms)])
        return Phrase(TEXT_FIELD, self.terms) if len(self.terms) > 1 else Term(TEXT_FIELD, self.terms[0])

    def match(self, said: Sequence[str]) -> bool:
        if self.prefix:
            return any(term.startswith(self.prefix) or term in self.terms for term in said)
        size = len(self.terms)
        return any(said[at : at + size] == self.terms for at in range(len(said) - size + 1))


class Operators(NamedTuple):
    """Only messages that have every `required` part and no `excluded` one are found."""

    required: list[Part]
    excluded: list[Part]

    def query(self) -> Query:
        """What finds these messages in the index."""
        parts = [part.query() for part in self.required] or [Every()]
        return And([*parts, *(Not(part.query()) for part in self.excluded)])

    def ranked(self, terms: Sequence[str]) -> Query:
        """What finds those with any of `terms`, the best first."""
        any_term = Or([Term(TEXT_FIELD, term) for term in terms])
        return AndMaybe(self.query(), any_term) if self.required else And([self.query(), any_term])

    def match(self, said: list[str]) -> bool:
        """Whether a message with these terms, in their order, is one of them."""
        return all(part.match(said) for part in self.required) and not any(part.match(said) for part in self.excluded)


NONE = Operators([], [])


def parsed(text: str, analysis: Analysis) -> tuple[str, Operators | None]:
    """`text` without exclusions and marks, and its operators if it has any."""
    found = Operators([], [])

    def take(typed: re.Match[str]) -> str:
        words = typed["phrase"] or typed["prefix"] or typed["word"]
        if typed["word"] and not typed["minus"]:
            return typed[0]
        part = Part(analysis.terms(words), analysis.folded(words) if typed["prefix"] else "")
        if part.prefix or part.terms:
            (found.excluded if typed["minus"] else found.required).append(part)
        return "" if typed["minus"] else words

    plain = _OPERATOR.sub(take, text)
    return plain, found if found != NONE else None
