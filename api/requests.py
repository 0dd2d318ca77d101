"""Every request: its id, its line in the log, and its place in the metrics.

Guarantee: a request that was refused or failed has exactly one line, at info or above, with the pattern of its route,
its status and the error's code: no address, no body, no name.  A request that took a turn has the turn's line instead.
Lines that are logged meanwhile carry the request's id (`memory.ops.logs`).
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from dataclasses import dataclass

from flask import Flask, Response, g, request

from memory.ops import logs
from memory.ops.metrics import Metrics

log = logging.getLogger(__name__)

TURNS = ("/api/chat", "/v1/chat/completions")
UNWATCHED = ("/health/live", "/health/ready", "/metrics", "/static/<path:filename>")  # asked for all the time
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}")


@dataclass
class _Watched:
    """The request that is being answered.  `code` is that of its error, if it has one."""

    id: str
    began: float
    code: str | None = None


def register(app: Flask, metrics: Metrics) -> None:
    """Watch every request of `app`.  To be called before anything that may refuse one is registered."""

    def came() -> None:
        given = request.headers.get("X-Request-ID", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        g.watched = _Watched(request_id, time.perf_counter())
        metrics.request_came()
        logs.begin(request=request_id)

    def answered(response: Response) -> Response:
        watched: _Watched = g.watched
        method, route = request.method, request.url_rule.rule if request.url_rule is not None else "none"

        def over() -> None:
            """The answer has left, or its reader has gone."""
            seconds, status, code = time.perf_counter() - watched.began, response.status_code, watched.code
            metrics.request_over(method, route, status, seconds, code)
            quiet = status < 400 and code is None and route in (*TURNS, *UNWATCHED)
            level = logging.DEBUG if quiet else logging.INFO  # an error's cause has a line of its own, at its own level
            if log.isEnabledFor(level):
                figures = {"method": method, "route": route, "status": status, "seconds": seconds, "code": code}
                log.log(level, "request", extra=logs.fields(**figures, bytes=response.content_length))

        response.headers["X-Request-ID"] = watched.id
        if response.is_streamed:
            response.call_on_close(over)
        else:
            over()
        return response

    app.before_request(came)
    app.after_request(answered)


def failed(code: str) -> None:
    """Record the error code of the current request."""
    watched: _Watched = g.watched
    watched.code = code
