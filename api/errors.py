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

from api import requests
from memory.errors import ModelError, RecapError, Unauthenticated
from memory.ops import logs
from memory.ops.database_errors import database_failed

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


def register(app: Flask) -> None:
    """Give every error of `app` the one shape."""
    app.register_error_handler(RecapError, _recap_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(RecursionError, _too_deep)
    app.register_error_handler(SQLAlchemyError, _database_error)
    app.register_error_handler(Exception, _unexpected)


def error_body(error: RecapError) -> Body:
    """An error in Recap's shape."""
    return _body(error.message, error.type, error.code, **({} if error.param is None else {"param": error.param}))


def openai_error(error: RecapError) -> tuple[Body, int]:
    """An error in OpenAI's shape, and its status."""
    said = error.upstream if isinstance(error, ModelError) else None
    if said is None or not 400 <= said.status < 600:
        return _as_openai(error_body(error), error.status)
    return _body(said.message, said.type or _openai_type(said.status), said.code, param=said.param), said.status


def _body(message: str, type_: str, code: str | None, **more: Any) -> Body:
    return {"error": {"message": message, "type": type_, "code": code, **more}}


def _as_openai(body: Body, status: int) -> tuple[Body, int]:
    error = body["error"]
    status = 400 if status == 422 else status
    code = "invalid_api_key" if status == 401 else error["code"]
    return _body(error["message"], _openai_type(status), code, param=error.get("param")), status


def _openai_type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def _respond(body: Body, status: int, error: RecapError | None = None) -> Response:
    """The response for an error: in OpenAI's shape under /v1."""
    requests.failed(body["error"]["code"])
    if request.path.startswith("/v1/"):
        body, status = openai_error(error) if error is not None else _as_openai(body, status)
    response = jsonify(body)
    response.status_code = status
    return response


def _recap_error(error: RecapError) -> Response:
    response = _respond(error_body(error), error.status, error)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _http_error(error: HTTPException) -> Response:
    status = 408 if isinstance(error, ClientDisconnected) else error.code or 500
    code, message = _MESSAGES.get(status, (error.name.lower().replace(" ", "_"), error.description or error.name))
    more: Body = {}
    problems = getattr(error, "data", {}).get("messages")
    if status == 422 and problems:
        fields = {name: texts for location in problems.values() for name, texts in _flat(location).items()}
        first = next(iter(fields))
        message += f" First: {first}: {fields[first][0]}"
        more = {"fields": fields, "param": first}
    response = _respond(_body(message, "invalid_request_error", code, **more), status)
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def _too_deep(_: RecursionError) -> Response:
    return _respond(_body("The JSON is nested too deeply.", "invalid_request_error", "invalid_json"), 400)


def _database_error(error: SQLAlchemyError) -> Response:
    known = database_failed(error)
    if known is None:
        return _unexpected(error)
    log.error("the database failed", extra=logs.fields(error=logs.told(error)))
    return _recap_error(known)


def _unexpected(error: Exception) -> Response:
    log.error("unexpected error", exc_info=error)
    message = "An unexpected error occurred in Recap. The server's log has the details under this X-Request-ID."
    return _respond(_body(message, "server_error", "internal_error"), 500)


def _flat(problems: Any, path: str = "") -> dict[str, list[str]]:
    """Marshmallow's nested messages as `messages.3.content: [...]`."""
    if isinstance(problems, list):
        return {path or "body": [str(problem) for problem in problems]}
    out: dict[str, list[str]] = {}
    for key, value in problems.items():
        out.update(_flat(value, path if key == "_schema" else f"{path}.{key}".lstrip(".")))
    return out
