"""Whoosh's query objects for what is looked for.  Text never reaches its query parser."""

from __future__ import annotations

from collections.abc import Sequence

from whoosh.query import And, AndMaybe, Every, Not, Or, Phrase, Prefix, Query, Term

from search_index.operators import Operators, Part

TEXT_FIELD = "content"  # of the schema in `whoosh_store`


def query_of(operators: Operators) -> Query:
    """What finds the messages that the operators leave."""
    parts = list(map(_of_part, operators.required)) or [Every()]
    return And([*parts, *(Not(_of_part(part)) for part in operators.excluded)])


def _of_part(part: Part) -> Query:
    if part.prefix:
        return Or([Prefix(TEXT_FIELD, part.prefix), *(Term(TEXT_FIELD, term) for term in part.terms)])
    return Phrase(TEXT_FIELD, part.terms) if len(part.terms) > 1 else Term(TEXT_FIELD, part.terms[0])


def likely(operators: Operators, terms: Sequence[str]) -> Query:
    """What finds those with any of `terms`, the best first."""
    any_term = Or([Term(TEXT_FIELD, term) for term in terms])
    return AndMaybe(query_of(operators), any_term) if operators.required else And([query_of(operators), any_term])
