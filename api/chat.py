"""POST /api/chat: send a message, get a reply that remembers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.errors import error_body
from api.identity import idempotency_key
from api.permissions import other_memories_to_read
from api.streaming import answer_turn
from memory.errors import RecapError
from memory.llm import TextDelta, Thought, Waiting
from memory.transcripts.transcript import TranscriptMessage
from memory.turn.request import TurnEvent, TurnFinished, TurnRequest, TurnStarted
from models.keys import CHAT
from schemas.chat import USAGE, ChatReply, ChatRequest
from schemas.memory_report import MEMORY

blueprint = ApiBlueprint("chat", "Send a message, get a reply that remembers.")


@blueprint.post(
    "/chat",
    body=ChatRequest,
    returns=ChatReply,
    scope=CHAT,
    turn=True,
    errors={
        404: "There is no such session for a temporary turn, or it has no message `replaces`.",
        409: "The session is busy; or another request had this Idempotency-Key; or the reply was stopped before its "
        "first word, and the message is kept.",
        413: "The message is too large for a prompt. Nothing was stored.",
        502: "The model server failed. The message is kept; send it again to get the reply.",
        503: "The model server is busy; the message is kept. Or all threads are in use; nothing was done. Retry later.",
        504: "The model took longer than MODEL_TIMEOUT. The message is kept.",
    },
)
def chat(caller: Caller, body: dict[str, Any]) -> Response:
    """Send a message and get the reply

    A session that does not exist is created. Recap recalls what fits the message, the main model answers, and the
    session's summary and facts are updated after the reply was sent. With `replaces`, the message takes the place of
    an earlier one and of everything after it: new words edit it, the same words get another reply. Replaced messages
    are kept, but no longer shown, recalled or summarised.
    """
    also = other_memories_to_read(caller, body.pop("spaces"), body.pop("person"))
    message = body.pop("message")
    if not isinstance(message, str):  # it has images or files
        body["sent"] = TranscriptMessage.of_parts(message)
        message = "\n".join(part["text"] for part in message if part["type"] == "text").strip()
    request = TurnRequest(caller, message, **body, also=also, idempotency_key=idempotency_key(caller))
    notice = current_engine().model_server.models.notice
    return answer_turn(request, lambda started: ChatEncoder(started, notice))[0]


@dataclass(frozen=True)
class ChatEncoder:
    """Encode a turn as OpenAI's `chat.completion`, with the fields of Recap.

    The first chunk of a stream has the memory, the last one the usage. notice: says that the built-in model answers.
    """

    started: TurnStarted
    notice: str | None
    named_events: bool = False

    def encode(self, end: TurnFinished, before: Sequence[TurnEvent] = ()) -> Mapping[str, Any]:
        choice = {"message": {"role": "assistant", "content": end.reply}, "finish_reason": end.finish_reason}
        more = {"message_id": end.reply_message_id, "reply": end.reply, "usage": USAGE.dump(end.usage)}
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
                memory = part.started.memory  # complete only now, if the model has called tools
                complete = {"memory": MEMORY.dump(memory)} if memory.calls else {}
                usage = USAGE.dump(part.usage)
                last = self._chunk({}, part.finish_reason, usage=usage, message_id=part.reply_message_id, **complete)
                yield {**last, "model": part.model}  # a fallback model may have taken over before the first word
                if part.failure is not None:  # the stream ends with the error
                    raise part.failure

    def error_event(self, error: RecapError) -> Mapping[str, Any]:
        return error_body(error)

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"delta": delta, "finish_reason": finish}
        return self._answer("chat.completion.chunk", self.started.model, choice, **more)

    def _answer(
        self, kind: str, model: str, choice: Mapping[str, Any], started: TurnStarted | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return an object of OpenAI's protocol. started: adds the session, the memory and the notice."""
        created = int(self.started.created_at.timestamp())
        answer = {"id": self.started.completion_id, "object": kind, "created": created, "model": model}
        answer["choices"] = [{"index": 0, **choice}]
        if started is not None:
            answer |= {"session_id": started.session_id, "user_message_id": started.user_message_id}
            answer["memory"] = MEMORY.dump(started.memory)
            answer |= {"notice": self.notice} if self.notice else {}
        return {**answer, **more}
