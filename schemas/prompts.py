"""Prompts."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import Text, UtcDateTime, about


class Prompt(Schema):
    """A named prompt in use."""

    name = fields.String()
    version = fields.Integer(metadata=about("Stored versions count from 1; 0 is the text of a file."))
    source = fields.String(metadata=about("`packaged`, `file` or `stored`."))
    text = fields.String(metadata=about("A Jinja2 template."))
    created_at = UtcDateTime(allow_none=True)


class PromptList(Schema):
    items = fields.List(fields.Nested(Prompt))


class PromptPut(Schema):
    text = Text(required=True)
