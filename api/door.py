"""The door: what every request passes before a handler sees it, and what every answer tells the browser that shows it.

In this order: the caller's own address is found behind TRUSTED_PROXIES; a browser's question whether a site of
CORS_ORIGINS may call is answered; an address that tries keys is turned away (`limits`); it is said who is calling, and
whether they may (`auth`); a caller above RATE_LIMIT is turned away (`limits`); a body has to be JSON.

Guarantee: pages of other sites read nothing unless their site is listed, and never with cookies, as there are none.
No answer that carries words is kept by a browser or a proxy, and none is shown in another site's frame; a page of ours
runs no script but our own.  Streams and errors leave through here as well.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask, Request, Response, request
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.middleware.proxy_fix import ProxyFix

from api import auth, limits
from config import Settings
from memory.access.keys import Keys

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

METHODS = "GET, POST, PUT, PATCH, DELETE"
ASKED_AGAIN = "600"  # seconds for which a browser remembers that a site may call
# What a listed site's scripts may read of an answer, beside its body.
SHOWN = (
    "X-Request-ID, Retry-After, Content-Disposition, "
    "X-Memory-Session-Id, X-Memory-Recalled, X-Memory-Tokens-Saved, X-Memory-Error"
)
# HSTS is for the proxy to say, which has the certificate.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",  # data, that no one shows as a page
    "Cache-Control": "no-store",
}
_SENT = tuple((name.lower(), (name, value)) for name, value in HEADERS.items())
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


class WholeRequest(Request):
    """A request whose body is read to its end or refused: from a server that marks a body's end, werkzeug takes what
    came before the line broke for all of it, and of one that doesn't say its length what is within the limit."""

    def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> Any:
        data = super().get_data(cache=cache, parse_form_data=parse_form_data)
        told, came = self.content_length, len(data)
        if told is None:
            most = self.max_content_length
            if most is not None and came >= most:
                raise RequestEntityTooLarge
        elif came < told:
            raise ClientDisconnected
        return data.decode("utf-8", "replace") if as_text else data


def register(app: Flask, keys: Keys, settings: Settings) -> None:
    """Let every request of `app` come in, and every answer go out, through the door."""
    app.wsgi_app = _Protected(app.wsgi_app)  # type: ignore[method-assign]
    if settings.trusted_proxies:
        # Their word for the address alone: a host or a scheme that the proxy doesn't write would be the caller's.
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.trusted_proxies, x_proto=0)  # type: ignore[method-assign]
    app.request_class = WholeRequest
    if settings.cors_origins:
        _let_sites_call(app, frozenset(settings.cors_origins))
    guesses = limits.Guesses(settings)
    limited = [limits.Requests(settings).check] if settings.rate_limit != "off" else []
    checks = [guesses.check, auth.identifying(keys, settings), *limited, _expect_json]

    def come_in() -> None:
        asked = request._get_current_object()  # type: ignore[attr-defined] # once: each look through it costs as much
        for check in checks:
            check(asked)

    app.before_request(come_in)
    app.after_request(guesses.count)


def _expect_json(asked: Request) -> None:
    has_body = bool(asked.content_length) or "Transfer-Encoding" in asked.headers
    if asked.method in ("POST", "PUT", "PATCH") and has_body and not asked.is_json:
        raise UnsupportedMediaType


def _let_sites_call(app: Flask, origins: frozenset[str]) -> None:
    """Let pages of these sites call from a browser."""

    def answer_preflight() -> Response | None:
        asked = request.headers.get("Access-Control-Request-Method")
        if request.method != "OPTIONS" or asked is None or request.headers.get("Origin") not in origins:
            return None
        answer = Response(status=204)
        answer.headers["Access-Control-Allow-Methods"] = METHODS
        answer.headers["Access-Control-Allow-Headers"] = request.headers.get("Access-Control-Request-Headers", "")
        answer.headers["Access-Control-Max-Age"] = ASKED_AGAIN
        return answer

    def tell(response: Response) -> Response:
        response.vary.add("Origin")
        origin = request.headers.get("Origin")
        if origin in origins:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = SHOWN
        return response

    app.before_request(answer_preflight)
    app.after_request(tell)


class _Protected:
    """An application with HEADERS on every answer; beneath Flask, where each would be looked at a dozen times."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            said = {name.lower() for name, _ in headers}  # the page has a policy of its own, and files are kept
            return start_response(status, headers + [one for name, one in _SENT if name not in said], *error)

        return self._application(environ, start)


def protect_docs(response: Response) -> Response:
    """What Swagger UI's blueprint does with its answers."""
    if response.mimetype == "text/html":
        response.headers["Content-Security-Policy"] = _docs_policy(response.get_data(as_text=True))
    return response


def _docs_policy(page: str) -> str:
    """What Swagger UI works under: its own files, the one script in its page, and the styles that it writes itself."""
    scripts = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in _INLINE.findall(page)]
    return "; ".join(
        (
            "default-src 'none'",
            " ".join(("script-src 'self'", *(f"'sha256-{digest}'" for digest in scripts))),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
