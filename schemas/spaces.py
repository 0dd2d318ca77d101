"""Spaces: memory that several persons share."""

from __future__ import annotations

from marshmallow import Schema, fields

from models.keys import SPACE_RIGHTS
from schemas.fields import Input, Text, UtcDateTime, describe, limit, one_of, page_of

_RIGHTS = "; ".join(f"`{name}`: {text}" for name, text in SPACE_RIGHTS.items())


class SpaceQuery(Input):
    cursor = Text(load_default=None, metadata=describe("`next_cursor` of the previous page."))
    limit = limit(50)


class Space(Schema):
    """Space that the key opens."""

    name = fields.String()
    right = one_of(*SPACE_RIGHTS, metadata=describe(f"What the key may do there. {_RIGHTS}."))
    created_at = UtcDateTime(allow_none=True, metadata=describe("Null: nothing is stored of it yet."))


SpacePage = page_of(Space)
