"""Searching past messages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any

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
    kind = fields.String(
        load_default="message",
        validate=validate.OneOf(("message", "summary", "fact")),
        metadata={
            "description": "What is searched: messages; or the summaries of sessions, or facts, which come with the "
            "messages that they were taken from."
        },
    )
    limit = limit(10)
    window = fields.Integer(
        load_default=0, validate=validate.Range(0, 10), metadata={"description": "Messages around each result."}
    )
    zone = TimeZone(
        load_default=UTC,
        data_key="timezone",
        metadata={"description": "Where the days of `q` begin: what it says of times is preferred, not demanded."},
    )


def _of_message(field: Callable[..., fields.Field[Any]], name: str) -> fields.Field[Any]:
    """A field of the message that a result has, or null."""
    return field(attribute=f"message.{name}", dump_default=None, allow_none=True)


class SearchResult(Schema):
    """A message. Of a fact or a summary: the best of its messages; its fields are null if there is none."""

    kind = fields.String()
    text = fields.String(allow_none=True, metadata={"description": "The fact or the summary; null for a message."})
    message_id = _of_message(fields.Integer, "id")
    external_id = _of_message(fields.String, "external_id")
    session_id = fields.String(allow_none=True)
    title = fields.String(allow_none=True, metadata={"description": "The title of its session."})
    position = _of_message(fields.Integer, "position")
    role = _of_message(fields.String, "role")
    name = _of_message(fields.String, "name")
    content = _of_message(fields.String, "content")
    created_at = _of_message(UtcDateTime, "created_at")
    score = fields.Float()
    why = fields.Dict(keys=fields.String(), values=fields.Float(), metadata={"description": "The score's parts."})
    highlights = fields.List(
        fields.String(),
        metadata={
            "description": "The words of `content` (or `text`) that `q` found, as they are written there, each once, "
            "for a page to mark. Empty when only the meaning or the messages around matched."
        },
    )
    window = fields.List(
        fields.Nested(Message),
        metadata={"description": "With `window`: the messages around it. Of a fact or a summary: its messages."},
    )


class SearchResults(Schema):
    results = fields.List(fields.Nested(SearchResult))
    took_ms = fields.Float()
