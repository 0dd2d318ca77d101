"""OAuth 2.1 for programs that connect by URL: codes and tokens that stand for a key of the person who signed in.

A token has the tenant and the person of its key, and of its scopes those that the person allowed. It opens the MCP
server alone, and ends with its key.

Invariants:
- No code and no token is stored, only its SHA-256 digest: each is 256 random bits (test_oauth).
- A code is good once, with its own client, redirect URI, verifier and resource; a second use ends the connection, as
  the use of an old refresh token does (test_oauth).
- A token of a revoked or erased key opens nothing, from the commit on (test_oauth).
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, exists, select

from memory.access.keys import Keys, Principal, digest_of, principal_of
from memory.errors import Forbidden, InvalidRequest, NotFound, Unauthenticated
from models import Database, GrantRow, KeyRow, TokenRow, Transaction, for_update, retry_on_conflict
from models.keys import ADMIN, CHAT, READ
from models.oauth import ACCESS, CODE, MCP_SCOPES, REFRESH, Authorization, OAuthClient, Tokens

TOKEN_PREFIX = "recapt_"  # nosec B105 - by which people and secret scanners know a token from a key
LIFETIMES = {CODE: timedelta(minutes=2), ACCESS: timedelta(hours=1), REFRESH: timedelta(days=90)}
REPEAT = timedelta(seconds=30)  # a client whose answer got lost, or that runs twice, renews again with the same token

_TOKENS = select(TokenRow, GrantRow).join(GrantRow).join(KeyRow).where(KeyRow.revoked_at.is_(None))
_PRINCIPAL = (
    select(KeyRow.id, KeyRow.tenant, KeyRow.user_id, GrantRow.scopes, KeyRow.spaces, KeyRow.scopes.label("of_key"))
    .select_from(TokenRow)
    .join(GrantRow)
    .join(KeyRow)
    .where(KeyRow.revoked_at.is_(None), TokenRow.kind == ACCESS)
)


class OAuth:
    """Connects programs, renews their tokens and recognises them. Thread-safe."""

    def __init__(self, keys: Keys, database: Database, now: Callable[[], datetime]) -> None:
        self._keys = keys
        self._database = database
        self._now = now

    def authorize(self, key: str, client: OAuthClient, request: Authorization) -> str:
        """Return a code for a program that the holder of `key` connects. Raises Unauthenticated, Forbidden."""
        principal = self._keys.find_principal(key)
        if principal is None:
            raise Unauthenticated("api_key_unknown", "This API key is unknown or was revoked.")
        scopes = [scope for scope in MCP_SCOPES if scope in request.scopes and principal.has_scope(scope)]
        if principal.key_id is None:
            raise Forbidden(
                "key_of_settings",
                "This key is set in RECAP_API_KEYS, for programs of the operator's. Sign in with a key of your own: "
                "`recap keys create --user NAME` makes one.",
            )
        if READ not in scopes:
            raise Forbidden("scope_missing", "This key may not look at what is remembered: it lacks the scope `read`.")
        now = self._now()
        with self._database.write() as tx:
            live = exists().where(TokenRow.grant_id == GrantRow.id, TokenRow.expires_at > now)
            tx.execute(delete(GrantRow).where(~live))
            grant = GrantRow(
                key_id=principal.key_id,
                client=digest_of(client.id),
                name=client.name,
                redirect_uri=request.redirect_uri,
                challenge=request.code_challenge,
                resource=request.resource,
                scopes=" ".join(scopes),
                created_at=now,
                renewed_at=now,
            )
            tx.add(grant)
            tx.flush()
            return self._make(tx, grant, CODE)

    def redeem(self, code: str, client_id: str, redirect_uri: str, verifier: str, resource: str | None) -> Tokens:
        """Return the first tokens for a code. Raises InvalidRequest with the code `invalid_grant`."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()

        def fits(grant: GrantRow) -> bool:
            return grant.redirect_uri == redirect_uri and hmac.compare_digest(grant.challenge, challenge)

        return self._exchange(CODE, code, client_id, resource, fits)

    def renew(self, token: str, client_id: str, resource: str | None) -> Tokens:
        """Return new tokens for a refresh token. Raises InvalidRequest with the code `invalid_grant`."""
        return self._exchange(REFRESH, token, client_id, resource, lambda _: True)

    @retry_on_conflict
    def _exchange(
        self, kind: str, secret: str, client_id: str, resource: str | None, fits: Callable[[GrantRow], bool]
    ) -> Tokens:
        now = self._now()
        with self._database.write() as tx:
            query = _TOKENS.where(TokenRow.digest == digest_of(secret), TokenRow.kind == kind)
            row = tx.execute(for_update(tx, query, GrantRow, TokenRow)).first()
            if row is not None:
                token, grant = row
                repeated = token.used_at is not None and (kind == CODE or token.used_at + REPEAT <= now)
                if repeated:  # by somebody who got hold of it, or after them: nobody knows who is who
                    tx.execute(delete(GrantRow).where(GrantRow.id == grant.id))
                elif (
                    token.expires_at > now
                    and grant.client == digest_of(client_id)
                    and resource in (None, grant.resource)
                    and fits(grant)
                ):
                    token.used_at = token.used_at or now
                    grant.renewed_at = now
                    tx.execute(delete(TokenRow).where(TokenRow.grant_id == grant.id, TokenRow.expires_at <= now))
                    access, refresh = self._make(tx, grant, ACCESS), self._make(tx, grant, REFRESH)
                    return Tokens(access, refresh, int(LIFETIMES[ACCESS].total_seconds()), grant.scopes)
        raise InvalidRequest(
            "invalid_grant",
            f"This {'code' if kind == CODE else 'refresh token'} is unknown, expired, used or revoked, or belongs to "
            "another client, redirect URI, verifier or resource. Sign in again.",
            status=400,
        )

    def find_principal(self, token: str, resource: str) -> Principal | None:
        """Return the principal of an access token for `resource`; None for one that opens nothing."""
        valid = _PRINCIPAL.where(
            TokenRow.digest == digest_of(token), TokenRow.expires_at > self._now(), GrantRow.resource == resource
        )
        with self._database.read() as tx:
            row = tx.execute(valid).first()
        if row is None:
            return None
        principal = principal_of(row)
        if ADMIN in principal.scopes and ADMIN not in row.of_key.split():
            # The key has it for its person's own memory alone, as each that may chat.
            principal = replace(principal, scopes=principal.scopes - {ADMIN} | {CHAT})
        return principal

    def revoke(self, token: str) -> None:
        """End the connection of an access or refresh token. An unknown one changes nothing."""
        of_token = select(TokenRow.grant_id).where(TokenRow.digest == digest_of(token))
        with self._database.write() as tx:
            tx.execute(delete(GrantRow).where(GrantRow.id.in_(of_token)))

    def list_connections(self) -> Sequence[GrantRow]:
        """Return the connected programs of all keys, oldest first."""
        live = exists().where(
            TokenRow.grant_id == GrantRow.id, TokenRow.kind == REFRESH, TokenRow.expires_at > self._now()
        )
        with self._database.read() as tx:
            return tx.scalars(select(GrantRow).where(live).order_by(GrantRow.id)).all()

    def disconnect(self, connection_id: int) -> None:
        """End a connection. Raises NotFound."""
        with self._database.write() as tx:
            deleted: Any = tx.execute(delete(GrantRow).where(GrantRow.id == connection_id))
            if not deleted.rowcount:
                text = f"There is no connection {connection_id}. `recap keys list` shows those there are."
                raise NotFound("connection_not_found", text)

    def _make(self, tx: Transaction, grant: GrantRow, kind: str) -> str:
        """Store a new code or token, and return it."""
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        lasts = self._now() + LIFETIMES[kind]
        tx.add(TokenRow(digest=digest_of(secret), grant_id=grant.id, kind=kind, expires_at=lasts))
        return secret
