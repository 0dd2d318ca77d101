"""API keys: who may call, whose data they see, and what they may do; and the check without keys.

Keys in RECAP_API_KEYS may do everything in their tenant. Keys that `recap keys create` makes may be limited to some
scopes and one person. They are rows, so they come and go while the service runs.

Invariants:
- No created key is stored, only its SHA-256 digest: a key is 256 random bits, so a slow hash would add nothing
  (test_keys). Keys of the settings are compared in constant time.
- Once a key exists, one is required: revoking the last one does not open the service (test_keys).
"""

import functools
import hashlib
import hmac
import ipaddress
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from cachetools.func import ttl_cache
from sqlalchemy import delete, select, update
from sqlalchemy.exc import SQLAlchemyError

from config import ApiKey, Settings, SettingsError
from config.parsers import TENANT, TENANT_RULE
from memory.errors import Forbidden, InvalidRequest, NotFound, owner_not_found
from models import Database, GrantRow, KeyRow, Transaction, for_update
from models.keys import CHAT, SCOPES, SPACE_RIGHTS, WRITE
from schemas.fields import ID, USER_ID, USER_ID_RULE

PREFIX = "recap_"  # people and secret scanners recognise a key by it
HINT_CHARS = len(PREFIX) + 4  # listings show this beginning of a key
LABEL_CHARS = 200
SPACES_MAX = 50  # that a key names
CACHE_SECONDS = 2.0  # of the rows, in a process: then a revoked key is refused everywhere

_K = KeyRow.__table__.c
_ROWS = select(_K.digest, _K.id, _K.tenant, _K.user_id, _K.scopes, _K.spaces, _K.revoked_at)


@dataclass(frozen=True)
class Principal:
    """Tenant, the person (None: any of the tenant's), the scopes and the spaces of a key.

    spaces: the right of each space that it names; None: none is named. A key that names spaces and no person is for
    these spaces alone, one that names neither for all of its tenant.
    key: its name, which reveals nothing: `made-7` for row 7, `set-1` for the first in the settings. key_id: of its row.
    """

    tenant: str
    user_id: str | None = None
    scopes: frozenset[str] = frozenset(SCOPES)
    key: str | None = None
    key_id: int | None = field(default=None, compare=False)
    spaces: Mapping[str, str] | None = None

    @property
    def is_whole_tenant(self) -> bool:
        """Return whether the key is for everybody in its tenant, and every space."""
        return self.user_id is None and self.spaces is None

    def has_scope(self, scope: str, *, own: bool = True) -> bool:
        """Return whether the key may make calls of a scope.

        own: of calls about the memory of a person or a space, all of which their own key may make if it may chat.
        """
        return scope in self.scopes or (own and not self.is_whole_tenant and CHAT in self.scopes)

    def require_scope(self, scope: str, *, own: bool = True) -> None:
        """Raise Forbidden where the key lacks a scope. own: see `has_scope`."""
        if not self.has_scope(scope, own=own):
            scopes = " and ".join(f"`{name}`" for name in sorted(self.scopes))
            raise Forbidden(
                "scope_missing",
                f"This call needs a key with the scope `{scope}`; this key has {scopes}. Nothing was done. Ask the "
                "server's operator for another key.",
            )

    def require_right(self, space: str, right: str) -> None:
        """Raise NotFound where the key does not open the space, Forbidden where it may only read there."""
        found = WRITE if self.is_whole_tenant else (self.spaces or {}).get(space)
        if found is None or not ID.fullmatch(space):
            raise owner_not_found(space=space)
        if right == WRITE != found:
            raise Forbidden(
                "space_read_only",
                f"This key may only read in the space {space!r}. Nothing was done. Ask the server's operator for "
                "another.",
            )


ANONYMOUS = Principal("default")  # the caller where no key is required


