"""Middleware: what every request passes on its way in and out.

A request gets an id and is counted in the metrics.  Then it may be refused, in this order:

here        whoever has no key, or may not do this with it (401, 403)
limits      a key or an address that calls too often (429)
limits      what finds no place among the requests that may hold a thread for long (429, 503)
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

import logging
import random
import re
import time
from contextlib import ExitStack, nullcontext

from flask import Flask, Response, g, request
from flask_cors import CORS
from werkzeug.exceptions import UnsupportedMediaType
from werkzeug.middleware.proxy_fix import ProxyFix

from api.bodies import WholeRequest
from api.errors import REFUSED, RequestInfo, unreadable
from api.identity import ANTHROPIC_KEY, authenticate
from api.limits import AT_END, RATE_LIMITER, ConcurrencyLimiter, RateLimiter, with_end
from memory.access.keys import ANONYMOUS
from memory.engine import Engine
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
}
DATA_HEADERS = {  # of data, which no page needs to show; the pages and their files have their own
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
# What a listed site's scripts may read of an answer, beside its body.
EXPOSED = ["X-Request-ID", "Retry-After", "Content-Disposition"]
EXPOSED += [f"X-Memory-{name}" for name in ("Model", "Session-Id", "Recalled", "Tokens-Saved", "Error")]

OPEN = re.compile(r"/|/openapi\.json|/(static|health|docs)(/.*)?", re.DOTALL)  # paths without anybody's words
# Turns have a line of their own; the others are asked for all the time.
QUIET = {"/api/chat", "/v1/chat/completions", "/v1/messages", "/v1/responses"}
QUIET |= {"/health/live", "/health/ready", "/metrics", "/static/<path:filename>"}
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}")


def register(app: Flask, engine: Engine) -> None:
    """Add the middleware to `app`."""
    settings, metrics = engine.settings, engine.metrics
    app.request_class = WholeRequest
    served = with_end(app.wsgi_app)
    if settings.trusted_proxies:
        # For the address alone: a host or scheme that the proxy does not set would be the caller's own word.
        served = ProxyFix(served, x_for=settings.trusted_proxies, x_proto=0)
    app.wsgi_app = served  # type: ignore[method-assign]
    limits, concurrency = RateLimiter(settings), ConcurrencyLimiter(settings)
    app.extensions[RATE_LIMITER] = limits
    # Otherwise a caller without a key is this machine itself, which is not limited.
    limited = settings.rate_limit or settings.allow_anonymous

    def before_request() -> None:
        given = request.headers.get("X-Request-ID", "")
        id = given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"  # nosec B311
        g.request_info = RequestInfo(id, time.perf_counter())
        metrics.start_request(request.headers.get("traceparent"))
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
            with limits.limit_key_guesses() if sends_key else nullcontext():
                principal = authenticate(view, engine.keys, settings)
            who = limits.check(principal) if limited or principal is not ANONYMOUS else None
            slow = getattr(view, "slow", False)
            if slow or method not in ("GET", "HEAD"):
                concurrency.acquire(who, slow=slow)
        has_body = request.content_length or "Transfer-Encoding" in request.headers
        is_file = getattr(view, "files", False) and request.mimetype == "application/octet-stream"
        if has_body and method in ("POST", "PUT", "PATCH") and not (request.is_json or is_file):
            raise UnsupportedMediaType  # a form of another site can send neither of the two without asking first

    def after_request(response: Response) -> Response:
        info: RequestInfo = g.request_info
        headers, route = response.headers, request.url_rule.rule if request.url_rule is not None else "none"
        headers.extend(HEADERS)
        headers["X-Request-ID"] = info.id
        for name, value in DATA_HEADERS.items():
            headers.setdefault(name, value)
        end: ExitStack = request.environ[AT_END]
        end.callback(log_request, metrics, info, request.method, route, response)
        if not response.is_streamed:
            end.close()
        return response

    app.before_request(before_request)
    app.after_request(after_request)
    if settings.cors_origins:
        # As patterns: flask-cors would take an IPv6 address for one, and adds `Vary` only where there is one.
        origins = [re.compile(rf"{re.escape(origin)}\Z") for origin in settings.cors_origins]
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        CORS(app, origins=origins, methods=methods, expose_headers=EXPOSED, max_age=600, always_send=False)


def log_request(metrics: Metrics, info: RequestInfo, method: str, route: str, response: Response) -> None:
    """Count a request and log it."""
    seconds, status, code = time.perf_counter() - info.began, response.status_code, info.code
    metrics.end_request(method, route, status, seconds, code)
    quiet = status < 400 and code is None and route in QUIET
    level = logging.DEBUG if quiet else logging.INFO  # an error's cause has a line of its own, at its own level
    if log.isEnabledFor(level):
        figures = {"method": method, "route": route, "status": status, "seconds": seconds, "code": code}
        log.log(level, "request", extra=logs.fields(**figures, bytes=response.content_length))
