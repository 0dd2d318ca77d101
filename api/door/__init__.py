"""The door: what every request passes on its way in and out.

A request gets an id and is counted in the metrics.  Then it may be refused, in this order:

here        whoever has no key, or may not do this with it (401, 403)
limits      a key or an address that calls too often (429)
places      what finds no place among the requests that may hold a thread for long (429, 503)
here        a body that is not JSON (415)
bodies      a body that is broken off, too large or nested too deeply (400, 408, 413)

Where there are keys, every address asks for one but those that match OPEN, and a call asks for the scope that its route
names, or for `admin`.  So a new route is never open, or open to too many, by oversight.

Guarantee: a refused request has done nothing.  No key, right or wrong, gets into a log, an error or a repr.  Pages of
other sites read nothing unless CORS_ORIGINS lists their site.  No browser or proxy keeps an answer that carries
someone's words, and no other site shows one in a frame.  A request that was refused or failed has exactly one line in
the log, at info or above, with the pattern of its route, its status and the error's code: no address, no body, no
name.  A request that took a turn has the turn's line instead.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import random
import re
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

from flask import Flask, Response, g, request
from flask_cors import CORS
from werkzeug.exceptions import UnsupportedMediaType
from werkzeug.middleware.proxy_fix import ProxyFix

from api.door.bodies import WholeRequest
from api.door.limits import LIMITS, Limits
from api.door.places import AT_END, Places, with_end
from config import Settings
from memory.access.keys import ADMIN, ANYONE, PASSED_ON, KeyHolder, Keys, foreign
from memory.engine import Services
from memory.errors import Forbidden, Unauthenticated
from memory.ops import logs
from memory.ops.metrics import Metrics
from schemas.errors import REFUSED, unreadable

log = logging.getLogger(__name__)

# HSTS is for the proxy to say, which has the certificate.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
DATA_HEADERS = {  # of data, which no page needs to show; the pages and their files have their own
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
# What a listed site's scripts may read of an answer, beside its body.
EXPOSED = ["X-Request-ID", "Retry-After", "Content-Disposition"]
EXPOSED += [f"X-Memory-{name}" for name in ("Model", "Session-Id", "Recalled", "Tokens-Saved", "Error")]

ANTHROPIC_KEY = "x-api-key"  # where Anthropic's clients send their key
METRICS = "/metrics"  # it covers all tenants, so no tenant's key opens it
OPEN = re.compile(r"/|/openapi\.json|/(static|health|docs)(/.*)?", re.DOTALL)  # paths without anybody's words
ANY_SCOPE = "any"  # of a call that every key may make
# Turns have a line of their own; the others are asked for all the time.
QUIET = {"/api/chat", "/v1/chat/completions", "/v1/messages", "/v1/responses"}
QUIET |= {"/health/live", "/health/ready", "/metrics", "/static/<path:filename>"}
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}")


@dataclass
class _Watched:
    """The request that is being answered.  `code` is that of its error, if it has one."""

    id: str
    began: float
    code: str | None = None


def failed(code: str) -> None:
    """Record the error code of the current request."""
    watched: _Watched = g.watched
    watched.code = code


def request_id() -> str:
    """The id of the current request."""
    watched: _Watched = g.watched
    return watched.id


def need_scope(holder: KeyHolder, scope: str) -> None:
    """Raise Forbidden when the holder's key lacks a scope."""
    if scope != ANY_SCOPE and scope not in holder.scopes:
        own = " and ".join(f"`{one}`" for one in sorted(holder.scopes))
        raise Forbidden(
            "scope_missing",
            f"This call needs a key with the scope `{scope}`; this key has {own}. Nothing was done. Ask the server's "
            "operator for another key.",
        )


