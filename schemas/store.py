"""The store: items, and what can be done with them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from memory.store import values
from memory.store.values import NAME_CHARS, PARTS_MAX, VALUE_BYTES, VALUE_DEPTH, Operation
from schemas.fields import (
    INT32_MAX,
    INT64_MAX,
    UNSTORABLE,
    CallerQuery,
    Items,
    Text,
    UtcDateTime,
    ValueSchema,
    about,
    counts,
    integer,
    limit,
    number,
    optional_text,
)

BATCH_MAX = 1000
FOUND_MAX = 1000  # items that the searches of one call return
LOOKS_MAX, QUERIES_MAX = 100, 10  # searches and listings of a batch; those with a query
TTL = validate.Range(0, 10 * 366 * 24 * 60.0, min_inclusive=False)  # minutes
_SCALARS = (str, int, float, bool, type(None))
_OF_NAMESPACE = "1 to 8 parts, none empty or with a dot, and 256 characters together: a list, or a text with dots."


class Namespace(fields.Field):
    """The parts of a namespace: a list or, as in a query, a text with dots between them."""

    def __init__(self, least: int = 1, **options: Any) -> None:
        self.length = validate.Length(least)
        super().__init__(**options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        parts = value.split(".") if isinstance(value, str) else value
        if not isinstance(parts, list) or len(parts) > PARTS_MAX:
            raise ValidationError(f"Must be a list of at most {PARTS_MAX} texts, or one text with dots between them.")
        self.length(parts)
        parts = [Text().deserialize(part) for part in parts]
        if not all(parts) or any("." in part for part in parts):
            raise ValidationError("No part may be empty or have a dot.")
        if len(".".join(parts)) > NAME_CHARS:
            raise ValidationError(f"Is longer than {NAME_CHARS} characters.")
        return tuple(parts)


class JsonValue(fields.Raw):
    """Any JSON value that every database can store and compare: whole numbers have 64 bits, texts no NUL."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        for one in _inside(value):
            if isinstance(one, float) and not math.isfinite(one):
                raise ValidationError("Has a number that is not finite.")
            if isinstance(one, int) and not -INT64_MAX - 1 <= one <= INT64_MAX:
                raise ValidationError("Has a whole number of more than 64 bits. Send it as a text.")
            if isinstance(one, str) and UNSTORABLE.search(one):
                raise ValidationError("Contains a NUL character or an unpaired surrogate.")
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
        if size > VALUE_BYTES:
            raise ValidationError(f"Has {size:,} bytes as JSON, but at most {VALUE_BYTES:,} are allowed.")
        return value


