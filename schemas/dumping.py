"""Dumping what every reply holds many of.

The idea: a schema says of each value anew where it is found and how it is written, which takes longer than to find and
write it.  Here that is asked once, and what is left for an object is to read its attributes.

Guarantee: what comes out is what `schema.dump` gives, for objects that have every attribute; what is not known here is
left to the schema's own field.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime

Write = Callable[[Any], Any]

_PLAIN: dict[type, Write] = {
    fields.String: str,
    fields.Integer: int,
    fields.Float: float,
    fields.Boolean: lambda value: value,
    UtcDateTime: methodcaller("isoformat"),
}


def dumper(schema: Schema) -> Callable[[Any], dict[str, Any]]:
    """What `schema.dump` does with one object."""
    parts = [(field.data_key or name, *_part(name, field)) for name, field in schema.dump_fields.items()]

    def dump(value: Any) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, get, write in parts:
            found = get(value)
            out[key] = None if found is None else write(found)
        return out

    return dump


def _part(name: str, field: fields.Field[Any]) -> tuple[Write, Write]:
    """How a field is found in an object, and how it is written."""
    write = _writing(field)
    if write is None:
        return (lambda value: value), (lambda value: field.serialize(name, value))
    return attrgetter(field.attribute or name), write


def _writing(field: fields.Field[Any]) -> Write | None:
    """How a value is written; None where the field itself has to be asked."""
    if type(field) is fields.List:
        each = _writing(field.inner)
        return None if each is None else lambda values: [each(value) for value in values]
    if type(field) is fields.Nested and not field.many:
        return dumper(field.schema)
    return _PLAIN.get(type(field))
