"""Prompts."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import Text, UtcDateTime


class Prompt(Schema):
    """A named instruction in use."""

    name = fields.String()
    version = fields.Integer(metadata={"description": "Counts from 1 for stored ones; 0 is a file's."})
    source = fields.String(metadata={"description": "`packaged`, `file` or `stored`."})
    text = fields.String(metadata={"description": "A Jinja2 template."})
    created_at = UtcDateTime(allow_none=True)


class PromptList(Schema):
    items = fields.List(fields.Nested(Prompt))


class PromptPut(Schema):
    text = Text(required=True)
