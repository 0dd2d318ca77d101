"""API keys: who may call, whose data they see, and what for.

There are two kinds: those an operator writes into RECAP_API_KEYS, which may do everything in their tenant, and those
that `flask keys create` makes, which may be for some scopes only and for one person only.  These are rows, so they
come and go while the service runs.

Guarantee: no key is stored.  What is kept of a made one is its SHA-256 digest; a slow hash would protect passwords,
which people choose and others guess, but a made key is 256 random bits: there is nothing to try, however fast it goes.
The settings' keys are compared in constant time.  A made one is looked up by its digest, whose timing tells a
stranger nothing, since nobody can choose what a digest begins with.  Once there was a key, one is asked for: revoking
the last one closes the door, it does not open it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from config import ApiKey
from config.values import TENANT
from memory.errors import InvalidRequest, NotFound
from models import Database, KeyRow

CHAT, READ, ADMIN = "chat", "read", "admin"
SCOPES = {
    CHAT: "take turns: chat, the OpenAI protocol, make sessions, append messages",
    READ: "look at what is remembered",
    ADMIN: "everything else: change, erase, export, import, prompts, jobs",
}

PREFIX = "recap_"  # by which people, and programs that look for secrets in files, know what it is
HINT_CHARS = len(PREFIX) + 4  # shown of a key, to tell it from others; what is left is far beyond guessing
LABEL_CHARS, USER_CHARS = 200, 256
# Seconds for which a process takes what it knows of the rows for true.  So a revoked key is refused on every worker
# soon after the command has returned, and a request costs no SQL statement for its key, but one in two seconds.
KNOWN_SECONDS = 2.0

_K = KeyRow.__table__.c
_MADE = select(_K.digest, _K.id, _K.tenant, _K.user_id, _K.scopes, _K.revoked_at)


@dataclass(frozen=True)
class KeyHolder:
    """Who is calling, by their key: a tenant, the one person it speaks for (None: any of the tenant's), its scopes.

    `key` tells one key from another and says nothing of it: `made-7` for row 7, `set-1` for the first in the settings.
    """

    tenant: str
    user_id: str | None = None
    scopes: frozenset[str] = frozenset(SCOPES)
    key: str | None = None


ANYONE = KeyHolder("default")  # who calls where no key is asked for


@dataclass(frozen=True)
class KeyInfo:
    """A made key as it is listed.  `hint` is how it begins."""

    id: int
    tenant: str
    user_id: str | None
    scopes: tuple[str, ...]
    label: str
    hint: str
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True)
class _Rows:
    """The rows as of `at` on the clock: whom each digest lets in, and whether there ever was a key."""

    at: float
    holders: Mapping[str, KeyHolder]
    any_made: bool


class Keys:
    """Makes, revokes and recognises keys.  Thread-safe."""

    def __init__(
        self,
        configured: Sequence[ApiKey],
        database: Database,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,  # not `now`: set back, that would keep a revoked key alive
    ) -> None:
        self._configured = [
            (_digest(one.key), KeyHolder(one.tenant, key=f"set-{number}")) for number, one in enumerate(configured, 1)
        ]
        self._database = database
        self._now = now
        self._clock = clock
        self._reading = threading.Lock()
        self._rows: _Rows | None = None

    # -- at the door

    @property
    def required(self) -> bool:
        """Whether a key is asked for: one is in the settings, or one was ever made."""
        return bool(self._configured) or self._known().any_made

    def identify(self, key: str) -> KeyHolder | None:
        """Whom `key` lets in; None for an unknown or revoked one."""
        given = _digest(key)
        found: KeyHolder | None = None
        for digest, holder in self._configured:  # all of them, so that it takes as long for any
            if hmac.compare_digest(digest, given):
                found = holder
        return found or self._known().holders.get(given)

    def _known(self) -> _Rows:
        known = self._rows
        if known is not None and self._clock() - known.at < KNOWN_SECONDS:
            return known
        with self._reading:  # one reads; who comes meanwhile waits for it, as what they'd go by is too old
            known = self._rows
            if known is None or self._clock() - known.at >= KNOWN_SECONDS:
                at = self._clock()  # before it is read: what is revoked while it is read was not seen
                with self._database.read() as tx:
                    rows = tx.execute(_MADE).all()
                holders = {
                    digest: KeyHolder(tenant, user_id, frozenset(scopes.split()), f"made-{row_id}")
                    for digest, row_id, tenant, user_id, scopes, revoked_at in rows
                    if revoked_at is None
                }
                known = self._rows = _Rows(at, holders, bool(rows))
        return known

    # -- for the operator

    def create(
        self, tenant: str, user_id: str | None = None, scopes: Collection[str] = tuple(SCOPES), label: str = ""
    ) -> tuple[str, KeyInfo]:
        """A new key, which can't be had again, and what is kept of it.  Raises InvalidRequest."""
        _check(tenant, user_id, scopes, label)
        key = PREFIX + secrets.token_urlsafe(32)
        row = KeyRow(
            tenant=tenant,
            user_id=user_id,
            scopes=" ".join(scope for scope in SCOPES if scope in scopes),
            label=label,
            hint=key[:HINT_CHARS],
            digest=_digest(key),
            created_at=self._now(),
        )
        with self._database.write() as tx:
            tx.add(row)
            tx.flush()
            info = _info(row)
        self._rows = None
        return key, info

    def all(self) -> list[KeyInfo]:
        """Every key that was made, revoked ones too, oldest first."""
        with self._database.read() as tx:
            return [_info(row) for row in tx.scalars(select(KeyRow).order_by(KeyRow.id))]

    def revoke(self, key_id: int) -> KeyInfo:
        """Let a key in no more; of one that is revoked already the time stays.  Raises NotFound."""
        with self._database.write() as tx:
            row = tx.get(KeyRow, key_id)
            if row is None:
                raise NotFound("key_not_found", f"There is no key {key_id}. `flask keys list` shows those there are.")
            row.revoked_at = row.revoked_at or self._now()
            info = _info(row)
        self._rows = None
        return info


def _check(tenant: str, user_id: str | None, scopes: Collection[str], label: str) -> None:
    """Raise InvalidRequest for what no request could ever be of, or no table could hold."""
    problem = None
    if not TENANT.fullmatch(tenant):
        problem = "A tenant is 1 to 64 letters, digits and any of _ . - after the first.", "tenant"
    elif user_id is not None and not (1 <= len(user_id) <= USER_CHARS and user_id.isprintable()):
        problem = f"A user_id is 1 to {USER_CHARS} characters that can be printed.", "user_id"
    elif not scopes or not set(scopes) <= SCOPES.keys():
        problem = f"A key has one or more of the scopes {', '.join(SCOPES)}.", "scopes"
    elif len(label) > LABEL_CHARS or not (label.isprintable()):
        problem = f"A label is at most {LABEL_CHARS} characters that can be printed.", "label"
    if problem is not None:
        raise InvalidRequest("bad_key", f"{problem[0]} No key was made.", param=problem[1])


def _info(row: KeyRow) -> KeyInfo:
    return KeyInfo(
        row.id,
        row.tenant,
        row.user_id,
        tuple(row.scopes.split()),
        row.label,
        row.hint,
        row.created_at,
        row.revoked_at,
    )


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
