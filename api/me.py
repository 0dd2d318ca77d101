"""GET /api/me."""

from __future__ import annotations

from flask import g

from api.blueprint import ANY_SCOPE, resource
from memory.access.keys import KeyHolder
from schemas.me import Me

blueprint = resource("me", "The holder of the request's key.")


@blueprint.get("/me", scope=ANY_SCOPE)
@blueprint.response(200, Me)
def whoami() -> KeyHolder:
    """Read the tenant, the person and the scopes of the request's key

    On a server without keys, every caller has the tenant `default` and all scopes.
    """
    holder: KeyHolder = g.holder
    return holder
