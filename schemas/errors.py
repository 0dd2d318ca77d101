"""Shape of errors, and of Anthropic's."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import WRONG_MAX, describe


class ErrorDetail(Schema):
    message = fields.String(required=True, metadata=describe("For people: what happened, and what to do."))
    type = fields.String(required=True)
    code = fields.String(required=True, allow_none=True, metadata=describe("For programs: stable between releases."))
    param = fields.String(allow_none=True, metadata=describe("The field of the request that caused the error."))
    fields_ = fields.Dict(
        data_key="fields", metadata=describe(f"With 422: what is wrong with each field, of at most {WRONG_MAX}.")
    )
    wrong = fields.Integer(metadata=describe("With 422: how many fields are wrong."))


class Error(Schema):
    error = fields.Nested(ErrorDetail, required=True)


class AnthropicErrorDetail(Schema):
    type = fields.String(required=True)
    message = fields.String(required=True)
    code = fields.String(allow_none=True, metadata=describe("For programs: stable between releases."))


class AnthropicError(Schema):
    type = fields.Constant("error")
    error = fields.Nested(AnthropicErrorDetail, required=True)
    request_id = fields.String()
