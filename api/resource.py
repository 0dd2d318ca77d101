"""ApiBlueprint, whose calls act for a caller, and the engine that they use.

Invariants:
- Every call asks for a scope: `read` for GET and `admin` for other methods, unless its route names one (test_auth).
- Unknown names in a query or a body are refused (test_hostile_bodies), and an owner in the address of a call that takes
  it in its body (test_instructions): ignored, `?userid=ada` would list everybody's data.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

from apispec.ext.marshmallow.common import resolve_schema_instance
from flask import current_app, request
from flask_smorest import Blueprint
from marshmallow import Schema
from werkzeug.routing import IntegerConverter

from api.bodies import BodyParser
from api.errors import REFUSALS, UNREADABLE
from memory.engine import Engine
from memory.errors import InvalidRequest
from models.keys import ADMIN, READ
from models.owners import Whom
from schemas.errors import Error

OF_USER = "/users/<path:user_id>"  # begins the calls about a person as a whole
ANY_SCOPE = "any"  # of a call that every key may make
EXTENSION = "recap"
NOT_LOCAL = "On a server without keys: the request does not come from the server's own machine."
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

Shape = type[Schema] | Schema


class Int64(IntegerConverter):
    """Id in a path. Anything else is answered with 404, like an id that nobody has.

    Its length is bounded here: with werkzeug's own `max`, some larger numbers would be answered with 405.
    """

    regex = r"\d{1,18}"
    documented = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}


class ApiBlueprint(Blueprint):
    """Blueprint of calls that act for a caller."""

    ARGUMENTS_PARSER = BodyParser()

    def __init__(self, name: str, description: str, prefix: str = "/api") -> None:
        super().__init__(name, name, url_prefix=prefix, description=description)

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        provide_automatic_options: bool | None = None,  # noqa: FBT001
        **options: Any,
    ) -> None:
        """Add a call; one about a person as a whole is there for a space too. options: see `_add_call`."""
        if rule.startswith(OF_USER):
            self._add_call(rule.replace(OF_USER, "/spaces/<space>"), _for_space(view_func), **options)
        self._add_call(rule, view_func, **options)

    def _add_call(  # noqa: PLR0913 - what a call says of itself
        self,
        rule: str,
        view_func: Any,
        *,
        query: Shape | None = None,
        body: Shape | None = None,
        returns: Shape | None = None,
        status: int = 200,
        scope: str | None = None,
        own: bool = True,
        errors: Mapping[int, str] | None = None,
        turn: bool = False,
        slow: bool = False,
        files: bool = False,
        uploads: bool = False,
        error_schema: type[Schema] = Error,
        **options: Any,
    ) -> None:
        """Add a call and describe it in the OpenAPI document.

        query, body: what its function takes first, loaded. returns: how the function's value is dumped, with `status`.
        scope: that a key needs. own: a person's own key that may chat has it for this call.
        errors: descriptions by status, beside those of every call.
        turn: it answers with events if `stream` says so, and takes an Idempotency-Key.
        slow: it may wait for a model, a session or a large document (see `api.limits`), as every turn does.
        files: its body may be bytes instead of JSON. uploads: it may be a form with a file.
        """
        methods = set(options.get("methods", ["GET"]))
        scope = scope or (READ if methods == {"GET"} else ADMIN)
        too = "" if own else ", which a person's own key needs too"
        forbidden = NOT_LOCAL if scope == ANY_SCOPE else f"The key lacks the scope `{scope}`{too}. {NOT_LOCAL}"
        body_errors = _EVERY_BODY if methods & {"POST", "PUT", "PATCH"} else {}
        texts = {**_EVERY_CALL, 403: forbidden, **body_errors, **(errors or {})}
        content = {"application/json": {"schema": error_schema}}
        described: dict[str, Any] = {
            "responses": {code: {"description": text, "content": content} for code, text in texts.items()},
            "operationId": view_func.__name__,
            "security": [{"bearer": []}],
            "x-scope": scope,
        }
        if turn:
            described["responses"][200] = {"content": {"text/event-stream": {"schema": EVENTS}}}
            described["parameters"] = [IDEMPOTENCY_KEY]
        view = self.response(status, returns)(view_func)
        if body is not None:
            shape = resolve_schema_instance(body)
            view = self.arguments(shape)(view)  # once: webargs would make one a request
            if query is None and "user_id" in shape.fields:
                view = _refuse_owner_in_query(view)
        if query is not None:
            view = self.arguments(resolve_schema_instance(query), location="query")(view)
        view = self.doc(**described)(view)
        view.scope, view.own, view.slow = scope, own, turn or slow  # for the middleware
        view.files, view.uploads = files, uploads
        super().add_url_rule(rule, None, view, **options)


def _refuse_owner_in_query(view: Any) -> Any:
    """Return the view of a call whose body names the owner: one named in the address, ignored, would be everybody."""

    @functools.wraps(view)
    def refusing(*loaded: Any, **path: Any) -> Any:
        for name in ("user_id", "space"):
            if name in request.args:
                message = f"This call takes `{name}` in its body, not in its address. Nothing was done."
                raise InvalidRequest("owner_in_query", message, param=name)
        return view(*loaded, **path)

    return refusing


def _for_space(view_func: Any) -> Any:
    """Return the function of a call of a person's as one of a space's."""
    name, about = view_func.__name__, view_func.__doc__.replace("a person", "a space")

    @functools.wraps(view_func)
    def of_space(*loaded: Any, space: str, **path: Any) -> Any:
        return view_func(*loaded, user_id=Whom(None, space), **path)

    of_space.__name__ = name.replace("user", "space") if "user" in name else f"{name}_of_space"
    of_space.__doc__ = about.replace("the person", "the space").replace(" person ", " space ")
    return of_space


def current_engine() -> Engine:
    """Return the engine of the application that answers the request."""
    return cast(Engine, current_app.extensions[EXTENSION])
