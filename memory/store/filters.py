"""Conditions on JSON values, as SQL that means the same on SQLite and PostgreSQL.

A filter names keys of the value, nested as the value is: `{"size": {"$gt": 3}, "made_by": {"name": "Ada"}}`.  What is
not an operator has to be equal.  Numbers compare as numbers and texts by their code points; no value of one kind equals
one of another, and a boolean is no number.  A key that is not there counts as null.
Whole numbers have at most 64 bits, and every number is finite.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Float,
    Numeric,
    and_,
    case,
    cast,
    false,
    func,
    literal,
    not_,
    or_,
    true,
)

from memory.errors import InvalidRequest
from models import ItemRow

PARTS_MAX = 100  # comparisons of one filter
_NUMBERS, _TEXTS, _BOOLEANS = ("integer", "real", "number"), ("text", "string"), ("true", "false", "boolean")
_ORDER: Mapping[str, Callable[[Any, Any], Any]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", "$in", *_ORDER)


@dataclass(frozen=True)
class _OnSQLite:
    """One place in the values of all items.  `kind` is the database's name for what stands there, never NULL."""

    path: str = "$"

    @property
    def kind(self) -> ColumnElement[str]:
        return func.coalesce(func.json_type(ItemRow.value, self.path), "null")

    @property
    def number(self) -> ColumnElement[Any]:
        return func.json_extract(ItemRow.value, self.path)

    text = boolean = number

    @property
    def length(self) -> ColumnElement[int]:
        return func.json_array_length(ItemRow.value, self.path)

    def at(self, key: str | int) -> _OnSQLite:
        # A key is written as in the stored text, with which older versions of SQLite compare it.
        return _OnSQLite(self.path + (f"[{key}]" if isinstance(key, int) else f".{json.dumps(key)}"))


@dataclass(frozen=True)
class _OnPostgreSQL:
    """The same place on the other database."""

    there: Any

    @property
    def kind(self) -> ColumnElement[str]:
        return func.coalesce(func.json_typeof(self.there), "null")

    @property
    def number(self) -> ColumnElement[Any]:
        return cast(self.there.as_string(), Numeric)

    @property
    def text(self) -> ColumnElement[str]:
        text: ColumnElement[str] = self.there.as_string().collate("C")
        return text

    @property
    def boolean(self) -> ColumnElement[bool]:
        boolean: ColumnElement[bool] = self.there.as_boolean()
        return boolean

    @property
    def length(self) -> ColumnElement[int]:
        return func.json_array_length(self.there)

    def at(self, key: str | int) -> _OnPostgreSQL:
        return _OnPostgreSQL(self.there[key])


_Place = _OnSQLite | _OnPostgreSQL


def condition(wanted: Mapping[str, Any], dialect: str) -> ColumnElement[bool]:
    """What the rows of items have to meet.  Raises InvalidRequest for a filter that is none."""
    root: _Place = _OnSQLite() if dialect == "sqlite" else _OnPostgreSQL(ItemRow.value)
    return _Filter().keys(root, wanted)


class _Filter:
    """Turns one filter into SQL, and counts its comparisons."""

    def __init__(self) -> None:
        self.parts = 0

    def keys(self, place: _Place, wanted: Mapping[str, Any]) -> ColumnElement[bool]:
        for key in wanted:
            if key.startswith("$"):
                raise _wrong("unknown_operator", f"The operator {key!r} stands where a key is expected.")
            if '"' in key:
                raise _wrong("invalid_filter", f"The key {key[:100]!r} has a quotation mark.")
        return and_(*(self.matches(place.at(key), inner) for key, inner in wanted.items()), true())

    def matches(self, place: _Place, wanted: Any) -> ColumnElement[bool]:
        if isinstance(wanted, Mapping) and any(key.startswith("$") for key in wanted):
            return and_(*(self.operation(place, name, operand) for name, operand in wanted.items()))
        if isinstance(wanted, Mapping):
            return and_(place.kind == "object", self.keys(place, wanted))
        if isinstance(wanted, list):
            inner = and_(*(self.matches(place.at(number), one) for number, one in enumerate(wanted)), true())
            return _where(place, ("array",), and_(place.length == len(wanted), inner))
        return self.equals(place, wanted)

    def operation(self, place: _Place, name: str, operand: Any) -> ColumnElement[bool]:
        if name not in OPERATORS:
            raise _wrong("unknown_operator", f"There is no operator {name[:100]!r}, only {', '.join(OPERATORS)}.")
        if name == "$in":
            if not isinstance(operand, list):
                raise _wrong("invalid_filter", "The operator $in takes a list.")
            return or_(*(self.equals(place, one) for one in operand), false())
        if name in _ORDER:
            return self.compared(place, _ORDER[name], operand, f"The operator {name} takes a number or a text.")
        equal = self.equals(place, operand)
        return equal if name == "$eq" else not_(equal)

    def equals(self, place: _Place, operand: Any) -> ColumnElement[bool]:
        if operand is None:
            return place.kind == "null"
        if isinstance(operand, bool):
            return _where(place, _BOOLEANS, place.boolean == operand)
        return self.compared(place, operator.eq, operand, "Operators compare with null, a boolean, a number or a text.")

    def compared(
        self, place: _Place, compare: Callable[[Any, Any], Any], operand: Any, expected: str
    ) -> ColumnElement[bool]:
        self.parts += 1
        if self.parts > PARTS_MAX:
            raise _wrong("invalid_filter", f"The filter has more than {PARTS_MAX} comparisons.")
        if isinstance(operand, str):
            return _where(place, _TEXTS, compare(place.text, operand))
        if isinstance(operand, bool) or not isinstance(operand, int | float):
            raise _wrong("invalid_filter", expected)
        number = literal(operand, BigInteger() if isinstance(operand, int) else Float())
        return _where(place, _NUMBERS, compare(place.number, number))


def _where(place: _Place, kinds: tuple[str, ...], inner: ColumnElement[bool]) -> ColumnElement[bool]:
    """`inner` for what is of these kinds, and false for the rest: a database must not even try it there."""
    return case((place.kind.in_(kinds), inner), else_=false())


def _wrong(code: str, problem: str) -> InvalidRequest:
    return InvalidRequest(code, f"{problem} Nothing was read or stored. Correct the filter.", param="filter")
