"""Rate limits: how many requests a key may make, or an address where no key is asked for, and how many wrong keys.

Requests are counted where RATE_LIMIT_STORAGE says: by each worker for itself, or by all of them in a Redis.  While that
can't be reached each worker counts for itself.  Wrong keys are always counted by each worker: what keeps guessers out
must not depend on another server.

Guarantee: what is refused here has done nothing.  Health, the page's files and the docs are never refused, so a load
balancer sees a server that is alive; nor is this machine itself where no key is asked for, unless RATE_LIMIT says so.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import threading
import time

from flask import Request, Response, g, request
from limits import RateLimitItem, RateLimitItemPerMinute, parse_many
from limits.errors import StorageError
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter, RateLimiter

from api import auth
from config import Settings
from memory.errors import LimitReached

log = logging.getLogger(__name__)

USUAL = "6000 per minute"  # where RATE_LIMIT is empty
WRONG_KEYS = 20  # a minute and address: a person who mistypes makes a few, a program that guesses makes thousands
REDIS_SECONDS = 1  # that a request waits for the Redis before it is counted here
AWAY_SECONDS = 5.0  # for which a Redis that did not answer is not asked again


class Requests:
    """Refuses requests above RATE_LIMIT."""

    def __init__(self, settings: Settings) -> None:
        self._limits = sorted(parse_many(settings.rate_limit or USUAL))  # the shortest time first
        self._all = bool(settings.rate_limit)
        self._counted = _Counted(settings.rate_limit_storage)

    def check(self, asked: Request) -> None:
        """To be asked when `auth` has said whose a request is.  Raises LimitReached."""
        key = _key()
        if asked.endpoint is None or auth.is_open(asked.path):
            return
        if not self._all and key is None and auth.is_this_machine(asked.remote_addr or "localhost"):
            return
        whose = f"key {g.holder.tenant} {key}" if key is not None else f"address {_address(asked)}"
        for limit in self._limits:
            opens = self._counted.hit(limit, whose)
            if opens is not None:
                raise LimitReached(
                    "rate_limit_exceeded",
                    "These are more requests than this server takes from one caller in so short a time. Nothing was "
                    "done; send it again after the seconds that Retry-After says.",
                    retry_after=opens - time.time(),
                )


class Guesses:
    """Turns away addresses that try keys."""

    def __init__(self, settings: Settings) -> None:
        self._counted = FixedWindowRateLimiter(MemoryStorage())
        self._most = RateLimitItemPerMinute(WRONG_KEYS)
        self._behind_known_proxies = bool(settings.trusted_proxies)
        self._warned = threading.Event()

    def check(self, asked: Request) -> None:
        """To be asked before `auth`, so that no key is tried for them.  Raises LimitReached."""
        if "Authorization" not in asked.headers or auth.is_open(asked.path):
            return
        address = _address(asked)
        if self._counted.test(self._most, address):
            return
        if "X-Forwarded-For" in asked.headers and not self._behind_known_proxies and not self._warned.is_set():
            self._warned.set()
            log.warning("all who come through a proxy count as one address, and are turned away: set TRUSTED_PROXIES")
        raise LimitReached(
            "too_many_wrong_keys",
            "There have been too many wrong API keys from this address. Nothing was done; see that the key is right, "
            "and send it again after the seconds that Retry-After says.",
            retry_after=self._counted.get_window_stats(self._most, address).reset_time - time.time(),
        )

    def count(self, response: Response) -> Response:
        """An answer leaves: whether it refused a key."""
        if response.status_code == 401 and "Authorization" in request.headers and "holder" not in g:
            self._counted.hit(self._most, _address(request))
        return response


class _Counted:
    """Counts in a storage, and here while that can't be reached."""

    def __init__(self, address: str) -> None:
        remote = address.startswith("redis")
        waiting = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS} if remote else {}
        self._there = FixedWindowRateLimiter(storage_from_string(address, wrap_exceptions=True, **waiting))
        self._here = FixedWindowRateLimiter(MemoryStorage())
        self._again_at: float | None = None  # of time.monotonic(); None: it can be reached, as far as is known

    def hit(self, limit: RateLimitItem, whose: str) -> float | None:
        """Count one more: None within the limit, above it when it opens again, by time.time()."""
        away, now = self._again_at is not None, time.monotonic()
        if self._again_at is None or now >= self._again_at:
            if away:
                self._again_at = now + AWAY_SECONDS  # one request tries, and no other waits for it
            try:
                opens = _hit(self._there, limit, whose)
            except StorageError:  # its words may hold the address, and that a password
                self._again_at = time.monotonic() + AWAY_SECONDS
                if not away:
                    log.warning("RATE_LIMIT_STORAGE is unreachable: each worker counts for itself")
            else:
                self._again_at = None
                return opens
        return _hit(self._here, limit, whose)


def _hit(counted: RateLimiter, limit: RateLimitItem, whose: str) -> float | None:
    if counted.hit(limit, "recap", whose):
        return None
    return counted.get_window_stats(limit, "recap", whose).reset_time


def _key() -> str | None:
    holder = g.get("holder")
    return holder.key if holder is not None else None


def _address(asked: Request) -> str:
    """Where a request came from.  Of an IPv6 address the network: whoever has one has all of that."""
    return _network(asked.remote_addr or "")


@functools.lru_cache(maxsize=64)
def _network(given: str) -> str:
    try:
        address = ipaddress.ip_address(given)
    except ValueError:  # a Unix socket has none
        return "local"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
