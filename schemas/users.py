"""Person as a whole, and the holder of a key."""

from __future__ import annotations

from marshmallow import Schema, fields

from models.keys import SCOPES
from schemas.fields import UtcDateTime, describe


class User(Schema):
    """Amounts that are stored of a person."""

    user_id = fields.String()
    sessions = fields.Integer()
    messages = fields.Integer(metadata=describe("Without those that were replaced or erased."))
    facts = fields.Integer(metadata=describe("Those that are true now."))
    items = fields.Integer(metadata=describe("In the store, without those that have expired."))
    archives = fields.Integer(metadata=describe("Sessions that were taken out of memory."))
    summaries = fields.Integer(metadata=describe("All versions, of all sessions."))
    created_at = UtcDateTime()
    first_message_at = UtcDateTime(allow_none=True)
    last_message_at = UtcDateTime(allow_none=True)
    tokens_today = fields.Integer(metadata=describe("Tokens of all model calls since midnight UTC; see DAILY_TOKENS."))


class Backlog(Schema):
    """Part of a person's sessions that no summary covers."""

    sessions = fields.Integer(metadata=describe("Those with such messages."))
    tokens = fields.Integer(metadata=describe("An estimate of what the mini model's calls for them take."))
    waiting = fields.Integer(metadata=describe("Updates of summaries that wait or run."))
    failed = fields.Integer(metadata=describe("Updates that have failed for good; `GET /api/jobs` says why."))


class Me(Schema):
    """Holder of a key."""

    tenant = fields.String()
    user_id = fields.String(allow_none=True, metadata=describe("The one person the key belongs to; null: any person."))
    scopes = fields.Function(
        lambda principal: [scope for scope in SCOPES if scope in principal.scopes],
        metadata=describe("Those it has of `chat`, `read` and `admin`."),
    )
