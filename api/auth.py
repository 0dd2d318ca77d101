"""Who is calling, and whether they may: the door every request comes through before anything else is done with it.

With keys (see `memory.access.keys`) every address asks for one but those listed here as open, and a call asks for the
scope it was marked with where it was routed, or for `admin`.  So a new route is never open, or open to too many, by
oversight.  Without any key only this machine is served: neither its neighbours, nor a page of another site in a
browser on it, be it by that site's own name made to point here (DNS rebinding) or by a request across sites.

Guarantee: no key, right or wrong, gets into a log, an error or a repr.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from flask import Request, current_app, g

from config import Settings
from memory.access.anonymous import is_loopback
from memory.access.keys import ADMIN, ANYONE, KeyHolder, Keys
from memory.errors import Forbidden, Unauthenticated

SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key that `flask keys create` made, or one of those in RECAP_API_KEYS. Not needed where there is "
    "none; then only this machine is served.",
}
REFUSED = "The server asks for an API key, and there is none, an unknown or a revoked one."
NOT_LOCAL = "Where there is no key: the request is not from the server's own machine."
ANY_SCOPE = "any"  # what a call is marked with that every key may make
METRICS = "/metrics"  # of all tenants, so none of their keys opens it
_OPEN = re.compile(r"/|/openapi\.json|/(static|health|docs)(/.*)?", re.DOTALL)  # no one's words are there


def identifying(keys: Keys, settings: Settings) -> Callable[[Request], None]:
    """What lets a request have a holder of a key, `g.holder`.

    It raises Unauthenticated and Forbidden when the request may not come in.
    """

    def identify(asked: Request) -> None:
        if is_open(asked.path):
            return
        if asked.path == METRICS and _shows(asked, settings.metrics_key):
            return  # also while the database, which has the other keys, can't be read
        if keys.required:
            if asked.path == METRICS:
                raise Unauthenticated(
                    "metrics_key_missing",
                    "The metrics are of all tenants, so no API key opens them. Send the METRICS_KEY that whoever runs "
                    "this server has set, as `Authorization: Bearer <METRICS_KEY>`.",
                )
            g.holder = _holder(asked, keys)
            _check_scope(asked, g.holder)
        else:
            g.holder = ANYONE
            if not settings.allow_anonymous:
                _check_local(asked, settings.cors_origins)

    return identify


def is_open(path: str) -> bool:
    """Whether an address asks for no key, as there are nobody's words at it."""
    return _OPEN.fullmatch(path) is not None


@functools.lru_cache(maxsize=64)
def is_this_machine(host: str) -> bool:
    """As `is_loopback`; the same few come with every request."""
    return is_loopback(host)


def _holder(asked: Request, keys: Keys) -> KeyHolder:
    key = _bearer(asked)
    if not key:
        raise Unauthenticated(
            "api_key_missing",
            "This server asks for an API key. Nothing was done; send it as `Authorization: Bearer <key>`.",
        )
    holder = keys.identify(key)
    if holder is None:
        raise Unauthenticated(
            "api_key_unknown",
            "This server does not know this API key, or it was revoked. Nothing was done; ask whoever runs it for one.",
        )
    return holder


def _bearer(asked: Request) -> str:
    """The key that was sent; empty when there is none."""
    # By hand: werkzeug takes a token with an equals sign inside for something else.
    scheme, _, key = asked.headers.get("Authorization", "").strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _shows(asked: Request, key: str) -> bool:
    """Whether the request shows `key`; never where there is none."""
    given = _bearer(asked).encode("utf-8", "surrogatepass")
    return bool(key) and hmac.compare_digest(hashlib.sha256(given).digest(), hashlib.sha256(key.encode()).digest())


def _check_scope(asked: Request, holder: KeyHolder) -> None:
    if asked.endpoint is None:
        return  # there is nothing at this address
    scope = getattr(current_app.view_functions[asked.endpoint], "scope", ADMIN)
    if scope != ANY_SCOPE and scope not in holder.scopes:
        raise Forbidden(
            "scope_missing",
            f"This call needs a key with the scope `{scope}`; this one has {_listed(holder)}. Nothing was done; ask "
            "whoever runs this server for another key.",
        )


def _listed(holder: KeyHolder) -> str:
    return " and ".join(f"`{scope}`" for scope in sorted(holder.scopes))


def _check_local(asked: Request, allowed_origins: tuple[str, ...]) -> None:
    """Raise Forbidden when a request is not from this machine, as far as it shows."""
    said = asked.headers
    peer = asked.remote_addr or ""  # a Unix socket has no address
    problem = _foreign(peer, said.get("X-Forwarded-For", ""), asked.host, said.get("Origin"), allowed_origins)
    if problem is not None:
        raise Forbidden(
            "not_local",
            f"Without API keys Recap serves this machine alone, and this request is refused because {problem}. Nothing "
            "was done. Make a key with `flask --app wsgi keys create`, or set RECAP_ALLOW_ANONYMOUS=1 if everyone who "
            "reaches this server may do everything.",
        )


@functools.lru_cache(maxsize=64)
def _foreign(peer: str, forwarded: str, host: str, origin: str | None, allowed_origins: tuple[str, ...]) -> str | None:
    """What shows that a request is from elsewhere; None where nothing does.  The same few come all the time."""
    if not all(is_this_machine(one.strip()) for one in (peer, *forwarded.split(",")) if one.strip()):
        return "it came from another machine"
    if not is_this_machine(_hostname(f"//{host}")):
        return "its Host is no name of this machine"
    if origin is not None and origin not in allowed_origins and not is_this_machine(_hostname(origin)):
        return "a page of another site sent it"
    return None


def _hostname(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
