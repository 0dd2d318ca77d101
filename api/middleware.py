"""Middleware: what every request passes on its way in and out.

A request gets an id and is counted in the metrics. Then these refuse it, in this order:

identity    no key, an unknown key, or a key without the scope of the call (401, 403)
limits      too many calls of a key or an address (429), or too many slow requests in progress (429, 503)
middleware  a body that is not JSON (415)
bodies      a body that is broken off, too large or nested too deeply (400, 408, 413)

Invariants:
- Where there are keys, every address but those that match OPEN, and those where programs sign in, asks for one; a route
  asks for `admin` unless it names another scope (test_auth).
- A refused request has done nothing (test_middleware).
- No key, right or wrong, gets into a log, an error or a repr (test_secrets_in_logs).
- Pages of other sites read nothing unless CORS_ORIGINS lists their site (test_middleware).
- No browser or proxy keeps an answer with someone's words, and no other site shows it in a frame (test_middleware).
- A request that was refused or failed has exactly one line in the log, at info or above, with the pattern of its route
  and the error's code, and without address, body or name. A turn has its own line instead (test_logs).
"""

import logging
import random
import re
import time
from collections.abc import Collection
from contextlib import ExitStack, nullcontext
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, current_app, g, request
from flask_cors import CORS
from werkzeug.middleware.proxy_fix import ProxyFix

from api.bodies import FILE, FORM, WholeRequest
from api.current_request import AT_END, RequestInfo, with_end
from api.errors import REFUSALS, REFUSED, unreadable
from api.identity import KEY_VARIABLES, authenticate
from api.limits import CONCURRENCY, RATE_LIMITER, ConcurrencyLimiter, RateLimiter
from memory.access.keys import ANONYMOUS
from memory.engine import Engine
from memory.errors import Forbidden, InvalidRequest
from memory.ops import logs
from memory.ops.metrics import Metrics

log = logging.getLogger(__name__)

# HSTS is for the proxy to say, which has the certificate.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Of data, which no page needs to show; the pages and their files set their own.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
# What a listed site's scripts may read of an answer, beside its body.
EXPOSED = ["X-Request-ID", "Retry-After", "Content-Disposition", "WWW-Authenticate"]
EXPOSED += [f"X-Memory-{name}" for name in ("Model", "Session-Id", "Recalled", "Tokens-Saved", "Error", "Left-Out")]

SIGN_IN = "oauth"  # the blueprint whose calls ask for no key, are counted by the caller's address, and take forms
OPEN = re.compile(r"/|/openapi\.json|/(static|health|docs)(/.*)?", re.DOTALL)  # paths without anybody's words
# Turns have a line of their own; the others are asked for all the time.
QUIET = {"/api/chat", "/v1/chat/completions", "/v1/messages", "/v1/responses"}
QUIET |= {"/health/live", "/health/ready", "/metrics", "/static/<path:filename>"}
# What the page asks for while it waits for a reply and for the memory.
POLLED = {"/api/jobs", "/api/sessions", "/api/sessions/<session_id>/summary", "/api/facts"}
POLLED |= {"/api/sessions/<session_id>/turns", "/api/sessions/<session_id>/turns/<int64:message_id>"}
_INSTEAD_OF_JSON = {
    FILE: " Or send a file as application/octet-stream.",
    FORM: " Or send a form (multipart/form-data) with the field `file`.",
}
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}")


