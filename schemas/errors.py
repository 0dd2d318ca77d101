"""The one shape of errors."""

from __future__ import annotations

from marshmallow import Schema, fields


class ErrorDetail(Schema):
    message = fields.String(required=True, metadata={"description": "For people: what happened and what to do."})
    type = fields.String(required=True)
    code = fields.String(required=True, metadata={"description": "For programs: stable between releases."})
    param = fields.String(metadata={"description": "The request's field that caused it."})
    fields_ = fields.Dict(
        keys=fields.String(),
        values=fields.Raw(),
        data_key="fields",
        metadata={"description": "With 422: what is wrong with each field."},
    )


class Error(Schema):
    error = fields.Nested(ErrorDetail, required=True)
