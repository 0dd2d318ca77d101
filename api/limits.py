"""Rate limits: how many requests a key may make, or an address where no key is asked for, and how many wrong keys.

Requests are counted by Flask-Limiter, where RATE_LIMIT_STORAGE says: by each worker for itself, or by all of them in a
Redis.  While that can't be reached each worker counts for itself.  Wrong keys are always counted by each worker: what
keeps guessers out must not depend on another server.

Guarantee: what is refused here has done nothing.  Health, the page's files and the docs are never refused, so a load
balancer sees a server that is alive; nor is this machine itself where no key is asked for, unless RATE_LIMIT says so.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import time

from flask import Flask, Response, g, request
from flask.typing import ResponseReturnValue
from flask_limiter import Limiter, RateLimitExceeded
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from api import auth
from config import Settings
from memory.access.anonymous import is_loopback
from memory.errors import LimitReached

log = logging.getLogger(__name__)

USUAL = "6000 per minute"  # where RATE_LIMIT is empty
WRONG_KEYS = 20  # a minute and address: a person who mistypes makes a few, a program that guesses makes thousands
REDIS_SECONDS = 1  # that a request waits for the Redis before it is counted here


def limit_requests(app: Flask, settings: Settings) -> None:
    """Refuse requests above RATE_LIMIT.  To be registered after `auth`, which says whose they are."""
    if settings.rate_limit == "off":
        return
    remote = settings.rate_limit_storage.startswith("redis")
    limiter = Limiter(
        key_func=_whose,
        application_limits=[settings.rate_limit or USUAL],
        storage_uri=settings.rate_limit_storage,
        storage_options={"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS} if remote else {},
        strategy="fixed-window",
        in_memory_fallback_enabled=True,
        key_prefix="recap",
    )
    limiter.request_filter(_unlimited if settings.rate_limit else _trusted)
    limiter.init_app(app)
    logging.getLogger("flask-limiter").setLevel(logging.WARNING)  # its lines at info name addresses

    def exceeded(_: RateLimitExceeded) -> ResponseReturnValue:
        now = time.time()
        opens = max((one.window.reset_time for one in limiter.current_limits if one.breached), default=now)
        return app.handle_user_exception(
            LimitReached(
                "rate_limit_exceeded",
                "These are more requests than this server takes from one caller in so short a time. Nothing was done; "
                "send it again after the seconds that Retry-After says.",
                retry_after=opens - now,
            )
        )

    app.register_error_handler(RateLimitExceeded, exceeded)


def limit_guesses(app: Flask, settings: Settings) -> None:
    """Turn away addresses that try keys.  To be registered before `auth`, so that no key is tried for them."""
    counted = FixedWindowRateLimiter(MemoryStorage())
    most = RateLimitItemPerMinute(WRONG_KEYS)
    warned = threading.Event()

    def check() -> None:
        if "Authorization" not in request.headers or auth.is_open(request.path) or counted.test(most, _address()):
            return
        if "X-Forwarded-For" in request.headers and not settings.trusted_proxies and not warned.is_set():
            warned.set()
            log.warning("all who come through a proxy count as one address, and are turned away: set TRUSTED_PROXIES")
        raise LimitReached(
            "too_many_wrong_keys",
            "There have been too many wrong API keys from this address. Nothing was done; see that the key is right, "
            "and send it again after the seconds that Retry-After says.",
            retry_after=counted.get_window_stats(most, _address()).reset_time - time.time(),
        )

    def count(response: Response) -> Response:
        if response.status_code == 401 and "Authorization" in request.headers and "holder" not in g:
            counted.hit(most, _address())
        return response

    app.before_request(check)
    app.after_request(count)


def _unlimited() -> bool:
    return auth.is_open(request.path)


def _trusted() -> bool:
    """Whether a request comes from this machine, on which nobody is asked for a key."""
    return _unlimited() or (_key() is None and is_loopback(request.remote_addr or "localhost"))


def _whose() -> str:
    """Whose a request is, as far as limits go."""
    key = _key()
    return f"key {g.holder.tenant} {key}" if key is not None else f"address {_address()}"


def _key() -> str | None:
    return g.holder.key if "holder" in g else None


def _address() -> str:
    """Where a request came from.  Of an IPv6 address the network: whoever has one has all of that."""
    try:
        address = ipaddress.ip_address(request.remote_addr or "")
    except ValueError:  # a Unix socket has none
        return "local"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
