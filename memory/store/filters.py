"""Conditions on the values of the store's items, as SQL that means the same on SQLite and PostgreSQL.

A filter names keys of the value, nested as the value is: `{"size": {"$gt": 3}, "made_by": {"name": "Ada"}}`. An
outermost key with dots that the value does not have is a path: `made_by.name`. A value without an operator has to be
equal. Numbers compare as numbers, texts by code points; values of two kinds are never equal, and a boolean is no
number. A missing key counts as null. Integers have at most 64 bits, and every number is finite. What no database would
parse is refused before: too many comparisons, and too many levels (test_store_api).
"""

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

from sqlalchemy import BigInteger, ColumnElement, Numeric, and_, case, cast, false, func, literal, not_, or_, true

from memory.errors import InvalidRequest
from models import ItemRow

COMPARISONS_MAX = 100  # in one filter; an empty object or list is one
LEVELS_MAX = 10  # of keys and places in lists: SQLite's parser takes a dozen
_ORDER = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_OPERATORS = ("$eq", "$ne", "$in", *_ORDER)
_NUMBERS = ("integer", "real", "number")
_KINDS = {bool: ("true", "false", "boolean"), int: _NUMBERS, float: _NUMBERS, str: ("text", "string")}
"""The databases' names for the kinds of values, by the Python type."""


@dataclass(frozen=True)
class _Place:
    """Place in the values of all items, by the steps to it."""

    is_on_sqlite: bool
    steps: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> Self:
        return replace(self, steps=(*self.steps, *steps))

    def kind(self) -> ColumnElement[str]:
        """Return the database's name for the kind of the value there."""
        return (func.json_type if self.is_on_sqlite else func.json_typeof)(*self._arguments)

    def length(self) -> ColumnElement[int]:
        return func.json_array_length(*self._arguments)

    def scalar(self, kind: type) -> ColumnElement[Any]:
        if self.is_on_sqlite:
            return func.json_extract(*self._arguments)
        (value,) = self._arguments
        text: ColumnElement[Any] = value.as_string()
        number: ColumnElement[Any] = value.as_boolean() if kind is bool else cast(text, Numeric)
        return text.collate("C") if kind is str else number

    @property
    def _arguments(self) -> tuple[Any, ...]:
        """Return the place as the databases' functions take it."""
        if not self.is_on_sqlite:
            value: Any = ItemRow.value
            return (reduce(operator.getitem, self.steps, value),)
        # A key is written as in the stored text, with which older versions of SQLite compare it.
        path = (f"[{step}]" if isinstance(step, int) else f".{json.dumps(step)}" for step in self.steps)
        return ItemRow.value, f"${''.join(path)}"


def condition(operand: Mapping[str, Any], dialect: str) -> ColumnElement[bool]:
    """Return the condition of rows that a filter matches. Raises InvalidRequest for a bad filter."""
    if _count(operand) > COMPARISONS_MAX:
        raise _wrong("invalid_filter", f"The filter compares with more than {COMPARISONS_MAX} values.")
    place = _Place(is_on_sqlite=dialect == "sqlite")
    return and_(true(), *(_at_path(place, key, inner) for key, inner in operand.items()))


def _at_path(place: _Place, key: str, operand: Any) -> ColumnElement[bool]:
    """Return the condition for an outermost key."""
    is_key = _keys(place, {key: operand})
    if "." not in key:
        return is_key
    nested = _matches(place.at(*key.split(".")), operand)
    return case((place.at(key).kind().is_not(None), is_key), else_=nested)


def _count(operand: Any) -> int:
    if isinstance(operand, dict | list):
        return max(1, sum(map(_count, operand.values() if isinstance(operand, dict) else operand)))
    return 1


def _keys(place: _Place, operand: Mapping[str, Any]) -> ColumnElement[bool]:
    for key in operand:
        if key.startswith("$"):
            raise _wrong("unknown_operator", f"The operator {key[:100]!r} stands where a key is expected.")
        if '"' in key:
            raise _wrong("invalid_filter", f"The key {key[:100]!r} has a quotation mark.")
    return and_(true(), *(_matches(place.at(key), inner) for key, inner in operand.items()))


def _matches(place: _Place, operand: Any) -> ColumnElement[bool]:
    if len(place.steps) > LEVELS_MAX:
        raise _wrong("invalid_filter", f"The filter leads more than {LEVELS_MAX} levels deep.")
    if isinstance(operand, Mapping):
        if any(key.startswith("$") for key in operand):
            return and_(*(_operation(place, name, operand) for name, operand in operand.items()))
        return _where(place, ("object",), _keys(place, operand))
    if isinstance(operand, list):
        each = (_matches(place.at(number), element) for number, element in enumerate(operand))
        return _where(place, ("array",), and_(place.length() == len(operand), *each))
    return _compared(place, operator.eq, operand)


def _operation(place: _Place, name: str, operand: Any) -> ColumnElement[bool]:
    if name not in _OPERATORS:
        raise _wrong("unknown_operator", f"There is no operator {name[:100]!r}, only {', '.join(_OPERATORS)}.")
    if name == "$in" and not isinstance(operand, list):
        raise _wrong("invalid_filter", "The operator $in takes a list.")
    if name in _ORDER and (operand is None or isinstance(operand, bool)):
        raise _wrong("invalid_filter", f"The operator {name} takes a number or a text.")
    if name == "$in":
        return or_(false(), *(_compared(place, operator.eq, element) for element in operand))
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
    """Return `inner` for values of these kinds, and false for others: a database must not even evaluate it there."""
    return case((place.kind().in_(kinds), inner), else_=false())


def _wrong(code: str, problem: str) -> InvalidRequest:
    return InvalidRequest(code, f"{problem} Nothing was read or stored. Correct the filter.", param="filter")
