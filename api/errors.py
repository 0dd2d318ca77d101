"""Errors as HTTP: one shape, from one place.

Under /v1 it is OpenAI's, which ours is close to: `param` and `code` always there, its words for `type`, and 400 where a
field is wrong.  What the model server said is passed on as it said it.
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

_SAID = {
    400: ("invalid_json", "The body is not valid JSON. Send a JSON object."),
    404: ("not_found", "There is nothing at this address. See /docs for what there is."),
    405: ("method_not_allowed", "This address does not take this method. See /docs."),
    408: (
        "request_timeout",
        "The request did not arrive as a whole, or not in time. Nothing was stored. Send it again.",
    ),
    413: (
        "body_too_large",
        "The body is larger than Recap takes in one request. Nothing was stored. Send it in parts.",
    ),
    415: ("not_json", "Send the body as JSON, with Content-Type: application/json."),
    422: ("invalid_fields", "Some fields are missing or wrong. Nothing was stored."),
}


def error_body(error: RecapError) -> dict[str, Any]:
    body = {"message": error.message, "type": error.type, "code": error.code}
    if error.param is not None:
        body["param"] = error.param
    return {"error": body}


def register(app: Flask) -> None:
    """Let every error of `app` leave in the one shape."""
    app.register_error_handler(RecapError, _recap_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(RecursionError, _too_deep)
    app.register_error_handler(SQLAlchemyError, _database_error)
    app.register_error_handler(Exception, _unexpected)


def openai_error(error: RecapError) -> tuple[dict[str, Any], int]:
    """An error as OpenAI would put it, and its status."""
    said = error.upstream if isinstance(error, ModelError) else None
    if said is None or not 400 <= said.status < 600:
        return _as_openai(error_body(error), error.status)
    told = {"message": said.message, "type": said.type or _openai_type(said.status)}
    return {"error": {**told, "param": said.param, "code": said.code}}, said.status


def _as_openai(body: dict[str, Any], status: int) -> tuple[dict[str, Any], int]:
    error = body["error"]
    status = 400 if status == 422 else status
    code = "invalid_api_key" if status == 401 else error["code"]
    told = {"message": error["message"], "type": _openai_type(status)}
    return {"error": {**told, "param": error.get("param"), "code": code}}, status


def _openai_type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def _speaks_openai() -> bool:
    return request.path.startswith("/v1/")


def _recap_error(error: RecapError) -> Response:
    requests.failed(error.code)
    if _speaks_openai():
        response = _respond(*openai_error(error))
    else:
        response = _answer(error.status, error_body(error))
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _http_error(error: HTTPException) -> Response:
    status = 408 if isinstance(error, ClientDisconnected) else error.code or 500  # a body that did not come to its end
    code, message = _SAID.get(status, (error.name.lower().replace(" ", "_"), error.description or error.name))
    body: dict[str, Any] = {"message": message, "type": "invalid_request_error", "code": code}
    found = getattr(error, "data", {}).get("messages")
    if status == 422 and found:
        fields = _flat(found)
        body["fields"] = fields
        body["param"] = next(iter(fields))
        body["message"] = f"{message} First: {body['param']}: {fields[body['param']][0]}"
    response = _answer(status, {"error": body})
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def _too_deep(_: RecursionError) -> Response:
    return _answer(
        400,
        {
            "error": {
                "message": "The JSON is nested too deeply.",
                "type": "invalid_request_error",
                "code": "invalid_json",
            }
        },
    )


def _database_error(error: SQLAlchemyError) -> Response:
    told = database_failed(error)
    if told is None:
        return _unexpected(error)
    log.error("the database failed", extra=logs.fields(error=logs.told(error)))
    return _recap_error(told)


def _unexpected(error: Exception) -> Response:
    log.error("unexpected error", exc_info=error)
    message = "Recap failed in a way it should not. The log has the details under this answer's X-Request-ID."
    return _answer(500, {"error": {"message": message, "type": "server_error", "code": "internal_error"}})


def _answer(status: int, body: dict[str, Any]) -> Response:
    requests.failed(body["error"]["code"])
    return _respond(*(_as_openai(body, status) if _speaks_openai() else (body, status)))


def _respond(body: dict[str, Any], status: int) -> Response:
    response = jsonify(body)
    response.status_code = status
    return response


def _flat(messages: Any, path: str = "") -> dict[str, list[str]]:
    """Marshmallow's nested messages as `messages.3.content: [...]`, without the location they came from."""
    if isinstance(messages, list):
        return {path or "body": [str(message) for message in messages]}
    out: dict[str, list[str]] = {}
    for key, value in messages.items():
        if not path and key in ("json", "query", "headers") and isinstance(value, dict | list):
            out.update(_flat(value))
        else:
            out.update(_flat(value, path if key == "_schema" else f"{path}.{key}".lstrip(".")))
    return out