class Keys:
    """Creates, revokes and recognises keys. Thread-safe."""

    def __init__(
        self,
        configured: Sequence[ApiKey],
        database: Database,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,  # `now` may be put back, which would keep a revoked key alive
    ) -> None:
        self._configured = [
            (digest_of(setting.key), Principal(setting.tenant, key=f"set-{number}"))
            for number, setting in enumerate(configured, 1)
        ]
        self._database = database
        self._now = now
        self._by_digest = ttl_cache(maxsize=1, ttl=CACHE_SECONDS, timer=clock)(self._read)

    @property
    def required(self) -> bool:
        """Return whether callers need a key: one is in the settings, or one was ever created."""
        return bool(self._configured or self._by_digest())

    def find_principal(self, key: str) -> Principal | None:
        """Return the principal of `key`; None for an unknown or revoked one."""
        key_digest = digest_of(key)
        match: Principal | None = None
        for digest, principal in self._configured:  # no early exit: each key takes the same time
            if hmac.compare_digest(digest, key_digest):
                match = principal
        return match or self._by_digest().get(key_digest)

    @property
    def tenants(self) -> set[str]:
        """Return the tenants that have keys."""
        principals = (*(principal for _, principal in self._configured), *self._by_digest().values())
        return {principal.tenant for principal in principals if principal is not None}

    def _read(self) -> dict[str, Principal | None]:
        """Return the created keys by digest; None: revoked."""
        with self._database.read() as tx:
            return {row.digest: None if row.revoked_at else principal_of(row) for row in tx.execute(_ROWS)}

    def create(
        self,
        tenant: str,
        user_id: str | None = None,
        scopes: Collection[str] = tuple(SCOPES),
        label: str = "",
        spaces: Mapping[str, str] | None = None,
    ) -> tuple[str, KeyRow]:
        """Create a key; return it, which is shown this once, and its row. Raises InvalidRequest."""
        _check(tenant, user_id, scopes, label, spaces or {})
        key = PREFIX + secrets.token_urlsafe(32)
        row = KeyRow(
            tenant=tenant,
            user_id=user_id,
            scopes=" ".join(scope for scope in SCOPES if scope in scopes),
            spaces=dict(spaces) if spaces else None,
            label=label,
            hint=key[:HINT_CHARS],
            digest=digest_of(key),
            created_at=self._now(),
        )
        with self._database.write() as tx:
            tx.add(row)
        self._by_digest.cache_clear()
        return key, row

    def list_keys(self) -> Sequence[KeyRow]:
        """Return every created key, also revoked ones, oldest first."""
        with self._database.read() as tx:
            return tx.scalars(select(KeyRow).order_by(KeyRow.id)).all()

    def revoke(self, key_id: int) -> KeyRow:
        """Refuse a key from now on, and the programs that it connected. A second call keeps the time of the first.

        Raises NotFound.
        """
        with self._database.write() as tx:
            row = tx.scalar(for_update(tx, select(KeyRow).where(KeyRow.id == key_id), KeyRow))
            if row is None:
                raise NotFound("key_not_found", f"There is no key {key_id}. `recap keys list` shows those there are.")
            row.revoked_at = row.revoked_at or self._now()
            tx.execute(delete(GrantRow).where(GrantRow.key_id == key_id))
        self._by_digest.cache_clear()
        return row

    @staticmethod
    def forget_person(tx: Transaction, tenant: str, user_id: str) -> None:
        """End the connections of a person who is erased, and take their name and label out of their revoked keys.

        Keys that work stay.
        """
        of_person = KeyRow.tenant == tenant, KeyRow.user_id == user_id
        tx.execute(delete(GrantRow).where(GrantRow.key_id.in_(select(KeyRow.id).where(*of_person))))
        revoked = *of_person, KeyRow.revoked_at.is_not(None)
        tx.execute(update(KeyRow).where(*revoked).values(user_id="", label=""))


