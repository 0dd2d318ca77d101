"""What is remembered, for an application's own model."""

from __future__ import annotations

from datetime import UTC

from marshmallow import Schema, fields

from schemas.chat import HISTORY_MAX, Memory, MessageText, Said
from schemas.fields import Input, Items, SessionId, TimeZone, UserId, about, integer, one_of

TOKENS = 2000  # room for what the settings allow by default, and for a summary


class RecallRequest(Input):
    """The message that the block is for, and whose memory it is: a user's, a session's, or both."""

    long = True

    message = MessageText(required=True, metadata=about('Its text, or {"role": "user", "content": "..."}.'))
    user_id = UserId(load_default=None, allow_none=True)
    session_id = SessionId(load_default=None, allow_none=True, metadata=about("Its summary and facts are shown too."))
    block = integer(100, 1_000_000, load_default=TOKENS, data_key="tokens", metadata=about("The most for the block."))
    recall = one_of("auto", "always", "off", load_default=None, allow_none=True)
    timezone = TimeZone(load_default=UTC, metadata=about('The zone of words like "yesterday". The default is UTC.'))
    history = Items(
        fields.Nested(Said),
        HISTORY_MAX,
        load_default=(),
        metadata=about("What was said just before, if Recap has not stored it: it tells what the message refers to."),
    )


class RecallBlock(Schema):
    """The block, and its sources: the facts, and the excerpts with the ids of their messages."""

    block = fields.String(attribute="text")
    tokens = fields.Integer(metadata=about("Estimated."))
    memory = fields.Nested(Memory)
