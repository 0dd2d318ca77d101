"""Streaming a turn as server-sent events."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator

from flask import Response, stream_with_context

from memory.errors import RecapError
from memory.ops import logs
from memory.turn.values import TurnEvent

log = logging.getLogger(__name__)

EVENTS = {  # the schema of each event
    "type": "object",
    "properties": {
        "data": {"type": "string", "description": "A chunk or an error as JSON. The last event has `[DONE]`."}
    },
}


def event_stream(body: Iterator[str], turn: Generator[TurnEvent, None, None]) -> Response:
    """The response that streams `body`, which reads from `turn`."""
    response = Response(stream_with_context(body), mimetype="text/event-stream")
    response.headers["X-Accel-Buffering"] = "no"  # else nginx would hold the events back
    response.call_on_close(lambda: _close(turn))
    return response


def _close(turn: Generator[TurnEvent, None, None]) -> None:
    """Let the turn of a client that has left finish.  The log alone is told when it fails."""
    try:
        turn.close()
    except RecapError as error:
        log.warning("a turn failed after its listener had gone", extra=logs.fields(code=error.code))
