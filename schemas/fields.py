"""Fields that several schemas share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from marshmallow import RAISE, Schema, ValidationError, fields, post_load, pre_load, validate

from models.owners import USER_ID_CHARS, Whom

WRONG_MAX = 20  # wrong fields that an answer names
PARTS_MAX = 1000  # parts, or calls of tools, of one message
WHOM = ("user_id", "space")  # the fields that say whose memory is meant
UNKNOWN_CHARS = 100  # that an answer repeats of a name that nobody knows
OPTIONAL: dict[str, Any] = {"load_default": None, "allow_none": True}  # of a field that may be null or absent
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
ID_CHARS = r"[^\s/\x00-\x1f\x7f]{1,128}"
ID = re.compile(rf"(?!\.{{1,2}}\Z){ID_CHARS}")  # clients take "." and ".." in an address for folders


def describe(description: str, **schema: Any) -> dict[str, Any]:
    """Return the `metadata` of a field: its description in the document, and what its class does not tell."""
    return {"description": description, **schema}


SOMETIMES = {"x-optional": True}  # for `describe`: of an answer, only where it applies


def numbers_by_name(kind: str) -> dict[str, Any]:
    """Return what `describe` takes for an object whose values are all numbers of this JSON type."""
    return {"type": "object", "additionalProperties": {"type": kind}}


class Text(fields.String):
    """String that can be stored and sent on: no NUL characters, no unpaired surrogates."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if UNSTORABLE.search(text):
            raise ValidationError("Contains a NUL character or an unpaired surrogate. Remove it and send this again.")
        return text


class SessionId(Text):
    """1 to 128 characters without white space or slashes, chosen by the application."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not ID.fullmatch(text):
            raise ValidationError("Must be 1 to 128 characters without white space or slashes.")
        return text


class UserId(Text):
    """Application's name for a person."""

    def __init__(self, **kwargs: Any) -> None:
        described = describe("The person whose data it is, by the application's own name for them.")
        super().__init__(validate=validate.Length(1, USER_ID_CHARS), metadata=described, **kwargs)


class SpaceName(SessionId):
    """Name of a space: 1 to 128 characters without white space or slashes."""

    def __init__(self, **kwargs: Any) -> None:
        described = describe(
            "The space whose memory it is, instead of the person's own; `user_id` is then who acts in it."
        )
        super().__init__(metadata=described, **kwargs)


