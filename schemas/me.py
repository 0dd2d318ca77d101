"""The holder of a key."""

from __future__ import annotations

from marshmallow import Schema, fields

from memory.access.keys import SCOPES
from schemas.fields import about


class Me(Schema):
    """The holder of a key."""

    tenant = fields.String()
    user_id = fields.String(
        allow_none=True, metadata=about("The one person the key belongs to; null if requests may name any person.")
    )
    scopes = fields.Function(
        lambda holder: [scope for scope in SCOPES if scope in holder.scopes],
        metadata=about("Those it has of `chat`, `read` and `admin`."),
    )
