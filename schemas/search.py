"""Searching past messages."""

from __future__ import annotations

from datetime import UTC

from marshmallow import Schema, fields, validate

from schemas.fields import SessionId, Text, TimeZone, UserId, UtcDateTime, limit
from schemas.sessions import ROLES, Message


class SearchQuery(Schema):
    text = Text(
        required=True,
        data_key="q",
        validate=validate.Length(1, 2000),
        metadata={
            "description": "Words; a message with more of them, or with rarer ones, comes first. "
            '`"green tea"` finds only messages with that phrase, `-coffee` and `-"black tea"` leave out those with it, '
            "`berg*` finds only those with a word that begins so."
        },
    )
    user_id = UserId(load_default=None)
    session_id = SessionId(load_default=None)
    after = UtcDateTime(load_default=None, metadata={"description": "Said at this time or later."})
    before = UtcDateTime(load_default=None, metadata={"description": "Said before this time."})
    role = fields.String(load_default=None, validate=validate.OneOf(ROLES))
    limit = limit(10)
    window = fields.Integer(
        load_default=0, validate=validate.Range(0, 10), metadata={"description": "Messages around each result."}
    )
    zone = TimeZone(
        load_default=UTC,
        data_key="timezone",
        metadata={"description": "Where the days of `q` begin: what it says of times is preferred, not demanded."},
    )


class SearchResult(Schema):
    message_id = fields.Integer(attribute="message.id")
    external_id = fields.String(attribute="message.external_id", allow_none=True)
    session_id = fields.String(attribute="message.session_id")
    title = fields.String(metadata={"description": "The title of its session."})
    position = fields.Integer(attribute="message.position")
    role = fields.String(attribute="message.role")
    name = fields.String(attribute="message.name", allow_none=True)
    content = fields.String(attribute="message.content")
    created_at = UtcDateTime(attribute="message.created_at")
    score = fields.Float()
    why = fields.Dict(keys=fields.String(), values=fields.Float(), metadata={"description": "The score's parts."})
    highlights = fields.List(
        fields.String(),
        metadata={
            "description": "The words of `content` that `q` found, as they are written there, each once, for a page to "
            "mark. Empty when only the meaning or the messages around matched."
        },
    )
    window = fields.List(fields.Nested(Message), metadata={"description": "With `window`: the messages around it."})


class SearchResults(Schema):
    results = fields.List(fields.Nested(SearchResult))
    took_ms = fields.Float()
