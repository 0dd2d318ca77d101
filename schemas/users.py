"""A person as a whole."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime


class User(Schema):
    """What is stored of a person."""

    user_id = fields.String()
    sessions = fields.Integer()
    messages = fields.Integer(metadata={"description": "Without those that were replaced or erased."})
    facts = fields.Integer(metadata={"description": "Those that hold now."})
    summaries = fields.Integer(metadata={"description": "All versions of all sessions."})
    created_at = UtcDateTime()
    first_message_at = UtcDateTime(allow_none=True)
    last_message_at = UtcDateTime(allow_none=True)
    tokens_today = fields.Integer(
        metadata={"description": "What model calls for them took on this day of UTC; see DAILY_TOKENS."}
    )
