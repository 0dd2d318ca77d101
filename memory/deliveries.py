"""Deliveries of webhooks: each owner's events, posted in their order, and again after a pause where a receiver fails.

Each owner has a lane in each webhook, with the place up to which its events were delivered. `dispatch` finds the owners
with news and enqueues a job for each lane; the job posts the lane's events one by one. So a failing lane holds back the
events of its own owner alone.

Invariants [test_webhooks]:
- An event is delivered at least once, whatever is killed meanwhile: the lane moves on after its receiver has answered.
- Of an owner, no event is delivered before an earlier one was.
- What was erased, and what the webhook does not want any more, is not posted after that is stored.
- The address that is checked is the one that is connected to. Private, loopback, link-local and all other addresses
  that are not public are reached only where WEBHOOK_NETWORKS names them, and only there without TLS.
- No redirect is followed, no proxy is taken, no body is read, and nothing lasts longer than DELIVERY_SECONDS.
"""

import base64
import hashlib
import hmac
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import httpcore2
from sqlalchemy import ColumnElement, select, update

from config import Settings
from config.parsers import Network
from memory.access.encryption import Encryption, Undecryptable
from memory.errors import DeliveryFailed
from memory.events import BATCH, Events, find_owners, parse_position, read_events
from memory.jobs import JobQueue
from memory.ops.public_network import NotPublic, PublicNetwork
from models import Database, JobRow, LaneRow, OwnerRow, Transaction, Upsert, WebhookRow, for_update, retry_on_conflict
from models.events import Event, Position
from models.jobs import Job, JobRequest
from schemas.events import EVENT

DELIVERY_SECONDS = 15.0
DELIVERIES_SHOWN = 20
FAILING_MAX = timedelta(days=3)  # after which a webhook is disabled
PAUSE_MAX = timedelta(seconds=60)  # between tries of a webhook that has failed for long, over all of its lanes
GONE = 410  # of HTTP: by Standard Webhooks, the receiver wants no more
USER_AGENT = "Recap-Webhooks/1"
SECRET_PREFIX = "whsec_"  # nosec B105 # of Standard Webhooks

Outcome = tuple[int | None, str | None]
"""The status of HTTP, and why a delivery counts as failed; None: it does not."""

_W, _O = WebhookRow.__table__.c, OwnerRow.__table__.c
_LANES = Upsert(LaneRow, ("webhook_id", "owner_id"), lambda _: {"position": LaneRow.position})  # changes nothing
_ENABLED = select(_W.id, _W.owner_id, _W.types, _W.position, _O.tenant, _O.kind).join(OwnerRow).where(_W.enabled)


