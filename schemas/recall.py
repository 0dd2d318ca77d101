"""Memory for an application's own model, marks of unhelpful excerpts, and search."""

from collections.abc import Callable
from datetime import UTC
from typing import Any

from marshmallow import Schema

from schemas import fields
from schemas.chat import Question
from schemas.facts import Fact
from schemas.fields import OPTIONAL
from schemas.memory_report import DocumentPlace, ExcerptMessage, Memory
from schemas.messages import ROLES, Message
from schemas.shapes import CallerQuery, OwnerPageQuery

HITS_MAX = 100  # of one excerpt
TOKENS = 2000  # room for what the settings allow by default, and for a summary


class RecallRequest(Question):
    """Message that the block is for, and whose memory it is: a user's, a session's, or both."""

    session_id = fields.SessionId(**OPTIONAL, about="Its summary and facts are shown too.")
    block_tokens = fields.integer(
        100, 1_000_000, load_default=TOKENS, data_key="tokens", about="The most tokens that the block takes."
    )
    recall = fields.one_of(
        "auto", "always", "off", **OPTIONAL, about="`always`: the nearest excerpts, however near; else as in a turn."
    )


class RecallBlock(Schema):
    """Block, and its sources: the facts, and the excerpts with the ids of their messages."""

    block = fields.String(attribute="text")
    tokens = fields.Integer(about="Estimated tokens of the block.")
    memory = fields.Nested(Memory)


class UnhelpfulCreate(CallerQuery):
    session_id = fields.SessionId(required=True, about="The session of the question.")
    message_id = fields.integer(1, required=True, about="The id of the question or of its reply.")
    hits = fields.Items(fields.integer(1), HITS_MAX, 1, required=True, about="The `hits` of the excerpt.")


class UnhelpfulQuery(OwnerPageQuery):
    message_id = fields.number(1, load_default=None, about="Marks of this question, or with this message.")


class Unhelpful(Schema):
    """Question, and an excerpt that did not help with it: its messages that the search found."""

    id = fields.Integer()
    session_id = fields.String(attribute="question.session_id", about="The session of the question.")
    message_id = fields.Integer(attribute="question.id", about="The id of the question.")
    question = fields.String(attribute="question.content")
    excerpt_session_id = fields.Function(
        lambda mark: next((message.session_id for message in mark.messages), None),
        about="The session of the excerpt.",
        metadata={"type": "string", "nullable": True},
    )
    messages = fields.List(fields.Nested(ExcerptMessage))
    created_at = fields.UtcDateTime()


class SearchQuery(CallerQuery):
    text = fields.text(
        1,
        2000,
        required=True,
        data_key="q",
        about='Words; a message with more of them, or with rarer ones, comes first. `"green tea"` finds only messages '
        'with that phrase, `-coffee` and `-"black tea"` leave out those with it, `berg*` finds only those with a word '
        "that begins so.",
    )
    session_id = fields.SessionId(load_default=None)
    after = fields.UtcDateTime(load_default=None, about="Said at this time or later.")
    before = fields.UtcDateTime(load_default=None, about="Said before this time.")
    role = fields.one_of(*ROLES, load_default=None)
    kind = fields.one_of(
        *("message", "document", "summary", "fact"),
        load_default="message",
        about="What is searched: messages, and the passages of documents beside them; passages alone (`document`); or "
        "the summaries of sessions, or facts, which come with the messages that they were taken from.",
    )
    limit = fields.limit(10)
    window_size = fields.number(0, 10, load_default=0, data_key="window", about="Messages around each result.")
    zone = fields.TimeZone(
        load_default=UTC,
        data_key="timezone",
        about="Where the days of `q` begin: what it says of times is preferred, not demanded.",
    )


def _of_message(field: Callable[..., fields.Field[Any]], name: str) -> fields.Field[Any]:
    """Return a field that shows the same field of a result's message, or null."""
    return field(attribute=f"message.{name}", dump_default=None, allow_none=True)


class Correction(Fact):
    """Fact that holds now in place of what a result says."""

    class Meta:
        fields = ("id", "text", "category", "session_id", "source_message_id", "valid_from")


class SearchResult(Schema):
    """Message or passage. Of a fact or a summary: the best of its messages; its fields are null if there is none."""

    kind = fields.String(about="`message`, `document`, `summary` or `fact`.")
    document = fields.Nested(
        DocumentPlace, allow_none=True, about="Of a passage: the document that it is of; else null."
    )
    text = fields.String(allow_none=True, about="The fact or the summary; null for a message.")
    fact_id = fields.Integer(allow_none=True, about="Of a fact: its id, for `/api/facts/{fact_id}`.")
    message_id = _of_message(fields.Integer, "id")
    external_id = _of_message(fields.String, "external_id")
    session_id = fields.String(allow_none=True, about="Null for a passage.")
    title = fields.String(allow_none=True, about="The title of its session or document.")
    position = _of_message(fields.Integer, "position")
    role = _of_message(fields.String, "role")
    name = _of_message(fields.String, "name")
    content = _of_message(fields.String, "content")
    created_at = _of_message(fields.UtcDateTime, "created_at")
    score = fields.Float()
    why = fields.Dict(keys=fields.String(), values=fields.Float(), about="The score's parts.")
    highlights = fields.List(
        fields.String(),
        about="The words of `content` (or `text`) that `q` found, as they are written there, each once, "
        "for a page to mark. Empty when only the meaning or the messages around matched.",
    )
    window = fields.List(
        fields.Nested(Message), about="With `window`: the messages around it. Of a fact or a summary: its messages."
    )
    corrections = fields.List(
        fields.Nested(Correction), about="Facts that hold now in place of what it, or its `window`, says."
    )


class SearchResults(Schema):
    results = fields.List(fields.Nested(SearchResult))
    took_ms = fields.Float()
