"""What a call takes: found in the request and loaded with the call's schema, or refused with the fields that are wrong.

Guarantee: what no field is named after is refused, in a query as in a body, unless the schema takes it in.
`?userid=ada`, ignored, would list everybody's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from flask import Request
from marshmallow import Schema, ValidationError
from webargs.multidictproxy import MultiDictProxy
from werkzeug.exceptions import BadRequest, UnprocessableEntity


def loading(schema: Schema, location: str) -> Callable[[Request], Any]:
    """What loads the arguments of each request, by one schema: to make one takes longer than to load with it.

    `location` is `json`, `query` or `headers`.  It raises BadRequest where a body is no JSON, and UnprocessableEntity,
    with the schema's messages under `data`, where it is not what the schema asks for.
    """
    find = _FINDING[location]

    def load(asked: Request) -> Any:
        try:
            return schema.load(find(asked, schema))
        except ValidationError as error:
            raise _refused(location, error) from error

    return load


def _refused(location: str, error: ValidationError) -> UnprocessableEntity:
    """Made apart from where it is raised: a frame and an exception in it keep each other, and all that was sent."""
    refused = UnprocessableEntity()
    refused.data = {"messages": {location: error.messages}}  # type: ignore[attr-defined]
    return refused


def _body(asked: Request, _: Schema) -> Any:
    """What the body says; nothing where there is none.  Any other than JSON was refused at the door."""
    body = asked.get_data()
    try:
        return json.loads(body.decode()) if body else {}
    except ValueError as error:  # not UTF-8, not JSON, or a number of more digits than Python reads
        raise BadRequest from error


def _query(asked: Request, schema: Schema) -> Mapping[str, Any]:
    """Names and values; a name that may come several times has a list of them."""
    return MultiDictProxy(asked.args, schema)


def _headers(asked: Request, schema: Schema) -> Mapping[str, Any]:
    """Those that are asked for."""
    names = [field.data_key or name for name, field in schema.load_fields.items()]
    return {name: asked.headers[name] for name in names if name in asked.headers}


_FINDING: dict[str, Callable[[Request, Schema], Any]] = {"json": _body, "query": _query, "headers": _headers}
