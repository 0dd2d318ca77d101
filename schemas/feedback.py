"""Feedback."""

from typing import Any

from marshmallow import Schema, ValidationError, validates_schema

from schemas import fields
from schemas.fields import OPTIONAL
from schemas.shapes import CallerQuery

FEEDBACK_CHARS = 2_000


class FeedbackGiven(Schema):
    id = fields.Integer()
    thumbs = fields.String(attribute="value.thumbs", allow_none=True)
    text = fields.String(attribute="value.text")
    instruction = fields.String(attribute="value.instruction")
    state = fields.String(
        attribute="value.state", about="`waiting`: the mini model will read it. `stored`: it asks for no change."
    )
    created_at = fields.UtcDateTime()


class FeedbackCreate(CallerQuery):
    session_id = fields.SessionId(required=True)
    message_id = fields.integer(1, required=True, about="The id of the exchange's message or of its reply.")
    thumbs = fields.one_of("up", "down", "none", **OPTIONAL, about="`none` takes earlier ones back.")
    text = fields.text(most=FEEDBACK_CHARS, load_default="")
    instruction = fields.Text(load_default="general", about="The name of the instruction that it may change.")

    @validates_schema
    def _says_something(self, data: dict[str, Any], **_: Any) -> None:
        if data["thumbs"] is None and not data["text"].strip():
            raise ValidationError("Send `thumbs`, or some words.", "text")
