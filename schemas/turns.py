"""Turns that were taken."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from schemas.chat import ChatUsage, Memory
from schemas.fields import PageQuery, UtcDateTime, limit


class Turn(Schema):
    """A message and its reply: how it ended, and what it cost."""

    user_message_id = fields.Integer()
    message_id = fields.Integer(allow_none=True, metadata={"description": "The reply's; null: none came, or not yet."})
    state = fields.String(
        metadata={
            "description": "`answering`; `finished`; `interrupted`: stopped, and what was said is kept; or "
            "`broken_off`: no reply came, and the same message sent again takes the turn up."
        }
    )
    model = fields.String(allow_none=True)
    finish_reason = fields.String(allow_none=True)
    usage = fields.Nested(ChatUsage, allow_none=True)
    started_at = UtcDateTime()
    finished_at = UtcDateTime(allow_none=True)


class TurnPage(Schema):
    items = fields.List(fields.Nested(Turn))
    next_cursor = fields.String(allow_none=True)


class TurnWithMemory(Turn):
    """A turn, and what its prompt showed of the memory: as far as it is still there."""

    memory = fields.Nested(Memory, allow_none=True)


class TurnQuery(PageQuery):
    limit = limit(100, most=500)
    order = fields.String(load_default="desc", validate=validate.OneOf(["asc", "desc"]))
