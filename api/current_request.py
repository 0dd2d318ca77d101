"""Current request: its engine, its id, the code of its error, and what runs when it ends."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

from flask import current_app, g

from memory.engine import Engine

EXTENSION = "recap"  # in `app.extensions`: the engine
AT_END = "recap.at_end"  # in the WSGI environment: an ExitStack of what to do when the answer is over


@dataclass
class RequestInfo:
    """Current request. code: of its error, if it has one."""

    id: str
    began: float
    code: str | None = None


def current_engine() -> Engine:
    """Return the engine of the application that answers the request."""
    return cast(Engine, current_app.extensions[EXTENSION])


def request_id() -> str:
    info: RequestInfo = g.request_info
    return info.id


def note_error_code(code: str) -> None:
    """Record the error code of the current request."""
    info: RequestInfo = g.request_info
    info.code = code


def with_end(wsgi_app: Any) -> Any:
    """Wrap `wsgi_app`: run the callbacks in AT_END when the answer has left, its reader has gone, or it fails."""

    def serve(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        with ExitStack() as end:
            environ[AT_END] = end
            answer = wsgi_app(environ, start_response)
            if close := getattr(answer, "close", None):
                end.callback(close)
            for piece in answer:  # noqa: UP028 - `yield from` would close it a second time
                yield piece

    return serve
