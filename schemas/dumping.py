"""Dumping what every reply holds many of.

The idea: a schema says of each value anew where it is found and how it is written, which takes longer than to find and
write it.  Here that is asked once.  What is left for an object is to read its attributes, all at once, and to write
those that are not JSON's already.

Guarantee: what comes out is what `schema.dump` gives, for objects that have every attribute, each of its field's type;
what is not known here is left to the schema's own field.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime

Write = Callable[[Any], Any]


def _as_it_is(value: Any) -> Any:
    return value


_PLAIN: dict[type, Write] = {
    fields.String: _as_it_is,
    fields.Integer: _as_it_is,
    fields.Boolean: _as_it_is,
    fields.Float: float,  # Python lets a whole number pass for one, JSON tells them apart
    UtcDateTime: methodcaller("isoformat"),
}


def dumper(schema: Schema) -> Callable[[Any], dict[str, Any]]:
    """What `schema.dump` does with one object."""
    keys = {name: field.data_key or name for name, field in schema.dump_fields.items()}
    writes = {name: _writing(field) for name, field in schema.dump_fields.items()}
    found = [name for name, write in writes.items() if write is not None]
    read = _reading([schema.dump_fields[name].attribute or name for name in found])
    places = [keys[name] for name in found]
    written = [(keys[name], write) for name, write in writes.items() if write not in (None, _as_it_is)]
    asked = [(keys[name], name, schema.dump_fields[name].serialize) for name in writes if writes[name] is None]
    in_order = dict.fromkeys(keys.values())

    def dump(value: Any) -> dict[str, Any]:
        out: dict[str, Any] = in_order.copy()
        out.update(zip(places, read(value), strict=True))
        for key, write in written:
            if out[key] is not None:
                out[key] = write(out[key])
        for key, name, serialize in asked:
            out[key] = serialize(name, value)
        return out

    return dump


def _reading(attributes: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads these of an object."""
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda value: tuple(attrgetter(name)(value) for name in attributes)


def _writing(field: fields.Field[Any]) -> Write | None:
    """How a value is written; None where the field itself has to be asked."""
    if type(field) is fields.Nested and not field.many:
        return dumper(field.schema)
    if type(field) is fields.List:
        each = _writing(field.inner)
        if each is _as_it_is:
            return list
        return None if each is None else lambda values: [each(value) for value in values]
    if type(field) is fields.Dict and type(field.key_field) is fields.String and field.value_field is not None:
        part = _writing(field.value_field)
        return None if part is None else lambda parts: {name: part(value) for name, value in parts.items()}
    return _PLAIN.get(type(field))