def register(app: Flask, services: Services) -> None:
    """Let every request of `app` come in, and every answer go out, through the door."""
    settings, metrics = services.settings, services.metrics
    app.request_class = WholeRequest
    served = with_end(app.wsgi_app)
    if settings.trusted_proxies:
        # For the address alone: a host or scheme that the proxy does not set would be the caller's own word.
        served = ProxyFix(served, x_for=settings.trusted_proxies, x_proto=0)
    app.wsgi_app = served  # type: ignore[method-assign]
    limits, places = Limits(settings), Places(settings)
    app.extensions[LIMITS] = limits
    # Otherwise a caller without a key is this machine itself, which is not limited.
    limited = settings.rate_limit or settings.allow_anonymous

    def come_in() -> None:
        given = request.headers.get("X-Request-ID", "")
        id = given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"  # nosec B311
        g.watched = _Watched(id, time.perf_counter())
        metrics.request_came(request.headers.get("traceparent"))
        logs.begin()
        logs.add(request=id)
        environ, method, path = request.environ, request.method, request.path
        if REFUSED in environ:
            raise environ[REFUSED]
        if "HTTP_HOST" not in environ and environ["SERVER_PROTOCOL"] == "HTTP/1.1":
            raise unreadable()
        view = app.view_functions.get(request.endpoint or "")  # None: answered with 404 or 405
        if not (OPEN.fullmatch(path) or method == "OPTIONS"):  # browsers send no key with OPTIONS
            sends_key = "Authorization" in request.headers or ANTHROPIC_KEY in request.headers
            with limits.guessing() if sends_key else nullcontext():
                holder = _identify(view, services.keys, settings)
            who = limits.check(holder) if limited or holder is not ANYONE else None
            slow = getattr(view, "slow", False)
            if slow or method not in ("GET", "HEAD"):
                places.take(who, slow=slow)
        has_body = request.content_length or "Transfer-Encoding" in request.headers
        is_file = getattr(view, "files", False) and request.mimetype == "application/octet-stream"
        if has_body and method in ("POST", "PUT", "PATCH") and not (request.is_json or is_file):
            raise UnsupportedMediaType  # a form of another site can send neither of the two without asking first

    def go_out(response: Response) -> Response:
        watched: _Watched = g.watched
        headers, route = response.headers, request.url_rule.rule if request.url_rule is not None else "none"
        headers.extend(HEADERS)
        headers["X-Request-ID"] = watched.id
        for name, value in DATA_HEADERS.items():
            headers.setdefault(name, value)
        end: ExitStack = request.environ[AT_END]
        end.callback(_over, metrics, watched, request.method, route, response)
        if not response.is_streamed:
            end.close()
        return response

    app.before_request(come_in)
    app.after_request(go_out)
    if settings.cors_origins:
        # As patterns: flask-cors would take an IPv6 address for one, and adds `Vary` only where there is one.
        origins = [re.compile(rf"{re.escape(origin)}\Z") for origin in settings.cors_origins]
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        CORS(app, origins=origins, methods=methods, expose_headers=EXPOSED, max_age=600, always_send=False)


def _identify(view: Any, keys: Keys, settings: Settings) -> KeyHolder | None:
    """The holder of the request's key, also as `g.holder`; None for METRICS_KEY.  Raises Unauthenticated, Forbidden.

    `view` has the scope; without one, the request is answered with 404 or 405.
    """
    metrics = request.path == METRICS
    if metrics and _has_metrics_key(settings.metrics_key):
        return None  # also while the database, which has the other keys, can't be read
    if not keys.required:
        if not settings.allow_anonymous:
            _check_local(settings)
        g.holder = ANYONE
        return ANYONE
    if metrics:
        raise Unauthenticated(
            "metrics_key_missing",
            "The metrics cover all tenants, so no API key opens them. Send the server's METRICS_KEY as "
            "`Authorization: Bearer <METRICS_KEY>`.",
        )
    key = _bearer() or request.headers.get(ANTHROPIC_KEY, "").strip()
    if not key:
        raise Unauthenticated(
            "api_key_missing",
            "This server asks for an API key. Nothing was done. Send it as `Authorization: Bearer <key>`, or in "
            "the header x-api-key.",
        )
    holder = keys.identify(key)
    if holder is None:
        raise Unauthenticated(
            "api_key_unknown",
            "This API key is unknown or was revoked. Nothing was done. Ask the server's operator for a key.",
        )
    g.holder = holder
    if view is not None:
        need_scope(holder, getattr(view, "scope", ADMIN))
    return holder


def _bearer() -> str:
    """The key that was sent, or an empty string."""
    # By hand: werkzeug does not read a token with an equals sign inside.
    scheme, _, key = request.headers.get("Authorization", "").strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _has_metrics_key(key: str) -> bool:
    given = hashlib.sha256(_bearer().encode("utf-8", "surrogatepass")).digest()
    return bool(key) and hmac.compare_digest(given, hashlib.sha256(key.encode()).digest())


def _check_local(settings: Settings) -> None:
    """Raise Forbidden when something shows that the request is not this machine's own."""
    headers, passed_on = request.headers, PASSED_ON.search(" ".join(request.environ)) is not None
    host, origin = headers.get("Host", ""), headers.get("Origin")  # without Host, werkzeug would name this machine
    problem = foreign(request.remote_addr or "", passed_on, host, origin, settings.cors_origins)
    if problem is not None:
        raise Forbidden(
            "not_local",
            f"A server without API keys serves only its own machine, and {problem}. Nothing was done. Make a key with "
            "`flask --app wsgi keys create`, or set RECAP_ALLOW_ANONYMOUS=1 if everyone who reaches this server may "
            "do everything.",
        )


def _over(metrics: Metrics, watched: _Watched, method: str, route: str, response: Response) -> None:
    """Count a request and log it."""
    seconds, status, code = time.perf_counter() - watched.began, response.status_code, watched.code
    metrics.request_over(method, route, status, seconds, code)
    quiet = status < 400 and code is None and route in QUIET
    level = logging.DEBUG if quiet else logging.INFO  # an error's cause has a line of its own, at its own level
    if log.isEnabledFor(level):
        figures = {"method": method, "route": route, "status": status, "seconds": seconds, "code": code}
        log.log(level, "request", extra=logs.fields(**figures, bytes=response.content_length))
