"""ApiBlueprint, whose calls act for a caller, and the engine that they use.

Invariants:
- Every call asks for a scope: `chat` for a turn, else `read` for GET and `admin` for other methods, unless its route
  names one (test_auth).
- Unknown names in a query or a body are refused, and names that a query has twice (test_hostile_bodies), and an owner
  in the address of a call that takes it in its body (test_instructions), or the other way (test_message_versions):
  ignored, `?userid=ada` would list everybody's data.
"""

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from apispec.ext.marshmallow.common import resolve_schema_instance
from flask import request
from flask_smorest import Blueprint
from marshmallow import EXCLUDE, Schema
from werkzeug.routing import IntegerConverter, Map, UnicodeConverter

from api.bodies import BodyParser, refuse_owner_in_body
from api.current_request import current_engine
from api.errors import REFUSALS, UNREADABLE
from api.identity import caller
from api.permissions import ANY_SCOPE
from models.keys import ADMIN, CHAT, READ
from models.owners import Caller
from schemas import shapes
from schemas.errors import Error
from schemas.shapes import WHOM, CallerQuery

__all__ = ["LIMITED", "ApiBlueprint", "Caller", "Int64", "current_engine"]  # what a module of calls needs

OF_USER = "/users/<path:user_id>"  # begins the calls about a person as a whole
ABOUT_ONE = (OF_USER, "/spaces/<space>")
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
    503: "The database can't be used right now, or all threads for such calls are in use.",
}
_EVERY_CHANGE = {503: f"{_EVERY_CALL[503]} Nothing was stored."}
_EVERY_BODY = {status: REFUSALS[status][1] for status in (400, 408, 413, 415)}
_EVERY_EDIT = {
    409: "Somebody stored another version after `expected_version`. Nothing was stored. Read it and try again."
}

Shape = type[Schema] | Schema


class Int64(IntegerConverter):
    """Id in a path. Anything else is answered with 404, like an id that nobody has.

    Its length is bounded here: with werkzeug's own `max`, some larger numbers would be answered with 405.
    """

    regex = r"\d{1,18}"
    documented = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}


class Name(UnicodeConverter):
    """Name in a path. One with a NUL character, which PostgreSQL takes in no query, is answered with 404."""

    def __init__(self, url_map: Map) -> None:
        super().__init__(url_map)
        self.regex = r"[^/\x00]+"


class ApiBlueprint(Blueprint):
    """Blueprint of calls that act for a caller. own: a person's own key that may chat has every scope for them."""

    ARGUMENTS_PARSER = BodyParser()

    def __init__(self, name: str, description: str, prefix: str = "/api", *, own: bool = True) -> None:
        super().__init__(name, name, url_prefix=prefix, description=description)
        self.own = own

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
            self._add_call(rule.replace(OF_USER, "/spaces/<space>"), _about_space(view_func), **options)
        self._add_call(rule, view_func, **options)

    def _add_call(  # noqa: PLR0913 - what a call says of itself
        self,
        rule: str,
        view_func: Any,
        *,
        query: Shape | None = None,
        body: Shape | None = None,
        returns: Shape | None = None,
        page_of: type[Schema] | None = None,
        list_of: type[Schema] | None = None,
        status: int = 200,
        scope: str | None = None,
        errors: Mapping[int, str] | None = None,
        turn: bool = False,
        slow: bool = False,
        takes: str | None = None,
        error_schema: type[Schema] = Error,
        **options: Any,
    ) -> None:
        """Add a call and describe it in the OpenAPI document.

        A function with the parameter `caller` gets the caller that address, query or body name, and after that what was
        loaded of the request, without the fields that name the caller.
        query, body: shapes to load. returns, page_of, list_of: how the function's value is dumped, with `status`.
        scope: that a key needs.
        errors: descriptions by status, beside those of every call.
        turn: it answers with events if `stream` says so, takes an Idempotency-Key, and needs the scope `chat`.
        slow: it may wait for a model, a session or a large document (see `api.limits`), as every turn does.
        takes: the media type that its body may have instead of JSON.
        """
        methods = set(options.get("methods", ["GET"]))
        scope = scope or (CHAT if turn else READ if methods == {"GET"} else ADMIN)
        too = "" if self.own else ", which a person's own key needs too"
        forbidden = NOT_LOCAL if scope == ANY_SCOPE else f"The key lacks the scope `{scope}`{too}. {NOT_LOCAL}"
        shape = resolve_schema_instance(body) if body is not None else None  # once: webargs would make one a request
        texts = {**_EVERY_CALL, 403: forbidden}
        texts |= _EVERY_CHANGE if methods != {"GET"} else {}
        texts |= _EVERY_BODY if methods & {"POST", "PUT", "PATCH"} else {}
        texts |= _EVERY_EDIT if shape is not None and "expected_version" in shape.fields else {}
        if rule.startswith(ABOUT_ONE) and shape is None and query is None:  # with either, 422 is told by flask-smorest
            texts[422] = "The address has no name that a person or a space may have. Nothing was done."
        texts |= errors or {}
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
        in_body = shape is not None and "user_id" in shape.fields
        if page_of is not None or list_of is not None:
            returns = shapes.page_of(page_of) if page_of is not None else shapes.list_of(list_of)
        acts = "caller" in inspect.signature(view_func).parameters
        alone_in_query = acts and query is None and not in_body and not rule.startswith(ABOUT_ONE)
        if alone_in_query:
            query = CallerQuery
        view = _with_caller(view_func, alone_in_query=alone_in_query) if acts else view_func
        view = self.response(status, returns)(view)
        if shape is not None:
            view = self.arguments(shape)(view)
        if query is not None:
            view = self.arguments(resolve_schema_instance(query), location="query")(view)
        view = self.doc(**described)(view)
        view.scope = scope
        view.own = self.own
        view.slow = turn or slow  # for the middleware
        view.takes = takes
        super().add_url_rule(rule, None, view, **options)


def _with_caller(view_func: Any, *, alone_in_query: bool) -> Any:
    """Return the function of a call, which gets the caller that address, query or body name.

    alone_in_query: the query names the caller and nothing else, so the function does not get it.
    """

    @functools.wraps(view_func)
    def acting(*loaded: Any, **path: Any) -> Any:
        if alone_in_query:
            refuse_owner_in_body()
        whom = next(part for part in (path, *loaded) if not part.keys().isdisjoint(WHOM))
        by_address = whom is path
        if by_address:  # it is checked as in a query or a body
            ApiBlueprint.ARGUMENTS_PARSER.parse(CallerQuery(), request, location="view_args", unknown=EXCLUDE)
        acts_for = caller(whom.pop("user_id", None), whom.pop("space", None), by_address=by_address)
        return view_func(acts_for, *(loaded[1:] if alone_in_query else loaded), **path)

    return acting


def _about_space(view_func: Any) -> Any:
    """Return the function of a call about a person as one about a space: the same with other words."""

    @functools.wraps(view_func)
    def of_space(*args: Any, **path: Any) -> Any:
        return view_func(*args, **path)

    name = view_func.__name__
    about = (view_func.__doc__ or "").replace("a person", "a space")
    of_space.__name__ = name.replace("user", "space") if "user" in name else f"{name}_of_space"
    of_space.__doc__ = about.replace("the person", "the space").replace(" person ", " space ")
    return of_space