class UtcDateTime(fields.AwareDateTime):
    """ISO 8601 time. Without an offset it is read as UTC; it is always shown in UTC."""

    default_error_messages = {"invalid": "Must be a time such as 2026-11-20T10:00:00Z or 2026-11-20T12:00:00+02:00."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(format="iso", default_timezone=UTC, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        if isinstance(value, str):  # in an address, an unescaped "+" is a space
            value = re.sub(r"(?<=T)(.*) (?=\d\d:\d\d$)", r"\1+", value)
        moment = super()._deserialize(value, attr, data, **kwargs)
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            raise ValidationError("Must be within the years 1 to 9999.") from None


class TimeZone(Text):
    """IANA time zone, such as Europe/Tallinn."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        try:
            return zone_of(super()._deserialize(value, attr, data, **kwargs)[:UNKNOWN_CHARS])
        except ValueError as error:
            raise ValidationError(str(error)) from None


def number(least: int = 0, most: int = INT64_MAX, **options: Any) -> fields.Integer:
    """Return a whole number within these bounds, also as text, as in a query."""
    return fields.Integer(validate=validate.Range(least, most), **options)


def limit(default: int, most: int = 100) -> fields.Integer:
    """Return the field for the number of items of a page."""
    return number(1, most, load_default=default)


def integer(least: int = 0, most: int = INT64_MAX, **options: Any) -> fields.Integer:
    """Return a whole number in a body: not text, and within these bounds."""
    return number(least, most, strict=True, **options)


def optional_text(most: int, least: int | None = 1, **options: Any) -> Text:
    return Text(validate=validate.Length(least, most), **OPTIONAL, **options)


def counts(description: str, **schema: Any) -> fields.Dict:
    """Return a count of each kind."""
    return fields.Dict(keys=fields.String(), values=fields.Integer(), metadata=describe(description, **schema))


def one_of(*choices: str, **options: Any) -> fields.String:
    return fields.String(validate=validate.OneOf(choices), **options)


class Items(fields.List):
    """List of at most `most` items. Its length is checked before its items are."""

    def __init__(self, inner: fields.Field, most: int, least: int | None = None, **options: Any) -> None:
        self.length = validate.Length(least, most)
        super().__init__(inner, validate=self.length, **options)  # for the document

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if isinstance(value, list):
            self.length(value)
        return super()._deserialize(value, attr, data, **kwargs)


EXPECTED_VERSION = integer(0, INT32_MAX, load_default=None, metadata=describe("409 if it is not the newest version."))
AS_OF = UtcDateTime(load_default=None, metadata=describe("List what was true at this time, not what is true now."))


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

    Without both, the session or fact itself tells whose it is. They load as one value, `Whom`, under `user_id`.
    """

    user_id = UserId(load_default=None)
    space = SpaceName(load_default=None)

    @post_load
    def _whom(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        if "user_id" not in self.fields:
            return data
        space = data.pop("space")
        return {**data, "user_id": Whom(data["user_id"], space)}


class Rollback(CallerQuery):
    """Version to bring back."""

    version = integer(1, INT32_MAX, required=True)


class PageQuery(CallerQuery):
    cursor = Text(load_default=None, metadata=describe("`next_cursor` of the previous page."))
    limit = limit(50)


def list_of(item: type[Schema]) -> type[Schema]:
    """Return the schema of a list of all items."""
    return Schema.from_dict({"items": fields.List(fields.Nested(item))}, name=f"{item.__name__}List")


def page_of(item: type[Schema], **more: fields.Field) -> type[Schema]:
    """Return the schema of a page of items."""
    items, cursor = fields.List(fields.Nested(item)), fields.String(allow_none=True)
    return Schema.from_dict({"items": items, "next_cursor": cursor, **more}, name=f"{item.__name__}Page")


def zone_of(name: str) -> tzinfo:
    """Return the time zone called `name`, such as Europe/Tallinn. Raises ValueError, with a sentence, for another."""
    if name.upper() in ("UTC", "ETC/UTC"):  # known without a database
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = 'use a name like "Europe/Tallinn" or "UTC".'
        if not available_timezones():
            hint = "this machine has no time zone database, so only UTC is known. Install tzdata."
        raise ValueError(f"There is no time zone called {name[:60]!r}: {hint}") from None


class Receipt(Schema):
    """Receipt of an erasure, with what the call named: a person, a session, a message and so on."""

    erased = counts(
        "How many of each, including replaced messages and corrected facts. `turns` are records of how messages were "
        "answered, `summaries` versions, `edited_summaries` those that the person wrote, `item_versions` earlier "
        "values of items in the store, `documents` files and texts that were added, `archives` sessions that were "
        "taken out of memory, `index_documents` messages and passages in the search index."
    )
    pending = fields.List(
        fields.String(),
        metadata=describe(
            "Empty when no byte is left. Otherwise `search_index` or `database_files` still hold traces, because they "
            "were in use, or because single messages and facts are collected for some seconds. A job removes them. "
            "`events`: the event that the person was erased names them, and is kept for a week."
        ),
    )
    erased_at = UtcDateTime()
    user_id = fields.String(attribute="named.user_id", metadata=SOMETIMES)
    space = fields.String(attribute="named.space", metadata=SOMETIMES)
    session_id = fields.String(attribute="named.session_id", metadata=SOMETIMES)
    message_id = fields.Integer(attribute="named.message_id", metadata=SOMETIMES)
    fact_id = fields.Integer(attribute="named.fact_id", metadata=SOMETIMES)
    document_id = fields.String(attribute="named.document_id", metadata=SOMETIMES)
    example_id = fields.Integer(attribute="named.example_id", metadata=SOMETIMES)
    mark_id = fields.Integer(attribute="named.mark_id", metadata=SOMETIMES)
    archive_id = fields.Integer(attribute="named.archive_id", metadata=SOMETIMES)
    name = fields.String(attribute="named.name", metadata=SOMETIMES)
    namespace = fields.List(fields.String(), attribute="named.namespace", metadata=SOMETIMES)
    key = fields.String(attribute="named.key", metadata=SOMETIMES)
    forgotten = fields.Integer(
        attribute="named.forgotten", metadata=describe("How many of the named facts there were.", **SOMETIMES)
    )


def flat(problems: Any, path: str = "") -> dict[str, list[str]]:
    """Flatten marshmallow's nested messages: `messages.3.content: [...]`."""
    if isinstance(problems, list):
        return {path or "body": [str(problem) for problem in problems]}
    out: dict[str, list[str]] = {}
    for key, value in problems.items():
        name = str(key)[:UNKNOWN_CHARS]
        out |= flat(value, path if key == "_schema" else f"{path}.{name}".lstrip("."))
    return out
