"""Items of the store, and operations on them."""

import json
from typing import Any

from marshmallow import Schema, ValidationError, validate, validates_schema

from models.store import Delete, Get, ListNamespaces, Operation, Put, Search
from schemas import fields
from schemas.fields import INT32_MAX, OPTIONAL
from schemas.shapes import WHOM, CallerQuery

NAMESPACE_PARTS = 8
NAME_CHARS = 256  # of a namespace with its dots, and of a key: an index of PostgreSQL takes no more of two
VALUE_BYTES = 1 << 16  # of a value as JSON
VALUE_DEPTH = 50  # of a value as JSON
PATHS_MAX = 20
BATCH_MAX = 1000
SEARCHED_ITEMS_MAX = 1000  # items that the searches of one call return
LOOK, QUERY = 10, 100  # items that any search or listing, and one with a query, counts as at least
NAME = validate.Length(1, NAME_CHARS)
TTL = validate.Range(0, 10 * 366 * 24 * 60.0, min_inclusive=False)  # minutes
_PARTS = "1 to 8 parts, none empty or with a dot, and 256 characters together: a list, or a text with dots."
_STEP = r"[^.\[\]]{1,64}(?:\[(?:\*|\d{1,4})\]){0,4}"
_PATH = validate.Regexp(rf"^{_STEP}(?:\.{_STEP}){{0,9}}$", error="Is not a path such as `title` or `notes[*].text`.")


def index_paths(**options: Any) -> fields.Items:
    return fields.Items(fields.Text(validate=_PATH), PATHS_MAX, data_key="index", **OPTIONAL, **options)


