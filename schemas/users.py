"""A person as a whole."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime, about


class User(Schema):
    """How much is stored of a person."""

    user_id = fields.String()
    sessions = fields.Integer()
    messages = fields.Integer(metadata=about("Without those that were replaced or erased."))
    facts = fields.Integer(metadata=about("Those that are true now."))
    summaries = fields.Integer(metadata=about("All versions, of all sessions."))
    created_at = UtcDateTime()
    first_message_at = UtcDateTime(allow_none=True)
    last_message_at = UtcDateTime(allow_none=True)
    tokens_today = fields.Integer(
        metadata=about("Tokens of all model calls for the person since midnight UTC; see DAILY_TOKENS.")
    )
