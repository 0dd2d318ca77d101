"""Streaming a turn: server-sent events while it is taken, and what becomes of it when the listener goes."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator

from flask import Response, stream_with_context

from memory.errors import RecapError
from memory.ops import logs
from memory.turn.values import TurnEvent

log = logging.getLogger(__name__)

EVENTS = {  # each event, as it is documented
    "type": "object",
    "properties": {"data": {"type": "string", "description": "A chunk or an error as JSON; `[DONE]` in the last."}},
}


def event_stream(body: Iterator[str], turn: Generator[TurnEvent, None, None]) -> Response:
    """The response that streams `body`, which draws on `turn`."""
    response = Response(stream_with_context(body), mimetype="text/event-stream")
    response.headers["X-Accel-Buffering"] = "no"  # nginx would gather the pieces
    response.call_on_close(lambda: _unheard(turn))
    return response


def _unheard(turn: Generator[TurnEvent, None, None]) -> None:
    """Let the turn of a listener who has gone come to its end; when it fails, nobody is left to tell but the log."""
    try:
        turn.close()
    except RecapError as error:
        log.warning("a turn failed after its listener had gone", extra=logs.fields(code=error.code))
