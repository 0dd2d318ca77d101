"""Turns of the past."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.chat import ChatUsage, Memory
from schemas.fields import PageQuery, UtcDateTime, about, limit, one_of, page_of


class Turn(Schema):
    """A message and its reply: how the turn ended, and what it cost."""

    user_message_id = fields.Integer()
    message_id = fields.Integer(allow_none=True, metadata=about("The id of the reply; null if there is none (yet)."))
    state = fields.String(
        metadata=about(
            "`answering`; `finished`; `interrupted`: it was stopped, and the words so far are kept; or `broken_off`: "
            "no reply came, and sending the same message again continues the turn."
        )
    )
    model = fields.String(allow_none=True)
    finish_reason = fields.String(allow_none=True)
    usage = fields.Nested(ChatUsage, allow_none=True)
    started_at = UtcDateTime()
    finished_at = UtcDateTime(allow_none=True)


TurnPage = page_of(Turn)


class TurnWithMemory(Turn):
    """A turn, and what its prompt showed of the memory, except what was erased since."""

    memory = fields.Nested(Memory, allow_none=True)


class TurnQuery(PageQuery):
    limit = limit(100, most=500)
    order = one_of("asc", "desc", load_default="desc")
