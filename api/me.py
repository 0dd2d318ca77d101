"""GET /api/me."""

from __future__ import annotations

from typing import Any

from flask import g

from api.blueprint import ANY_SCOPE, resource
from schemas.people import Me

blueprint = resource("me", "The holder of the request's key.")


@blueprint.get("/me", scope=ANY_SCOPE)
@blueprint.response(200, Me)
def whoami() -> Any:
    """Read the tenant, the person and the scopes of the request's key

    On a server without keys, every caller has the tenant `default` and all scopes.
    """
    return g.holder
