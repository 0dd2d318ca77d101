"""HTTP interface: a blueprint for each resource, a handler for each call.

A handler loads, makes one call into the engine and dumps. Its docstring is the call's description in /docs. Most
modules have the calls of one noun. The others:

blueprint, openapi                what a call says of itself, and the document made of that
middleware, identity, limits      what every request passes; who is asking; how often, and how many at once
bodies, errors, current_request   a request's body; errors in the shape of each protocol; the request's engine and id
permissions                       what a key may do
streaming                         how every protocol answers a turn
protocols                         the protocols of other programs, a package
"""

import functools
from importlib import import_module
from typing import Any

from flask import Flask
from flask_smorest import Blueprint

from api import errors, health, middleware, oauth, openapi
from api.blueprint import Int64, Name
from api.current_request import EXTENSION
from memory.engine import Engine

_MODULES = (  # of calls, in the order of the document
    *("chat", "sessions", "turns", "summaries", "facts", "documents", "graph", "recall", "store", "profile"),
    *("overview", "examples", "users", "spaces", "retention", "rules", "instructions", "conversation_types"),
    *("feedback", "prompts", "model_server", "jobs", "events", "webhooks"),
    *(f"protocols.{name}" for name in ("openai", "anthropic", "responses", "stored_responses", "conversations", "mcp")),
    "health",
)
_BLUEPRINTS = [
    item for name in _MODULES for item in vars(import_module(f"api.{name}")).values() if isinstance(item, Blueprint)
]


def register(app: Flask, engine: Engine) -> None:
    """Add every blueprint, the OpenAPI document, the shape of errors, and the middleware."""
    app.extensions[EXTENSION] = engine
    app.url_map.converters |= {"int64": Int64, "default": Name}
    app.url_map.merge_slashes = False  # a redirect would lead from one person's address to another's
    for blueprint in _BLUEPRINTS:
        app.register_blueprint(blueprint)
    app.register_blueprint(oauth.blueprint)
    app.add_url_rule("/metrics", view_func=health.metrics)
    app.add_url_rule("/openapi.json", "openapi", lambda: document(app.config["API_VERSION"]))
    errors.register(app)
    middleware.register(app, engine)


@functools.cache
def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document, which is the same for every application; most processes are never asked for it."""
    return openapi.build_document(version, _BLUEPRINTS)
