"""Webhooks on behalf of callers: addresses that are told of a person's events, or of all of a tenant.

Invariant: a secret is stored encrypted or not at all, and shown once [test_webhooks].
"""

import base64
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Select, delete, select

from memory.access.encryption import Undecryptable
from memory.access.owners import find_or_make_owner, get_row, visible_to
from memory.deliveries import SECRET_PREFIX
from memory.engine import Engine
from memory.errors import Conflict, InvalidRequest, NotFound
from memory.ops import public_network
from models import LaneRow, OwnerRow, Transaction, WebhookRow, as_value, retry_on_conflict
from models.events import Event, Position
from models.owners import Caller
from models.webhooks import Webhook

WEBHOOKS_MAX = 10  # of a person or a tenant
NOT_ALLOWED = "it is not public, or has no TLS, and the server's WEBHOOK_NETWORKS does not name it"


def list_webhooks(engine: Engine, caller: Caller) -> list[Webhook]:
    """Return the caller's webhooks, oldest first: of a person, or all of the tenant."""
    with engine.database.read() as tx:
        return [_shown(row, owner) for row, owner in tx.execute(_of_caller(caller).order_by(WebhookRow.id))]


@retry_on_conflict
def create(engine: Engine, caller: Caller, *, url: str, types: Sequence[str] = (), words: bool = False) -> Webhook:
    """Store a webhook that gets what happens from now on; return it with its secret.

    Raises InvalidRequest, and Conflict where no secret can be stored or there are too many.
    """
    now = engine.now()
    _check_url(engine, url)
    secret, encrypted = _new_secret(engine)
    position = engine.events.end()
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, caller, now)
        if len(tx.scalars(select(WebhookRow.id).where(WebhookRow.owner_id == owner.id)).all()) >= WEBHOOKS_MAX:
            text = f"There are {WEBHOOKS_MAX} webhooks already, the most. Nothing was stored."
            raise Conflict("too_many_webhooks", text)
        row = WebhookRow(owner_id=owner.id, url=url, words=words, types=list(types) or None)
        row.secret = encrypted
        row.position = str(position)
        row.enabled = True
        row.deliveries = []
        row.created_at = row.updated_at = now
        tx.add(row)
        tx.flush()
        return _shown(row, owner, secret)


@retry_on_conflict
def change(engine: Engine, caller: Caller, webhook_id: int, changes: Mapping[str, Any]) -> Webhook:
    """Change or enable a webhook; what waits for it is tried again now. Raises NotFound, InvalidRequest."""
    if "url" in changes:
        _check_url(engine, changes["url"])
    newest = engine.events.end() if "types" in changes else None
    with engine.database.write() as tx:
        row, owner = _find(tx, caller, webhook_id)
        is_held = row.failing_since is not None or not row.enabled
        if newest is not None and not is_held:  # else all that waits is delivered, by the types that count then
            engine.deliveries.pass_over(tx, row, owner, newest)
        for name, value in changes.items():
            setattr(row, name, (list(value) or None) if name == "types" else value)
        row.updated_at = engine.now()
        if is_held and row.enabled:
            row.problem = row.failing_since = None
            lanes = tx.scalars(select(LaneRow.owner_id).where(LaneRow.webhook_id == row.id)).all()
            engine.deliveries.enqueue(tx, row.id, owner.tenant, lanes, force=True)
        return _shown(row, owner)


@retry_on_conflict
def rotate(engine: Engine, caller: Caller, webhook_id: int, *, overlap_hours: int) -> Webhook:
    """Give a webhook a new secret; return it with that. The former one signs as well, for some hours.

    Raises NotFound, and Conflict where no secret can be stored.
    """
    with engine.database.write() as tx:
        row, owner = _find(tx, caller, webhook_id)
        until = engine.now() + timedelta(hours=overlap_hours)
        former = tuple[str, ...]()
        with suppress(Undecryptable):  # the key was lost, and the former secret with it
            former = engine.deliveries.secrets_of(row)[0], until.isoformat()
        secret, row.secret = _new_secret(engine, *former)
        row.updated_at = engine.now()
        return _shown(row, owner, secret)


def _new_secret(engine: Engine, *former: str) -> tuple[str, str]:
    """Return a secret and what is stored of it. former: a secret that it replaces, and until when that one signs.

    Raises Conflict.
    """
    secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    try:
        return secret, engine.deliveries.encryption.encrypt(" ".join((secret, *former)))
    except Undecryptable as error:
        raise Conflict("webhook_not_storable", f"{error} Nothing was stored.") from None


def remove(engine: Engine, caller: Caller, webhook_id: int) -> None:
    """Delete a webhook; what waits for it is dropped. Raises NotFound."""
    with engine.database.write() as tx:
        row, _ = _find(tx, caller, webhook_id)
        tx.execute(delete(WebhookRow).where(WebhookRow.id == row.id))


def send_test(engine: Engine, caller: Caller, webhook_id: int) -> dict[str, Any]:
    """Post an event of the type `webhook.test`; return the delivery. Raises NotFound."""
    with engine.database.read() as tx:
        row, _ = _find(tx, caller, webhook_id)
    event = Event(f"test_{secrets.token_hex(8)}", "webhook.test", engine.now(), {"webhook_id": row.id}, Position())
    return engine.deliveries.deliver(row, event)


def _check_url(engine: Engine, url: str) -> None:
    """Raise InvalidRequest for an address that no delivery would reach. A name is looked up at each delivery."""
    networks = engine.settings.webhook_networks
    problem = None
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_encrypted = parts.scheme == "https" and parts.port != 0
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https") or not url.isascii() or len(url.split()) > 1:
        problem = "it is no address of http(s), in ASCII"
    elif "@" in parts.netloc or parts.fragment:
        problem = "a password or a fragment can't be in it"
    elif not is_encrypted and not networks:
        problem = NOT_ALLOWED
    else:
        with suppress(ValueError):
            if not public_network.is_allowed(ip_address(host), networks, is_encrypted=is_encrypted):
                problem = NOT_ALLOWED
    if problem:
        raise InvalidRequest("bad_webhook_url", f"This address can't be used: {problem}.", param="url")


def _of_caller(caller: Caller) -> Select[*tuple[Any, ...]]:
    return visible_to(select(WebhookRow, OwnerRow).join(OwnerRow, OwnerRow.id == WebhookRow.owner_id), caller)


def _find(tx: Transaction, caller: Caller, webhook_id: int) -> tuple[WebhookRow, OwnerRow]:
    """Return a caller's webhook, and its owner. Raises NotFound."""
    missing = NotFound("webhook_not_found", f"There is no webhook {webhook_id}.")
    row, owner = get_row(tx, _of_caller(caller).where(WebhookRow.id == webhook_id), missing, OwnerRow, WebhookRow)
    return row, owner


def _shown(row: WebhookRow, owner: OwnerRow, secret: str | None = None) -> Webhook:
    own = {"user_id": owner.user_id, "space": owner.space, "types": row.types or [], "secret": secret}
    return as_value(Webhook, row, **own)
