"""The messages of MCP, and what its tools take and show."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from memory import tokens
from memory.knowledge.grounding import TEXT_CHARS_MAX
from memory.quoting import message_lines
from models.facts import FACT_CATEGORIES
from models.messages import Message
from schemas.fields import ID, Input, Text, UtcDateTime, about, integer, limit, one_of

LEFT_OUT = "[left out: a model server refused this message]"

_TEXT = validate.Length(1, TEXT_CHARS_MAX)
_PLACE = validate.Regexp(re.compile(rf"{ID.pattern}(/\d{{1,18}})?\Z"), error="Must be an id that a tool has shown.")


class RpcMessage(Schema):
    """A message of JSON-RPC 2.0: a request, a notification, or an answer with its result or error."""

    jsonrpc = fields.String(required=True)
    id = fields.Raw(allow_none=True)
    method = fields.String()
    params = fields.Dict()
    result: fields.Field = fields.Dict()
    error: fields.Field = fields.Dict()


class Paged(Input):
    cursor = Text(load_default=None, metadata=about("`next_cursor` of the previous answer."))
    limit = limit(10, 50)


class Words(Paged):
    query = Text(required=True, validate=validate.Length(1, 2000), metadata=about("Words of what you look for."))


class MessageWords(Words):
    after = UtcDateTime(load_default=None, metadata=about("Said at this time or later."))
    before = UtcDateTime(load_default=None, metadata=about("Said before this time."))


class MemoryId(Input):
    id = integer(1, required=True, metadata=about("The `id` of a memory, as another tool shows it."))


class MemoryVersions(Paged, MemoryId):
    pass


class NewMemory(Input):
    text = Text(required=True, validate=_TEXT, metadata=about("One short statement, such as `Is allergic to walnuts`."))
    quote = Text(required=True, validate=_TEXT, metadata=about("The person's own words that the text rests on."))
    category = one_of(*FACT_CATEGORIES, load_default="other")
    importance = integer(1, 5, load_default=3, metadata=about("5: needed in nearly every conversation."))


class MemoryChange(MemoryId):
    text = Text(validate=_TEXT, metadata=about("What is true from now on."))
    quote = Text(validate=_TEXT, metadata=about("The person's own words that the new text rests on."))
    category = one_of(*FACT_CATEGORIES)
    importance = integer(1, 5)

    @validates_schema
    def _quoted(self, data: dict[str, Any], **_: Any) -> None:
        if ("text" in data) != ("quote" in data):
            raise ValidationError("A new text needs the quote that it rests on, and a quote its text.", "quote")


class Place(Paged):
    id = Text(required=True, validate=_PLACE, metadata=about("An `id` that search or recent_chats has shown."))


# -- answers


def _line(message: Message, most: int) -> str:
    """Return a message as prompts quote it, cut off after so many tokens.  In JSON they may become six times as many.

    A refused message is named without its words, since a model reads the line.
    """
    words = tokens.clip(message.content, most) if message.refused is None else LEFT_OUT
    return next(message_lines([message._replace(content=words)]))


class Found(Schema):
    id = fields.Function(lambda found: f"{found.message.session_id}/{found.message.id}")
    title = fields.String()
    url = fields.Function(lambda found: session_uri(found.message.session_id))
    text = fields.Function(lambda found: _line(found.message, 150))


class Results(Schema):
    results = fields.List(fields.Nested(Found), attribute="items")
    next_cursor = fields.String()


class Conversation(Schema):
    id = fields.String()
    title = fields.String()
    url = fields.Function(lambda shown: session_uri(shown["session_id"]))
    text = fields.Function(lambda shown: "\n".join(_line(message, 900) for message in shown["page"].items))
    next_cursor = fields.String(attribute="page.next_cursor")


def session_uri(session_id: str) -> str:
    """A session as an address; its summary is a resource below it."""
    return f"recap://sessions/{quote(session_id, safe='')}"