def register(app: Flask, engine: Engine) -> None:
    """Add the middleware to `app`."""
    settings, metrics = engine.settings, engine.metrics
    app.request_class = WholeRequest
    wsgi_app = with_end(app.wsgi_app)
    if settings.trusted_proxies:
        # For the address alone: a host or scheme that the proxy does not set would be the caller's own word.
        wsgi_app = ProxyFix(wsgi_app, x_for=settings.trusted_proxies, x_proto=0)
    app.wsgi_app = wsgi_app  # type: ignore[method-assign]
    limits = app.extensions[RATE_LIMITER] = RateLimiter(settings)
    concurrency = app.extensions[CONCURRENCY] = ConcurrencyLimiter(settings)

    @app.before_request
    def before_request() -> None:
        sent = request.headers.get("X-Request-ID", "")
        id = sent if _REQUEST_ID.fullmatch(sent) else f"{random.getrandbits(128):032x}"  # nosec B311
        g.request_info = RequestInfo(id, time.perf_counter())
        metrics.start_request(request.headers.get("traceparent"))
        logs.begin()
        logs.add(request=id)
        if REFUSED in request.environ:  # the server could not read it
            raise request.environ[REFUSED]
        if "HTTP_HOST" not in request.environ and request.environ["SERVER_PROTOCOL"] == "HTTP/1.1":
            raise unreadable()
        view = current_app.view_functions.get(request.endpoint or "")  # None: answered with 404 or 405
        if not (OPEN.fullmatch(request.path) or request.method == "OPTIONS"):  # browsers send no key with OPTIONS
            _admit(view, engine, limits, concurrency)
        _require_json(view, settings.cors_origins)

    @app.after_request
    def after_request(response: Response) -> Response:
        info: RequestInfo = g.request_info
        headers = response.headers
        route = request.url_rule.rule if request.url_rule is not None else "none"
        headers["X-Request-ID"] = info.id
        own = set(headers.keys())
        headers.extend({name: value for name, value in HEADERS.items() if name not in own})
        end: ExitStack = request.environ[AT_END]
        end.callback(log_request, metrics, info, request.method, route, response)
        if not response.is_streamed:
            end.close()
        return response

    if settings.cors_origins:
        # As patterns: flask-cors would take an IPv6 address for one, and adds `Vary` only where there is one.
        origins = [re.compile(rf"{re.escape(origin)}\Z") for origin in settings.cors_origins]
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        CORS(app, origins=origins, methods=methods, expose_headers=EXPOSED, max_age=600, always_send=False)


def _admit(view: Any, engine: Engine, limits: RateLimiter, concurrency: ConcurrencyLimiter) -> None:
    """Raise RecapError for a request without the right key, or above a limit."""
    settings = engine.settings
    keyless = request.blueprint == SIGN_IN
    keys = [request.environ[name] for name in KEY_VARIABLES if name in request.environ]
    with limits.limit_key_guesses(*() if keyless else keys) if keys else nullcontext():
        principal = None if keyless else authenticate(view, engine.keys, settings)
    # Without a key, the caller is this machine itself, which is limited only if the settings say so.
    limited = settings.rate_limit or settings.allow_anonymous or principal is not ANONYMOUS
    counted_as = limits.check(principal) if limited else None
    slow = getattr(view, "slow", False)
    if slow or request.method not in ("GET", "HEAD"):
        concurrency.acquire(counted_as, slow=slow)


def _require_json(view: Any, allowed_origins: Collection[str]) -> None:
    """Raise InvalidRequest for a body that is compressed, or neither JSON nor, where that is taken, a file or a form.

    A form of another site can send neither JSON nor bytes without asking first. It could send a form with a file: that
    is taken only from pages of this site, from those that CORS_ORIGINS lists, and from what is no browser.
    """
    has_body = request.content_length or "Transfer-Encoding" in request.headers
    if not has_body or request.method not in ("POST", "PUT", "PATCH"):
        return
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise InvalidRequest(
            "compressed_body",
            "The body is compressed, which Recap does not read. Nothing was stored. Send it as it is, without "
            "Content-Encoding.",
            status=415,
        )
    if request.is_json:
        return
    taken: Any = "application/x-www-form-urlencoded" if request.blueprint == SIGN_IN else getattr(view, "takes", None)
    if request.mimetype != taken:
        code, message = REFUSALS[415]
        raise InvalidRequest(code, message + _INSTEAD_OF_JSON.get(taken, ""), status=415)
    origin = request.origin
    is_of_site = origin is None or origin in allowed_origins or urlsplit(origin).netloc == request.host
    if taken == FORM and not is_of_site:
        raise Forbidden(
            "other_site",
            "A page of another site sent this form. Nothing was done. If the page is yours, list its address in "
            "CORS_ORIGINS.",
        )


def log_request(metrics: Metrics, info: RequestInfo, method: str, route: str, response: Response) -> None:
    """Count a request and log it."""
    seconds = time.perf_counter() - info.began
    status = response.status_code
    code = info.code
    metrics.end_request(method, route, status, seconds, code)
    quiet = status < 400 and code is None and (route in QUIET or (method == "GET" and route in POLLED))
    level = logging.DEBUG if quiet else logging.INFO  # an error's cause has a line of its own, at its own level
    if log.isEnabledFor(level):
        figures = {"method": method, "route": route, "status": status, "seconds": seconds, "code": code}
        log.log(level, "request", extra=logs.fields(**figures, bytes=response.content_length))
