"""Webhooks."""

from marshmallow import Schema

from models.events import EVENT_TYPES
from schemas import fields
from schemas.events import TYPES
from schemas.shapes import WHOM, CallerQuery

URL_CHARS = 2000


class WebhookCreate(CallerQuery):
    """Webhook to make. Without a `user_id` or a `space` it gets the events of the whole tenant."""

    url = fields.text(
        1,
        URL_CHARS,
        required=True,
        about="Where events are posted, by https. An address that is not public needs WEBHOOK_NETWORKS.",
    )
    types = fields.Items(fields.one_of(*EVENT_TYPES), len(EVENT_TYPES), about=f"Empty: all. {TYPES}")
    words = fields.Boolean(about="With what people and models said.")


class WebhookChange(WebhookCreate):
    class Meta:
        exclude = WHOM

    enabled = fields.Boolean(about="`true` delivers everything since it was disabled.")


class WebhookRotate(Schema):
    overlap_hours = fields.integer(
        0,
        168,
        load_default=24,
        about="How long deliveries are signed with the former secret as well; 0 if it has leaked.",
    )


class Delivery(Schema):
    event_id = fields.String()
    type = fields.String()
    at = fields.String(metadata={"format": "date-time"})
    status = fields.Integer(allow_none=True, about="Of HTTP; null when no answer came.")
    error = fields.String(allow_none=True, about="Why it counts as failed; null: it was delivered.")
    seconds = fields.Float()


class Webhook(Schema):
    """Webhook. Its secret is shown once, when it is made or rotated."""

    id = fields.Integer()
    user_id = fields.String(allow_none=True, about="The person whose events it gets.")
    space = fields.String(allow_none=True, about="The space whose events it gets; neither: the tenant's.")
    url = fields.String()
    types = fields.List(fields.String(), about="Empty: all.")
    words = fields.Boolean()
    enabled = fields.Boolean()
    failing_since = fields.UtcDateTime(allow_none=True, about="Since then no delivery has succeeded.")
    problem = fields.String(allow_none=True, about="Why it was disabled by itself.")
    deliveries = fields.List(fields.Nested(Delivery), about="The last tries, newest first.")
    created_at = fields.UtcDateTime()
    updated_at = fields.UtcDateTime()


class WebhookMade(Webhook):
    """Webhook that was just made, or got a new secret."""

    secret = fields.String(about="What deliveries are signed with, by Standard Webhooks; never shown again.")
