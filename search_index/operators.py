"""What a searcher typed, taken apart: plain words, "phrases", -exclusions and prefixes*.

Text never reaches Whoosh's query parser.  `Words.query` builds Whoosh's query objects for what is indexed;
`Words.match` gives the same answer for a message that is not indexed yet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whoosh.query import And, AndMaybe, Every, Not, Or, Phrase, Prefix, Query, Term

from search_index.analysis import Analysis

_OPERATOR = re.compile(
    r"""(?<!\S) (?P<minus>-)? (?: "(?P<phrase>[^"]+)" | (?P<prefix>\w+)\*(?!\S) | (?P<word>\w[^\s"]*) )""", re.VERBOSE
)


@dataclass(frozen=True)
class Part:
    """A phrase, its terms in a row; or with `prefix` any term that begins with it, or is among `terms`."""

    terms: tuple[str, ...]
    prefix: str = ""

    def query(self, field: str) -> Query:
        """What finds this part in the index."""
        if self.prefix:
            return Or([Prefix(field, self.prefix), *(Term(field, term) for term in self.terms)])
        return Term(field, self.terms[0]) if len(self.terms) == 1 else Phrase(field, list(self.terms))

    def match(self, said: Sequence[str]) -> bool:
        """Whether a message with these terms, in their order, has this part."""
        if self.prefix:
            return any(term.startswith(self.prefix) or term in self.terms for term in said)
        size = len(self.terms)
        return any(tuple(said[at : at + size]) == self.terms for at in range(len(said) - size + 1))


@dataclass(frozen=True)
class Words:
    """A query's words.  `terms` rank the messages; only those are found that have every `required` part and no
    `excluded` one.  `text` is the query without exclusions and marks."""

    text: str
    terms: tuple[str, ...]
    required: tuple[Part, ...] = ()
    excluded: tuple[Part, ...] = ()

    @classmethod
    def plain(cls, text: str, analysis: Analysis) -> Words:
        """All of `text` as plain words."""
        return cls(text, tuple(analysis.query_terms(text)))

    @classmethod
    def parsed(cls, text: str, analysis: Analysis) -> Words:
        """`text` with its operators."""
        required: list[Part] = []
        excluded: list[Part] = []

        def take(found: re.Match[str]) -> str:
            typed = found["phrase"] or found["prefix"] or found["word"]
            if found["word"] and not found["minus"]:
                return found[0]
            prefix = analysis.folded(typed) if found["prefix"] else ""
            part = Part(tuple(analysis.terms(typed)), prefix)
            if part.prefix or part.terms:
                (excluded if found["minus"] else required).append(part)
            return "" if found["minus"] else typed

        plain = _OPERATOR.sub(take, text)
        return cls(plain, tuple(analysis.query_terms(plain)), tuple(required), tuple(excluded))

    @property
    def searchable(self) -> bool:
        """Whether there is anything to look for: exclusions alone are not."""
        return bool(self.terms or self.required)

    @property
    def prefixes(self) -> tuple[str, ...]:
        return tuple(part.prefix for part in self.required if part.prefix)

    @property
    def restricts(self) -> bool:
        """Whether messages are left out that have the words."""
        return bool(self.required or self.excluded)

    def query(self, field: str, *, any_term: bool = False) -> Query:
        """What finds in the index the messages that `match` accepts; with `any_term`, of plain words, those that have
        one of the terms, the best first."""
        parts = [part.query(field) for part in self.required] or [Every()]
        accepted = And([*parts, *(Not(part.query(field)) for part in self.excluded)])
        if not any_term:
            return accepted
        terms = Or([Term(field, term) for term in self.terms])
        return AndMaybe(accepted, terms) if self.required else And([accepted, terms])

    def match(self, said: Sequence[str]) -> bool:
        """Whether a message with these terms, in their order, is what was asked for."""
        return all(part.match(said) for part in self.required) and not any(part.match(said) for part in self.excluded)
