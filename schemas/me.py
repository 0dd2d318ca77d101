"""Whom a key speaks for."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from memory.access.keys import SCOPES


class Me(Schema):
    """The holder of a key."""

    tenant = fields.String()
    user_id = fields.String(
        allow_none=True, metadata={"description": "The one person it speaks for; null: any that a request names."}
    )
    scopes = fields.Method("_scopes", metadata={"description": "Of `chat`, `read` and `admin`, those it has."})

    def _scopes(self, holder: Any) -> list[str]:
        return [scope for scope in SCOPES if scope in holder.scopes]
