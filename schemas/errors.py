"""The one shape of errors."""

from __future__ import annotations

from marshmallow import Schema, fields


class ErrorDetail(Schema):
    message = fields.String(required=True, metadata={"description": "For people: what happened and what to do."})
    type = fields.String(required=True)
    code = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "For programs: stable between releases; null where a model server gave none."},
    )
    param = fields.String(
        allow_none=True,
        metadata={"description": "The request's field that caused it; under /v1 always there, or null."},
    )
    fields_ = fields.Dict(
        keys=fields.String(),
        values=fields.Raw(),
        data_key="fields",
        metadata={"description": "With 422: what is wrong with each field."},
    )


class Error(Schema):
    error = fields.Nested(ErrorDetail, required=True)
