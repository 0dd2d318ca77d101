"""Settings that are more than a number or a word: API keys, fact weights, rate limits, origins.

Each parser takes the variable's text, or the value itself, and raises ValueError with what the variable takes.  The
message never repeats a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

import limits
import limits.errors
import limits.storage

API_KEY_CHARS_MIN = 16  # a shorter one can be found by trying
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_API_KEY = re.compile(r"[!-~]*")  # what a header can carry


@dataclass(frozen=True)
class FactWeights:
    """What each part counts for when facts are ranked for a prompt; the parts lie in 0..1 each.

    Importance leads because it alone was judged with the words in view.  Relevance comes next because a fact nobody
    asked about costs tokens.  Recency and use settle what is left.
    """

    importance: float = 0.4
    recency: float = 0.2
    use: float = 0.1
    relevance: float = 0.3

    @classmethod
    def parse(cls, raw: Any) -> Any:
        """From `importance:0.4,recency:0.2`; parts that are not named keep their default."""
        if not isinstance(raw, str):
            return raw
        known = {f.name for f in fields(cls)}
        weights: dict[str, float] = {}
        for item in filter(None, (part.strip() for part in raw.split(","))):
            key, _, number = (part.strip() for part in item.partition(":"))
            if key not in known:
                raise ValueError(f"it knows {', '.join(sorted(known))}; it does not know {key!r}")
            try:
                weights[key] = float(number)
            except ValueError:
                raise ValueError(f"it needs a number after {key!r}, as in importance:0.4") from None
            if not 0 <= weights[key] <= 1000:
                raise ValueError(f"weights are 0 or more, 1000 at most, not {number!r}")
        return cls(**weights)


@dataclass(frozen=True)
class ApiKey:
    """A key and the tenant whose data it opens.  Its representation hides the key."""

    tenant: str
    key: str = field(repr=False)


def api_keys(raw: Any) -> Any:
    """`tenant:key,tenant:key`.  An error names a wrong pair by its number, since what it holds may be a key."""
    if not isinstance(raw, str):
        return raw
    pairs: list[ApiKey] = []
    for number, pair in enumerate(raw.split(","), 1):
        tenant, colon, key = (part.strip() for part in pair.partition(":"))
        if not colon:
            raise ValueError(f"it takes tenant:key pairs, separated by commas; pair {number} is none")
        if not TENANT.fullmatch(tenant):
            raise ValueError(
                f"the tenant of pair {number} must be 1 to 64 letters, digits and any of _ . - after the first"
            )
        try:
            header_key(key)
        except ValueError as error:
            raise ValueError(f"pair {number}: {error}") from None
        if any(key == known.key for known in pairs):
            raise ValueError(f"the key of pair {number} is there twice; a key opens one tenant")
        pairs.append(ApiKey(tenant, key))
    return tuple(pairs)


def header_key(raw: str) -> str:
    """A key that an HTTP header can carry and nobody can guess."""
    if len(raw) < API_KEY_CHARS_MIN or not _API_KEY.fullmatch(raw):
        raise ValueError(
            f"a key must have at least {API_KEY_CHARS_MIN} characters, none of them a space or beyond ASCII; "
            "`openssl rand -hex 32` makes one"
        )
    return raw


def rate_limit(raw: str) -> str:
    """Limits as the package limits writes them, `120 per minute; 10 per second`, or `off`."""
    if raw.lower() in ("", "off"):
        return raw.lower()
    try:
        found = limits.parse_many(raw)
    except ValueError:
        found = []
    if not found or any(one.amount < 1 for one in found):
        raise ValueError(f"it takes limits as `120 per minute; 10 per second`, or off, not {raw!r}")
    return raw


def rate_limit_storage(raw: str) -> str:
    """Where limits are counted.  The address may hold a password, so an error does not repeat it."""
    try:
        if raw.startswith("async+"):
            raise ValueError
        limits.storage.storage_from_string(raw)
    except (limits.errors.ConfigurationError, ValueError):
        raise ValueError(
            "it takes memory:// or the address of a Redis, redis://host:6379/0 or rediss://..., and what it has "
            "is neither, or asks for a package that is not installed"
        ) from None
    return raw


def origins(raw: Any) -> Any:
    """`https://app.example.com,http://localhost:3000`: each origin exactly as a browser sends it."""
    if not isinstance(raw, str):
        return raw
    found = [part.strip() for part in raw.split(",") if part.strip()]
    for item in found:
        if item != _origin(item):
            raise ValueError(
                "it takes origins as a browser sends them, https://app.example.com or http://localhost:3000, "
                f"without a path and never *; it does not take {item!r}"
            )
    return tuple(dict.fromkeys(found))


def _origin(text: str) -> str | None:
    """The origin of an address as browsers write it; None where it has none."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or not text.isascii() or "*" in text:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None and port != usual else "")
