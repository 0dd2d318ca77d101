"""Errors as HTTP: one shape, from one place.

Under the paths in RENDERERS, errors have the shape of the protocol that is spoken there.
"""

import logging
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice
from json import JSONDecodeError
from typing import Any, cast
from urllib.parse import quote

from flask import Flask, Response, current_app, jsonify, redirect, request
from werkzeug.exceptions import ClientDisconnected, HTTPException, RequestEntityTooLarge

from api.current_request import note_error_code
from memory.errors import InvalidRequest, RecapError, Unauthenticated, database_failed
from memory.ops import logs
from schemas.errors import flat
from schemas.shapes import UNKNOWN, WHOM, WRONG_MAX

# Refusals of Flask and werkzeug, by status: the code and the message.
REFUSALS = {
    400: ("invalid_json", "The body is not valid JSON. Nothing was stored. Send a JSON object in UTF-8."),
    404: ("not_found", "There is nothing at this address. /docs lists every call."),
    405: ("method_not_allowed", "This address does not take this method. /docs lists every call."),
    408: ("request_timeout", "The body did not arrive completely, or not in time. Nothing was stored. Send it again."),
    413: ("body_too_large", "The body is too large. Nothing was stored. Send it in parts."),
    415: ("not_json", "Nothing was stored. Send the body as JSON, with Content-Type: application/json."),
    422: ("invalid_fields", "Some fields are missing or wrong. Nothing was stored."),
}


# Requests that the server can't read, by status: the code and the message.
UNREADABLE = {
    400: ("invalid_http", "This is not valid HTTP. Nothing was done. Check its first line, Host, headers and chunks."),
    414: ("uri_too_long", "The address with its query has over 8,000 characters. Nothing was done. Shorten it."),
    417: ("expectation_failed", "Only `Expect: 100-continue` is known. Nothing was done. Send this without Expect."),
    431: (
        "headers_too_large",
        "There are over 100 headers, or one has over 8,000 characters. Nothing was done. Send fewer, or shorter ones.",
    ),
    501: ("transfer_coding_unknown", "Recap knows the transfer coding chunked alone. Nothing was done. Send no other."),
    505: ("http_version_unknown", "Recap speaks HTTP/1.0 and HTTP/1.1 alone. Nothing was done. Send this as HTTP/1.1."),
}


REFUSED = "recap.refused"  # in the WSGI environment, for the middleware: why the server could not read the request


def unreadable(status: int = 400) -> InvalidRequest:
    return InvalidRequest(*UNREADABLE[status], status=status)


Body = dict[str, Any]
_NOTHING = {"GET": "", "HEAD": "", "DELETE": " Nothing was erased."}  # what a refused request means, by its method
Renderer = Callable[[RecapError], tuple[Body, int]]
# By the beginning of a path; the longest one counts. Each protocol's module adds its own.
RENDERERS: dict[str, Renderer] = {}
CHALLENGES: dict[str, Callable[[RecapError], str]] = {}  # by a path: WWW-Authenticate, where it says more than Bearer

# What a wrong base URL puts before the path of a call: /v1 twice, an Azure deployment, a whole address of a call.
_BASE = re.compile(r"(/v1|/openai|/deployments/[^/]+|/chat/completions(?=/))*")

log = logging.getLogger(__name__)


def register(app: Flask) -> None:
    """Answer every error of `app` in the shape of its protocol."""
    app.register_error_handler(RecapError, _respond)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _unexpected)


def _respond(error: RecapError, **more: Any) -> Response:
    note_error_code(error.code)
    prefix = max((prefix for prefix in RENDERERS if request.path.startswith(prefix)), key=len, default=None)
    if prefix is not None:
        body, status = RENDERERS[prefix](error)
    else:
        body = error_body(error)
        status = error.status
        body["error"] |= more
    response = jsonify(body)
    response.status_code = status
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if error.code == "server_busy":  # over a new connection the client may reach a process that is free
        getattr(request.environ["wsgi.input"], "close_connection", lambda: None)()
    if isinstance(error, Unauthenticated):
        challenge = CHALLENGES.get(request.path.removesuffix("/"), lambda _: "Bearer")
        response.headers["WWW-Authenticate"] = challenge(error)
    return response


def _refused(error: HTTPException) -> Response:
    """Answer a refusal of Flask, werkzeug or a schema."""
    status = 408 if isinstance(error, ClientDisconnected) else error.code or 500
    if status == 404 and request.method in ("GET", "HEAD", "POST") and (meant := _meant()) is not None:
        return cast(Response, redirect(meant, 308))  # with method and body; programs follow it
    code, message = REFUSALS.get(status, (error.name.lower().replace(" ", "_"), error.description or error.name))
    message = message.replace(" Nothing was stored.", _NOTHING.get(request.method, " Nothing was stored."))
    data = getattr(error, "data", {})  # webargs': the schema, and marshmallow's messages by location
    if status == 422 and data.get("messages"):
        wrong: dict[str, list[str]] = {}
        for problems in data["messages"].values():
            wrong |= flat(problems)
        known = [field.data_key or name for name, field in data["schema"].fields.items()]
        named = {name: [_hint(name, text, known) for text in texts] for name, texts in islice(wrong.items(), WRONG_MAX)}
        first, texts = next(iter(named.items()))
        refusal = InvalidRequest(code, f"{message} First: {first}: {texts[0]}", param=first)
        return _respond(refusal, fields=named, wrong=len(wrong))
    if status in (404, 405):
        message = message.replace("This address", request.path).replace("this address", request.path)
    if isinstance(error, RequestEntityTooLarge):
        message = f"{message} This call takes {request.max_content_length:,} bytes."
    if isinstance(cause := getattr(error, "exc", None), JSONDecodeError):
        message = f"{message} {cause}."
    response = _respond(InvalidRequest(code, message, status=status))
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def _hint(name: str, problem: str, known: Iterable[str]) -> str:
    """Add to the problem of an unknown field what the caller may have meant."""
    if problem != UNKNOWN:
        return problem
    if request.method == "PATCH" and name in WHOM:
        return f"{problem} This call takes it in its address, as ?{name}=NAME."
    near = get_close_matches(name, known, n=1, cutoff=0.75)
    return f"{problem} Is it {near[0]}?" if near else problem


def _meant() -> str | None:
    """Return the address of the call that a program with a wrong base URL, or a slash too many, meant.

    Only of the protocols of others: an id that is empty by mistake does not lead from one thing to all of them.
    """
    adapter = current_app.create_url_adapter(request)
    path = f"/{re.sub('/{2,}', '/', request.path.strip('/'))}"
    meant = path if path == "/mcp" else f"/v1{_BASE.sub('', path, count=1)}"
    if adapter is None or meant == request.path or not adapter.test(meant, request.method):
        return None
    query = request.query_string.decode("latin-1")
    return quote(request.script_root + meant) + (f"?{query}" if query else "")


def _unexpected(error: Exception) -> Response:
    reads = request.method in ("GET", "HEAD")
    failure = database_failed(error, "Nothing was read.") if reads else database_failed(error)
    if failure is not None:
        log.error("the database failed", extra=logs.fields(error=logs.safe_message(error)))
        return _respond(failure)
    log.error("unexpected error", exc_info=error)
    message = "An unexpected error occurred in Recap. The server's log has the details under this X-Request-ID."
    message += "" if reads else " Look whether the request was carried out before you send it again."
    return _respond(RecapError("internal_error", message))


def error_body(error: RecapError) -> Body:
    more = {} if error.param is None else {"param": error.param}
    return {"error": {"message": error.message, "type": error.type, "code": error.code, **more}}
