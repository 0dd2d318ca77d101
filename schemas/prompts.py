"""Prompts."""

from marshmallow import Schema

from schemas import fields
from schemas.shapes import Input


class Prompt(Schema):
    name = fields.String()
    version = fields.Integer(about="Stored versions count from 1; 0 is the text of a file.")
    source = fields.String(about="`packaged`, `file` or `stored`.")
    text = fields.String(about="A Jinja2 template.")
    created_at = fields.UtcDateTime(allow_none=True)


class PromptDeleted(Schema):
    name = fields.String()
    versions = fields.Integer(about="How many stored versions there were.")


class PromptPut(Input):
    text = fields.Text(required=True)
