"""Every request: its id, its line in the log, and its place in the figures.

Guarantee: a request that was refused or failed has exactly one line, at info or above, with its route as it is written
in the code, its status and the error's code: no address, no body, no name.  One that took a turn has the turn's line
instead.  Lines that are logged meanwhile carry the request's id (`memory.ops.logs`).
"""

from __future__ import annotations

import logging
import re
import time
import uuid

from flask import Flask, Request, Response, g, request

from memory.ops import logs
from memory.ops.metrics import Metrics

log = logging.getLogger(__name__)

TURNS = ("/api/chat", "/v1/chat/completions")
UNWATCHED = ("/health/live", "/health/ready", "/metrics", "/static/<path:filename>")  # asked for all the time
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}")


class _Watched:
    """A request that is being answered; `code` is that of its error, if it comes to one."""

    def __init__(self, metrics: Metrics, asked: Request) -> None:
        self.metrics = metrics
        self.began = time.perf_counter()
        given = asked.headers.get("X-Request-ID", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        self.method = asked.method
        self.route = asked.url_rule.rule if asked.url_rule is not None else "none"
        self.code: str | None = None
        self._over = False
        metrics.request_came()

    def over(self, response: Response) -> None:
        """The answer has left, or nobody takes it any more.  Counts once."""
        if self._over:
            return
        self._over = True
        seconds, status = time.perf_counter() - self.began, response.status_code
        self.metrics.request_over(self.method, self.route, status, seconds, self.code)
        level = self._level(status)
        if not log.isEnabledFor(level):
            return
        figures = logs.fields(
            method=self.method,
            route=self.route,
            status=status,
            seconds=seconds,
            bytes=response.content_length,
            code=self.code,
        )
        log.log(level, "request", extra=figures)

    def _level(self, status: int) -> int:
        if status >= 400 or self.code is not None:
            return logging.INFO  # what broke has a line of its own, at its own level
        return logging.DEBUG if self.route in (*TURNS, *UNWATCHED) else logging.INFO


def register(app: Flask, metrics: Metrics) -> None:
    """Watch every request of `app`.  To be registered before whatever may refuse one."""

    def came() -> None:
        watched = _Watched(metrics, request._get_current_object())  # type: ignore[attr-defined]
        g.watched = watched
        logs.begin(request=watched.id)

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
    """The request that is being answered came to this error."""
    watched: _Watched | None = g.get("watched")
    if watched is not None:
        watched.code = code
