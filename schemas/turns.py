"""Turns of a session: how each ended, what it cost, and the memory that its prompt showed."""

from marshmallow import Schema

from schemas import fields
from schemas.chat import ChatUsage
from schemas.memory_report import Memory
from schemas.shapes import PageQuery


class Turn(Schema):
    user_message_id = fields.Integer()
    message_id = fields.Integer(allow_none=True, about="The id of the reply; null if there is none (yet).")
    state = fields.String(
        about="`answering`; `finished`; `interrupted`: it was stopped, or the model failed in its middle, and the "
        "words so far are kept; `broken_off`: no reply came, and sending the same message again continues the turn; or "
        "`refused`: a model server refused the message, which tells why, and the session goes on without it."
    )
    so_far = fields.String(
        allow_none=True,
        about="While there is no reply: what the model had said of it a few seconds ago; null if nothing.",
    )
    model = fields.String(allow_none=True)
    finish_reason = fields.String(allow_none=True)
    usage = fields.Nested(ChatUsage, allow_none=True)
    started_at = fields.UtcDateTime()
    finished_at = fields.UtcDateTime(allow_none=True)


class TurnWithMemory(Turn):
    """Turn, and what its prompt showed of the memory, except what was erased since."""

    memory = fields.Nested(Memory, allow_none=True)


class TurnQuery(PageQuery):
    limit = fields.limit(100, most=500)
    order = fields.one_of("asc", "desc", load_default="desc")
