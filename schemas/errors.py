"""The one shape of errors, and those of the protocols that clients speak."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from memory.errors import InvalidRequest, ModelError, RecapError, Upstream
from schemas.fields import UNKNOWN_CHARS, WRONG_MAX, about

Body = dict[str, Any]

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

# What the server can't read, by status: the code and the message.
UNREADABLE = {
    400: ("invalid_http", "This is not valid HTTP. Nothing was done. Check its first line, Host, headers and chunks."),
    414: (
        "uri_too_long",
        "The address and its query are longer than 8,000 characters. Nothing was done. Shorten them.",
    ),
    417: ("expectation_failed", "Of Expect, only 100-continue is known. Nothing was done. Send this without Expect."),
    431: (
        "headers_too_large",
        "There are over 100 headers, or one has over 8,000 characters. Nothing was done. Send less.",
    ),
    501: (
        "transfer_coding_unknown",
        "Of transfer codings, only chunked is known. Nothing was done. Send this without.",
    ),
    505: (
        "http_version_unknown",
        "Only HTTP/1.0 and HTTP/1.1 are spoken here. Nothing was done. Send this as HTTP/1.1.",
    ),
}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
REFUSED = "recap.refused"  # in the WSGI environment, for the door: why the server could not read the request


def unreadable(status: int = 400) -> InvalidRequest:
    return InvalidRequest(*UNREADABLE[status], status=status)


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


class AnthropicErrorDetail(Schema):
    type = fields.String(required=True)
    message = fields.String(required=True)
    code = fields.String(allow_none=True, metadata=about("For programs: stable between releases."))


class AnthropicError(Schema):
    type = fields.Constant("error")
    error = fields.Nested(AnthropicErrorDetail, required=True)
    request_id = fields.String()


def error_body(error: RecapError) -> Body:
    """An error in Recap's shape."""
    more = {} if error.param is None else {"param": error.param}
    return {"error": {"message": error.message, "type": error.type, "code": error.code, **more}}


def openai_error(error: RecapError) -> tuple[Body, int]:
    """An error in OpenAI's shape, and its status."""
    said = error.upstream if isinstance(error, ModelError) else None
    if said is None or not 400 <= said.status < 600:
        status = 400 if error.status == 422 else error.status
        code = "invalid_api_key" if status == 401 else error.code
        said = Upstream(status, error.message, param=error.param, code=code)
    kind = said.type or _openai_type(said.status)
    return {"error": {"message": said.message, "type": kind, "code": said.code, "param": said.param}}, said.status


def _openai_type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def anthropic_error(error: RecapError) -> tuple[Body, int]:
    """An error in Anthropic's shape, and its status."""
    body, status = openai_error(error)
    kind = _ANTHROPIC_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    told = {"type": kind, "message": body["error"]["message"], "code": body["error"]["code"]}
    return {"type": "error", "error": told}, status


def flat(problems: Any, path: str = "") -> dict[str, list[str]]:
    """Marshmallow's nested messages as `messages.3.content: [...]`."""
    if isinstance(problems, list):
        return {path or "body": [str(problem) for problem in problems]}
    out: dict[str, list[str]] = {}
    for key, value in problems.items():
        name = str(key)[:UNKNOWN_CHARS]
        out |= flat(value, path if key == "_schema" else f"{path}.{name}".lstrip("."))
    return out
