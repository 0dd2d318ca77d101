"""Spaces: memory that several persons share."""

from marshmallow import Schema

from models.keys import SPACE_RIGHTS
from schemas import fields

_RIGHTS = "; ".join(f"`{name}`: {text}" for name, text in SPACE_RIGHTS.items())


class Space(Schema):
    name = fields.String()
    right = fields.one_of(*SPACE_RIGHTS, about=f"What the key may do there. {_RIGHTS}.")
    created_at = fields.UtcDateTime(allow_none=True, about="Null: nothing is stored of it yet.")
