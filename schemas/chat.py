"""A turn: the request, the reply, and what the reply says of its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, validate, validates_schema

from memory.sessions.messages import MESSAGE_CHARS_MAX, MessageDraft
from memory.turn.values import TurnRequest
from schemas.facts import Fact
from schemas.fields import INT64_MAX, SessionId, Text, TimeZone, UserId, UtcDateTime
from schemas.sessions import Message

RECALL_MODES = ("auto", "always", "tools", "off")
HISTORY_MAX = 200  # messages; a chat as long as that had better be stored


@dataclass(frozen=True)
class ChatCall:
    """A chat request: who, and what."""

    user_id: str | None
    turn: TurnRequest


class MessageText(Text):
    """The message: a string, or `{"role": "user", "content": "..."}`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if isinstance(value, Mapping):
            if value.get("role", "user") != "user":
                raise ValidationError("Its role must be user: what others said is appended, not answered.")
            value = value.get("content")
        text = super()._deserialize(value, attr, data, **kwargs)
        if not text.strip():
            raise ValidationError("Is empty. Send some words.")
        return text


class Said(Schema):
    """A message of a temporary chat."""

    role = fields.String(required=True, validate=validate.OneOf(["user", "assistant"]))
    content = Text(required=True, validate=validate.Length(1, MESSAGE_CHARS_MAX))

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> MessageDraft:
        return MessageDraft(**data)


class ChatRequest(Schema):
    """A message to answer."""

    message = MessageText(required=True, metadata={"description": 'Its text, or {"role": "user", "content": "..."}.'})
    session_id = SessionId(load_default=None, allow_none=True, metadata={"description": "Made if absent."})
    user_id = UserId(load_default=None, allow_none=True)
    name = Text(load_default=None, allow_none=True, validate=validate.Length(1, 128))
    stream = fields.Boolean(load_default=False)
    recall = fields.String(load_default=None, allow_none=True, validate=validate.OneOf(RECALL_MODES))
    timezone = TimeZone(load_default=UTC, metadata={"description": 'Where "yesterday" is told; UTC by default.'})
    prompt = Text(
        load_default=None,
        allow_none=True,
        validate=validate.Length(1, 64),
        metadata={"description": "Name of the prompt this turn's summary is made with."},
    )
    system_prompt = Text(load_default=None, allow_none=True, validate=validate.Length(1, 20_000))
    temporary = fields.Boolean(
        load_default=False, metadata={"description": "Use what is remembered, and store nothing of this turn."}
    )
    history = fields.List(
        fields.Nested(Said),
        load_default=(),
        validate=validate.Length(max=HISTORY_MAX),
        metadata={"description": "With `temporary`: what was said before in this chat, which nobody else keeps."},
    )
    replaces = fields.Integer(
        load_default=None,
        allow_none=True,
        strict=True,
        validate=validate.Range(1, INT64_MAX),
        metadata={
            "description": "Id of a user message of the session, which this one and its reply take the place of, with "
            "all that came after it: to edit a message, or with the same words to get another reply."
        },
    )

    @validates_schema
    def _history(self, data: dict[str, Any], **_: Any) -> None:
        if data["history"] and not data["temporary"]:
            raise ValidationError("Goes with temporary: what a session holds is remembered without it.", "history")

    @validates_schema
    def _replaces(self, data: dict[str, Any], **_: Any) -> None:
        if data["replaces"] is None:
            return
        if data["session_id"] is None:
            raise ValidationError("Is needed to replace a message: the session that has it.", "session_id")
        if data["temporary"]:
            raise ValidationError("A temporary turn stores nothing, so it can't replace a message.", "replaces")

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> ChatCall:
        return ChatCall(data.pop("user_id"), TurnRequest(**{**data, "history": tuple(data["history"])}))


class ShownFact(Fact):
    """A fact as a prompt showed it."""

    class Meta:
        fields = ("id", "text", "category", "pinned", "valid_from", "score")


class ExcerptMessage(Message):
    """A message within an excerpt."""

    class Meta:
        fields = ("id", "position", "role", "name", "content", "created_at")


