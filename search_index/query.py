"""Queries: plain words, "phrases", -exclusions and prefixes*, as typed and as prepared.

A store finds what the operators leave of the indexed messages; `Operators.match` gives the same answer for a message
that is not indexed yet.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.analysis import Analysis
from search_index.arrays import Ints, microseconds, term_hash
from search_index.embeddings import NO_VECTOR
from search_index.spelling import folded

_OPERATOR = re.compile(
    r"""(?<!\S) (?P<minus>-)? (?: "(?P<phrase>[^"]+)" | (?P<prefix>\w+)\*(?!\S) | (?P<word>\w[^\s"]*) )""", re.VERBOSE
)


class Part(NamedTuple):
    """Phrase: its `rows` of terms (see `Analysis.rows`); with `prefix` any term that begins with it, or is in one."""

    rows: list[list[str]]
    prefix: str

    @property
    def terms(self) -> list[str]:
        return [term for row in self.rows for term in row]

    def match(self, terms: Sequence[str]) -> bool:
        if self.prefix:
            own = self.terms
            return any(term.startswith(self.prefix) or term in own for term in terms)
        return all(
            any(terms[at : at + len(row)] == row for at in range(len(terms) - len(row) + 1)) for row in self.rows
        )


class Operators(NamedTuple):
    """Only messages that have every `required` part and no `excluded` one are found."""

    required: list[Part]
    excluded: list[Part]

    def match(self, terms: list[str]) -> bool:
        """Return whether a message with these terms, in their order, passes."""
        return all(part.match(terms) for part in self.required) and not any(part.match(terms) for part in self.excluded)


NONE = Operators([], [])


def parsed(text: str, analysis: Analysis) -> tuple[str, Operators]:
    """Return `text` without exclusions and marks, and its operators."""
    operators = Operators([], [])

    def take(typed: re.Match[str]) -> str:
        words = typed["phrase"] or typed["prefix"] or typed["word"]
        if typed["word"] and not typed["minus"]:
            return typed[0]
        part = Part(analysis.rows(words), folded(words) if typed["prefix"] else "")
        if part.prefix or part.rows:
            (operators.excluded if typed["minus"] else operators.required).append(part)
        return "" if typed["minus"] else words

    return _OPERATOR.sub(take, text), operators


class Filters(NamedTuple):
    """Filters of a query, in the numbers of `arrays.ROW`.  None: any session, or role."""

    session: int | None = None
    role: int | None = None
    after: int = -(1 << 63)
    before: int = (1 << 63) - 1

    def match(self, session: Ints, role: Ints, created: Ints) -> NDArray[np.bool_]:
        """Return which messages pass."""
        mask = (created >= self.after) & (created < self.before)
        if self.session is not None:
            mask &= session == self.session
        if self.role is not None:
            mask &= role == self.role
        return mask


NO_FILTERS = Filters()


@dataclass(frozen=True)
class Query:
    """Query of plain words; with `operators` also "phrases", -exclusions and prefixes*.

    Filters: session_id, role, after (inclusive), before (exclusive).
    exclude: ids of messages that are not searched: a question just asked would be its own best answer.
    Preferred are messages of the `times` (half-open ranges that the text names), of the role `about` (unless the text
    names a speaker), and in `linked`: ids of messages about entities that are linked to one in the text, each with a
    weight up to 1.
    nearest: if hardly any message has the words, the nearest in meaning come first.
    alone: the texts have no neighbours, as facts.
    """

    text: str
    limit: int = 10
    session_id: int | None = None
    role: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    exclude: Collection[int] = ()
    times: Sequence[tuple[datetime, datetime]] = ()
    about: str | None = None
    linked: Mapping[int, float] = field(default_factory=dict)
    operators: bool = False
    nearest: bool = False
    alone: bool = False

    @property
    def filters(self) -> Filters:
        return Filters(
            self.session_id,
            term_hash(self.role) if self.role is not None else None,
            microseconds(self.after) if self.after is not None else NO_FILTERS.after,
            microseconds(self.before) if self.before is not None else NO_FILTERS.before,
        )


class PreparedQuery(NamedTuple):
    """Query with its plain text, the terms to rank by, and the operators.

    vector, content: vectors of the text, and of the text without stop words.  A service makes them before the search.
    failure: why the service made none; then words alone rank.
    is_foreign: the text is in another language than the analysis, and no service made its vector.
    forms: other forms of terms, each with its term; a message with the form counts as having the term.
    around: the text that this one is a part of, by its words and its meaning on this machine; None: there is none.
    """

    query: Query
    text: str
    terms: list[str]
    operators: Operators
    vector: bytes = NO_VECTOR
    content: bytes = NO_VECTOR
    failure: str | None = None
    is_foreign: bool = False
    forms: Mapping[str, str] = {}
    around: "PreparedQuery | None" = None

    def with_fields(self, **fields: Any) -> "PreparedQuery":
        """Return this query with other values of its `query`: filters, limit or preferences, not the text."""
        return self._replace(query=replace(self.query, **fields))
