"""POST /api/chat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from flask import jsonify
from flask.typing import ResponseReturnValue

from api import requests
from api.context import DAY_SPENT, caller, errors, resource, retry_key, services
from api.errors import error_body
from api.streaming import EVENTS, event_stream
from memory.access.keys import CHAT
from memory.errors import RecapError
from memory.llm import Piece
from memory.notice import builtin_notice
from memory.services import Services
from memory.turn.values import TurnEvent, TurnFinished, TurnStarted
from schemas.chat import ChatCall, ChatHeaders, ChatReply, ChatRequest, ChatUsage, Memory
from schemas.dumping import dumper

blueprint = resource("chat", "Send a message, get a reply that remembers.")
_memory, _usage = dumper(Memory()), dumper(ChatUsage())


@blueprint.route("/chat", methods=["POST"], scope=CHAT)
@blueprint.arguments(ChatRequest)
@blueprint.arguments(ChatHeaders, location="headers")
@blueprint.answer(200, ChatReply)
@blueprint.alt_response(200, schema=EVENTS, content_type="text/event-stream", success=True)
@errors(
    blueprint,
    e404="The session is not there, or belongs to someone else; or it has no message `replaces`.",
    e409="The session is busy, the Idempotency-Key was another request's, or the reply was stopped before its first "
    "word: then the message is kept.",
    e413="The message is larger than a prompt may be. Nothing was stored.",
    e429=DAY_SPENT,
    e502="The model server failed. The message is kept; sending it again takes the turn up where it broke off.",
    e503="The model server is busy; see Retry-After. The message is kept.",
    e504="The model took longer than MODEL_TIMEOUT. The message is kept.",
)
def chat(call: ChatCall, headers: dict[str, Any]) -> ResponseReturnValue:
    """Send a message and get the reply

    The session is made if it is new. Recap recalls what fits the message, answers with the main model, and brings
    the session's summary and facts up to date after the reply has left. With `replaces` the message takes the place
    of an earlier one and of all that followed it; those are kept, but they are not shown, recalled or summarised.
    """
    key = retry_key(headers["idempotency_key"])
    request = call.turn if key is None else replace(call.turn, idempotency_key=key)
    engine = services()
    events = engine.pipeline.turn(caller(call.user_id), request)
    started = next(events)  # a failure before the first word still has its own status
    assert isinstance(started, TurnStarted)
    if request.stream:
        return event_stream(_sse(started, events, _notice(engine)), events)
    end = next(event for event in events if isinstance(event, TurnFinished))
    return jsonify(_completion(end) | _notice(engine))


def _completion(end: TurnFinished) -> dict[str, Any]:
    started = end.started
    return {
        "id": started.completion_id,
        "object": "chat.completion",
        "created": int(started.created_at.timestamp()),
        "model": end.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": end.reply},
                "finish_reason": end.finish_reason,
            }
        ],
        "usage": _usage(end.usage),
        "session_id": started.session_id,
        "user_message_id": started.user_message_id,
        "message_id": end.reply_message_id,
        "reply": end.reply,
        "memory": _memory(started.memory),
    }


def _sse(started: TurnStarted, events: Iterator[TurnEvent], notice: dict[str, str]) -> Iterator[str]:
    """The turn as server-sent events: OpenAI chunks, the memory with the first, the usage with the last."""
    common = {
        "id": started.completion_id,
        "object": "chat.completion.chunk",
        "created": int(started.created_at.timestamp()),
        "model": started.model,
    }

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({**common, 'choices': [choice], **more}, ensure_ascii=False)}\n\n"

    yield event(
        {"role": "assistant", "content": ""},
        session_id=started.session_id,
        user_message_id=started.user_message_id,
        memory=_memory(started.memory),
        **notice,
    )
    try:
        for part in events:
            if isinstance(part, Piece):
                yield event({"content": part.text})
            elif isinstance(part, TurnFinished):
                looked = part.started.memory  # complete only now, when the model looked back by itself
                again = {"memory": _memory(looked)} if looked.calls else {}
                usage = _usage(part.usage)
                yield event({}, part.finish_reason, usage=usage, message_id=part.reply_message_id, **again)
    except RecapError as error:  # the status has left already: the error comes as an event, and no [DONE]
        requests.failed(error.code)
        yield f"data: {json.dumps(error_body(error))}\n\n"
        return
    yield "data: [DONE]\n\n"


def _notice(engine: Services) -> dict[str, str]:
    notice = builtin_notice(engine.settings)
    return {"notice": notice} if notice else {}
