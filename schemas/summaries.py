"""The structured summary."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, validate, validates_schema

from memory.domain import Excluded as ExcludedValue
from memory.domain import Sections as SectionsValue
from memory.summary.digest_format import ITEM_CHARS_MAX, ITEMS_MAX
from schemas.fields import CallerQuery, Text, UserId, UtcDateTime

_ITEM = validate.Length(1, ITEM_CHARS_MAX)


def _items() -> fields.List:
    return fields.List(Text(validate=_ITEM), load_default=(), validate=validate.Length(max=ITEMS_MAX))


class Excluded(Schema):
    option = Text(required=True, validate=_ITEM)
    reason = Text(load_default="", validate=validate.Length(max=ITEM_CHARS_MAX))

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> ExcludedValue:
        return ExcludedValue(**data)


class Sections(Schema):
    """The seven sections."""

    topic = Text(load_default="", validate=validate.Length(max=ITEM_CHARS_MAX))
    requirements = _items()
    constraints = _items()
    excluded = fields.List(fields.Nested(Excluded), load_default=(), validate=validate.Length(max=ITEMS_MAX))
    data = _items()
    open_questions = _items()
    discussed = _items()

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> SectionsValue:
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
        return SectionsValue(**values)


class SummaryVersion(Schema):
    """One version of a summary."""

    version = fields.Integer()
    sections = fields.Nested(Sections)
    through = fields.Integer(metadata={"description": "It covers the messages up to this position."})
    tokens = fields.Integer()
    author = fields.String(
        metadata={
            "description": "`model`, `person`, `rollback`, or `replacement` or `erasure`: brought back since messages "
            "were replaced or erased."
        }
    )
    model = fields.String(allow_none=True)
    prompt = fields.String(
        allow_none=True, metadata={"description": "Name and version of the prompt it was made with."}
    )
    usage = fields.Raw(
        allow_none=True,
        metadata={
            "description": "Tokens and calls of the mini model, and in `facts` how many it found that were `added`, "
            "`superseded` others, `repeated` what was known, or were `refused` since nobody said so."
        },
    )
    restores = fields.Integer(allow_none=True, metadata={"description": "The version that was brought back."})
    replaced = fields.Boolean(
        metadata={"description": "It covers messages that were replaced since, and can't be brought back."}
    )
    created_at = UtcDateTime()


class Summary(Schema):
    """The newest version and how it stands to the conversation."""

    session_id = fields.String()
    state = fields.String(metadata={"description": "`none`, `current`, `pending`, `updating` or `failed`."})
    error = fields.String(allow_none=True, metadata={"description": "Why the last update failed."})
    job_id = fields.Integer(allow_none=True)
    head_version = fields.Integer(
        metadata={"description": "The version prompts show; it advances when the tail folds."}
    )
    message_count = fields.Integer()
    latest = fields.Nested(SummaryVersion, allow_none=True)


class SummaryPage(Schema):
    items = fields.List(fields.Nested(SummaryVersion))
    next_cursor = fields.String(allow_none=True)


class SummaryEdit(Schema):
    user_id = UserId(load_default=None)
    sections = fields.Nested(Sections, required=True)
    expected_version = fields.Integer(
        load_default=None,
        strict=True,
        validate=validate.Range(0, 2**31 - 1),
        metadata={"description": "Edit only if this is still the newest version; else 409."},
    )


class PreviewCall(CallerQuery):
    prompt = Text(
        load_default=None, validate=validate.Length(1, 64), metadata={"description": "Name of a summary prompt."}
    )
    text = Text(load_default=None, metadata={"description": "Or the text of one, as `PUT /api/prompts` takes it."})

    @validates_schema
    def _one(self, data: dict[str, Any], **_: Any) -> None:
        if data["prompt"] is not None and data["text"] is not None:
            raise ValidationError("Give the name of a prompt or its text, not both.", "text")


class SummaryPreview(Schema):
    """A summary that was not stored, to compare with the one that is."""

    sections = fields.Nested(Sections)
    tokens = fields.Integer()
    model = fields.String()
    prompt = fields.String(
        allow_none=True, metadata={"description": "Name and version of the prompt; null for one given as text."}
    )
    usage = fields.Raw(metadata={"description": "Tokens and calls of the mini model."})
    since = fields.Integer(
        metadata={"description": "The version it goes on from; 0: it reads the conversation from its beginning."}
    )
    through = fields.Integer(metadata={"description": "It covers the messages up to this position."})
    current_version = fields.Integer(metadata={"description": "The stored summary's; 0: there is none yet."})


class SummaryRollback(CallerQuery):
    version = fields.Integer(required=True, strict=True, validate=validate.Range(1, 2**31 - 1))
