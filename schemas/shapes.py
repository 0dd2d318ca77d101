"""Bases of the shapes: requests, queries for a caller, and pages."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar

from marshmallow import RAISE, Schema, ValidationError, post_load, pre_load

from schemas import fields
from schemas.fields import INT32_MAX

WRONG_MAX = 20  # wrong fields that an answer names
WHOM = ("user_id", "space")  # the fields that say whose memory is meant


class Input(Schema):
    """Request. An object with far more keys than are known is refused without naming them all."""

    long: ClassVar[bool] = False  # whether its body may have MAX_BODY_BYTES

    @pre_load
    def _limit_keys(self, data: Any, unknown: str | None, **_: Any) -> Any:
        if unknown == RAISE and isinstance(data, Mapping) and len(data) > len(self.fields) + WRONG_MAX:
            raise ValidationError(f"Has {len(data):,} keys, but at most {len(self.fields)} are known.")
        return data


class ValueSchema(Input):
    """Schema that loads into a value, by calling `value` with its fields."""

    value: ClassVar[Callable[..., Any]]

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> Any:
        return type(self).value(**data)


class CallerQuery(Input):
    """Person for whom the call is made, and the space it is made in, if any.

    Without both, the session or fact itself tells whose it is.
    """

    user_id = fields.UserId(load_default=None)
    space = fields.SpaceName(load_default=None)


class Rollback(CallerQuery):
    """Version to bring back."""

    version = fields.integer(1, INT32_MAX, required=True)


class PageQuery(CallerQuery):
    cursor = fields.Text(load_default=None, about="`next_cursor` of the previous page.")
    limit = fields.limit(50)


@cache
def list_of(item: type[Schema]) -> type[Schema]:
    """Return the schema of a list of all items."""
    return Schema.from_dict({"items": fields.List(fields.Nested(item))}, name=f"{item.__name__}List")


@cache
def page_of(item: type[Schema], **more: fields.Field) -> type[Schema]:
    """Return the schema of a page of items."""
    items, cursor = fields.List(fields.Nested(item)), fields.String(allow_none=True)
    return Schema.from_dict({"items": items, "next_cursor": cursor, **more}, name=f"{item.__name__}Page")
