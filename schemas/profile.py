"""Profiles."""

from marshmallow import Schema

from schemas import fields
from schemas.fields import EXPECTED_VERSION
from schemas.shapes import Input
from schemas.store import JsonValue

OPERATIONS_MAX = 100  # of a patch


class Profile(Schema):
    version = fields.Integer(about="0 until something is written.")
    document = fields.Raw(
        attribute="value.document", about="The profile, under the tenant's JSON Schema.", metadata={"type": "object"}
    )
    sources = fields.Raw(
        attribute="value.sources",
        about="In the shape of `document`: for each value the `quote` it rests on, `session_id` and `position` of its "
        "message, `since` (when that was said, or when a person wrote the value) and `author` (`model` or `person`).",
    )
    author = fields.String(allow_none=True, about="`model`, `person`, `rollback` or `erasure`.")
    created_at = fields.UtcDateTime(allow_none=True)


class ProfileQuery(Input):
    as_of = fields.UtcDateTime(load_default=None, about="Read the version of this time.")


class Operation(Input):
    """Operation of a JSON Patch (RFC 6902)."""

    op = fields.one_of("add", "remove", "replace", "move", "copy", "test", required=True)
    path = fields.text(most=500, required=True, about="A JSON Pointer, as `/likes/-`.")
    value = JsonValue(allow_none=True)
    from_ = fields.text(most=500, data_key="from", attribute="from")


class ProfilePatch(Input):
    patch = fields.Items(fields.Nested(Operation), OPERATIONS_MAX, least=1, required=True)
    expected_version = EXPECTED_VERSION


class SchemaQuery(Input):
    kind = fields.one_of("user", "space", load_default="user", about="Whose profiles: of persons, or of spaces.")


class SchemaOfProfiles(Input):
    schema = JsonValue(required=True)
