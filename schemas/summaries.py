"""Structured summary."""

from typing import Any

from marshmallow import Schema, ValidationError, post_load, validate, validates_schema

from models.sections import ITEM_CHARS_MAX, ITEMS_MAX, SECTIONS, Section
from models.sections import Sections as SectionsValue
from schemas import fields
from schemas.fields import EXPECTED_VERSION
from schemas.shapes import CallerQuery, Input

_ITEM = validate.Length(1, ITEM_CHARS_MAX)


class Excluded(Input):
    option = fields.Text(required=True, validate=_ITEM)
    reason = fields.text(most=ITEM_CHARS_MAX, load_default="")


def _section(section: Section) -> fields.Field:
    if section.kind == "line":
        return fields.text(most=ITEM_CHARS_MAX, load_default="")
    item = fields.Nested(Excluded) if section.kind == "options" else fields.Text(validate=_ITEM)
    return fields.Items(item, ITEMS_MAX, load_default=())


class _Sections(Input):
    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> SectionsValue:
        return SectionsValue.from_dict(data)


Sections = _Sections.from_dict({section.name: _section(section) for section in SECTIONS}, name="Sections")


class SummaryPreview(Schema):
    """Summary that was not stored, to compare with the stored one."""

    sections = fields.Nested(Sections)
    tokens = fields.Integer()
    through = fields.Integer(about="The position of the last message it covers.")
    model = fields.String(allow_none=True)
    prompt = fields.String(allow_none=True, about="The name and version of its prompt, if it has a name.")
    usage = fields.Raw(
        allow_none=True,
        about="Tokens and calls of the mini model. `facts` counts the facts that came with it: `added`, `superseded` "
        "(older facts that they correct), `repeated` (known already) and `refused` (nobody said so).",
        metadata={"type": "object"},
    )
    since = fields.Integer(about="The version it continues; 0 if it was made from the first message on.")
    current_version = fields.Integer(about="The version of the stored summary; 0 if there is none yet.")


class SummaryVersion(SummaryPreview):
    class Meta:
        exclude = ("since", "current_version")

    version = fields.Integer()
    author = fields.String(
        about="`model`; `person`; `rollback`; or `replacement` or `erasure`, for a version that was brought back "
        "because messages were replaced or erased. `erasure` also stands for a version without what a forgotten fact "
        "said, `correction` for one with the new words of a fact that the person edited."
    )
    restores = fields.Integer(allow_none=True, about="The version that this one brought back.")
    replaced = fields.Boolean(about="Whether its messages were replaced. Then it can't be brought back.")
    created_at = fields.UtcDateTime()


class Summary(Schema):
    """Newest version, and whether it is up to date."""

    session_id = fields.String()
    state = fields.String(about="`none`, `current`, `pending`, `updating` or `failed`.")
    error = fields.String(allow_none=True, about="Why the last update failed.")
    job_id = fields.Integer(allow_none=True)
    head_version = fields.Integer(
        about="The version that prompts show. It advances when older messages leave the prompt."
    )
    message_count = fields.Integer()
    latest = fields.Nested(SummaryVersion, allow_none=True)


class SummaryEdit(CallerQuery):
    sections = fields.Nested(Sections, required=True)
    expected_version = EXPECTED_VERSION


class PreviewCall(CallerQuery):
    prompt = fields.text(1, 64, load_default=None, about="The name of a summary prompt.")
    text = fields.Text(load_default=None, about="Instead of `prompt`: a template, as for `PUT /api/prompts/{name}`.")

    @validates_schema
    def _one(self, data: dict[str, Any], **_: Any) -> None:
        if data["prompt"] is not None and data["text"] is not None:
            raise ValidationError("Is not allowed together with `prompt`.", "text")
