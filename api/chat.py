"""POST /api/chat; and how a turn is answered, in one piece or as server-sent events, whatever protocol was spoken."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flask import Response, jsonify, stream_with_context

from api import errors
from api.errors import error_body
from api.identity import caller, idempotency_key
from api.resource import ApiBlueprint, current_engine
from memory.engine import Engine
from memory.errors import RecapError
from memory.llm import TextDelta, Thought, Waiting
from memory.ops import logs
from memory.turn.request import TurnEvent, TurnFinished, TurnRequest, TurnStarted
from memory.turn.turn import run_turn
from models.keys import CHAT
from schemas.chat import ChatReply, ChatRequest, _memory, _usage

log = logging.getLogger(__name__)

blueprint = ApiBlueprint("chat", "Send a message, get a reply that remembers.")


@blueprint.post(
    "/chat",
    scope=CHAT,
    turn=True,
    errors={
        404: "The session does not exist or belongs to someone else, or it has no message `replaces`.",
        409: "The session is busy; or another request had this Idempotency-Key; or the reply was stopped before its "
        "first word, and the message is kept.",
        413: "The message is too large for a prompt. Nothing was stored.",
        502: "The model server failed. The message is kept; send it again to get the reply.",
        503: "The model server is busy; the message is kept. Or all threads are in use; nothing was done. Retry later.",
        504: "The model took longer than MODEL_TIMEOUT. The message is kept.",
    },
)
@blueprint.arguments(ChatRequest())
@blueprint.response(200, ChatReply)
def chat(body: dict[str, Any]) -> Response:
    """Send a message and get the reply

    A session that does not exist is created. Recap recalls what fits the message, the main model answers, and the
    session's summary and facts are updated after the reply was sent. With `replaces`, the message takes the place of
    an earlier one and of everything after it: new words edit it, the same words get another reply. Replaced messages
    are kept, but no longer shown, recalled or summarised.
    """
    asked = TurnRequest(caller(body.pop("user_id")), **body, idempotency_key=idempotency_key())
    engine = current_engine()
    notice = engine.model_server.models.notice
    return answer(engine, asked, lambda started: ChatEncoder(started, notice))[0]


class ReplyEncoder(Protocol):
    """Writes a turn in the form of a protocol.

    named_events: send `event: <type>` lines. The protocol has its own end event, so no `[DONE]` follows.
    """

    @property
    def named_events(self) -> bool: ...

    def encode(self, events: Sequence[TurnEvent]) -> Mapping[str, Any]:
        """The answer in one piece.  The last event is TurnFinished."""
        ...

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any] | None]:
        """The answer as the events of a stream; None while the model is silent."""
        ...

    def failed(self, error: RecapError) -> Mapping[str, Any]:
        """The event that ends a stream in whose middle the turn failed."""
        ...


def answer(
    engine: Engine, asked: TurnRequest, encoder_for: Callable[[TurnStarted], ReplyEncoder]
) -> tuple[Response, TurnStarted]:
    """Take the turn: the response, and what is known of the turn when it leaves.

    A failure before the first word still has its own status.
    """
    turn = run_turn(engine, asked)
    started = next(turn)
    assert isinstance(started, TurnStarted)
    encoder = encoder_for(started)
    if asked.stream:
        return _streamed(turn, asked, encoder), started
    events = list(turn)
    end = events[-1]
    assert isinstance(end, TurnFinished)
    return jsonify(encoder.encode(events)), end.started


def _streamed(turn: Iterator[TurnEvent], request: TurnRequest, encoder: ReplyEncoder) -> Response:
    """The response that streams the turn.

    The status is sent before the first event.  So a later error comes as an event, and no `[DONE]` follows it.
    """

    def line(event: Mapping[str, Any] | None) -> str:
        if event is None:
            return ": keep-alive\n\n"  # a comment, which clients ignore and proxies count as life
        name = f"event: {event['type']}\n" if encoder.named_events else ""
        return f"{name}data: {json.dumps(event)}\n\n"

    def lines() -> Iterator[str]:
        try:
            yield from map(line, encoder.events(turn))
        except RecapError as error:
            errors.failed(error.code)
            yield line(encoder.failed(error))
        else:
            if not encoder.named_events:
                yield "data: [DONE]\n\n"

    response = Response(stream_with_context(lines()), mimetype="text/event-stream")
    response.headers["X-Accel-Buffering"] = "no"  # else nginx would hold the events back
    response.call_on_close(lambda: _drain(turn, request))
    return response


def _drain(turn: Iterator[TurnEvent], request: TurnRequest) -> None:
    """End a turn whose reader has left, or let it finish.  The log alone is told when it fails."""
    if request.on_disconnect == "interrupt":
        request.cancel.cancel()
    try:
        for _ in turn:
            pass
    except RecapError as error:
        log.warning("a turn failed after its listener had gone", extra=logs.fields(code=error.code))


@dataclass(frozen=True)
class ChatEncoder:
    """Writes a turn's answer as a reply; as a stream, the memory comes with the first chunk and the usage with the
    last.  `notice` is told beside the memory."""

    started: TurnStarted
    notice: str | None
    named_events: bool = False

    def encode(self, events: Sequence[TurnEvent]) -> Mapping[str, Any]:
        end = events[-1]
        assert isinstance(end, TurnFinished)
        choice = {"message": {"role": "assistant", "content": end.reply}, "finish_reason": end.finish_reason}
        more = {"message_id": end.reply_message_id, "reply": end.reply, "usage": _usage.dump(end.usage)}
        return self._answer("chat.completion", end.model, choice, end.started, **more)

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any] | None]:
        yield self._chunk({"role": "assistant", "content": ""}, started=self.started)
        for part in turn:
            if isinstance(part, TextDelta):
                yield self._chunk({"content": part.text})
            elif isinstance(part, Thought):
                more: dict[str, Any] = {"withdraws": True} if part.withdraws else {}
                yield self._chunk({"reasoning_content": part.text}, **more)
            elif isinstance(part, Waiting):
                yield None
            elif isinstance(part, TurnFinished):
                memory = part.started.memory  # complete only now, if the model itself looked back
                again = {"memory": _memory.dump(memory)} if memory.calls else {}
                usage = _usage.dump(part.usage)
                last = self._chunk({}, part.finish_reason, usage=usage, message_id=part.reply_message_id, **again)
                yield {**last, "model": part.model}  # another one may have taken over while the first was silent
                if part.failure is not None:  # the stream ends with the error
                    raise part.failure

    def failed(self, error: RecapError) -> Mapping[str, Any]:
        return error_body(error)

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"delta": delta, "finish_reason": finish}
        return self._answer("chat.completion.chunk", self.started.model, choice, **more)

    def _answer(
        self, kind: str, model: str, choice: Mapping[str, Any], started: TurnStarted | None = None, **more: Any
    ) -> dict[str, Any]:
        """OpenAI's answer; with `started`, what is known before the reply is there comes with it."""
        created = int(self.started.created_at.timestamp())
        said = {"id": self.started.completion_id, "object": kind, "created": created, "model": model}
        said["choices"] = [{"index": 0, **choice}]
        if started is not None:
            said |= {"session_id": started.session_id, "user_message_id": started.user_message_id}
            said["memory"] = _memory.dump(started.memory)
            said |= {"notice": self.notice} if self.notice else {}
        return {**said, **more}