def _check(tenant: str, user_id: str | None, scopes: Collection[str], label: str, spaces: Mapping[str, str]) -> None:
    """Raise InvalidRequest for values that no request could carry, or no column could hold."""
    if not TENANT.fullmatch(tenant):
        problem, param = TENANT_RULE, "tenant"
    elif user_id is not None and not (USER_ID.fullmatch(user_id) and user_id.isprintable()):
        problem = f"{USER_ID_RULE} That of a key can be printed."
        param = "user_id"
    elif not scopes or not set(scopes) <= SCOPES.keys():
        problem = f"A key has one or more of the scopes {', '.join(SCOPES)}."
        param = "scopes"
    elif len(spaces) > SPACES_MAX or not all(
        ID.fullmatch(name) and right in SPACE_RIGHTS for name, right in spaces.items()
    ):
        problem = f"A key has up to {SPACES_MAX} spaces, each NAME:read or NAME:write, without white space or slashes."
        param = "spaces"
    elif len(label) > LABEL_CHARS or not label.isprintable():
        problem = f"A label is at most {LABEL_CHARS} characters that can be printed."
        param = "label"
    else:
        return
    raise InvalidRequest("bad_key", f"{problem} No key was made.", param=param)


def principal_of(row: Any) -> Principal:
    """Return the principal of a key's row, or of a token that stands for it."""
    scopes = frozenset(row.scopes.split())
    return Principal(row.tenant, row.user_id, scopes, f"made-{row.id}", row.id, row.spaces)


def digest_of(key: str) -> str:
    """Return the digest that is stored of a key or token."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


# Headers that proxies, tunnels and content networks add, as WSGI names them; a direct caller sends none of them.
_FORWARDING_HEADERS = re.compile(
    r"\bHTTP_(VIA|CDN_LOOP|FRONT_END_HTTPS|\w*(FORWARD|PROXY)\w*|(\w+_)?(CLIENT)?IP|\w+_ADDR(ESS)?"
    r"|(CF|X_ENVOY|X_ORIGINAL|X_REAL|TAILSCALE)_\w+)\b"
)


@functools.lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Return whether an address, or a name that needs no name server, is this machine's: 127.0.0.1, localhost."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def why_not_direct(environ: Mapping[str, Any]) -> str | None:
    """Return the reason why a request of WSGI did not come from this machine itself, or None."""
    peer = environ.get("REMOTE_ADDR")
    if peer and not is_loopback(peer):  # a Unix socket has no peer
        return "this request came from another machine"
    if _FORWARDING_HEADERS.search(" ".join(environ)):
        return "a proxy passed this request on, as a header such as X-Forwarded-For or Via shows"
    if not is_loopback(_hostname(f"//{environ.get('HTTP_HOST', '')}")):
        return "the Host of this request is not a name of this machine"
    return None


def why_not_local(environ: Mapping[str, Any], allowed_origins: Collection[str]) -> str | None:
    """Return the reason why a request of WSGI is not this machine's own, or None."""
    origin = environ.get("HTTP_ORIGIN")  # which a browser's GET for an image or a script of a page has not
    is_cross_site = environ.get("HTTP_SEC_FETCH_SITE") == "cross-site"
    if origin is not None:
        is_cross_site = origin not in allowed_origins and not is_loopback(_hostname(origin))
    return why_not_direct(environ) or ("a page of another site sent this request" if is_cross_site else None)


def _hostname(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def require_key_or_loopback(settings: Settings, keys: Keys, addresses: Iterable[object]) -> None:
    """Raise SettingsError when others could reach one of `addresses` and no key is required.

    An address is what gunicorn binds: (host, port, ...), a Unix socket's path, or an inherited descriptor, whose
    requests are checked one by one (`why_not_local`).
    """
    hosts = (str(address[0]) for address in addresses if isinstance(address, tuple))
    reachable = [host for host in hosts if not is_loopback(host)]
    if not reachable or settings.allow_anonymous:
        return
    with suppress(SQLAlchemyError):  # a database that cannot be read has no keys, and nothing to serve either
        if keys.required:
            return
    raise SettingsError(
        f"HOST: Recap does not start on {', '.join(reachable)}, where others could reach it, as no API key is set: "
        "they could read and erase everything. Nothing was changed. Make a key with `recap keys "
        "create`, or set RECAP_API_KEYS, or listen on 127.0.0.1; or if everyone who reaches this address may do "
        "everything, set RECAP_ALLOW_ANONYMOUS=1."
    )
