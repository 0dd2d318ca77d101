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

from flask import Flask, Response, g, request

from memory.ops import logs
from memory.ops.metrics import Metrics

log = logging.getLogger(__name__)

TURNS = ("/api/chat", "/v1/chat/completions")
UNWATCHED = ("/health/live", "/health/ready", "/metrics", "/static/<path:filename>")  # asked for all the time
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}")


class _Watched:
    """The request that is being answered.  `code` is that of its error, if it has one."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.began = time.perf_counter()
        given = request.headers.get("X-Request-ID", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        self.method = request.method
        self.route = request.url_rule.rule if request.url_rule is not None else "none"
        self.code: str | None = None
        self._over = False
        metrics.request_came()

    def over(self, response: Response) -> None:
        """The answer has left, or its reader has gone.  Counts once."""
        if self._over:
            return
        self._over = True
        seconds, status = time.perf_counter() - self.began, response.status_code
        self.metrics.request_over(self.method, self.route, status, seconds, self.code)
        quiet = status < 400 and self.code is None and self.route in (*TURNS, *UNWATCHED)
        level = logging.DEBUG if quiet else logging.INFO  # an error's cause has a line of its own, at its own level
        if log.isEnabledFor(level):
            figures = logs.fields(
                method=self.method,
                route=self.route,
                status=status,
                seconds=seconds,
                bytes=response.content_length,
                code=self.code,
            )
            log.log(level, "request", extra=figures)


def register(app: Flask, metrics: Metrics) -> None:
    """Watch every request of `app`.  To be called before anything that may refuse one is registered."""

    def came() -> None:
        g.watched = _Watched(metrics)
        logs.begin(request=g.watched.id)

    def answered(response: Response) -> Response:
        watched: _Watched | None = g.get("watched")
        response.headers["X-Request-ID"] = watched.id if watched is not None else ""
        if watched is not None and response.is_streamed:
            response.call_on_close(lambda: watched.over(response))
        elif watched is not None:
            watched.over(response)
        return response

    app.before_request(came)
    app.after_request(answered)


def failed(code: str) -> None:
    """Record the error code of the current request."""
    watched: _Watched | None = g.get("watched")
    if watched is not None:
        watched.code = code
