"""POST /api/chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flask import Response, jsonify

from api.blueprint import caller, resource, retry_key, services
from api.streaming import event_stream
from memory.access.keys import CHAT
from memory.llm import Piece
from memory.turn.values import TurnEvent, TurnFinished, TurnRequest, TurnStarted
from schemas.chat import ChatReply, ChatRequest, ChatUsage, Memory
from schemas.errors import error_body

blueprint = resource("chat", "Send a message, get a reply that remembers.")
_memory, _usage = Memory(), ChatUsage()


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
    request = TurnRequest(caller(body.pop("user_id")), **body, idempotency_key=retry_key())
    engine = services()
    notice = {"notice": text} if (text := engine.model_server.models.notice) else {}
    events = engine.pipeline.turn(request)
    started = next(events)  # a failure before the first word still has its own status
    assert isinstance(started, TurnStarted)
    if request.stream:
        return event_stream(_chunks(started, events, notice), events, error_body)
    end = next(event for event in events if isinstance(event, TurnFinished))
    choice = {"message": {"role": "assistant", "content": end.reply}, "finish_reason": end.finish_reason}
    more = {**_remembered(end.started), "message_id": end.reply_message_id, "reply": end.reply, **notice}
    return jsonify(_answer("chat.completion", end.started, end.model, choice, usage=_usage.dump(end.usage), **more))


def _answer(kind: str, started: TurnStarted, model: str, choice: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    created = int(started.created_at.timestamp())
    said = {"id": started.completion_id, "object": kind, "created": created, "model": model}
    return {**said, "choices": [{"index": 0, **choice}], **more}


def _remembered(started: TurnStarted) -> dict[str, Any]:
    """What Recap adds to OpenAI's answer, before the reply is there."""
    ids = {"session_id": started.session_id, "user_message_id": started.user_message_id}
    return {**ids, "memory": _memory.dump(started.memory)}


def _chunks(started: TurnStarted, events: Iterator[TurnEvent], notice: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The turn as OpenAI chunks: the memory comes with the first, the usage with the last."""

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"delta": delta, "finish_reason": finish}
        return _answer("chat.completion.chunk", started, started.model, choice, **more)

    yield chunk({"role": "assistant", "content": ""}, **_remembered(started), **notice)
    for part in events:
        if isinstance(part, Piece):
            yield chunk({"content": part.text})
        elif isinstance(part, TurnFinished):
            memory = part.started.memory  # complete only now, if the model itself looked back
            again = {"memory": _memory.dump(memory)} if memory.calls else {}
            usage = _usage.dump(part.usage)
            yield chunk({}, part.finish_reason, usage=usage, message_id=part.reply_message_id, **again)
