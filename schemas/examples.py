"""Examples."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from schemas.fields import CallerQuery, Items, PageQuery, SessionId, Text, UtcDateTime, describe, integer, page_of

INPUT_CHARS, OUTPUT_CHARS = 4_000, 8_000
BEST = 5  # the highest rating
_RATING = describe("How good the answer is, from 1 to 5. Of similar examples the best rated come first.")


class Example(Schema):
    """Message and a good answer to it."""

    id = fields.Integer()
    input = fields.String()
    output = fields.String()
    tags = fields.List(fields.String())
    rating = fields.Integer(metadata=_RATING)
    created_at = UtcDateTime()


ExamplePage = page_of(Example)


class ExampleQuery(PageQuery):
    session_id = SessionId(load_default=None, metadata=describe("Examples of this session's owner."))


class ExampleCreate(CallerQuery):
    input = Text(validate=validate.Length(1, INPUT_CHARS))
    output = Text(validate=validate.Length(1, OUTPUT_CHARS))
    session_id = SessionId(metadata=describe("With `message_id`, instead of `input` and `output`: an exchange."))
    message_id = integer(1, metadata=describe("The id of the exchange's message or of its reply."))
    tags = Items(Text(validate=validate.Length(1, 64)), 20, load_default=())
    rating = integer(1, BEST, load_default=BEST, metadata=_RATING)

    @validates_schema
    def _one_form(self, data: dict[str, Any], **_: Any) -> None:
        fields_sent = data.keys() & {"input", "output", "session_id", "message_id"}
        if fields_sent not in ({"input", "output"}, {"session_id", "message_id"}):
            raise ValidationError(
                "Send `input` and `output`, or `session_id` and `message_id` of an exchange.", "input"
            )
