"""OpenAPI document of every call: /openapi.json, from which /docs and the clients are made."""

import json
import re
from collections.abc import Iterable
from typing import Any

from flask import Flask
from flask_smorest import Api, Blueprint

from api.blueprint import Int64
from schemas.errors import Error
from schemas.fields import INT32_MAX, INT64_MAX

_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key made with `recap keys create`, or one of RECAP_API_KEYS. A server without any key needs "
    "none, and serves only its own machine.",
}
_NULL = {"type": "object", "nullable": True}  # apispec's, beside a reference that may be null


class _Api(Api):
    """Document errors in Recap's shape."""

    ERROR_SCHEMA = Error
    DEFAULT_ERROR_RESPONSE_NAME = None  # each call names the errors it answers


def build_document(version: str, blueprints: Iterable[Blueprint]) -> dict[str, Any]:
    """Return the document of the calls of these blueprints. An answer has each field but those `sometimes`."""
    app = Flask("document")
    app.config.update(API_TITLE="Recap", API_VERSION=version, OPENAPI_VERSION="3.0.3")
    app.url_map.converters["int64"] = Int64
    api = _Api(app)
    api.spec.options["servers"] = [{"url": "./"}]  # where the document is, which may be below a path
    api.spec.components.security_scheme("bearer", _SCHEME)
    api.register_converter(Int64, lambda converter: converter.documented)
    for blueprint in blueprints:
        api.register_blueprint(blueprint)
    built: dict[str, Any] = json.loads(json.dumps(api.spec.to_dict()), object_hook=_exact)
    schemas = built["components"]["schemas"]
    del schemas["PaginationMetadata"]  # flask-smorest's, which no call here returns
    calls = [call for path in built["paths"].values() for method, call in path.items() if method != "parameters"]
    in_requests = _schemas_in([call.get("requestBody") for call in calls], schemas)
    answers = [answer for call in calls for code, answer in call["responses"].items() if code.startswith("2")]
    for name in _schemas_in(answers, schemas) - in_requests:
        fields = schemas[name].get("properties", {})
        if always := [key for key, field in fields.items() if not field.pop("x-optional", False)]:
            schemas[name]["required"] = always
    return built


def _exact(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the document as generators of clients need it.

    They require a field whose default is null, read a whole number into 32 bits unless it says 64, and take any object
    for a reference that may be null unless the null stands beside it.
    """
    if part.get("type") == "integer" and part.get("maximum", INT64_MAX) > INT32_MAX:
        part["format"] = "int64"
    if part.get("type") == "object" and "maxLength" in part:
        part["maxProperties"] = part.pop("maxLength")
    if _NULL in part.get("anyOf", ()):
        part["allOf"] = [choice for choice in part.pop("anyOf") if choice != _NULL]
        part["nullable"] = True
    return {key: value for key, value in part.items() if key != "default" or value is not None}


def _schemas_in(part: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that a part of the document refers to, at first or second hand."""
    names: set[str] = set()
    waiting = [part]
    while waiting:
        for name in set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(waiting.pop()))) - names:
            names.add(name)
            waiting.append(schemas[name])
    return names
