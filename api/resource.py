"""The blueprint of every resource, and what its handlers need: the services, and the caller.

Guarantee: every call asks for a scope.  It is `read` for GET and `admin` for any other method, unless `route` is told
another one.  Unknown names in a query or a body are refused: `?userid=ada`, ignored, would list everybody's data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from flask import current_app
from flask_smorest import Blueprint
from marshmallow import Schema
from werkzeug.routing import IntegerConverter

from api.bodies import BodyParser
from api.errors import REFUSALS, UNREADABLE
from memory.engine import Engine
from models.keys import ADMIN, READ
from schemas.errors import Error

NOT_LOCAL = "On a server without keys: the request does not come from the server's own machine."


ANY_SCOPE = "any"  # of a call that every key may make
EXTENSION = "recap"
LIMITED = "Too many requests, too many at once or too many wrong keys, or the day's tokens are spent. See Retry-After."
IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "description": "The same request with the same key gets the first answer again.",
    "schema": {"type": "string"},
}
EVENTS = {  # the schema of each event of a stream
    "type": "object",
    "properties": {
        "data": {"type": "string", "description": "A chunk or an error as JSON. The last event has `[DONE]`."}
    },
}
_EVERY_CALL = {
    **{status: UNREADABLE[status][1] for status in (400, 414, 431)},
    401: "The API key is missing, unknown or revoked.",
    404: "What the call names does not exist, or belongs to someone else.",
    429: LIMITED,
    503: "The database can't be used right now, or all threads for such calls are in use. Nothing was stored.",
}
_EVERY_BODY = {status: REFUSALS[status][1] for status in (400, 408, 413, 415)}


class Int64(IntegerConverter):
    """An id in a path.  What can't be one is answered with 404, like an id that nobody has.

    Its length is bounded here: with werkzeug's own `max`, some larger numbers would be answered with 405.
    """

    regex = r"\d{1,18}"
    documented = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}


class ApiBlueprint(Blueprint):
    """A blueprint of calls that act for a caller."""

    ARGUMENTS_PARSER = BodyParser()

    def __init__(self, name: str, description: str, prefix: str = "/api") -> None:
        super().__init__(name, name, url_prefix=prefix, description=description)

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        provide_automatic_options: bool | None = None,
        *,
        scope: str | None = None,
        errors: Mapping[int, str] | None = None,
        turn: bool = False,
        slow: bool = False,
        files: bool = False,
        error_schema: type[Schema] = Error,
        **options: Any,
    ) -> None:
        """As `Blueprint.add_url_rule`, with the scope the call asks for and a description of each error it answers.

        A call that takes a `turn` answers with events if it is asked to, and takes an Idempotency-Key.  A turn, and any
        call that may wait for a model, a session or a large document, is `slow` (see `api.limits`).  With
        `files`, its body may be bytes instead of JSON.
        """
        methods = set(options.get("methods", ["GET"]))
        scope = scope or (READ if methods == {"GET"} else ADMIN)
        lacking = f"The key lacks the scope `{scope}`. " if scope != ANY_SCOPE else ""
        of_body = _EVERY_BODY if methods & {"POST", "PUT", "PATCH"} else {}
        texts = {**_EVERY_CALL, 403: lacking + NOT_LOCAL, **of_body, **(errors or {})}
        content = {"application/json": {"schema": error_schema}}
        described: dict[str, Any] = {
            "responses": {status: {"description": text, "content": content} for status, text in texts.items()},
            "security": [{"bearer": []}],
            "x-scope": scope,
        }
        if turn:
            described["responses"][200] = {"content": {"text/event-stream": {"schema": EVENTS}}}
            described["parameters"] = [IDEMPOTENCY_KEY]
        view = self.doc(**described)(view_func)
        view.scope, view.slow, view.files = scope, turn or slow, files  # for the middleware
        super().add_url_rule(rule, endpoint, view, provide_automatic_options, **options)


def current_engine() -> Engine:
    return cast(Engine, current_app.extensions[EXTENSION])
