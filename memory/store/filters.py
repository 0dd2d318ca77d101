"""Conditions on JSON values, as SQL that means the same on SQLite and PostgreSQL.

A filter names keys of the value, nested as the value is: `{"size": {"$gt": 3}, "made_by": {"name": "Ada"}}`.  An
outermost key with dots that the value does not have is a path: `made_by.name`.  What is not an operator has to be
equal.  Numbers compare as numbers and texts by their code points; no value of one kind equals one of another, and a
boolean is no number.  A key that is not there counts as null.
Whole numbers have at most 64 bits, and every number is finite.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Numeric, and_, case, cast, false, func, literal, not_, or_, true

from memory.errors import InvalidRequest
from models import ItemRow

PARTS_MAX = 100  # values that one filter compares with
_ORDER = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_OPERATORS = ("$eq", "$ne", "$in", *_ORDER)
_NUMBERS = ("integer", "real", "number")
_KINDS = {bool: ("true", "false", "boolean"), int: _NUMBERS, float: _NUMBERS, str: ("text", "string")}
"""The databases' names for what Python has such values for."""


@dataclass(frozen=True)
class _OnSQLite:
    """One place in the values of all items.  `kind` is the database's name for what stands there."""

    path: str = "$"

    def at(self, step: str | int) -> _OnSQLite:
        # A key is written as in the stored text, with which older versions of SQLite compare it.
        return _OnSQLite(self.path + (f"[{step}]" if isinstance(step, int) else f".{json.dumps(step)}"))

    def kind(self) -> ColumnElement[str]:
        return func.json_type(ItemRow.value, self.path)

    def length(self) -> ColumnElement[int]:
        return func.json_array_length(ItemRow.value, self.path)

    def scalar(self, _kind: type) -> ColumnElement[Any]:
        return func.json_extract(ItemRow.value, self.path)


@dataclass(frozen=True)
class _OnPostgreSQL:
    """The same place on the other database."""

    there: Any

    def at(self, step: str | int) -> _OnPostgreSQL:
        return _OnPostgreSQL(self.there[step])

    def kind(self) -> ColumnElement[str]:
        return func.json_typeof(self.there)

    def length(self) -> ColumnElement[int]:
        return func.json_array_length(self.there)

    def scalar(self, kind: type) -> ColumnElement[Any]:
        text: ColumnElement[Any] = self.there.as_string()
        number: ColumnElement[Any] = self.there.as_boolean() if kind is bool else cast(text, Numeric)
        return text.collate("C") if kind is str else number


_Place = _OnSQLite | _OnPostgreSQL


def condition(wanted: Mapping[str, Any], dialect: str) -> ColumnElement[bool]:
    """What the rows of items have to meet.  Raises InvalidRequest for a filter that is none."""
    if _parts(wanted) > PARTS_MAX:
        raise _wrong("invalid_filter", f"The filter compares with more than {PARTS_MAX} values.")
    place = _OnSQLite() if dialect == "sqlite" else _OnPostgreSQL(ItemRow.value)
    return and_(true(), *(_at_path(place, key, inner) for key, inner in wanted.items()))


def _at_path(place: _Place, key: str, wanted: Any) -> ColumnElement[bool]:
    """Return the condition for an outermost key."""
    there = _keys(place, {key: wanted})
    if "." not in key:
        return there
    nested = reduce(lambda outer, step: outer.at(step), key.split("."), place)
    return case((place.at(key).kind().is_not(None), there), else_=_matches(nested, wanted))


def _parts(wanted: Any) -> int:
    if isinstance(wanted, dict | list):
        return sum(map(_parts, wanted.values() if isinstance(wanted, dict) else wanted))
    return 1


def _keys(place: _Place, wanted: Mapping[str, Any]) -> ColumnElement[bool]:
    for key in wanted:
        if key.startswith("$"):
            raise _wrong("unknown_operator", f"The operator {key[:100]!r} stands where a key is expected.")
        if '"' in key:
            raise _wrong("invalid_filter", f"The key {key[:100]!r} has a quotation mark.")
    return and_(true(), *(_matches(place.at(key), inner) for key, inner in wanted.items()))


def _matches(place: _Place, wanted: Any) -> ColumnElement[bool]:
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return and_(*(_operation(place, name, operand) for name, operand in wanted.items()))
        return _where(place, ("object",), _keys(place, wanted))
    if isinstance(wanted, list):
        each = (_matches(place.at(number), one) for number, one in enumerate(wanted))
        return _where(place, ("array",), and_(place.length() == len(wanted), *each))
    return _compared(place, operator.eq, wanted)


def _operation(place: _Place, name: str, operand: Any) -> ColumnElement[bool]:
    if name not in _OPERATORS:
        raise _wrong("unknown_operator", f"There is no operator {name[:100]!r}, only {', '.join(_OPERATORS)}.")
    if name == "$in" and not isinstance(operand, list):
        raise _wrong("invalid_filter", "The operator $in takes a list.")
    if name in _ORDER and (operand is None or isinstance(operand, bool)):
        raise _wrong("invalid_filter", f"The operator {name} takes a number or a text.")
    if name == "$in":
        return or_(false(), *(_compared(place, operator.eq, one) for one in operand))
    compared = _compared(place, _ORDER.get(name, operator.eq), operand)
    return not_(compared) if name == "$ne" else compared


def _compared(place: _Place, compare: Callable[[Any, Any], Any], operand: Any) -> ColumnElement[bool]:
    if operand is None:
        return func.coalesce(place.kind(), "null") == "null"
    kind = type(operand)
    if kind not in _KINDS:
        raise _wrong("invalid_filter", "Operators compare with null, a boolean, a number or a text.")
    value = literal(operand, BigInteger() if kind is int else None)
    return _where(place, _KINDS[kind], compare(place.scalar(kind), value))


def _where(place: _Place, kinds: tuple[str, ...], inner: ColumnElement[bool]) -> ColumnElement[bool]:
    """`inner` for what is of these kinds, and false for the rest: a database must not even try it there."""
    return case((place.kind().in_(kinds), inner), else_=false())


def _wrong(code: str, problem: str) -> InvalidRequest:
    return InvalidRequest(code, f"{problem} Nothing was read or stored. Correct the filter.", param="filter")
