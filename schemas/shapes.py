"""Shapes of no noun: the bases of requests, queries for a caller, pages and lists, and the receipt of an erasure."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar

from marshmallow import INCLUDE, RAISE, Schema, ValidationError, post_load, pre_load

from schemas import fields
from schemas.fields import INT32_MAX

WRONG_MAX = 20  # wrong fields that an answer names
WHOM = ("user_id", "space")  # the fields that say whose memory is meant
UNKNOWN = "Unknown field."


class Input(Schema):
    """Request. An object with far more keys than are known is refused without naming them all."""

    error_messages = {"unknown": UNKNOWN, "type": "Must be a JSON object."}
    long: ClassVar[bool] = False  # whether its body may have MAX_BODY_BYTES

    def __deepcopy__(self, memo: Any) -> Any:
        """Return the same: a call's description is copied at each step of flask-smorest, and a request changes none."""
        return self

    @pre_load
    def _limit_keys(self, data: Any, unknown: str | None, **_: Any) -> Any:
        if unknown == RAISE and isinstance(data, Mapping) and len(data) > len(self.fields) + WRONG_MAX:
            raise ValidationError(f"Has {len(data):,} keys, but at most {len(self.fields)} are known.")
        return data


class Open(Schema):
    """Object to which the model server may add fields."""

    class Meta:
        unknown = INCLUDE


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


class VersionToBringBack(Input):
    """Version to bring back; the address says whose."""

    version = fields.integer(1, INT32_MAX, required=True)


class Rollback(CallerQuery, VersionToBringBack):
    pass


class Paged(Input):
    """Page of something that the address or the key names."""

    cursor = fields.Text(load_default=None, about="`next_cursor` of the previous page.")
    limit = fields.limit(50)


class PageQuery(Paged, CallerQuery):
    pass


class OwnerPageQuery(PageQuery):
    """Page of what the caller has or, with a session, of what the session's owner has."""

    session_id = fields.SessionId(load_default=None, about="Those of this session's owner.")


@cache
def list_of(item: type[Schema]) -> type[Schema]:
    return Schema.from_dict({"items": fields.List(fields.Nested(item))}, name=f"{item.__name__}List")


@cache
def page_of(item: type[Schema], **more: fields.Field) -> type[Schema]:
    items = fields.List(fields.Nested(item))
    cursor = fields.String(allow_none=True)
    return Schema.from_dict({"items": items, "next_cursor": cursor, **more}, name=f"{item.__name__}Page")


class Receipt(Schema):
    """Receipt of an erasure, with what the call named: a person, a session, a message and so on."""

    erased = fields.counts(
        "How many of each, including replaced messages and corrected facts. `turns` are records of how messages were "
        "answered, `summaries` versions, `edited_summaries` those that the person wrote, `item_versions` earlier "
        "values of items in the store, `documents` files and texts that were added, `archives` sessions that were "
        "taken out of memory, `index_documents` messages and passages in the search index."
    )
    pending = fields.List(
        fields.String(),
        about="Empty when no byte is left. Otherwise `search_index` or `database_files` still hold traces, because "
        "they were in use, or because single messages and facts are collected for some seconds. A job removes them. "
        "`events`: the event that the person was erased names them, and is kept for a week.",
    )
    erased_at = fields.UtcDateTime()
    user_id = fields.String(attribute="named.user_id", sometimes=True)
    space = fields.String(attribute="named.space", sometimes=True)
    session_id = fields.String(attribute="named.session_id", sometimes=True)
    message_id = fields.Integer(attribute="named.message_id", sometimes=True)
    fact_id = fields.Integer(attribute="named.fact_id", sometimes=True)
    document_id = fields.String(attribute="named.document_id", sometimes=True)
    example_id = fields.Integer(attribute="named.example_id", sometimes=True)
    mark_id = fields.Integer(attribute="named.mark_id", sometimes=True)
    archive_id = fields.Integer(attribute="named.archive_id", sometimes=True)
    name = fields.String(attribute="named.name", sometimes=True)
    namespace = fields.List(fields.String(), attribute="named.namespace", sometimes=True)
    key = fields.String(attribute="named.key", sometimes=True)
    forgotten = fields.Integer(
        attribute="named.forgotten", about="How many of the named facts there were.", sometimes=True
    )
