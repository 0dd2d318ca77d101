"""Streaming a turn as server-sent events."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from flask import Response, stream_with_context

from api import door
from memory.errors import RecapError
from memory.ops import logs
from memory.turn.values import TurnEvent

log = logging.getLogger(__name__)


def event_stream(
    chunks: Iterator[Mapping[str, Any]],
    turn: Generator[TurnEvent, None, None],
    error_body: Callable[[RecapError], Mapping[str, Any]],
    *,
    named: bool = False,
) -> Response:
    """The response that streams `chunks`, which read from `turn`.

    The status is sent before the first chunk.  So a later error comes as an event, and no `[DONE]` follows it.  With
    `named`, each event is named by the `type` in it, and the last one says itself that it is.
    """

    def event(chunk: Mapping[str, Any]) -> str:
        name = f"event: {chunk['type']}\n" if named else ""
        return f"{name}data: {json.dumps(chunk)}\n\n"

    def events() -> Iterator[str]:
        try:
            yield from map(event, chunks)
        except RecapError as error:
            door.failed(error.code)
            yield event(error_body(error))
        else:
            if not named:
                yield "data: [DONE]\n\n"

    response = Response(stream_with_context(events()), mimetype="text/event-stream")
    response.headers["X-Accel-Buffering"] = "no"  # else nginx would hold the events back
    response.call_on_close(lambda: _close(turn))
    return response


def _close(turn: Generator[TurnEvent, None, None]) -> None:
    """Let the turn of a client that has left finish.  The log alone is told when it fails."""
    try:
        turn.close()
    except RecapError as error:
        log.warning("a turn failed after its listener had gone", extra=logs.fields(code=error.code))
