"""Webhooks: addresses that are told of a person's events, or of all of a tenant.

Each owner has a lane in each webhook, with the place up to which its events were delivered. `dispatch` finds the owners
with news and enqueues a job for each lane; the job posts the lane's events one by one, and is tried again after a pause
when a receiver fails. So a failing lane holds back the events of its own owner alone.

Invariants [test_webhooks]:
- An event is delivered at least once, whatever is killed meanwhile: the lane moves on after its receiver has answered.
- Of an owner, no event is delivered before an earlier one was.
- A secret is stored encrypted or not at all, and shown once.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import ColumnElement, Select, delete, select, update

from config import Settings
from memory.access.encryption import Encryption, Undecryptable
from memory.access.owners import find_or_make_owner, get_row, visible_to
from memory.errors import Conflict, DeliveryFailed, InvalidRequest, NotFound
from memory.events import BATCH, Events, find_owners, of_caller, parse_position, read_events
from memory.jobs import JobQueue
from memory.ops import public_network
from memory.webhooks import sending
from memory.webhooks.sending import SECRET_PREFIX
from models import Database, LaneRow, OwnerRow, Transaction, Upsert, WebhookRow, as_value, for_update, retry_on_conflict
from models.events import Event, Position
from models.jobs import Job, JobRequest
from models.owners import Caller
from models.webhooks import Webhook

WEBHOOKS_MAX = 10  # of a person or a tenant
DELIVERIES_SHOWN = 20
FAILING_MAX = timedelta(days=3)  # after which a webhook is disabled
PAUSE_MAX = timedelta(seconds=60)  # between tries of a webhook that has failed for long, over all of its lanes
UNUSED_SECONDS = 10.0  # between looks for webhooks that other processes made, where there are none
GONE = 410  # of HTTP: by Standard Webhooks, the receiver wants no more

_W, _O = WebhookRow.__table__.c, OwnerRow.__table__.c
_LANES = Upsert(LaneRow, ("webhook_id", "owner_id"), lambda _: {"position": LaneRow.position})  # changes nothing
_ENABLED = select(_W.id, _W.types, _W.position, _O.tenant, _O.kind, _O.name).join(OwnerRow).where(_W.enabled)


class Webhooks:
    """Registers webhooks on behalf of callers, and delivers to them."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        events: Events,
        job_queue: JobQueue,
        now: Callable[[], datetime],
    ) -> None:
        self._settings, self._database, self._events = settings, database, events
        self._job_queue, self._now = job_queue, now
        self._encryption = Encryption(settings)
        self._unused_until = 0.0  # by time.monotonic()
        self._looked: dict[int, Position] = {}  # by webhook: up to there nothing is new

    # -- for callers

    def find(self, caller: Caller) -> list[Webhook]:
        """Return the caller's webhooks, oldest first: of a person, or all of the tenant."""
        with self._database.read() as tx:
            return [_shown(row, owner) for row, owner in tx.execute(_of_caller(caller).order_by(WebhookRow.id))]

    @retry_on_conflict
    def create(self, caller: Caller, *, url: str, types: Sequence[str] = (), words: bool = False) -> Webhook:
        """Store a webhook that gets what happens from now on; return it with its secret.

        Raises InvalidRequest, and Conflict where no secret can be stored or there are too many.
        """
        now = self._now()
        self._check_url(url)
        secret, encrypted = self._new_secret()
        position = self._events.end()
        with self._database.write() as tx:
            owner = find_or_make_owner(tx, caller, now)
            if len(tx.scalars(select(WebhookRow.id).where(WebhookRow.owner_id == owner.id)).all()) >= WEBHOOKS_MAX:
                text = f"There are {WEBHOOKS_MAX} webhooks already, the most. Nothing was stored."
                raise Conflict("too_many_webhooks", text)
            row = WebhookRow(owner_id=owner.id, url=url, words=words, types=list(types) or None)
            row.secret, row.position, row.enabled, row.deliveries = encrypted, str(position), True, []
            row.created_at = row.updated_at = now
            tx.add(row)
            tx.flush()
            webhook = _shown(row, owner, secret)
        self._unused_until = 0.0
        return webhook

    @retry_on_conflict
    def change(self, caller: Caller, webhook_id: int, changes: Mapping[str, Any]) -> Webhook:
        """Change or enable a webhook; what waits for it is tried again now. Raises NotFound, InvalidRequest."""
        if "url" in changes:
            self._check_url(changes["url"])
        with self._database.write() as tx:
            row, owner = _find(tx, caller, webhook_id)
            is_held = row.failing_since is not None or not row.enabled
            for name, value in changes.items():
                setattr(row, name, (list(value) or None) if name == "types" else value)
            row.updated_at = self._now()
            if is_held and row.enabled:
                row.problem = row.failing_since = None
                lanes = tx.scalars(select(LaneRow.owner_id).where(LaneRow.webhook_id == row.id)).all()
                self._enqueue(tx, row.id, owner.tenant, lanes, force=True)
            webhook = _shown(row, owner)
        self._unused_until = 0.0
        return webhook

    @retry_on_conflict
    def rotate(self, caller: Caller, webhook_id: int, *, overlap_hours: int) -> Webhook:
        """Give a webhook a new secret; return it with that. The former one signs as well, for some hours.

        Raises NotFound, and Conflict where no secret can be stored.
        """
        with self._database.write() as tx:
            row, owner = _find(tx, caller, webhook_id)
            until, former = self._now() + timedelta(hours=overlap_hours), tuple[str, ...]()
            with suppress(Undecryptable):  # the key was lost, and the former secret with it
                former = self._secrets(row)[0], until.isoformat()
            secret, row.secret = self._new_secret(*former)
            row.updated_at = self._now()
            return _shown(row, owner, secret)

    def _new_secret(self, *former: str) -> tuple[str, str]:
        """Return a secret and what is stored of it. former: a secret that it replaces, and until when that one signs.

        Raises Conflict.
        """
        refusal = self._encryption.refusal
        if refusal is not None:
            raise Conflict("webhook_not_storable", f"{refusal} Nothing was stored.")
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
        try:
            return secret, self._encryption.encrypt(" ".join((secret, *former)))
        except Undecryptable as error:
            raise Conflict("webhook_not_storable", f"{error} Nothing was stored.") from None

    def _secrets(self, row: WebhookRow) -> list[str]:
        """Return the secrets that sign now, the newest first. Raises Undecryptable."""
        secret, *former = self._encryption.decrypt(row.secret).split(" ")
        return [secret, *former[:1]] if former and self._now() < datetime.fromisoformat(former[1]) else [secret]

    def delete(self, caller: Caller, webhook_id: int) -> None:
        """Delete a webhook; what waits for it is dropped. Raises NotFound."""
        with self._database.write() as tx:
            row, _ = _find(tx, caller, webhook_id)
            tx.execute(delete(WebhookRow).where(WebhookRow.id == row.id))

    def test(self, caller: Caller, webhook_id: int) -> dict[str, Any]:
        """Post an event of the type `webhook.test`; return the delivery. Raises NotFound."""
        with self._database.read() as tx:
            row, _ = _find(tx, caller, webhook_id)
        event = Event(f"test_{secrets.token_hex(8)}", "webhook.test", self._now(), {"webhook_id": row.id}, Position())
        return self._deliver(row, event)

    def _check_url(self, url: str) -> None:
        """Raise InvalidRequest for an address that no delivery would reach. A name is looked up at each delivery."""
        networks, problem = self._settings.webhook_networks, None
        try:
            parts = urlsplit(url)
            host, is_encrypted = parts.hostname or "", parts.scheme == "https" and parts.port != 0
        except ValueError:
            host = ""
        if not host or parts.scheme not in ("http", "https") or not url.isascii() or len(url.split()) > 1:
            problem = "it is no address of http(s), in ASCII"
        elif "@" in parts.netloc or parts.fragment:
            problem = "a password or a fragment can't be in it"
        elif not is_encrypted and not networks:
            problem = "it has to begin with https://"
        else:
            with suppress(ValueError):
                if not public_network.is_allowed(ip_address(host), networks, is_encrypted=is_encrypted):
                    problem = "it is not public, or has no TLS, and the server's WEBHOOK_NETWORKS does not name it"
        if problem:
            raise InvalidRequest("bad_webhook_url", f"This address can't be used: {problem}.", param="url")

    # -- in the background

    def dispatch(self) -> None:
        """Enqueue a job for each lane with news. Any process may do so, at any time."""
        if time.monotonic() < self._unused_until:
            return
        with self._database.read() as tx:
            enabled = tx.execute(_ENABLED).all()
        if not enabled:
            self._unused_until = time.monotonic() + UNUSED_SECONDS
            return
        newest = self._events.newest()
        if newest is None:
            return
        for webhook in enabled:
            which = of_caller(OwnerRow(tenant=webhook.tenant, kind=webhook.kind, name=webhook.name).caller)
            known = Position(*map(max, parse_position(webhook.position), self._looked.get(webhook.id, Position())))
            with self._database.read() as tx:
                has_news = bool(find_owners(tx, which, known, newest, webhook.types or ()))
            if has_news:
                self._fill_lanes(webhook.id, webhook.tenant, which, newest)
            self._looked[webhook.id] = newest

    @retry_on_conflict
    def _fill_lanes(self, webhook_id: int, tenant: str, which: ColumnElement[bool], newest: Position) -> None:
        """Make the lanes that are missing, and enqueue a job for each lane with news up to `newest`."""
        with self._database.write(durable=False) as tx:  # after a power cut it is done again
            row = tx.scalar(for_update(tx, select(WebhookRow).where(WebhookRow.id == webhook_id), WebhookRow))
            if row is None or not row.enabled:
                return
            begin = parse_position(row.position)
            owners = find_owners(tx, which, begin, newest, row.types or ())
            lanes = [{"webhook_id": row.id, "owner_id": owner, "position": row.position} for owner in owners]
            if lanes:
                _LANES.execute(tx, lanes)
            self._enqueue(tx, row.id, tenant, owners)
            row.position = str(Position(*map(max, begin, newest)))

    def _enqueue(
        self, tx: Transaction, webhook_id: int, tenant: str, owner_ids: Sequence[int], *, force: bool = False
    ) -> None:
        jobs = (JobRequest("webhook", f"{webhook_id}/{owner}", tenant, owner, force=force) for owner in owner_ids)
        self._job_queue.enqueue(tx, *jobs)

    def run(self, job: Job) -> bool:
        """Deliver the next events of a lane; return whether there are more. Raises DeliveryFailed."""
        with self._database.read() as tx:
            row = tx.get(WebhookRow, int(job.key.partition("/")[0]))
            lane = tx.get(LaneRow, (row.id, job.owner_id)) if row is not None else None
            if row is None or lane is None or not row.enabled:
                return False
            after, upto = parse_position(lane.position), parse_position(row.position)
            which = _O.id == job.owner_id
            events, _ = read_events(tx, which, after, upto, types=row.types or (), words=row.words)
        if events and row.failing_since is not None:
            last_try = datetime.fromisoformat(row.deliveries[0]["at"])
            if self._now() < last_try + min(PAUSE_MAX, (last_try - row.failing_since) / 2):
                raise DeliveryFailed(row.id, "it fails, and is tried again later")
        for event in events:
            delivery = self._deliver(row, event, job.owner_id)
            if delivery["error"] is not None:
                raise DeliveryFailed(row.id, delivery["error"])
        return len(events) == BATCH

    def _deliver(self, row: WebhookRow, event: Event, owner_id: int | None = None) -> dict[str, Any]:
        """Post an event and store how it went; return that. owner_id: whose lane moves on by it."""
        began, at = time.monotonic(), self._now()
        try:
            signing = self._secrets(row)
        except Undecryptable:
            answer = sending.Answer(
                None, "its secret can't be decrypted: ENCRYPTION_KEY, or the key file, is missing or another one"
            )
        else:
            answer = sending.post(row.url, signing, event, at, self._settings.webhook_networks)
        delivery = {"event_id": event.id, "type": event.type, "at": at.isoformat(), **vars(answer)}
        delivery["seconds"] = round(time.monotonic() - began, 3)
        self._note(row.id, delivery, event.position, owner_id)
        return delivery

    @retry_on_conflict
    def _note(self, webhook_id: int, delivery: dict[str, Any], position: Position, owner_id: int | None) -> None:
        with self._database.write(durable=False) as tx:  # after a power cut the event is delivered again
            row = tx.scalar(for_update(tx, select(WebhookRow).where(WebhookRow.id == webhook_id), WebhookRow))
            if row is None:
                return
            row.deliveries = [delivery, *row.deliveries][:DELIVERIES_SHOWN]
            if owner_id is None:  # a test moves nothing
                return
            if delivery["error"] is None:
                row.failing_since = None
                lane = LaneRow.webhook_id == webhook_id, LaneRow.owner_id == owner_id
                tx.execute(update(LaneRow).where(*lane).values(position=str(position)))
                return
            now = self._now()
            row.failing_since = row.failing_since or now
            if delivery["status"] == GONE or now - row.failing_since >= FAILING_MAX:
                row.enabled = False
                row.problem = (
                    f"No delivery has succeeded since {row.failing_since:%Y-%m-%d %H:%M} UTC: {delivery['error']}."
                )


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
