"""What every handler needs of the request: the engine, and on whose behalf it is called."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

from flask import current_app, g
from werkzeug.routing import IntegerConverter

from api import auth
from api.document import DocumentedBlueprint
from memory.access.keys import ADMIN, READ, KeyHolder
from memory.domain import Caller
from memory.errors import Forbidden, user_not_found
from memory.ops import logs
from memory.services import Services
from schemas.errors import Error

EXTENSION = "recap"
Handler = TypeVar("Handler", bound=Callable[..., Any])
ID = "<int64:%s>"  # an id in a path; what can't be an id is 404, like an id nobody has


DAY_SPENT = "There were too many requests, or the person's tokens of the day (DAILY_TOKENS) are spent; see Retry-After."
# What every call may answer, and every call with a body, unless it says itself what that means there.
ANYWHERE = {
    429: "There were too many requests from this caller, or too many wrong keys from this address; see Retry-After.",
    503: "The database can't be used right now. Nothing was stored.",
}
WITH_BODY = {
    400: "The body is not valid JSON. Nothing was stored.",
    408: "The body took too long to arrive. Nothing was stored.",
    413: "The body is larger than Recap takes in one request. Nothing was stored.",
    415: "The body is not sent as application/json. Nothing was stored.",
}


class Int64(IntegerConverter):
    """An id.  One with more digits is no part of an address at all: werkzeug's own bound would make of it a method that
    is not allowed, where an address takes several."""

    regex = r"\d{1,18}"
    documented = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}


class _Blueprint(DocumentedBlueprint):
    """Calls that act on behalf of somebody: each is marked with the scope it asks for, and documented so.

    Reading asks for `read`, anything else for `admin`, unless `route(..., scope=...)` says otherwise.
    """

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Handler | None = None,
        *args: Any,
        scope: str | None = None,
        **options: Any,
    ) -> None:
        if scope is None:
            scope = READ if set(options.get("methods", ["GET"])) == {"GET"} else ADMIN
        asking = self.alt_response(401, schema=Error, description=auth.REFUSED)(view_func)
        lacking = f"The key lacks the scope `{scope}`. " if scope != auth.ANY_SCOPE else ""
        asking = self.alt_response(403, schema=Error, description=lacking + auth.NOT_LOCAL)(asking)
        documented = {int(status) for status in asking._apidoc["response"]["responses"]}
        expected = ANYWHERE | (WITH_BODY if set(options.get("methods", ())) & {"POST", "PUT", "PATCH"} else {})
        for status, description in expected.items():
            if status not in documented:
                asking = self.alt_response(status, schema=Error, description=description)(asking)
        asking = self.doc(security=[{"bearer": []}], **{"x-scope": scope})(asking)
        asking.scope = scope  # where `auth` looks
        super().add_url_rule(rule, endpoint, asking, *args, **options)


def services() -> Services:
    return cast(Services, current_app.extensions[EXTENSION])


def holder() -> KeyHolder:
    """Who is calling, by their key."""
    return cast(KeyHolder, g.holder)


def caller(user_id: str | None) -> Caller:
    """The caller of this request: the tenant its key opens (see `auth`); within it, the user the application names.

    A key that speaks for one person fills them in.  For it nobody else is there: raises NotFound.
    """
    calling = holder()
    bound_to = calling.user_id
    if bound_to is not None and user_id is not None and user_id != bound_to:
        raise user_not_found(user_id)
    found = Caller(calling.tenant, user_id if bound_to is None else bound_to)
    if found.user_id is not None:
        logs.add(owner=logs.Private("user", found.tenant, found.user_id))
    return found


def whole_tenant() -> Caller:
    """The caller of what changes something for all of a tenant.  Raises Forbidden for one person's key."""
    if holder().user_id is not None:
        raise Forbidden(
            "key_of_one_person",
            "This key speaks for one person, and this would change something for everyone. Nothing was changed; it "
            "takes a key that was made without a user_id.",
        )
    return caller(None)


def retry_key(given: str | None) -> str | None:
    """An Idempotency-Key as it is known in its tenant: that of one person's key is not anybody else's."""
    if given is None:
        return None
    bound_to = holder().user_id
    if bound_to is None:
        return given
    return hashlib.sha256(f"{len(bound_to)} {bound_to} {given}".encode("utf-8", "surrogatepass")).hexdigest()


def resource(name: str, description: str, prefix: str = "/api") -> DocumentedBlueprint:
    """A blueprint for a resource under `prefix`."""
    made = _Blueprint(name, name, url_prefix=prefix, description=description)
    made.record(lambda state: state.app.url_map.converters.update(int64=Int64))
    return made


def errors(blueprint: DocumentedBlueprint, **described: str) -> Callable[[Handler], Handler]:
    """Document the errors a call answers, by status: `errors(blueprint, e404="...")`."""

    def decorate(function: Handler) -> Handler:
        for status, description in described.items():
            function = blueprint.alt_response(int(status[1:]), schema=Error, description=description)(function)
        return function

    return decorate
