"""Who is calling: a request's API key decides its tenant.

With RECAP_API_KEYS set, every address needs `Authorization: Bearer <key>` but those listed here as open, so that a new
route is never open by oversight.  Without, everyone is the tenant `default`.

Guarantee: keys are kept as digests and compared in constant time; no key, right or wrong, gets into a log, an error
or a repr.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence

from flask import Flask, g, request

from config import ApiKey
from memory.domain import Caller
from memory.errors import Unauthenticated

SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "One of the keys in RECAP_API_KEYS. Not needed where that is not set.",
}
REFUSED = "The server asks for an API key, and there is none or an unknown one."
_OPEN = re.compile(r"/|/openapi\.json|/(static|health|docs)(/.*)?", re.DOTALL)  # no one's words are there


class Keys:
    """The keys there are, and the tenant each opens."""

    def __init__(self, keys: Sequence[ApiKey]) -> None:
        self._tenants = [(_digest(one.key), one.tenant) for one in keys]

    def __bool__(self) -> bool:
        return bool(self._tenants)

    def tenant(self, key: str) -> str | None:
        """The tenant whom `key` opens; None for an unknown key.  Takes as long for any of them."""
        given, found = _digest(key), None
        for known, tenant in self._tenants:
            if hmac.compare_digest(known, given):
                found = tenant
        return found


def register(app: Flask, keys: Sequence[ApiKey]) -> None:
    """Let every request of `app` be of a tenant, `g.tenant`, before anything else is done with it.

    Raises Unauthenticated within the request when it has no key or an unknown one.
    """
    known = Keys(keys)

    def identify() -> None:
        if not known:
            g.tenant = Caller.tenant
        elif not _OPEN.fullmatch(request.path):
            g.tenant = _tenant(known)

    app.before_request(identify)


def _tenant(keys: Keys) -> str:
    # By hand: werkzeug takes a token with an equals sign inside for something else.
    scheme, _, key = request.headers.get("Authorization", "").strip().partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated(
            "api_key_missing",
            "This server asks for an API key. Nothing was done; send it as `Authorization: Bearer <key>`.",
        )
    tenant = keys.tenant(key.strip())
    if tenant is None:
        raise Unauthenticated(
            "api_key_unknown",
            "This server does not know this API key. Nothing was done; ask whoever runs it for one that is in "
            "RECAP_API_KEYS.",
        )
    return tenant


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
