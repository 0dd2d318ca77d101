"""Sessions and messages."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, validate, validates_schema

from memory.sessions.messages import MessageDraft
from schemas.fields import INT64_MAX, CallerQuery, PageQuery, SessionId, Text, UserId, UtcDateTime, limit

ROLES = ("user", "assistant", "system", "tool")
MESSAGES_MAX = 1000


class Session(Schema):
    """A thread of messages."""

    id = fields.String()
    user_id = fields.String(allow_none=True)
    title = fields.String()
    system_prompt = fields.String(allow_none=True)
    message_count = fields.Integer()
    tokens = fields.Integer(metadata={"description": "Of all its messages, estimated."})
    summary_version = fields.Integer(metadata={"description": "The newest summary's; 0: there is none yet."})
    created_at = UtcDateTime()
    updated_at = UtcDateTime()
    busy = fields.Boolean(metadata={"description": "A reply is being written now."})


class SessionPage(Schema):
    items = fields.List(fields.Nested(Session))
    next_cursor = fields.String(allow_none=True)


class SessionQuery(PageQuery):
    limit = limit(20)
    q = Text(load_default=None, metadata={"description": "Words to look for in titles."})
    before = UtcDateTime(load_default=None)
    after = UtcDateTime(load_default=None)


class SessionCreate(CallerQuery):
    session_id = SessionId(load_default=None, metadata={"description": "Made up if absent."})
    title = Text(load_default="", validate=validate.Length(max=200))
    system_prompt = Text(load_default=None, allow_none=True, validate=validate.Length(max=20_000))


class SessionChange(Schema):
    title = Text(validate=validate.Length(1, 200))
    system_prompt = Text(allow_none=True, validate=validate.Length(max=20_000))


class Message(Schema):
    """One stored message."""

    id = fields.Integer()
    session_id = fields.String()
    position = fields.Integer(metadata={"description": "Counts from 1 within the session."})
    role = fields.String()
    name = fields.String(allow_none=True)
    content = fields.String()
    created_at = UtcDateTime()
    external_id = fields.String(allow_none=True)
    tokens = fields.Integer(metadata={"description": "Estimated."})
    extra = fields.Raw(
        allow_none=True,
        metadata={"description": "What it carries beside its words: calls of tools, what stood for an image."},
    )


class MessagePage(Schema):
    items = fields.List(fields.Nested(Message))
    next_cursor = fields.String(allow_none=True)
    previous_cursor = fields.String(
        allow_none=True, metadata={"description": "With `around`: for the messages before these, with order=desc."}
    )


class MessageQuery(PageQuery):
    order = fields.String(load_default="asc", validate=validate.OneOf(["asc", "desc"]))
    around = fields.Integer(
        load_default=None,
        validate=validate.Range(1, INT64_MAX),
        metadata={"description": "Id of a message: the page that it is in the middle of, in ascending order."},
    )
    branch = fields.Integer(
        load_default=0,
        validate=validate.Range(0, 2**31 - 1),
        metadata={"description": "0 is the conversation; 1, 2, ... are messages that were replaced, by occasion."},
    )

    @validates_schema
    def _around(self, data: dict[str, Any], **_: Any) -> None:
        if data["around"] is not None and (data["cursor"] is not None or data["branch"] or data["order"] != "asc"):
            raise ValidationError("Goes with `limit` only; its cursors go on from there.", "around")


class Stopping(Schema):
    stopping = fields.Boolean(metadata={"description": "False: no reply was being written."})


class MessageToAppend(Schema):
    role = fields.String(required=True, validate=validate.OneOf(ROLES))
    content = Text(required=True, validate=validate.Length(min=1))
    name = Text(load_default=None, allow_none=True, validate=validate.Length(1, 128))
    created_at = UtcDateTime(load_default=None, allow_none=True)
    external_id = Text(
        load_default=None,
        allow_none=True,
        validate=validate.Length(1, 256),
        metadata={"description": "Your own id: a message is stored once for each, however often it is sent."},
    )

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> MessageDraft:
        return MessageDraft(**data)


class Append(Schema):
    user_id = UserId(load_default=None)
    messages = fields.List(fields.Nested(MessageToAppend), required=True, validate=validate.Length(1, MESSAGES_MAX))


class Appended(Schema):
    session = fields.Nested(Session)
    message_ids = fields.List(fields.Integer(), metadata={"description": "Of all messages sent, in order."})
    created = fields.Integer(metadata={"description": "How many of them were new."})
