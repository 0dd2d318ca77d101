"""Serving without keys, to this machine alone.

Without keys, whoever reaches the port reads everything.  So a server without keys starts on loopback only, or on a Unix
socket, whose file permissions protect it.  It serves nobody behind a proxy on this machine that names itself or its
client in a header, and no page of another site in a browser on this machine, whether that site's name points here (DNS
rebinding) or its page sends requests across sites.  RECAP_ALLOW_ANONYMOUS lifts all of that.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from sqlalchemy.exc import SQLAlchemyError

from config import Settings, SettingsError
from memory.access.keys import Keys

# Headers that proxies, tunnels and content networks add, as WSGI names them; who calls directly sends none of them.
PASSED_ON = re.compile(
    r"\bHTTP_(VIA|CDN_LOOP|FRONT_END_HTTPS|\w*(FORWARD|PROXY)\w*|(\w+_)?(CLIENT)?IP|\w+_ADDR(ESS)?"
    r"|(CF|X_ENVOY|X_ORIGINAL|X_REAL|TAILSCALE)_\w+)\b"
)


def is_loopback(host: str) -> bool:
    """Whether an address, or a name that is known without a name server, is this machine's: 127.0.0.1, localhost."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


@functools.lru_cache(maxsize=64)
def foreign(peer: str, passed_on: bool, host: str, origin: str | None, allowed_origins: tuple[str, ...]) -> str | None:
    """What shows that a request is not this machine's own, or None."""
    if peer and not is_loopback(peer):  # a Unix socket has no peer
        return "this request came from another machine"
    if passed_on:
        return "a proxy passed this request on, as a header such as X-Forwarded-For or Via shows"
    if not is_loopback(_hostname(f"//{host}")):
        return "the Host of this request is not a name of this machine"
    if origin is not None and origin not in allowed_origins and not is_loopback(_hostname(origin)):
        return "a page of another site sent this request"
    return None


def _hostname(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def refuse_strangers(settings: Settings, keys: Keys, addresses: Iterable[object]) -> None:
    """Raise SettingsError when others could reach one of `addresses` and no key is required.

    An address is what gunicorn binds: (host, port, ...), a Unix socket's path, or an inherited descriptor, whose
    requests are checked one by one (`foreign`).
    """
    reachable = [str(one[0]) for one in addresses if isinstance(one, tuple) and not is_loopback(str(one[0]))]
    if not reachable or settings.allow_anonymous:
        return
    with suppress(SQLAlchemyError):  # a database that cannot be read has no keys, and nothing to serve either
        if keys.required:
            return
    raise SettingsError(
        f"HOST: Recap does not start on {', '.join(reachable)}, where others could reach it, as no API key is set: "
        "they could read and erase everything. Nothing was changed. Make a key with `flask --app wsgi keys "
        "create`, or set RECAP_API_KEYS, or listen on 127.0.0.1; or if everyone who reaches this address may do "
        "everything, set RECAP_ALLOW_ANONYMOUS=1."
    )
