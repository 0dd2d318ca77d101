"""What is remembered, for an application's own model."""

from __future__ import annotations

from marshmallow import Schema, fields

from memory.recall.unhelpful import HITS_MAX
from schemas.chat import ExcerptMessage, Memory, Question
from schemas.fields import (
    OPTIONAL,
    CallerQuery,
    Items,
    PageQuery,
    SessionId,
    UtcDateTime,
    about,
    integer,
    number,
    one_of,
    page_of,
)

TOKENS = 2000  # room for what the settings allow by default, and for a summary


class RecallRequest(Question):
    """The message that the block is for, and whose memory it is: a user's, a session's, or both."""

    session_id = SessionId(**OPTIONAL, metadata=about("Its summary and facts are shown too."))
    block = integer(100, 1_000_000, load_default=TOKENS, data_key="tokens", metadata=about("The most for the block."))
    recall = one_of("auto", "always", "off", **OPTIONAL)


class RecallBlock(Schema):
    """The block, and its sources: the facts, and the excerpts with the ids of their messages."""

    block = fields.String(attribute="text")
    tokens = fields.Integer(metadata=about("Estimated."))
    memory = fields.Nested(Memory)


class UnhelpfulCreate(CallerQuery):
    session_id = SessionId(required=True, metadata=about("The session of the question."))
    message_id = integer(1, required=True, metadata=about("The id of the question or of its reply."))
    hits = Items(integer(1), HITS_MAX, 1, required=True, metadata=about("The `hits` of the excerpt."))


class UnhelpfulQuery(PageQuery):
    session_id = SessionId(load_default=None, metadata=about("Those of this session's owner."))
    message_id = number(1, load_default=None, metadata=about("Those of this question, or with this message."))


class Unhelpful(Schema):
    """A question, and an excerpt that did not help with it: its messages that the search found."""

    id = fields.Integer()
    session_id = fields.String(attribute="question.session_id", metadata=about("The session of the question."))
    message_id = fields.Integer(attribute="question.id", metadata=about("The id of the question."))
    question = fields.String(attribute="question.content")
    excerpt_session_id = fields.Function(
        lambda mark: next((message.session_id for message in mark.messages), None),
        metadata=about("The session of the excerpt."),
    )
    messages = fields.List(fields.Nested(ExcerptMessage))
    created_at = UtcDateTime()


UnhelpfulPage = page_of(Unhelpful)