class Deliveries:
    """Delivers events to the webhooks there are."""

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
        self.encryption = Encryption(settings)
        self._looked: dict[int, Position] = {}  # by webhook: up to there nothing is new

    def dispatch(self) -> None:
        """Enqueue a job for each lane with news. Any process may do so, at any time."""
        with self._database.read() as tx:
            enabled = tx.execute(_ENABLED).all()
        newest = self._events.newest() if enabled else None
        if newest is None:
            return
        for webhook in enabled:
            which = _events_of(webhook.kind, webhook.tenant, webhook.owner_id)
            known = Position(*map(max, parse_position(webhook.position), self._looked.get(webhook.id, Position())))
            with self._database.read() as tx:
                has_news = bool(find_owners(tx, which, known, newest, webhook.types or ()))
            if has_news:
                self._enqueue_news(webhook.id, webhook.tenant, which, newest)
            self._looked[webhook.id] = newest

    @retry_on_conflict
    def _enqueue_news(self, webhook_id: int, tenant: str, which: ColumnElement[bool], newest: Position) -> None:
        with self._database.write(durable=False) as tx:  # after a power cut it is done again
            row = tx.scalar(for_update(tx, select(WebhookRow).where(WebhookRow.id == webhook_id), WebhookRow))
            if row is not None and row.enabled:
                self._fill_lanes(tx, row, tenant, which, newest)

    def _fill_lanes(
        self, tx: Transaction, row: WebhookRow, tenant: str, which: ColumnElement[bool], newest: Position
    ) -> None:
        """Make the lanes that are missing, and enqueue a job for each lane with news up to `newest`."""
        begin = parse_position(row.position)
        owners = find_owners(tx, which, begin, newest, row.types or ())
        lanes = [{"webhook_id": row.id, "owner_id": owner, "position": row.position} for owner in owners]
        if lanes:
            _LANES.execute(tx, lanes)
        self.enqueue(tx, row.id, tenant, owners)
        row.position = str(Position(*map(max, begin, newest)))

    def pass_over(self, tx: Transaction, row: WebhookRow, owner: OwnerRow, newest: Position) -> None:
        """Deliver no event up to `newest` but those that a webhook wants now: its types change."""
        self._fill_lanes(tx, row, owner.tenant, _events_of(owner.kind, owner.tenant, owner.id), newest)
        job = JobRow.owner_id == LaneRow.owner_id, JobRow.kind == "webhook", JobRow.key.startswith(f"{row.id}/")
        is_idle = LaneRow.webhook_id == row.id, ~select(JobRow.id).where(*job).exists()
        tx.execute(update(LaneRow.__table__).where(*is_idle).values(position=row.position))

    def enqueue(
        self, tx: Transaction, webhook_id: int, tenant: str, owner_ids: Sequence[int], *, force: bool = False
    ) -> None:
        """Enqueue a job for each owner's lane in a webhook. force: also where the last try failed."""
        jobs = (JobRequest("webhook", f"{webhook_id}/{owner}", tenant, owner, force=force) for owner in owner_ids)
        self._job_queue.enqueue(tx, *jobs)

    def run(self, job: Job) -> bool:
        """Deliver the next events of a lane; return whether there may be more. Raises DeliveryFailed."""
        return all(self._deliver_next(job) for _ in range(BATCH))

    def _deliver_next(self, job: Job) -> bool:
        """Deliver the next event of a lane as it is now; return False if there is none. Raises DeliveryFailed."""
        with self._database.read() as tx:
            row = tx.get(WebhookRow, int(job.key.partition("/")[0]))
            lane = tx.get(LaneRow, (row.id, job.owner_id)) if row is not None else None
            if row is None or lane is None or not row.enabled:
                return False
            after, upto = parse_position(lane.position), parse_position(row.position)
            which = _O.id == job.owner_id
            events, _ = read_events(tx, which, after, upto, types=row.types or (), words=row.words, most=1)
        if events and row.failing_since is not None:
            last_try = datetime.fromisoformat(row.deliveries[0]["at"])
            pause = min(PAUSE_MAX, (last_try - row.failing_since) / 2)
            if last_try <= self._now() < last_try + pause:  # a try that is to come was before the clock was put back
                raise DeliveryFailed(row.id, "it fails, and is tried again later")
        for event in events:
            delivery = self.deliver(row, event, job.owner_id)
            if delivery["error"] is not None:
                raise DeliveryFailed(row.id, delivery["error"])
        return bool(events)

    def deliver(self, row: WebhookRow, event: Event, owner_id: int | None = None) -> dict[str, Any]:
        """Post an event and store how it went; return that. owner_id: whose lane moves on by it."""
        began, at = time.monotonic(), self._now()
        try:
            status, error = post(row.url, self.secrets_of(row), event, at, self._settings.webhook_networks)
        except Undecryptable:
            text = "its secret can't be decrypted: ENCRYPTION_KEY, or the key file, is missing or another one"
            status, error = None, text
        delivery: dict[str, Any] = {"event_id": event.id, "type": event.type, "at": at.isoformat()}
        delivery |= {"status": status, "error": error, "seconds": round(time.monotonic() - began, 3)}
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

    def secrets_of(self, row: WebhookRow) -> list[str]:
        """Return the secrets that sign now, the newest first. Raises Undecryptable."""
        secret, *former = self.encryption.decrypt(row.secret).split(" ")
        return [secret, *former[:1]] if former and self._now() < datetime.fromisoformat(former[1]) else [secret]


def _events_of(kind: str, tenant: str, owner_id: int) -> ColumnElement[bool]:
    """Return the condition for the owners whose events a webhook gets, by its own owner."""
    return _O.tenant == tenant if kind == "tenant" else _O.id == owner_id


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header webhook-signature, as Standard Webhooks defines it."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


def post(url: str, secrets: Iterable[str], event: Event, at: datetime, networks: Iterable[Network]) -> Outcome:
    """Post an event to an address, signed with each of the secrets; any answer of 2xx is a success."""
    is_encrypted = url.lower().startswith("https:")
    timestamp = int(at.timestamp())
    content = EVENT.dumps(event).encode()
    headers: dict[bytes | str, bytes | str] = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "Connection": "close",
        "webhook-id": event.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, event.id, timestamp, content) for secret in secrets),
    }
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), DELIVERY_SECONDS)
    context = ssl.create_default_context() if is_encrypted else None  # which reads SSL_CERT_FILE
    network = PublicNetwork(DELIVERY_SECONDS, networks, is_encrypted=is_encrypted)
    try:
        with (
            httpcore2.ConnectionPool(context, network_backend=network) as pool,
            pool.stream("POST", url, headers=headers, content=content, extensions={"timeout": timeout}) as response,
        ):
            status = response.status
    except NotPublic:
        more = "" if is_encrypted else ", or without TLS"
        return None, f"its address is not public{more}, and the server's WEBHOOK_NETWORKS does not name it"
    except httpcore2.TimeoutException:
        return None, f"no answer in {DELIVERY_SECONDS:g} seconds"
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, UnicodeError) as error:
        return None, f"{type(error).__name__}: {error}"[:200]
    if 200 <= status < 300:
        return status, None
    return status, "a redirect, which is not followed" if 300 <= status < 400 else f"it answered {status}"