class Excerpt(Schema):
    """A recalled window of an earlier conversation."""

    session_id = fields.String()
    title = fields.String()
    messages = fields.List(fields.Nested(ExcerptMessage))
    hits = fields.List(fields.Integer(), metadata={"description": "Ids of the messages that were found."})
    score = fields.Float()
    why = fields.Dict(keys=fields.String(), values=fields.Float())


class RecallCall(Schema):
    """A look back that the model asked for in recall mode `tools`."""

    name = fields.String(metadata={"description": "The tool: conversation_search or recent_chats."})
    query = fields.String(allow_none=True, metadata={"description": "The words; None in a repeated answer."})
    after = UtcDateTime(allow_none=True)
    before = UtcDateTime(allow_none=True)
    excerpts = fields.Integer(metadata={"description": "How many excerpts it was given."})
    error = fields.String(allow_none=True, metadata={"description": "What it was told instead."})


_recall_call = RecallCall()


class Memory(Schema):
    """What the prompt of a turn showed of the past, and why."""

    summary = fields.Method(
        "_summary", metadata={"description": "The stored version and state, and the version shown."}
    )
    facts = fields.List(fields.Nested(ShownFact))
    excerpts = fields.List(fields.Nested(Excerpt), attribute="recalled.excerpts")
    recall = fields.Method(
        "_recall",
        metadata={"description": "The mode; in words why this was recalled, or nothing; the model's own `calls`."},
    )
    tail = fields.Method("_tail", metadata={"description": "Messages sent word for word, and how many were too many."})

    def _summary(self, report: Any) -> dict[str, Any]:
        return {"version": report.summary_version, "state": report.state, "head_version": report.head_version}

    def _recall(self, report: Any) -> dict[str, Any]:
        told = {"mode": report.recalled.mode, "reason": report.recalled.reason}
        if report.recalled.mode == "tools":
            told["calls"] = _recall_call.dump(report.calls, many=True)
        return told

    def _tail(self, report: Any) -> dict[str, Any]:
        return {"messages": report.tail_messages, "dropped": report.tail_dropped}


class ChatUsage(Schema):
    """Tokens of the main call, as the provider counts them."""

    prompt_tokens = fields.Integer(attribute="spent.prompt_tokens")
    completion_tokens = fields.Integer(attribute="spent.completion_tokens")
    total_tokens = fields.Integer(attribute="spent.total_tokens")
    estimated = fields.Boolean(
        attribute="spent.estimated", metadata={"description": "The provider gave no figures; these are estimates."}
    )
    full_history_tokens = fields.Integer(metadata={"description": "What sending every message would have cost."})
    saved_tokens = fields.Integer(metadata={"description": "The difference; below zero while a session is short."})


class ChatChoiceMessage(Schema):
    role = fields.String()
    content = fields.String()


class ChatChoice(Schema):
    index = fields.Integer()
    message = fields.Nested(ChatChoiceMessage)
    finish_reason = fields.String(
        metadata={"description": "The model's (`stop`, `length`, ...), or `interrupted`: the reply was stopped."}
    )


class ChatReply(Schema):
    """An OpenAI chat.completion object, with the session, the reply's text and the memory beside it.

    With `stream` the same comes as chat.completion.chunk events: the first carries `session_id` and `memory`, the
    last before `[DONE]` carries `usage` and `message_id`, and `memory` again if the model looked back by itself.
    """

    id = fields.String()
    object = fields.String()
    created = fields.Integer()
    model = fields.String()
    choices = fields.List(fields.Nested(ChatChoice))
    usage = fields.Nested(ChatUsage)
    session_id = fields.String(
        allow_none=True, metadata={"description": "None for a temporary turn without a session."}
    )
    user_message_id = fields.Integer(allow_none=True)
    message_id = fields.Integer(allow_none=True, metadata={"description": "The stored reply's."})
    reply = fields.String()
    memory = fields.Nested(Memory)
    notice = fields.String(metadata={"description": "Present while the built-in model answers: says so."})


class ChatHeaders(Schema):
    idempotency_key = Text(
        data_key="Idempotency-Key",
        load_default=None,
        validate=validate.Length(1, 256),
        metadata={"description": "The same key with the same request gets the first answer again."},
    )
