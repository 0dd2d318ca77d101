"""The one shape of errors."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from schemas.fields import NAME_CHARS, WRONG_MAX, about

# What Flask or werkzeug refuses, by status: the code and the message.
REFUSALS = {
    400: ("invalid_json", "The body is not valid JSON. Send a JSON object."),
    404: ("not_found", "There is nothing at this address. /docs lists every call."),
    405: ("method_not_allowed", "This address does not take this method. /docs lists every call."),
    408: ("request_timeout", "The body did not arrive completely, or not in time. Nothing was stored. Send it again."),
    413: ("body_too_large", "The body is too large. Nothing was stored. Send it in parts."),
    415: ("not_json", "Send the body as JSON, with Content-Type: application/json."),
    422: ("invalid_fields", "Some fields are missing or wrong. Nothing was stored."),
}


class ErrorDetail(Schema):
    message = fields.String(required=True, metadata=about("For people: what happened, and what to do."))
    type = fields.String(required=True)
    code = fields.String(required=True, allow_none=True, metadata=about("For programs: stable between releases."))
    param = fields.String(allow_none=True, metadata=about("The field of the request that caused the error."))
    fields_ = fields.Dict(
        data_key="fields", metadata=about(f"With 422: what is wrong with each field, of at most {WRONG_MAX}.")
    )
    wrong = fields.Integer(metadata=about("With 422: how many fields are wrong."))


class Error(Schema):
    error = fields.Nested(ErrorDetail, required=True)


def flat(problems: Any, path: str = "") -> dict[str, list[str]]:
    """Marshmallow's nested messages as `messages.3.content: [...]`."""
    if isinstance(problems, list):
        return {path or "body": [str(problem) for problem in problems]}
    out: dict[str, list[str]] = {}
    for key, value in problems.items():
        name = str(key)[:NAME_CHARS]
        out |= flat(value, path if key == "_schema" else f"{path}.{name}".lstrip("."))
    return out
