"""Shape of errors, and of Anthropic's; marshmallow's messages as one list."""

from typing import Any

from marshmallow import Schema

from schemas import fields
from schemas.fields import UNKNOWN_CHARS
from schemas.shapes import WRONG_MAX


class ErrorDetail(Schema):
    message = fields.String(required=True, about="For people: what happened, and what to do.")
    type = fields.String(required=True)
    code = fields.String(required=True, allow_none=True, about="For programs: stable between releases.")
    param = fields.String(allow_none=True, about="The field of the request that caused the error.")
    fields_ = fields.Dict(data_key="fields", about=f"With 422: what is wrong with each field, of at most {WRONG_MAX}.")
    wrong = fields.Integer(about="With 422: how many fields are wrong.")


class Error(Schema):
    error = fields.Nested(ErrorDetail, required=True)


class AnthropicErrorDetail(Schema):
    type = fields.String(required=True)
    message = fields.String(required=True)
    code = fields.String(allow_none=True, about="For programs: stable between releases.")
    details = fields.Dict(
        about="`error_code` is the code again, where Anthropic's packages look for it.", sometimes=True
    )


class AnthropicError(Schema):
    type = fields.Constant("error")
    error = fields.Nested(AnthropicErrorDetail, required=True)
    request_id = fields.String()


def flat(problems: Any, path: str = "") -> dict[str, list[str]]:
    """Flatten marshmallow's nested messages: `messages.3.content: [...]`."""
    if isinstance(problems, list):
        return {path or "body": [str(problem) for problem in problems]}
    out: dict[str, list[str]] = {}
    for key, value in problems.items():
        name = str(key)[:UNKNOWN_CHARS]
        out |= flat(value, path if key == "_schema" else f"{path}.{name}".lstrip("."))
    return out
