"""How a setting is read from its text: one function a kind, `(name, raw) -> value`.

Each raises SettingsError with a sentence that names the variable and says what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

import limits
import limits.errors
import limits.storage

API_KEY_CHARS_MIN = 16  # a shorter one can be found by trying
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_API_KEY = re.compile(r"[!-~]*")  # what a header can carry


class SettingsError(ValueError):
    """A setting that cannot be used; the message names the variable and says what it takes."""


def text(name: str, raw: str) -> str:
    return raw


def path(name: str, raw: str) -> Path:
    return Path(raw).expanduser()


def integer(low: int) -> Callable[[str, str], int]:
    def parse(name: str, raw: str) -> int:
        try:
            value = int(raw)
        except ValueError:
            raise SettingsError(f"{name} must be a whole number, not {raw!r}.") from None
        if value < low:
            raise SettingsError(f"{name} must be at least {low}, not {value}.")
        return value

    return parse


def number(unit: str, high: float) -> Callable[[str, str], float]:
    def parse(name: str, raw: str) -> float:
        try:
            value = float(raw)
        except ValueError:
            raise SettingsError(f"{name} must be a number of {unit}, not {raw!r}.") from None
        if not 0 <= value <= high:
            raise SettingsError(f"{name} must lie between 0 and {high:g} {unit}, not {raw}.")
        return value

    return parse


seconds = number("seconds", 86_400)
days = number("days", 36_500)
weight = number("points", 100)


def switch(name: str, raw: str) -> bool:
    if raw.strip() not in ("0", "1"):
        raise SettingsError(f"{name} must be 1 or 0, not {raw!r}.")
    return raw.strip() == "1"


def one_of(*choices: str) -> Callable[[str, str], str]:
    def parse(name: str, raw: str) -> str:
        value = raw.strip().lower()
        if value not in choices:
            raise SettingsError(f"{name} must be one of {', '.join(choices)}, not {raw!r}.")
        return value

    return parse


@dataclass(frozen=True)
class FactWeights:
    """What each part counts for when facts are ranked for a prompt; the parts lie in 0..1 each.

    Importance leads because it is the only part that was judged with the words in view; relevance comes
    next because a fact nobody asked about costs tokens; recency and use settle what is left.
    """

    importance: float = 0.4
    recency: float = 0.2
    use: float = 0.1
    relevance: float = 0.3

    @classmethod
    def parse(cls, name: str, raw: str) -> FactWeights:
        known = {f.name for f in fields(cls)}
        weights: dict[str, float] = {}
        for item in filter(None, (part.strip() for part in raw.split(","))):
            key, _, number = item.partition(":")
            if key.strip() not in known:
                raise SettingsError(f"{name} knows {', '.join(sorted(known))}; it does not know {key.strip()!r}.")
            try:
                weights[key.strip()] = float(number)
            except ValueError:
                raise SettingsError(f"{name} needs a number after {key.strip()!r}, as in importance:0.4.") from None
            if not 0 <= weights[key.strip()] <= 1000:
                raise SettingsError(f"{name} takes weights of 0 or more, 1000 at most, not {number.strip()!r}.")
        return cls(**weights)


@dataclass(frozen=True)
class ApiKey:
    """A key and the tenant whose data it opens.  The key is never shown."""

    tenant: str
    key: str = field(repr=False)


def api_keys(name: str, raw: str) -> tuple[ApiKey, ...]:
    """`tenant:key,tenant:key`.  A pair that is wrong is named by its number: what it holds may be a key."""
    pairs: list[ApiKey] = []
    for number, pair in enumerate(raw.split(","), 1):
        tenant, colon, key = (part.strip() for part in pair.partition(":"))
        if not colon:
            raise SettingsError(f"{name} takes tenant:key pairs, separated by commas; pair {number} is none.")
        if not TENANT.fullmatch(tenant):
            raise SettingsError(
                f"{name}: the tenant of pair {number} must be 1 to 64 letters, digits and any of _ . - after the first."
            )
        if len(key) < API_KEY_CHARS_MIN or not _API_KEY.fullmatch(key):
            raise SettingsError(
                f"{name}: the key of pair {number} must have at least {API_KEY_CHARS_MIN} characters, none of them a "
                "space or beyond ASCII; `openssl rand -hex 32` makes one."
            )
        if any(key == known.key for known in pairs):
            raise SettingsError(f"{name}: the key of pair {number} is there twice; a key opens one tenant.")
        pairs.append(ApiKey(tenant, key))
    return tuple(pairs)


def rate_limit(name: str, raw: str) -> str:
    """Limits as the package limits writes them, `120 per minute; 10 per second`, or `off`."""
    if raw.strip().lower() == "off":
        return "off"
    try:
        found = limits.parse_many(raw)
    except ValueError:
        found = []
    if not found or any(one.amount < 1 for one in found):
        raise SettingsError(f"{name} takes limits as `120 per minute; 10 per second`, or off, not {raw!r}.")
    return raw.strip()


def rate_limit_storage(name: str, raw: str) -> str:
    """Where limits are counted.  The address may hold a password, so it is not repeated."""
    try:
        if raw.startswith("async+"):
            raise ValueError
        limits.storage.storage_from_string(raw)
    except (limits.errors.ConfigurationError, ValueError):
        raise SettingsError(
            f"{name} takes memory:// or the address of a Redis, redis://host:6379/0 or rediss://..., and what it has "
            "is neither, or asks for a package that is not installed."
        ) from None
    return raw


def origins(name: str, raw: str) -> tuple[str, ...]:
    """`https://app.example.com,http://localhost:3000`: pages of other sites, each exactly as a browser names it."""
    found: list[str] = []
    for item in filter(None, (part.strip() for part in raw.split(","))):
        if item != _origin(item):
            raise SettingsError(
                f"{name} takes origins as a browser sends them, https://app.example.com or http://localhost:3000, "
                f"without a path and never *; it does not take {item!r}."
            )
        found.append(item)
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


def metrics_key(name: str, raw: str) -> str:
    """A key that a header can carry; a wrong one is not repeated."""
    if len(raw) < API_KEY_CHARS_MIN or not _API_KEY.fullmatch(raw):
        raise SettingsError(
            f"{name} must have at least {API_KEY_CHARS_MIN} characters, none of them a space or beyond ASCII; "
            "`openssl rand -hex 32` makes one."
        )
    return raw