class Filter(JsonValue):
    """An object whose keys are compared with those of values."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, dict):
            raise ValidationError("Must be an object.")
        return super()._deserialize(value, attr, data, **kwargs)


def _inside(value: Any) -> Iterator[Any]:
    """All keys and scalars of a value.  Raises ValidationError when it is nested too deeply."""
    layer = [value]
    for _ in range(VALUE_DEPTH + 1):
        yield from (one for one in layer if isinstance(one, _SCALARS))
        yield from (key for one in layer if isinstance(one, dict) for key in one)
        layer = [
            inner
            for one in layer
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not layer:
            return
    raise ValidationError(f"Is nested more than {VALUE_DEPTH} levels deep.")


def _key() -> Text:
    return Text(required=True, validate=validate.Length(1, NAME_CHARS))


def _version(description: str) -> fields.Integer:
    return integer(0, INT32_MAX, load_default=None, allow_none=True, metadata=about(description))


_EXPECTED = "Only in the place of this version; 0: only where there is no item. Otherwise the answer is 409."
_REFRESH = about("False: reading does not postpone when an item expires.")
_PREFIX = about("Only what is in this namespace, or below it.")
_FILTER = about(
    'Keys of the value, nested as it is, and what they are: `{"size": {"$gt": 3}, "by": {"name": "Ada"}}`. The '
    "operators are $eq, $ne, $gt, $gte, $lt, $lte and $in. Numbers compare as numbers, texts by their characters."
)


class Item(Schema):
    """A value with its name."""

    namespace = fields.List(fields.String())
    key = fields.String()
    value = fields.Raw(metadata=about("Any JSON value."))
    version = fields.Integer(metadata=about("Counts the values that were stored, from 1."))
    ttl = fields.Float(allow_none=True, metadata=about("Minutes to live; null: until it is deleted."))
    refreshes = fields.Boolean(data_key="refresh_on_read", metadata=about("Whether reading begins the `ttl` anew."))
    expires_at = UtcDateTime(allow_none=True)
    created_at = UtcDateTime()
    updated_at = UtcDateTime()
    score = fields.Float(allow_none=True, metadata=about("How well it answers the `query` of a search."))


class _Call(CallerQuery, ValueSchema):
    """One operation.  It loads the person whose items they are, and the operation."""


def _loading(operation: type[Operation]) -> Any:
    return staticmethod(lambda user_id=None, **given: (user_id, operation(**given)))


class PutItem(_Call):
    value = _loading(values.Put)

    namespace = Namespace(required=True, metadata=about(_OF_NAMESPACE))
    key = _key()
    value_ = JsonValue(
        required=True, allow_none=True, data_key="value", attribute="value", metadata=about("At most 64 KB as JSON.")
    )
    version = _version(_EXPECTED)
    ttl = fields.Float(load_default=None, allow_none=True, validate=TTL, metadata=about("Minutes to live."))
    refreshes = fields.Boolean(data_key="refresh_on_read", load_default=False)


class GetItem(_Call):
    value = _loading(values.Get)

    namespace = Namespace(required=True, metadata=about(_OF_NAMESPACE))
    key = _key()
    refresh = fields.Boolean(load_default=True, metadata=_REFRESH)


class DeleteItem(_Call):
    value = _loading(values.Delete)

    namespace = Namespace(required=True, metadata=about(_OF_NAMESPACE))
    key = _key()
    version = number(0, INT32_MAX, load_default=None, metadata=about("Only this version."))


class SearchItems(_Call):
    value = _loading(values.Search)

    namespace = Namespace(least=0, data_key="namespace_prefix", load_default=(), metadata=_PREFIX)
    filter = Filter(load_default=dict, metadata=_FILTER)
    query = optional_text(2000, metadata=about("Find items by words and meaning, the best first."))
    fields_ = Items(
        Text(validate=validate.Length(1, NAME_CHARS)),
        20,
        data_key="fields",
        attribute="fields",
        load_default=(),
        metadata=about("Where the `query` looks: paths such as `title` or `notes[*].text`. None: in all texts."),
    )
    limit = integer(1, FOUND_MAX, load_default=10)
    offset = integer(0, INT32_MAX, load_default=0)
    refresh = fields.Boolean(load_default=True, metadata=_REFRESH)


class ListNamespaces(_Call):
    value = _loading(values.ListNamespaces)

    prefix = Namespace(load_default=(), metadata=about("How they begin; `*` is any part."))
    suffix = Namespace(load_default=(), metadata=about("How they end; `*` is any part."))
    max_depth = number(1, PARTS_MAX, load_default=None, metadata=about("Cut them to so many parts."))
    limit = limit(100, 1000)
    offset = number(0, INT32_MAX, load_default=0)


class Found(Schema):
    items = fields.List(fields.Nested(Item))


class NamespaceList(Schema):
    namespaces = fields.List(fields.List(fields.String()))


# -- several operations in one call

_OPERATIONS: dict[str, _Call] = {
    name: schema(exclude=("user_id",))
    for name, schema in {
        "put": PutItem,
        "get": GetItem,
        "delete": DeleteItem,
        "search": SearchItems,
        "namespaces": ListNamespaces,
    }.items()
}


class _Operation(fields.Dict):
    """An object whose `op` says which operation's fields it has."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        given = super()._deserialize(value, attr, data, **kwargs)
        name = given.pop("op", None)
        if not isinstance(name, str) or name not in _OPERATIONS:
            raise ValidationError({"op": [f"Must be one of: {', '.join(_OPERATIONS)}."]})
        _, operation = _OPERATIONS[name].load(given)
        return operation


class Batch(CallerQuery):
    """Operations that happen in one transaction, in their order."""

    long = True

    operations = Items(
        _Operation(
            metadata=about(
                f"`op` is one of {', '.join(_OPERATIONS)}; the rest are the fields of that call, but for `user_id`."
            )
        ),
        BATCH_MAX,
        least=1,
        required=True,
    )

    @validates_schema
    def _not_too_much(self, data: dict[str, Any], **_: Any) -> None:
        searches = [one for one in data["operations"] if isinstance(one, values.Search)]
        listings = sum(isinstance(one, values.ListNamespaces) for one in data["operations"])
        if len(searches) + listings > LOOKS_MAX:
            raise ValidationError(f"At most {LOOKS_MAX} may be searches or listings.", "operations")
        if sum(one.query is not None for one in searches) > QUERIES_MAX:
            raise ValidationError(f"At most {QUERIES_MAX} may have a query.", "operations")
        if sum(one.limit for one in searches) > FOUND_MAX:
            raise ValidationError(f"The limits of all searches may add up to {FOUND_MAX:,}.", "operations")


class Result(Schema):
    """What an operation did: `item` of put and get, `erased` of delete, `items` of search, or `namespaces`."""

    item = fields.Nested(Item, allow_none=True)
    erased = counts("How many items, and earlier values of them.")
    found = fields.List(fields.Nested(Item), data_key="items")
    namespaces = fields.List(fields.List(fields.String()))


class Results(Schema):
    results = fields.List(fields.Nested(Result))


_RESULTS = {
    values.Put: "item",
    values.Get: "item",
    values.Delete: "erased",
    values.Search: "found",
    values.ListNamespaces: "namespaces",
}


def results_of(operations: list[Operation], results: list[Any]) -> dict[str, Any]:
    """The results of a batch, each under the name of its kind."""
    named = zip(operations, results, strict=True)
    return {"results": [{_RESULTS[type(operation)]: result} for operation, result in named]}
