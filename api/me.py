"""GET /api/me."""

from __future__ import annotations

from api.auth import ANY_SCOPE
from api.blueprint import holder, resource
from memory.access.keys import KeyHolder
from schemas.me import Me

blueprint = resource("me", "Whom a key speaks for.")


@blueprint.get("/me", scope=ANY_SCOPE)
@blueprint.response(200, Me)
def whoami() -> KeyHolder:
    """Read whom the request's key speaks for, and what it may do

    Without keys it is anyone, of the tenant `default`, and everything.
    """
    return holder()
