"""Limit how often a key or an address calls, how many wrong keys it tries, and how many requests run at once."""

import functools
import ipaddress
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from flask import g, request
from limits import RateLimitItem, RateLimitItemPerMinute, parse_many
from limits.errors import StorageError
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter

from api.current_request import AT_END
from config import Settings
from memory.access.keys import Principal, is_loopback
from memory.errors import LimitReached, RecapError, TokenRefused, Unauthenticated
from models.owners import Caller

log = logging.getLogger(__name__)

RATE_LIMITER, CONCURRENCY = "recap-limits", "recap-concurrency"  # in `app.extensions`: the two limiters
USUAL = "6000 per minute"  # where RATE_LIMIT is empty
WRONG_KEYS = RateLimitItemPerMinute(20)  # a person mistypes a few, a program that guesses makes thousands
ACCEPTED_MAX = 1_000  # keys at their addresses that a worker remembers as right
LOCAL = "local"  # the network of this machine
REDIS_SECONDS = 1  # that a request waits for the Redis before it is counted here
STORAGE_DOWN = "RATE_LIMIT_STORAGE is unreachable: each worker counts for itself"
STORAGE_DOWN_SECONDS = 5.0  # for which a Redis that did not answer is not asked again


class RateLimiter:
    """Count requests by key, or by address where no key is asked for, and wrong keys by address.

    This machine itself is not limited where no key is asked for, unless RATE_LIMIT says so. While RATE_LIMIT_STORAGE
    can't be reached, each worker counts for itself. Wrong keys are always counted so: the limit on guesses must not
    depend on another server.
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
        self._accepted = set[int]()  # hashes of addresses with the keys that were right there
        self._retry_at = 0.0  # by time.monotonic(): the shared storage is not asked before

    def check(self, principal: Principal | None) -> str | None:
        """Count a request; return the key or address it counts for, None if there is no limit. Raises LimitReached."""
        if principal is not None and principal.key is not None:
            counted_as = f"key {principal.tenant} {principal.key}"
        elif (network := _network(request.remote_addr)) != LOCAL or self._everyone:
            counted_as = f"address {network}"
        else:
            return None
        for limit in self._limits:
            opens_at = self._count(limit, counted_as)
            if opens_at is not None:
                raise _reached("rate_limit_exceeded", "Too many requests. Nothing was done. Send", opens_at)
        return counted_as

    def storage_down(self) -> str | None:
        """Return a sentence for the operator while RATE_LIMIT_STORAGE does not answer."""
        return None if self._shared.storage.check() else STORAGE_DOWN

    def _count(self, limit: RateLimitItem, counted_as: str) -> float | None:
        """Count one more. Return the time.time() at which the limit opens again; None within it."""
        if time.monotonic() >= self._retry_at:
            try:
                return _opens_at(self._shared, limit, counted_as)
            except StorageError:  # not logged: its text may hold the storage's password
                self._retry_at = time.monotonic() + STORAGE_DOWN_SECONDS
                log.warning(STORAGE_DOWN)
        return _opens_at(self._own, limit, counted_as)

    @contextmanager
    def limit_key_guesses(self, *keys: str | None) -> Iterator[None]:
        """Count a key that is refused within the block. Raises LimitReached after too many.

        keys: what the block accepts or refuses. It is no guess where it was accepted before, so a program with an old
        key does not turn others at its address away.
        """
        address = _network(request.remote_addr)
        sent = hash((address, *keys))  # so that no key stays in memory
        may_try = sent in self._accepted or self._own.test(WRONG_KEYS, address)
        if not may_try and (opens_at := _reset_at(self._own, WRONG_KEYS, address)) is not None:
            if "X-Forwarded-For" in request.headers and not self._behind_known_proxies:
                text = "all who come through a proxy count as one address, and are turned away: set TRUSTED_PROXIES"
                log.warning(text)
            text = "Too many wrong API keys came from this address. Nothing was done. Check the key, and send"
            raise _reached("too_many_wrong_keys", text, opens_at)
        try:
            yield
        except TokenRefused:
            raise
        except Unauthenticated:
            self._accepted.discard(sent)
            self._own.hit(WRONG_KEYS, address)
            raise
        if any(keys):
            if len(self._accepted) >= ACCEPTED_MAX:
                self._accepted.clear()
            self._accepted.add(sent)


def _opens_at(counter: FixedWindowRateLimiter, limit: RateLimitItem, counted_as: str) -> float | None:
    if counter.hit(limit, "recap", counted_as):
        return None
    return _reset_at(counter, limit, "recap", counted_as)


def _reset_at(counter: FixedWindowRateLimiter, limit: RateLimitItem, *counted_as: str) -> float | None:
    """Return the time.time() at which a limit that was reached opens again; None, and open it, if it is open."""
    reset_time: float = counter.get_window_stats(limit, *counted_as).reset_time
    if reset_time - time.time() <= limit.get_expiry():
        return reset_time
    # The clock was put back, and the limit would stay reached until it is there again.
    counter.clear(limit, *counted_as)
    return None


def _reached(code: str, text: str, opens_at: float) -> LimitReached:
    message = f"{text} this again after as many seconds as Retry-After says."
    return LimitReached(code, message, retry_after=opens_at - time.time())


@functools.lru_cache(maxsize=64)
def _network(address: str | None) -> str:
    """Return the network that counts as one caller: this machine, an IPv4 address, or an IPv6 network of one holder."""
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
STREAMS_SHARE = 4  # streams of events hold a thread for an hour, so one thread of so many is theirs
STREAMS_OF_CALLER = 4  # in a process, of a person or of those who listen to a whole tenant


class ConcurrencyLimiter:
    """Count the slow requests in progress in this process: of all, of each key, address and person."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        threads = settings.threads
        spare = min(SPARE, threads // 4) or 1
        self._maximum = {"slow": max(1, threads - spare), "short": threads - spare // 2}
        self._running: Counter[str | Caller] = Counter()
        self._lock = threading.Lock()

    def acquire(self, counted_as: str | None, *, slow: bool) -> None:
        """Count this request until it ends, also for `counted_as`. Raises RecapError, LimitReached."""
        if counted_as is not None and slow:  # first, so that a request that is refused here is in nobody's way
            self._acquire_within(counted_as, self._settings.turns_per_key, "This key or address", "TURNS_PER_KEY")
            g.concurrency = self
        self._acquire("all", self._maximum["slow" if slow else "short"], "All threads for such calls are in use.")

    def acquire_for(self, caller: Caller) -> None:
        """Count this request for its person as well. Raises LimitReached."""
        self._acquire_within(caller, self._settings.turns_per_person, "This person", "TURNS_PER_PERSON")

    def acquire_stream(self, caller: Caller) -> None:
        """Count this request as a stream of events as well, until it ends. Raises RecapError, LimitReached."""
        text = f"There are {STREAMS_OF_CALLER} streams of these events already, the most at once."
        self._acquire(f"stream {caller}", STREAMS_OF_CALLER, text, is_own=True)
        text = "A quarter of WEB_THREADS can be streams of events, and all of them are."
        self._acquire("streams", self._settings.threads // STREAMS_SHARE, text)

    def _acquire_within(self, counted_as: str | Caller, maximum: int, subject: str, setting: str) -> None:
        if maximum:
            text = f"{subject} has {maximum} turns or other long calls in progress, the most at once ({setting})."
            self._acquire(counted_as, maximum, text, is_own=True)

    def _acquire(self, counted_as: str | Caller, maximum: int, text: str, *, is_own: bool = False) -> None:
        """Count one more until the request ends. is_own: the limit is the caller's own, not the server's."""
        with self._lock:
            if self._running[counted_as] >= maximum:
                text = f"{text} {AGAIN}"
                if is_own:
                    raise LimitReached("too_many_at_once", text, retry_after=RETRY_SECONDS)
                raise RecapError("server_busy", text, status=503, retry_after=RETRY_SECONDS)
            self._running[counted_as] += 1
        request.environ[AT_END].callback(self.release, counted_as)

    def release(self, counted_as: str | Caller) -> None:
        with self._lock:
            self._running -= Counter([counted_as])  # without the counts of zero
