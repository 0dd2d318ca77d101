"""Webhooks."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from models.events import EVENT_TYPES
from schemas.events import TYPES
from schemas.fields import WHOM, CallerQuery, Items, Text, UtcDateTime, describe, list_of, one_of

URL_CHARS = 2000


_URL = Text(
    required=True,
    validate=validate.Length(1, URL_CHARS),
    metadata=describe("Where events are posted, by https. An address that is not public needs WEBHOOK_NETWORKS."),
)
_TYPES = Items(one_of(*EVENT_TYPES), len(EVENT_TYPES), metadata=describe(f"Empty: all. {TYPES}"))
_WORDS = fields.Boolean(metadata=describe("With what people and models said."))


class WebhookCreate(CallerQuery):
    """Webhook to make. Without a `user_id` or a `space` it gets the events of the whole tenant."""

    url, types, words = _URL, _TYPES, _WORDS


class WebhookChange(WebhookCreate):
    """Changes of a webhook."""

    class Meta:
        exclude = WHOM

    enabled = fields.Boolean(metadata=describe("`true` delivers everything since it was disabled."))


class Delivery(Schema):
    """Try to deliver an event."""

    event_id = fields.String()
    type = fields.String()
    at = fields.String(metadata={"format": "date-time"})
    status = fields.Integer(allow_none=True, metadata=describe("Of HTTP; null when no answer came."))
    error = fields.String(allow_none=True, metadata=describe("Why it counts as failed; null: it was delivered."))
    seconds = fields.Float()


class Webhook(Schema):
    """Webhook. Its secret is shown once, when it is made."""

    id = fields.Integer()
    user_id = fields.String(allow_none=True, metadata=describe("The person whose events it gets."))
    space = fields.String(allow_none=True, metadata=describe("The space whose events it gets; neither: the tenant's."))
    url = fields.String()
    types = fields.List(fields.String(), metadata=describe("Empty: all."))
    words = fields.Boolean()
    enabled = fields.Boolean()
    failing_since = UtcDateTime(allow_none=True, metadata=describe("Since then no delivery has succeeded."))
    problem = fields.String(allow_none=True, metadata=describe("Why it was disabled by itself."))
    deliveries = fields.List(fields.Nested(Delivery), metadata=describe("The last tries, newest first."))
    created_at = UtcDateTime()
    updated_at = UtcDateTime()


class WebhookMade(Webhook):
    """Webhook that was just made."""

    secret = fields.String(
        metadata=describe("What deliveries are signed with, by Standard Webhooks; never shown again.")
    )


WebhookList = list_of(Webhook)
