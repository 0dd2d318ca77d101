"""The door: what every request passes before a handler sees it, and the headers that every answer carries.

In this order: the caller's address is read behind TRUSTED_PROXIES; an address that tries keys is refused; the key says
who is calling and whether they may (`auth`); a caller above RATE_LIMIT is refused; a body has to be JSON.

Guarantee: a refused request has done nothing.  Pages of other sites read nothing unless CORS_ORIGINS lists their site.
No browser or proxy keeps an answer that carries someone's words, and no other site shows one in a frame.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import ipaddress
import logging
import re
import threading
import time
from typing import Any

from flask import Flask, Request, Response, g, request
from flask_cors import CORS
from limits import RateLimitItem, RateLimitItemPerMinute, parse_many
from limits.errors import StorageError
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter, RateLimiter
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.middleware.proxy_fix import ProxyFix

from api import auth
from config import Settings
from memory.access.anonymous import is_loopback
from memory.access.keys import Keys
from memory.errors import LimitReached

log = logging.getLogger(__name__)

USUAL = "6000 per minute"  # where RATE_LIMIT is empty
WRONG_KEYS = 20  # a minute and address: a person who mistypes makes a few, a program that guesses makes thousands
LOCAL = "local"  # the network of this machine
REDIS_SECONDS = 1  # that a request waits for the Redis before it is counted here
AWAY_SECONDS = 5.0  # for which a Redis that did not answer is not asked again
# HSTS is for the proxy to say, which has the certificate.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",  # data, which no page needs to show
    "Cache-Control": "no-store",
}
# What a listed site's scripts may read of an answer, beside its body.
EXPOSED = ["X-Request-ID", "Retry-After", "Content-Disposition"]
EXPOSED += [f"X-Memory-{name}" for name in ("Session-Id", "Recalled", "Tokens-Saved", "Error")]


def register(app: Flask, keys: Keys, settings: Settings) -> None:
    """Let every request of `app` come in, and every answer go out, through the door."""
    app.request_class = WholeRequest
    if settings.trusted_proxies:
        # For the address alone: a host or scheme that the proxy does not set would be the caller's own word.
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.trusted_proxies, x_proto=0)  # type: ignore[method-assign]
    guesses = WrongKeys(settings)
    limited = RateLimit(settings)

    def come_in() -> None:
        if not (auth.OPEN.fullmatch(request.path) or request.method == "OPTIONS"):  # browsers send no key with OPTIONS
            if "Authorization" in request.headers:
                guesses.check()
            auth.identify(keys, settings)
            limited.check()
        has_body = request.content_length or "Transfer-Encoding" in request.headers
        if has_body and request.method in ("POST", "PUT", "PATCH") and not request.is_json:
            raise UnsupportedMediaType

    def go_out(response: Response) -> Response:
        if response.status_code == 401 and "Authorization" in request.headers and "holder" not in g:
            guesses.count()
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)  # the page has a policy of its own, and its files are kept
        return response

    app.before_request(come_in)
    app.after_request(go_out)
    if settings.cors_origins:
        # As patterns: flask-cors would take an IPv6 address for one, and adds `Vary` only where there is one.
        origins = [re.compile(rf"{re.escape(origin)}\Z") for origin in settings.cors_origins]
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        CORS(app, origins=origins, methods=methods, expose_headers=EXPOSED, max_age=600, always_send=False)


class WholeRequest(Request):
    """A request whose body is read to its end or refused.

    werkzeug alone takes what arrived before the connection broke for the whole body, where the server marks a body's
    end; and cuts a body of unknown length off at the limit.
    """

    def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> Any:
        data = super().get_data(cache=cache, parse_form_data=parse_form_data)
        expected, arrived = self.content_length, len(data)
        if expected is None:
            if self.max_content_length is not None and arrived >= self.max_content_length:
                raise RequestEntityTooLarge
        elif arrived < expected:
            raise ClientDisconnected
        return data.decode("utf-8", "replace") if as_text else data


class RateLimit:
    """Refuses requests above RATE_LIMIT, counted by key, or by address where no key is asked for.

    This machine itself is not limited where no key is asked for, unless RATE_LIMIT says so.  While RATE_LIMIT_STORAGE
    can't be reached, each worker counts for itself.
    """

    def __init__(self, settings: Settings) -> None:
        off = settings.rate_limit == "off"
        self._limits = [] if off else sorted(parse_many(settings.rate_limit or USUAL))  # the shortest time first
        self._everyone = bool(settings.rate_limit)
        address = settings.rate_limit_storage
        remote = address.startswith("redis")
        timeouts = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS} if remote else {}
        self._shared = FixedWindowRateLimiter(storage_from_string(address, wrap_exceptions=True, **timeouts))
        self._own = FixedWindowRateLimiter(MemoryStorage())
        self._retry_at = 0.0  # by time.monotonic(): the shared storage is not asked before

    def check(self) -> None:
        """Raises LimitReached."""
        if request.endpoint is None:
            return
        key = g.holder.key if "holder" in g else None
        if key is not None:
            who = f"key {g.holder.tenant} {key}"
        else:
            network = _network(request.remote_addr or "")
            if network == LOCAL and not self._everyone:
                return
            who = f"address {network}"
        for limit in self._limits:
            opens = self._hit(limit, who)
            if opens is not None:
                raise LimitReached(
                    "rate_limit_exceeded",
                    "Too many requests. Nothing was done. Send this again after as many seconds as Retry-After says.",
                    retry_after=opens - time.time(),
                )

    def _hit(self, limit: RateLimitItem, who: str) -> float | None:
        """Count one more.  None within the limit; above it the time.time() at which it opens again."""
        if time.monotonic() >= self._retry_at:
            try:
                return _hit(self._shared, limit, who)
            except StorageError:  # not logged: its text may hold the storage's password
                self._retry_at = time.monotonic() + AWAY_SECONDS
                log.warning("RATE_LIMIT_STORAGE is unreachable: each worker counts for itself")
        return _hit(self._own, limit, who)


class WrongKeys:
    """Refuses addresses that try keys.

    Each worker counts for itself: what keeps guessers out must not depend on another server.
    """

    def __init__(self, settings: Settings) -> None:
        self._counter = FixedWindowRateLimiter(MemoryStorage())
        self._limit = RateLimitItemPerMinute(WRONG_KEYS)
        self._behind_known_proxies = bool(settings.trusted_proxies)
        self._warned = threading.Event()

    def check(self) -> None:
        """To be called before `auth`, so that no key is tried.  Raises LimitReached."""
        address = _network(request.remote_addr or "")
        if self._counter.test(self._limit, address):
            return
        if "X-Forwarded-For" in request.headers and not self._behind_known_proxies and not self._warned.is_set():
            self._warned.set()
            log.warning("all who come through a proxy count as one address, and are turned away: set TRUSTED_PROXIES")
        raise LimitReached(
            "too_many_wrong_keys",
            "Too many wrong API keys came from this address. Nothing was done. Check the key, and send this again "
            "after as many seconds as Retry-After says.",
            retry_after=self._counter.get_window_stats(self._limit, address).reset_time - time.time(),
        )

    def count(self) -> None:
        """Count a key that was refused."""
        self._counter.hit(self._limit, _network(request.remote_addr or ""))


def _hit(counter: RateLimiter, limit: RateLimitItem, who: str) -> float | None:
    if counter.hit(limit, "recap", who):
        return None
    return counter.get_window_stats(limit, "recap", who).reset_time


@functools.lru_cache(maxsize=64)
def _network(address: str) -> str:
    """What counts as one caller: this machine, an IPv4 address, or an IPv6 network, whose holder has all of it."""
    if not address or is_loopback(address):  # a Unix socket has no address
        return LOCAL
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # a proxy may name anything
        return "unknown"
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is None:
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


def protect_docs(response: Response) -> Response:
    """Set the policy of Swagger UI's page: its own files, the one script within it, and styles it writes itself."""
    if response.mimetype == "text/html":
        scripts = re.findall(r"<script>(.*?)</script>", response.get_data(as_text=True), re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
        allowed = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])
        response.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {allowed}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    return response
