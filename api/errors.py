"""Errors as HTTP: one shape, from one place.

Under /v1 it is OpenAI's, which is close to ours: `param` and `code` are always there, `type` has OpenAI's words, and a
wrong field is answered with 400.  What the model server said is passed on unchanged.  At /v1/messages the same has
Anthropic's form, and at /mcp JSON-RPC's.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import Any

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import ClientDisconnected, HTTPException, RequestEntityTooLarge

from api import door, mcp
from memory.errors import InvalidRequest, RecapError, Unauthenticated, database_failed
from memory.ops import logs
from schemas.errors import REFUSALS, anthropic_error, error_body, flat, openai_error
from schemas.fields import WRONG_MAX

log = logging.getLogger(__name__)


def register(app: Flask) -> None:
    """Give every error of `app` the one shape."""
    app.register_error_handler(RecapError, _respond)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _unexpected)


def _respond(error: RecapError, **more: Any) -> Response:
    door.failed(error.code)
    if request.path.startswith("/v1/messages"):
        body, status = anthropic_error(error)
        body["request_id"] = door.request_id()
    elif request.path.startswith("/v1/"):
        body, status = openai_error(error)
    elif request.path == mcp.PATH:
        body, status = mcp.failure(error)
    else:
        body, status = error_body(error), error.status
        body["error"] |= more
    response = jsonify(body)
    response.status_code = status
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _refused(error: HTTPException) -> Response:
    """What Flask, werkzeug or a schema refused."""
    status = 408 if isinstance(error, ClientDisconnected) else error.code or 500
    code, message = REFUSALS.get(status, (error.name.lower().replace(" ", "_"), error.description or error.name))
    problems = getattr(error, "data", {}).get("messages")  # webargs': marshmallow's messages by location
    if status == 422 and problems:
        wrong = {name: texts for location in problems.values() for name, texts in flat(location).items()}
        first, texts = next(iter(wrong.items()))
        named = dict(islice(wrong.items(), WRONG_MAX))
        refused = InvalidRequest(code, f"{message} First: {first}: {texts[0]}", param=first)
        return _respond(refused, fields=named, wrong=len(wrong))
    if isinstance(error, RequestEntityTooLarge):
        message = f"{message} This call takes {request.max_content_length:,} bytes."
    response = _respond(InvalidRequest(code, message, status=status))
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def _unexpected(error: Exception) -> Response:
    known = database_failed(error)
    if known is not None:
        log.error("the database failed", extra=logs.fields(error=logs.told(error)))
        return _respond(known)
    log.error("unexpected error", exc_info=error)
    message = "An unexpected error occurred in Recap. The server's log has the details under this X-Request-ID."
    return _respond(RecapError("internal_error", message))
