"""Prompts."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import Input, Text, UtcDateTime, describe, list_of


class Prompt(Schema):
    """Named prompt in use."""

    name = fields.String()
    version = fields.Integer(metadata=describe("Stored versions count from 1; 0 is the text of a file."))
    source = fields.String(metadata=describe("`packaged`, `file` or `stored`."))
    text = fields.String(metadata=describe("A Jinja2 template."))
    created_at = UtcDateTime(allow_none=True)


PromptList = list_of(Prompt)


class PromptDeleted(Schema):
    """Prompt whose stored versions were deleted."""

    name = fields.String()
    versions = fields.Integer(metadata=describe("How many stored versions there were."))


class PromptPut(Input):
    text = Text(required=True)
