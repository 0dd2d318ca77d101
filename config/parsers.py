"""Settings that are more than a number or a word: API keys, fact weights, rate limits, origins.

Each parser takes the variable's text, and raises ValueError with what the variable takes.  The
message never repeats a secret.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from importlib.util import find_spec
from typing import Literal, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
TENANT_RULE = "A tenant is 1 to 64 letters, digits and any of _ . - after the first."
_API_KEY = re.compile(r"[!-~]{16,}")  # what a header can carry; a shorter one can be found by trying
# Browsers write names in lower case, and leave the usual port out. Apps and extensions have schemes of their own.
_ORIGIN = re.compile(r"(?!http:.*:80$|https:.*:443$)[a-z][a-z0-9.+-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
Mode = Literal["off", "manual", "background", "inline", "schedule"]

FORMS = (
    "off, manual, background, inline, `every 30 minutes`, `every 24 hours`, or a cron expression such as `0 4 * * *` "
    "(UTC)"
)
MINUTES_MAX = 525_600  # a year
_EVERY = re.compile(r"every ([1-9]\d{0,5}) (minute|hour)s?")


def weights(raw: str) -> dict[str, str]:
    """From `importance:0.4,recency:0.2`; parts that are not named keep their default."""
    parts = (part.partition(":") for part in raw.split(",") if part.strip())
    return {name.strip(): number.strip() for name, _, number in parts}


@dataclass(frozen=True)
class ApiKey:
    """Key and the tenant whose data it opens.  Its representation hides the key."""

    tenant: str
    key: str = field(repr=False)


def api_keys(raw: str) -> tuple[ApiKey, ...]:
    """`tenant:key,tenant:key`.  An error names a wrong pair by its number, since what it holds may be a key."""
    pairs: list[ApiKey] = []
    for number, pair in enumerate(raw.split(","), 1):
        tenant, colon, key = (part.strip() for part in pair.partition(":"))
        if not colon:
            raise ValueError(f"it takes tenant:key pairs, separated by commas; pair {number} is none")
        if not TENANT.fullmatch(tenant):
            raise ValueError(
                f"the tenant of pair {number} is not 1 to 64 of A-Z a-z 0-9 _ . -, beginning with a letter or digit"
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
    """Return a key that an HTTP header can carry and nobody can guess."""
    if not _API_KEY.fullmatch(raw):
        raise ValueError(
            "a key must have at least 16 characters, none of them a space or beyond ASCII; `openssl rand -hex 32` "
            "makes one"
        )
    return raw


def rate_limit(raw: str) -> str:
    """Limits as the package limits writes them, `120 per minute; 10 per second`, or `off`."""
    if raw.lower() in ("", "off"):
        return raw.lower()
    from limits import parse_many  # 3 MB, which gunicorn's first process needs for nothing else

    try:
        limits = parse_many(raw)
    except ValueError:
        limits = []
    if not limits or any(limit.amount < 1 for limit in limits):
        raise ValueError(f"it takes limits as `120 per minute; 10 per second`, or off, not {raw!r}")
    return raw


def rate_limit_storage(raw: str) -> str:
    """Where limits are counted.  The address may hold a password, so an error does not repeat it."""
    from limits.errors import ConfigurationError
    from limits.storage import storage_from_string

    try:
        if raw.startswith("async+"):
            raise ValueError
        storage_from_string(raw)
    except (ConfigurationError, ValueError):
        raise ValueError(
            "it takes memory:// or the address of a Redis, redis://host:6379/0 or rediss://..., and what it has "
            "is neither, or asks for a package that is not installed"
        ) from None
    return raw


def database_url(raw: str) -> str:
    """Return a URL of SQLAlchemy, or nothing. It may hold a password, so an error does not repeat it."""
    raw = re.sub(r"^postgres://", "postgresql://", raw)  # as many services hand it out
    if raw and not re.match(r"(sqlite|postgresql)(\+\w+)?://", raw):
        raise ValueError("it takes sqlite:////srv/recap/recap.db or postgresql+psycopg://user:password@host/name")
    if raw.startswith("postgresql"):
        from sqlalchemy import make_url  # not at the top: gunicorn's first process does without

        try:
            url = make_url(raw)
            if "@" in (url.host or ""):
                raise ValueError
        except ValueError:  # of a port that is no number
            raise ValueError(
                "no host and port follow the password: write an @ within it as %40, several hosts as "
                "?host=a:5432&host=b:5432"
            ) from None
        if find_spec(driver := url.get_driver_name()) is None:
            raise ValueError(
                f"it needs the package {driver}, which is not installed: `pip install '.[postgres]'` in Recap's folder "
                "installs psycopg, for postgresql+psycopg://"
            )
    return raw


def encryption_key(raw: str) -> str:
    """Return a key of Fernet, or nothing. An error does not repeat it."""
    if not raw:
        return raw
    from cryptography.fernet import Fernet  # not at the top: it takes memory, and most servers have no such key

    try:
        Fernet(raw)
    except ValueError:
        raise ValueError(
            'it takes a key that `python -c "from cryptography.fernet import Fernet; '
            'print(Fernet.generate_key().decode())"` made'
        ) from None
    return raw


def names(raw: str) -> tuple[str, ...]:
    """`gpt-4o,gpt-4o-mini`."""
    return tuple(dict.fromkeys(part.strip() for part in raw.split(",") if part.strip()))


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(raw: str) -> tuple[Network, ...]:
    """`10.1.0.0/16,127.0.0.1`."""
    try:
        return tuple(map(ipaddress.ip_network, names(raw)))
    except ValueError as error:
        raise ValueError(f"it takes networks as 10.1.0.0/16,127.0.0.1 ({error})") from None


def zone_of(name: str) -> tzinfo:
    """Return the time zone called `name`, such as Europe/Tallinn. Raises ValueError for another."""
    if name.upper() in ("UTC", "ETC/UTC"):  # known without a database
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = 'use a name like "Europe/Tallinn" or "UTC"'
        if not available_timezones():
            hint = "this machine has no time zone database, so only UTC is known; install tzdata"
        raise ValueError(f"There is no time zone called {name[:60]!r}: {hint}") from None


def host(raw: str) -> str:
    """`0.0.0.0`, `localhost`, `::1` or `[::1]`."""
    if raw.count(":") == 1 or "/" in raw or (raw.startswith("[") and not raw.endswith("]")):
        raise ValueError("it takes an address or a name alone, as 0.0.0.0 or ::1; the port is PORT")
    return raw.strip("[]")


def server_url(raw: str) -> str:
    """`http://127.0.0.1:11434/v1`, or nothing.  It may hold a password, so an error does not repeat it."""
    if raw and not re.match(r"https?://([^/]*@)?(\[[^]/]+\]|[^]/:\[]+)(:\d*)?(/|$)", raw, re.IGNORECASE):
        raise ValueError("it takes an address that begins with http:// or https://, as http://127.0.0.1:11434/v1")
    return raw


def public_url(raw: str) -> str:
    """Return the address of the page, its host in small letters and without a slash at its end, or nothing."""
    address = urlsplit(raw.rstrip("/"))
    if raw and (address.scheme not in ("http", "https") or not address.netloc or re.search(r'[\s"<>?#]', raw)):
        raise ValueError("it takes the address of Recap's page, as https://recap.example.com, without ? and #")
    return address._replace(netloc=address.netloc.lower()).geturl()


def origins(raw: str) -> tuple[str, ...]:
    """`https://app.example.com,http://localhost:3000`: each origin exactly as a browser sends it."""
    allowed = names(raw)
    for item in allowed:
        if not _ORIGIN.fullmatch(item):
            raise ValueError(
                "it takes origins as a browser sends them, https://app.example.com, http://localhost:3000 or "
                f"app://obsidian.md, without a path and never *; it does not take {item!r}"
            )
    return allowed


@dataclass(frozen=True)
class When:
    """When to write.  A `schedule` comes round every so many `minutes` or, without them, as `cron` says in UTC."""

    mode: Mode
    minutes: int = 0
    cron: str = ""

    @property
    def is_scheduled(self) -> bool:
        """Return whether it comes by itself, at some time after something is new."""
        return self.mode not in ("off", "manual")

    def next(self, now: datetime) -> datetime:
        """Return the next time that a schedule comes round."""
        return now + timedelta(minutes=self.minutes) if self.minutes else next(CronSim(self.cron, now))


def when(raw: str) -> When:
    """Parse a schedule. Raises ValueError, also for a cron expression that never comes round."""
    text = " ".join(raw.lower().split())
    if text in ("off", "manual", "background", "inline"):
        return When(cast(Mode, text))
    every = _EVERY.fullmatch(text)
    if every and (minutes := int(every[1]) * (60 if every[2] == "hour" else 1)) <= MINUTES_MAX:
        return When("schedule", minutes=minutes)
    schedule = When("schedule", cron=text.upper())
    try:
        if len(text.split()) != 5:  # with six, the first would be seconds
            raise CronSimError
        schedule.next(datetime.now(UTC))
    except (CronSimError, StopIteration):
        raise ValueError(f"it takes {FORMS}, which has to come round at some time; not {raw!r}") from None
    return schedule
