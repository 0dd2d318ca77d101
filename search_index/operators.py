"""What a searcher typed, taken apart: plain words, "phrases", -exclusions and prefixes*.

A store finds what they leave of the indexed messages; `Operators.match` gives the same answer for a message that is not
indexed yet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from search_index.analysis import Analysis

_OPERATOR = re.compile(
    r"""(?<!\S) (?P<minus>-)? (?: "(?P<phrase>[^"]+)" | (?P<prefix>\w+)\*(?!\S) | (?P<word>\w[^\s"]*) )""", re.VERBOSE
)


class Part(NamedTuple):
    """A phrase, its terms in a row; or with `prefix` any term that begins with it, or is among `terms`."""

    terms: list[str]
    prefix: str

    def match(self, said: Sequence[str]) -> bool:
        if self.prefix:
            return any(term.startswith(self.prefix) or term in self.terms for term in said)
        size = len(self.terms)
        return any(said[at : at + size] == self.terms for at in range(len(said) - size + 1))


class Operators(NamedTuple):
    """Only messages that have every `required` part and no `excluded` one are found."""

    required: list[Part]
    excluded: list[Part]

    def match(self, said: list[str]) -> bool:
        """Whether a message with these terms, in their order, is one of them."""
        return all(part.match(said) for part in self.required) and not any(part.match(said) for part in self.excluded)


NONE = Operators([], [])


def parsed(text: str, analysis: Analysis) -> tuple[str, Operators]:
    """`text` without exclusions and marks, and its operators."""
    found = Operators([], [])

    def take(typed: re.Match[str]) -> str:
        words = typed["phrase"] or typed["prefix"] or typed["word"]
        if typed["word"] and not typed["minus"]:
            return typed[0]
        part = Part(analysis.terms(words), analysis.folded(words) if typed["prefix"] else "")
        if part.prefix or part.terms:
            (found.excluded if typed["minus"] else found.required).append(part)
        return "" if typed["minus"] else words

    return _OPERATOR.sub(take, text), found
