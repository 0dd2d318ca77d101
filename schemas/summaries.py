"""The structured summary."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields, post_load, validate

from memory.digest_format import ITEM_CHARS_MAX, ITEMS_MAX
from memory.domain import Excluded as ExcludedValue
from memory.domain import Sections as SectionsValue
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
    author = fields.String(metadata={"description": "`model`, `person` or `rollback`."})
    model = fields.String(allow_none=True)
    prompt = fields.String(
        allow_none=True, metadata={"description": "Name and version of the prompt it was made with."}
    )
    usage = fields.Raw(allow_none=True, metadata={"description": "Tokens and calls of the mini model."})
    restores = fields.Integer(allow_none=True, metadata={"description": "The version a rollback brought back."})
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


class SummaryRollback(CallerQuery):
    version = fields.Integer(required=True, strict=True, validate=validate.Range(1, 2**31 - 1))
