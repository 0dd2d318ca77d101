"""How often a key or an address may call, and how many wrong keys an address may try."""

from __future__ import annotations

import functools
import ipaddress
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from flask import g, request
from limits import RateLimitItem, RateLimitItemPerMinute, parse_many
from limits.errors import StorageError
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter

from config import Settings
from memory.access.keys import Principal, is_loopback
from memory.errors import LimitReached, RecapError, Unauthenticated
from models.owners import Caller

log = logging.getLogger(__name__)

RATE_LIMITER = "recap-limits"  # in `app.extensions`: the RateLimiter
USUAL = "6000 per minute"  # where RATE_LIMIT is empty
WRONG_KEYS = RateLimitItemPerMinute(20)  # a person who mistypes makes a few, a program that guesses makes thousands
LOCAL = "local"  # the network of this machine
REDIS_SECONDS = 1  # that a request waits for the Redis before it is counted here
STORAGE_DOWN = "RATE_LIMIT_STORAGE is unreachable: each worker counts for itself"
STORAGE_DOWN_SECONDS = 5.0  # for which a Redis that did not answer is not asked again


class RateLimiter:
    """Counts requests by key, or by address where no key is asked for, and wrong keys by address.

    This machine itself is not limited where no key is asked for, unless RATE_LIMIT says so.  While RATE_LIMIT_STORAGE
    can't be reached, each worker counts for itself.  Wrong keys are always counted so: what keeps guessers out must
    not depend on another server.
    """

    def __init__(self, settings: Settings) -> None:
        off = settings.rate_limit == "off"
        self._limits = [] if off else sorted(parse_many(settings.rate_limit or USUAL))  # the shortest time first
        self._everyone = settings.rate_limit not in ("", "off")
        self._behind_known_proxies = bool(settings.trusted_proxies)
        address = settings.rate_limit_storage
        timeouts = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS}
        options = timeouts if address.startswith("redis") else {}
        self._shared = FixedWindowRateLimiter(storage_from_string(address, wrap_exceptions=True, **options))
        self._own = FixedWindowRateLimiter(MemoryStorage())
        self._retry_at = 0.0  # by time.monotonic(): the shared storage is not asked before

    def check(self, principal: Principal | None) -> str | None:
        """Count a request of the key or address that is returned, None if there is no limit.  Raises LimitReached."""
        if principal is not None and principal.key is not None:
            who = f"key {principal.tenant} {principal.key}"
        elif (network := _network(request.remote_addr)) != LOCAL or self._everyone:
            who = f"address {network}"
        else:
            return None
        for limit in self._limits:
            opens = self._count(limit, who)
            if opens is not None:
                raise _reached("rate_limit_exceeded", "Too many requests. Nothing was done. Send", opens)
        return who

    def storage_down(self) -> str | None:
        """What the operator should know while RATE_LIMIT_STORAGE does not answer; None while it does."""
        return None if self._shared.storage.check() else STORAGE_DOWN

    def _count(self, limit: RateLimitItem, who: str) -> float | None:
        """Count one more.  None within the limit; above it the time.time() at which it opens again."""
        if time.monotonic() >= self._retry_at:
            try:
                return _opens_at(self._shared, limit, who)
            except StorageError:  # not logged: its text may hold the storage's password
                self._retry_at = time.monotonic() + STORAGE_DOWN_SECONDS
                log.warning(STORAGE_DOWN)
        return _opens_at(self._own, limit, who)

    @contextmanager
    def limit_key_guesses(self) -> Iterator[None]:
        """While a key is looked at that was sent: one that is refused counts.  Raises LimitReached after too many."""
        address = _network(request.remote_addr)
        if not self._own.test(WRONG_KEYS, address):
            if "X-Forwarded-For" in request.headers and not self._behind_known_proxies:
                text = "all who come through a proxy count as one address, and are turned away: set TRUSTED_PROXIES"
                log.warning(text)
            opens = self._own.get_window_stats(WRONG_KEYS, address).reset_time
            text = "Too many wrong API keys came from this address. Nothing was done. Check the key, and send"
            raise _reached("too_many_wrong_keys", text, opens)
        try:
            yield
        except Unauthenticated:
            self._own.hit(WRONG_KEYS, address)
            raise


def _opens_at(counter: FixedWindowRateLimiter, limit: RateLimitItem, who: str) -> float | None:
    if counter.hit(limit, "recap", who):
        return None
    return counter.get_window_stats(limit, "recap", who).reset_time


def _reached(code: str, text: str, opens: float) -> LimitReached:
    message = f"{text} this again after as many seconds as Retry-After says."
    return LimitReached(code, message, retry_after=opens - time.time())


@functools.lru_cache(maxsize=64)
def _network(address: str | None) -> str:
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


SPARE = 8  # threads that slow calls leave, a quarter where there are few, and half of it for reads alone
RETRY_SECONDS = 2.0  # until somebody's turn may be over
AGAIN = "Nothing was done. Send this again after as many seconds as Retry-After says."
AT_END = "recap.at_end"  # in the WSGI environment: an ExitStack of what to do when the answer is over


class ConcurrencyLimiter:
    """Count the slow requests in progress in this process: of all, of each key, address and person."""

    def __init__(self, settings: Settings) -> None:
        self._settings, threads = settings, settings.threads
        spare = min(SPARE, threads // 4) or 1
        self._most = {"slow": max(1, threads - spare), "short": threads - spare // 2}
        self._taken: Counter[str | Caller] = Counter()
        self._lock = threading.Lock()

    def acquire(self, who: str | None, *, slow: bool) -> None:
        """Take a place for this request, of `who` if that is limited.  Raises RecapError, LimitReached."""
        if who is not None and slow:  # first, so that what is refused here is in nobody's way
            self._acquire_within(who, self._settings.turns_per_key, "This key or address", "TURNS_PER_KEY")
            g.concurrency = self
        if not self._acquire("all", self._most["slow" if slow else "short"]):
            text = f"All threads for such calls are in use. {AGAIN}"
            raise RecapError("server_busy", text, status=503, retry_after=RETRY_SECONDS)

    def acquire_for(self, caller: Caller) -> None:
        """Count this request for its person as well.  Raises LimitReached."""
        self._acquire_within(caller, self._settings.turns_per_person, "This person", "TURNS_PER_PERSON")

    def _acquire_within(self, who: str | Caller, most: int, named: str, setting: str) -> None:
        if most and not self._acquire(who, most):
            text = f"{named} has {most} turns or other long calls in progress, the most at once ({setting}). {AGAIN}"
            raise LimitReached("too_many_at_once", text, retry_after=RETRY_SECONDS)

    def _acquire(self, who: str | Caller, most: int) -> bool:
        with self._lock:
            if self._taken[who] >= most:
                return False
            self._taken[who] += 1
        request.environ[AT_END].callback(self.release, who)
        return True

    def release(self, who: str | Caller) -> None:
        with self._lock:
            self._taken -= Counter([who])  # what is zero goes


def with_end(wsgi_app: Any) -> Any:
    """`wsgi_app`, which does what is in AT_END when the answer has left, its reader has gone, or it fails."""

    def serve(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        with ExitStack() as end:
            environ[AT_END] = end
            answer = wsgi_app(environ, start_response)
            if close := getattr(answer, "close", None):
                end.callback(close)
            for piece in answer:  # noqa: UP028 - `yield from` would close it a second time
                yield piece

    return serve
