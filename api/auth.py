"""Who is calling, and whether they may.

With keys (`memory.access.keys`), every address asks for one but those that match OPEN, and a call asks for the
scope that its route names, or for `admin`.  So a new route is never open, or open to too many, by oversight.  Without
any key only this machine is served: not its neighbours, and no page of another site in a browser on it, whether its
name points here (DNS rebinding) or it sends requests across sites.

Guarantee: no key, right or wrong, gets into a log, an error or a repr.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import re
from urllib.parse import urlsplit

from flask import current_app, g, request

from config import Settings
from memory.access.anonymous import is_loopback
from memory.access.keys import ADMIN, ANYONE, KeyHolder, Keys
from memory.errors import Forbidden, Unauthenticated

SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key made with `flask keys create`, or one of RECAP_API_KEYS. A server without any key needs "
    "none, and serves only its own machine.",
}
REFUSED = "The API key is missing, unknown or revoked."
NOT_LOCAL = "On a server without keys: the request does not come from the server's own machine."
ANY_SCOPE = "any"  # for a call that every key may make
METRICS = "/metrics"  # it covers all tenants, so no tenant's key opens it
OPEN = re.compile(r"/|/openapi\.json|/(static|health|docs)(/.*)?", re.DOTALL)  # paths without anybody's words


def identify(keys: Keys, settings: Settings) -> None:
    """Find the holder of the request's key, `g.holder`.  Raises Unauthenticated and Forbidden."""
    if request.path == METRICS and _has_metrics_key(settings.metrics_key):
        return  # also while the database, which has the other keys, can't be read
    if not keys.required:
        g.holder = ANYONE
        if not settings.allow_anonymous:
            _check_local(settings.cors_origins)
    elif request.path == METRICS:
        raise Unauthenticated(
            "metrics_key_missing",
            "The metrics cover all tenants, so no API key opens them. Send the server's METRICS_KEY as "
            "`Authorization: Bearer <METRICS_KEY>`.",
        )
    else:
        g.holder = _holder(keys)
        _check_scope(g.holder)


def _holder(keys: Keys) -> KeyHolder:
    key = _bearer()
    if not key:
        raise Unauthenticated(
            "api_key_missing",
            "This server asks for an API key. Nothing was done. Send it as `Authorization: Bearer <key>`.",
        )
    holder = keys.identify(key)
    if holder is None:
        raise Unauthenticated(
            "api_key_unknown",
            "This API key is unknown or was revoked. Nothing was done. Ask the server's operator for a key.",
        )
    return holder


def _bearer() -> str:
    """The key that was sent, or an empty string."""
    # By hand: werkzeug does not read a token with an equals sign inside.
    scheme, _, key = request.headers.get("Authorization", "").strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _has_metrics_key(key: str) -> bool:
    given = hashlib.sha256(_bearer().encode("utf-8", "surrogatepass")).digest()
    return bool(key) and hmac.compare_digest(given, hashlib.sha256(key.encode()).digest())


def _check_scope(holder: KeyHolder) -> None:
    if request.endpoint is None:
        return  # answered with 404 or 405
    scope = getattr(current_app.view_functions[request.endpoint], "scope", ADMIN)
    if scope != ANY_SCOPE and scope not in holder.scopes:
        own = " and ".join(f"`{one}`" for one in sorted(holder.scopes))
        raise Forbidden(
            "scope_missing",
            f"This call needs a key with the scope `{scope}`; this key has {own}. Nothing was done. Ask the server's "
            "operator for another key.",
        )


def _check_local(allowed_origins: tuple[str, ...]) -> None:
    """Raise Forbidden when something shows that a request is not from this machine."""
    peer = request.remote_addr or ""  # a Unix socket has no address
    forwarded = request.headers.get("X-Forwarded-For", "")
    problem = _foreign(peer, forwarded, request.host, request.headers.get("Origin"), allowed_origins)
    if problem is not None:
        raise Forbidden(
            "not_local",
            f"A server without API keys serves only its own machine, and {problem}. Nothing was done. Make a key with "
            "`flask --app wsgi keys create`, or set RECAP_ALLOW_ANONYMOUS=1 if everyone who reaches this server may "
            "do everything.",
        )


@functools.lru_cache(maxsize=64)
def _foreign(peer: str, forwarded: str, host: str, origin: str | None, allowed_origins: tuple[str, ...]) -> str | None:
    """What shows that a request is from elsewhere, or None."""
    if not all(is_loopback(one.strip()) for one in (peer, *forwarded.split(",")) if one.strip()):
        return "this request came from another machine"
    if not is_loopback(_hostname(f"//{host}")):
        return "the Host of this request is not a name of this machine"
    if origin is not None and origin not in allowed_origins and not is_loopback(_hostname(origin)):
        return "a page of another site sent this request"
    return None


def _hostname(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