class Namespace(fields.Described):
    """Parts of a namespace: a list, or a text with dots between them. In a query a list repeats the name."""

    def __init__(self, least: int = 1, **options: Any) -> None:
        self.least = least
        super().__init__(metadata={"type": "array", "items": {"type": "string"}}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        names = value.split(".") if isinstance(value, str) else value
        if not isinstance(names, list) or not self.least <= len(names) <= NAMESPACE_PARTS:
            raise ValidationError(f"Must be {_PARTS}")
        parts: Any = tuple(map(fields.Text().deserialize, names))
        if not all(parts) or any("." in part for part in parts) or len(".".join(parts)) > NAME_CHARS:
            raise ValidationError(f"Must be {_PARTS}")
        return parts


class JsonValue(fields.Raw):
    """JSON value that every database can store and compare: whole numbers have 64 bits, texts no NUL."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        fields.check_json(value, VALUE_DEPTH)
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
        if size > VALUE_BYTES:
            raise ValidationError(f"Has {size:,} bytes as JSON, but at most {VALUE_BYTES:,} are allowed.")
        return value


class JsonObject(JsonValue):
    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, dict):
            raise ValidationError("Must be a JSON object.")
        return super()._deserialize(value, attr, data, **kwargs)


class Item(Schema):
    namespace = fields.List(fields.String())
    key = fields.String()
    value = fields.Raw(about="Any JSON value.")
    version = fields.Integer(about="Counts the values that were stored, from 1.")
    ttl = fields.Float(allow_none=True, about="Minutes to live; null: until it is deleted.")
    refreshes = fields.Boolean(data_key="refresh_on_read", about="Whether reading begins the `ttl` anew.")
    expires_at = fields.UtcDateTime(allow_none=True)
    created_at = fields.UtcDateTime()
    updated_at = fields.UtcDateTime()
    paths = fields.List(fields.String(), data_key="index", allow_none=True, about="The paths that were stored with it.")
    score = fields.Float(allow_none=True, about="How well it answers the `query` of a search.")


# -- operations: each loads the fields of its value, and `user_id`

_EXPECTED = "Only in the place of this version; 0: only where there is no item. Otherwise the answer is 409."
_REFRESH = "False: reading does not postpone when an item expires."
_INDEX = (
    "Where queries look in this value: paths such as `title` or `notes[*].text`; an empty list: nowhere. Null: where "
    "the `fields` of the search say."
)
_PATHS = "Where the `query` looks: paths such as `title` or `notes[*].text`. None: in all texts."
_FILTER = (
    'Keys of the value, nested as it is, and what they are: `{"size": {"$gt": 3}, "by": {"name": "Ada"}}`; or a path '
    "of keys, such as `by.name`. The operators are $eq, $ne, $gt, $gte, $lt, $lte and $in. Numbers compare as numbers, "
    "texts by their characters."
)


class _Named(CallerQuery):
    namespace = Namespace(required=True, about=_PARTS)
    key = fields.Text(required=True, validate=NAME)


class PutItem(_Named):
    value = JsonValue(required=True, allow_none=True, about="At most 64 KB as JSON.")
    version = fields.integer(0, INT32_MAX, **OPTIONAL, about=_EXPECTED)
    ttl = fields.Float(**OPTIONAL, validate=TTL, metadata={"exclusiveMinimum": True}, about="Minutes to live.")
    refreshes = fields.Boolean(data_key="refresh_on_read", load_default=False)
    paths = index_paths(about=_INDEX)


class GetItem(_Named):
    refresh = fields.Boolean(load_default=True, about=_REFRESH)


class DeleteItem(_Named):
    version = fields.number(0, INT32_MAX, load_default=None, about="Only this version.")


class SearchItems(CallerQuery):
    namespace = Namespace(
        least=0,
        data_key="namespace_prefix",
        load_default=(),
        about="Only what is in this namespace, or below it.",
    )
    filter = JsonObject(load_default=dict, about=_FILTER, metadata={"type": "object"})
    query = fields.text(1, 2000, **OPTIONAL, about="Find items by words and meaning, the best first.")
    paths = fields.Items(fields.Text(validate=_PATH), PATHS_MAX, data_key="fields", load_default=(), about=_PATHS)
    limit = fields.integer(1, SEARCHED_ITEMS_MAX, load_default=10)
    offset = fields.integer(0, INT32_MAX, load_default=0)
    refresh = fields.Boolean(load_default=True, about=_REFRESH)


class NamespaceQuery(CallerQuery):
    prefix = Namespace(load_default=(), about="How they begin; `*` is any part.")
    suffix = Namespace(load_default=(), about="How they end; `*` is any part.")
    max_depth = fields.number(1, INT32_MAX, load_default=None, about="Cut them to so many parts.")
    limit = fields.limit(100, 1000)
    offset = fields.number(0, INT32_MAX, load_default=0)


# -- several operations in one call

_OPERATIONS: dict[str, tuple[type[CallerQuery], type[Operation], str]] = {  # with the name of the result
    "put": (PutItem, Put, "item"),
    "get": (GetItem, Get, "item"),
    "delete": (DeleteItem, Delete, "erased"),
    "search": (SearchItems, Search, "found"),
    "namespaces": (NamespaceQuery, ListNamespaces, "namespaces"),
}
_SCHEMAS = {name: schema(exclude=WHOM) for name, (schema, _, _) in _OPERATIONS.items()}
_RESULTS = {operation: result for _, operation, result in _OPERATIONS.values()}


class _Operation(fields.Dict):
    """Object whose `op` says which operation's fields it has."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        operation = super()._deserialize(value, attr, data, **kwargs)
        name = operation.pop("op", None)
        if not isinstance(name, str) or name not in _OPERATIONS:
            raise ValidationError({"op": [f"Must be one of: {', '.join(_OPERATIONS)}."]})
        return _OPERATIONS[name][1](**_SCHEMAS[name].load(operation))


class Batch(CallerQuery):
    """Operations that happen in one transaction, in their order."""

    long = True

    operations = fields.Items(
        _Operation(
            about=f"`op`, one of {', '.join(_OPERATIONS)}, and the fields of that call but `user_id` and `space`."
        ),
        BATCH_MAX,
        least=1,
        required=True,
    )

    @validates_schema
    def _not_too_much(self, data: dict[str, Any], **_: Any) -> None:
        if sum(map(_weight, data["operations"])) > SEARCHED_ITEMS_MAX:
            raise ValidationError(
                f"All searches may ask for {SEARCHED_ITEMS_MAX:,} items together. Each counts as {LOOK} at least, "
                f"or as {QUERY} with a query, and a listing as {LOOK}.",
                "operations",
            )


def _weight(operation: Operation) -> int:
    if isinstance(operation, Search):
        return max(operation.limit, LOOK if operation.query is None else QUERY)
    return LOOK if isinstance(operation, ListNamespaces) else 0


class Found(Schema):
    items = fields.List(fields.Nested(Item))


class NamespaceList(Schema):
    namespaces = fields.List(fields.List(fields.String()))


class Result(Schema):
    """Result of an operation: `item` of put and get, `erased` of delete, `items` of search, or `namespaces`."""

    item = fields.Nested(Item, allow_none=True, sometimes=True)
    erased = fields.counts("How many items, and earlier values of them.", sometimes=True)
    found = fields.List(fields.Nested(Item), data_key="items", sometimes=True)
    namespaces = fields.List(fields.List(fields.String()), sometimes=True)


class Results(Schema):
    results = fields.List(fields.Nested(Result))


def results_of(operations: list[Operation], results: list[Any]) -> dict[str, Any]:
    """Return the results of a batch, each under the name of its kind."""
    pairs = zip(operations, results, strict=True)
    return {"results": [{_RESULTS[type(operation)]: result} for operation, result in pairs]}
