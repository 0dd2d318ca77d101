"""HTTP interface: a blueprint for each resource, a handler for each call.

A handler loads, makes one call into the engine and dumps. Its docstring is the call's description in /docs.
"""

import functools
import json
import re
from importlib import import_module
from typing import Any

from flask import Flask
from flask_smorest import Api, Blueprint

from api import errors, health, middleware, oauth
from api.blueprint import Int64
from api.current_request import EXTENSION
from memory.engine import Engine
from schemas.errors import Error

_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key made with `recap keys create`, or one of RECAP_API_KEYS. A server without any key needs "
    "none, and serves only its own machine.",
}
_MODULES = (  # of calls, in the order of the document
    *("chat", "sessions", "summaries", "facts", "documents", "graph", "recall", "store", "profile", "overview"),
    *("examples", "users", "spaces", "retention", "rules", "instructions", "conversation_types", "feedback", "prompts"),
    *("model_server", "jobs", "events", "webhooks", "openai", "anthropic", "responses", "stored_responses"),
    *("conversations", "conversation_items", "mcp", "health"),
)
_BLUEPRINTS = [
    item for name in _MODULES for item in vars(import_module(f"api.{name}")).values() if isinstance(item, Blueprint)
]


def register(app: Flask, engine: Engine) -> None:
    """Add every blueprint, the OpenAPI document, the shape of errors, and the middleware."""
    app.extensions[EXTENSION] = engine
    app.url_map.converters["int64"] = Int64
    for blueprint in _BLUEPRINTS:
        app.register_blueprint(blueprint)
    app.register_blueprint(oauth.blueprint)
    app.add_url_rule("/metrics", view_func=health.metrics)
    app.add_url_rule("/openapi.json", "openapi", lambda: document(app.config["API_VERSION"]))
    errors.register(app)
    middleware.register(app, engine)


class _Api(Api):
    """Document errors in Recap's shape."""

    ERROR_SCHEMA = Error
    DEFAULT_ERROR_RESPONSE_NAME = None  # each call names the errors it answers


@functools.cache
def document(version: str) -> dict[str, Any]:
    """Build the OpenAPI document, which is the same for every application; most processes are never asked for it."""
    app = Flask("document")
    app.config.update(API_TITLE="Recap", API_VERSION=version, OPENAPI_VERSION="3.0.3")
    app.url_map.converters["int64"] = Int64
    api = _Api(app)
    api.spec.components.security_scheme("bearer", _SCHEME)
    api.register_converter(Int64, lambda converter: converter.documented)
    for blueprint in _BLUEPRINTS:
        api.register_blueprint(blueprint)
    built: dict[str, Any] = api.spec.to_dict()
    schemas = built["components"]["schemas"]
    calls = [call for path in built["paths"].values() for method, call in path.items() if method != "parameters"]
    in_requests = _schemas_in([call.get("requestBody") for call in calls], schemas)
    answers = [answer for call in calls for code, answer in call["responses"].items() if code.startswith("2")]
    for name in _schemas_in(answers, schemas) - in_requests:
        fields = schemas[name].get("properties", {})
        if always := [key for key, field in fields.items() if not field.pop("x-optional", False)]:
            schemas[name]["required"] = always
    return built


def _schemas_in(part: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that a part of the document refers to, at first or second hand."""
    names, waiting = set[str](), [part]
    while waiting:
        for name in set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(waiting.pop()))) - names:
            names.add(name)
            waiting.append(schemas[name])
    return names
