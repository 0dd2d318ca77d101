"""The blueprint of every resource, and what its handlers need: the services, and the caller.

Guarantee: every call asks for a scope.  It is `read` for GET and `admin` for any other method, unless `route` is told
another one.  Unknown names in a query or a body are refused: `?userid=ada`, ignored, would list everybody's data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

from flask import current_app, g, request
from flask_smorest import Blueprint
from marshmallow import Schema
from werkzeug.routing import IntegerConverter

from api.door import ANY_SCOPE
from api.door.bodies import BodyParser
from memory.access.keys import ADMIN, READ, KeyHolder
from memory.engine import Services
from memory.errors import Forbidden, user_not_found
from memory.ops import logs
from models.owners import Caller
from schemas.errors import REFUSALS, UNREADABLE, Error

EXTENSION = "recap"
NOT_LOCAL = "On a server without keys: the request does not come from the server's own machine."
LIMITED = "Too many requests, too many at once or too many wrong keys, or the day's tokens are spent. See Retry-After."
RETRY_KEY_CHARS = 256
RETRY_KEY = {
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


class Resource(Blueprint):
    """A blueprint whose calls act on behalf of somebody."""

    ARGUMENTS_PARSER = BodyParser()

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
        call that may wait for a model, a session or a large document, is `slow` (see `api.door.places`).  With
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
            described["parameters"] = [RETRY_KEY]
        view = self.doc(**described)(view_func)
        view.scope, view.slow, view.files = scope, turn or slow, files  # for the door
        super().add_url_rule(rule, endpoint, view, provide_automatic_options, **options)


def resource(name: str, description: str, prefix: str = "/api") -> Resource:
    return Resource(name, name, url_prefix=prefix, description=description)


def services() -> Services:
    return cast(Services, current_app.extensions[EXTENSION])


def caller(user_id: str | None) -> Caller:
    """The caller of this request: the key's tenant, and the person that the application names.

    A key of one person fills in that person.  Raises NotFound when another is named, LimitReached at their limit.
    """
    holder: KeyHolder = g.holder
    own = holder.user_id
    if own is not None and user_id is not None and user_id != own:
        raise user_not_found(user_id)
    found = Caller(holder.tenant, user_id if own is None else own)
    if found.user_id is not None:
        logs.add(owner=logs.Private("user", found.tenant, found.user_id))
        if "places" in g:
            g.places.take_for(found)
    return found


def whole_tenant() -> Caller:
    """The caller of what changes something for all of a tenant.  Raises Forbidden for one person's key."""
    if g.holder.user_id is not None:
        raise Forbidden(
            "key_of_one_person",
            "This key belongs to one person, but the call changes something for everyone. Nothing was changed. Use a "
            "key that was made without a user_id.",
        )
    return caller(None)


def whole_server() -> None:
    """Raises Forbidden for what changes something for all tenants, if there is another than the caller's."""
    whole_tenant()
    if services().keys.tenants - {g.holder.tenant}:
        raise Forbidden(
            "several_tenants",
            "The model server serves every tenant, and this server has keys of more than one, so none of them may see "
            "or change it. Nothing was changed. Its operator sets OPENAI_BASE_URL and OPENAI_API_KEY.",
        )


def retry_key() -> str | None:
    """The request's Idempotency-Key as it is stored.

    A key of one person has a namespace of its own in the tenant, by a hash.  So has a key that is too long to store.
    """
    given, own = request.headers.get("Idempotency-Key") or None, g.holder.user_id
    if given is None or (own is None and len(given) <= RETRY_KEY_CHARS):
        return given
    own = own or ""
    return hashlib.sha256(f"{len(own)} {own} {given}".encode("utf-8", "surrogatepass")).hexdigest()
