"""Answer a turn in one piece or as server-sent events, for every protocol (`ReplyEncoder`)."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from flask import Response, jsonify, stream_with_context

from api.current_request import current_engine, note_error_code
from memory.errors import RecapError
from memory.ops import logs
from memory.turn.request import TurnEvent, TurnFinished, TurnRequest, TurnStarted
from memory.turn.turn import run_turn

log = logging.getLogger(__name__)


class ReplyEncoder(Protocol):
    """Encodes a turn in the form of a protocol.

    named_events: send `event: <type>` lines. The protocol has its own end event, so no `[DONE]` follows.
    """

    @property
    def named_events(self) -> bool: ...

    def encode(self, end: TurnFinished, before: Sequence[TurnEvent] = ()) -> Mapping[str, Any]:
        """Return the answer in one piece. before: the events of the turn up to its end."""
        ...

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any] | None]:
        """Yield the events of a stream; None while the model is silent."""
        ...

    def error_event(self, error: RecapError) -> Mapping[str, Any]:
        """Return the event that ends a stream in whose middle the turn failed."""
        ...


def answer_turn(
    request: TurnRequest, encoder_for: Callable[[TurnStarted], ReplyEncoder]
) -> tuple[Response, TurnStarted]:
    """Run the turn; return the response, and the turn's TurnStarted when the response leaves.

    An error before the first word is raised, so the response has the error's status.
    """
    turn = run_turn(current_engine(), request)
    started = next(turn)
    assert isinstance(started, TurnStarted)
    encoder = encoder_for(started)
    if not request.stream:
        *before, end = turn
        assert isinstance(end, TurnFinished)
        return jsonify(encoder.encode(end, before)), end.started
    return event_stream(stream_with_context(_lines(turn, encoder)), lambda: _drain(turn, request)), started


def event_stream(lines: Iterator[str], on_close: Callable[[], object] | None = None) -> Response:
    """Return a response of server-sent events. on_close: called when all are sent, or the reader has left."""
    response = Response(lines, mimetype="text/event-stream")
    # Proxies that gather what they pass on or compress would hold the events back: nginx, Express's compression.
    response.headers["X-Accel-Buffering"] = "no"
    response.headers["Cache-Control"] = "no-store, no-transform"
    if on_close is not None:
        response.call_on_close(on_close)
    return response


def _lines(turn: Iterator[TurnEvent], encoder: ReplyEncoder) -> Iterator[str]:
    """Yield server-sent events.

    The status is sent before the first event, so a later error is an event itself, and no `[DONE]` follows it.
    """
    try:
        for event in encoder.events(turn):
            yield line_of(event, encoder)
    except RecapError as error:
        note_error_code(error.code)
        yield line_of(encoder.error_event(error), encoder)
    else:
        if not encoder.named_events:
            yield "data: [DONE]\n\n"


def line_of(event: Mapping[str, Any] | None, encoder: ReplyEncoder) -> str:
    if event is None:
        return ": keep-alive\n\n"  # a comment: clients ignore it, and it keeps proxies from closing the connection
    name = f"event: {event['type']}\n" if encoder.named_events else ""
    return f"{name}data: {json.dumps(event)}\n\n"


def _drain(turn: Iterator[TurnEvent], request: TurnRequest) -> None:
    """Interrupt or finish a turn whose client has closed the connection. An error is only logged.

    It is called after every stream. Of a turn that was read to its end nothing is left to interrupt or to read.
    """
    if request.on_disconnect == "interrupt":
        request.cancel.cancel()
    try:
        for _ in turn:
            pass
    except RecapError as error:
        log.warning("a turn failed after its listener had gone", extra=logs.fields(code=error.code))
