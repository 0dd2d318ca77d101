"""Errors as HTTP: one shape, from one place.

Under /v1 it is OpenAI's, which is close to ours: `param` and `code` are always there, `type` has OpenAI's words, and a
wrong field is answered with 400.  What the model server said is passed on unchanged.
"""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, Response, jsonify, request
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import ClientDisconnected, HTTPException

from api import door
from memory.errors import ModelError, RecapError, Unauthenticated, Upstream
from memory.ops import logs
from memory.ops.database_errors import database_failed
from schemas.errors import flat

log = logging.getLogger(__name__)

Body = dict[str, Any]

_MESSAGES = {
    400: ("invalid_json", "The body is not valid JSON. Send a JSON object."),
    404: ("not_found", "There is nothing at this address. /docs lists every call."),
    405: ("method_not_allowed", "This address does not take this method. /docs lists every call."),
    408: ("request_timeout", "The body did not arrive completely, or not in time. Nothing was stored. Send it again."),
    413: ("body_too_large", "The body is too large. Nothing was stored. Send it in parts."),
    415: ("not_json", "Send the body as JSON, with Content-Type: application/json."),
    422: ("invalid_fields", "Some fields are missing or wrong. Nothing was stored."),
}


class _Refused(RecapError):
    """What Flask or werkzeug refused.  `fields` says what is wrong with each field."""

    type = "invalid_request_error"
    fields: dict[str, list[str]] | None = None


def register(app: Flask) -> None:
    """Give every error of `app` the one shape."""
    app.register_error_handler(RecapError, _respond)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(RecursionError, _too_deep)
    app.register_error_handler(SQLAlchemyError, _database_error)
    app.register_error_handler(Exception, _unexpected)


def error_body(error: RecapError) -> Body:
    """An error in Recap's shape."""
    more: Body = {}
    if isinstance(error, _Refused) and error.fields is not None:
        more["fields"] = error.fields
    if error.param is not None:
        more["param"] = error.param
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


def _respond(error: RecapError) -> Response:
    door.failed(error.code)
    body, status = openai_error(error) if request.path.startswith("/v1/") else (error_body(error), error.status)
    response = jsonify(body)
    response.status_code = status
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _http_error(error: HTTPException) -> Response:
    status = 408 if isinstance(error, ClientDisconnected) else error.code or 500
    code, message = _MESSAGES.get(status, (error.name.lower().replace(" ", "_"), error.description or error.name))
    refused = _Refused(code, message, status=status)
    problems = getattr(error, "data", {}).get("messages")  # webargs': marshmallow's messages by location
    if status == 422 and problems:
        refused.fields = {name: texts for location in problems.values() for name, texts in flat(location).items()}
        refused.param, texts = next(iter(refused.fields.items()))
        refused.message += f" First: {refused.param}: {texts[0]}"
    response = _respond(refused)
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def _too_deep(_: RecursionError) -> Response:
    return _respond(_Refused("invalid_json", "The JSON is nested too deeply.", status=400))


def _database_error(error: SQLAlchemyError) -> Response:
    known = database_failed(error)
    if known is None:
        return _unexpected(error)
    log.error("the database failed", extra=logs.fields(error=logs.told(error)))
    return _respond(known)


def _unexpected(error: Exception) -> Response:
    log.error("unexpected error", exc_info=error)
    message = "An unexpected error occurred in Recap. The server's log has the details under this X-Request-ID."
    return _respond(RecapError("internal_error", message))
