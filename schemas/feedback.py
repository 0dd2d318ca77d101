"""Feedback."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from schemas.fields import OPTIONAL, CallerQuery, SessionId, Text, UtcDateTime, describe, integer, one_of

FEEDBACK_CHARS = 2_000


class FeedbackGiven(Schema):
    """Feedback as it is stored."""

    id = fields.Integer()
    thumbs = fields.String(attribute="value.thumbs", allow_none=True)
    text = fields.String(attribute="value.text")
    instruction = fields.String(attribute="value.instruction")
    state = fields.String(
        attribute="value.state",
        metadata=describe("`waiting`: the mini model will read it. `stored`: it asks for no change."),
    )
    created_at = UtcDateTime()


class FeedbackCreate(CallerQuery):
    session_id = SessionId(required=True)
    message_id = integer(1, required=True, metadata=describe("The id of the exchange's message or of its reply."))
    thumbs = one_of("up", "down", "none", **OPTIONAL, metadata=describe("`none` takes earlier ones back."))
    text = Text(load_default="", validate=validate.Length(max=FEEDBACK_CHARS))
    instruction = Text(load_default="general", metadata=describe("The name of the instruction that it may change."))

    @validates_schema
    def _says_something(self, data: dict[str, Any], **_: Any) -> None:
        if data["thumbs"] is None and not data["text"].strip():
            raise ValidationError("Send `thumbs`, or some words.", "text")
