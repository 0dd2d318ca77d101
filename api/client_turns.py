"""A client's turn, whatever protocol it speaks: its request arrives, the turn is taken, the answer is written down.

Each protocol translates its request into the parameters of a chat completion, and the turn's events into its own form.
The session, the person and the memory are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from flask import Response, jsonify, request

from api.blueprint import LIMITED, caller, header, retry_key, services
from api.streaming import event_stream
from memory.errors import RecapError
from memory.turn.values import TurnEvent, TurnFinished, TurnRequest, TurnStarted
from schemas.openai_compat import turn_of

REFUSED = "The model server refused the request. Its own status and error are passed on."
NO_SERVER = "The model server could not be reached, or its answer was not valid."
ERRORS = {
    400: REFUSED,
    404: "The session or the person belongs to someone else, or the model server does not know the model.",
    409: "Another request had this Idempotency-Key.",
    429: f"{LIMITED} Or: {REFUSED}",
    502: NO_SERVER,
    504: "The model took longer than MODEL_TIMEOUT.",
}


class Writer(Protocol):
    """Writes an answer down in the form of a protocol.

    `named` says that each event of a stream has a `type`, by which it is named.
    """

    named: bool

    def whole(self, events: Sequence[TurnEvent]) -> Mapping[str, Any]:
        """The answer in one piece.  The last event is TurnFinished."""
        ...

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any]]:
        """The answer as the events of a stream."""
        ...

    def failed(self, error: RecapError) -> Mapping[str, Any]:
        """The event that ends a stream in whose middle the turn failed."""
        ...


def arrived(parameters: dict[str, Any], metadata: Any) -> TurnRequest:
    """The turn that the request asks for; see `turn_of`."""
    return turn_of(caller, parameters, metadata, header, request.get_data(), retry_key())


def answer(asked: TurnRequest, writer: Callable[[TurnStarted], Writer]) -> Response:
    """Take the turn.  A failure before the first word still has its own status."""
    turn = services().pipeline.turn(asked)
    started = next(turn)
    assert isinstance(started, TurnStarted)
    written = writer(started)
    if asked.stream:
        return _with_memory(event_stream(written.events(turn), turn, written.failed, named=written.named), started)
    events = list(turn)
    end = events[-1]
    assert isinstance(end, TurnFinished)
    return _with_memory(jsonify(written.whole(events)), end.started)


def _with_memory(response: Response, started: TurnStarted) -> Response:
    """Tell about the memory in headers, so that the answer itself stays the model's."""
    recalled = sum(len(excerpt.messages) for excerpt in started.memory.recalled.excerpts)
    said = {
        "X-Memory-Session-Id": started.session_id,
        "X-Memory-Recalled": str(recalled),
        "X-Memory-Tokens-Saved": str(started.saved_tokens),
        "X-Memory-Error": started.problem,
    }
    for name, value in said.items():
        if value is not None:
            response.headers[name] = value.encode("utf-8").decode("latin-1")
    return response
