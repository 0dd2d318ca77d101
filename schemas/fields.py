"""Every kind of field: marshmallow's, and our own, which bound and check what they load; limits that nouns share."""

import math
import re
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields, validate

from config.parsers import zone_of
from models.base import MODEL_NAME_CHARS

MESSAGE_CHARS_MAX = 100_000  # more than any prompt can hold
PARTS_MAX = 1000  # parts, or calls of tools, of one message
USER_ID_CHARS = 256
EXTERNAL_ID_CHARS = 256
UNKNOWN_CHARS = 100  # that an answer repeats of a name that nobody knows
OPTIONAL: dict[str, Any] = {"load_default": None, "allow_none": True}  # of a field that may be null or absent
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
JSON_DEPTH_MAX = 100  # the arguments of tools and their schemas, which are the deepest, have about twenty
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
ID_CHARS = r"[^\s/\x00-\x1f\x7f\ud800-\udfff]{1,128}"
ID = re.compile(rf"(?!\.{{1,2}}\Z){ID_CHARS}")  # clients take "." and ".." in an address for folders
ID_RULE = "Must be 1 to 128 characters without white space or slashes."
# Servers and proxies take two slashes in an address for one, so "/ada" would be "ada".
USER_ID = re.compile(rf"(?!/|\.{{1,2}}\Z)[^\x00-\x1f\x7f\ud800-\udfff]{{1,{USER_ID_CHARS}}}")
USER_ID_RULE = (
    f"A user_id has 1 to {USER_ID_CHARS} characters, no control characters and no slash before them, "
    'and is not "." or "..".'
)


def numbers_by_name(kind: str) -> dict[str, Any]:
    """Return the `metadata` of an object whose values are all numbers of this JSON type."""
    return {"type": "object", "additionalProperties": {"type": kind}}


class Described(fields.Field[Any]):
    """Field of any kind here, with two options beside marshmallow's.

    about: its description in the document; `metadata` has what else its class does not tell. sometimes: an answer has
    it only where it applies.
    """

    def __init__(
        self, *args: Any, about: str = "", sometimes: bool = False, metadata: Any = (), **options: Any
    ) -> None:
        documented: dict[str, Any] = {"description": about} if about else {}
        documented |= {"x-optional": True} if sometimes else {}
        super().__init__(*args, metadata=documented | dict(metadata), **options)


class Boolean(Described, fields.Boolean): ...


class Constant(Described, fields.Constant):
    """Field with one value, which the document names with its type: apispec tells a default alone."""

    def __init__(self, value: str | int, **options: Any) -> None:
        kind = {str: "string", int: "integer", bool: "boolean"}[type(value)]
        super().__init__(value, metadata={"type": kind, "enum": [value]}, **options)


class Dict(Described, fields.Dict): ...


class Float(Described, fields.Float): ...


class Function(Described, fields.Function): ...


class Integer(Described, fields.Integer): ...


class List(Described, fields.List[Any]): ...


class Nested(Described, fields.Nested): ...


class Raw(Described, fields.Raw): ...


class String(Described, fields.String): ...


class Text(String):
    """String that can be stored and sent on: no NUL characters, no unpaired surrogates."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if UNSTORABLE.search(text):
            raise ValidationError("Contains a NUL character or an unpaired surrogate. Remove it and send this again.")
        return text


def check_json(value: Any, depth_max: int = JSON_DEPTH_MAX, depth: int = 0) -> None:
    """Raise ValidationError for JSON that a database or the reader of exports refuses."""
    if depth > depth_max:
        raise ValidationError(f"Is nested more than {depth_max} levels deep.")
    if isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            check_json(inner, depth_max, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValidationError("Has a number that is not finite.")
    elif isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise ValidationError("Has a whole number of more than 64 bits. Send it as a text.")
    elif isinstance(value, str) and UNSTORABLE.search(value):
        raise ValidationError("Contains a NUL character or an unpaired surrogate.")


HAS_WORDS = validate.Regexp(r"\s*\S", error="Is empty. Send some words.")


class Pattern(validate.Regexp):
    """Pattern of a whole text. `$` alone, which the document has, also stands before a line end."""

    def __call__(self, value: Any) -> Any:
        if not self.regex.fullmatch(value):
            raise ValidationError(self.error)
        return value


class ClientMetadata(fields.Dict):
    """Up to 16 names and texts that a client keeps with its conversation."""

    def __init__(self, **options: Any) -> None:
        name, text = (Text(validate=validate.Length(max=most)) for most in (64, 512))
        super().__init__(keys=name, values=text, validate=validate.Length(max=16), **options)


class ModelName(Text):
    """Name of a model, which may be a path: as much of it as is stored."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return super()._deserialize(value, attr, data, **kwargs)[:MODEL_NAME_CHARS]


class SessionId(Text):
    """1 to 128 characters without white space or slashes, chosen by the application."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"minLength": 1, "maxLength": 128, "pattern": r"^[^\s/]+$"}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not ID.fullmatch(text):
            raise ValidationError(ID_RULE)
        return text


class UserId(Text):
    """Application's name for a person, which an address can carry: all calls about a person have it there."""

    def __init__(self, **kwargs: Any) -> None:
        about = "The person whose data it is, by the application's own name for them."
        written = {"pattern": r"^[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"}
        super().__init__(validate=validate.Length(1, USER_ID_CHARS), about=about, metadata=written, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text and len(text) <= USER_ID_CHARS and not USER_ID.fullmatch(text):
            raise ValidationError(USER_ID_RULE)
        return text


class SpaceName(SessionId):
    """Name of a space: 1 to 128 characters without white space or slashes."""

    def __init__(self, **kwargs: Any) -> None:
        about = "The space whose memory it is, instead of the person's own; `user_id` is then who acts in it."
        super().__init__(about=about, **kwargs)


class UtcDateTime(Described, fields.AwareDateTime):
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
            raise ValidationError(f"{error}.") from None


def number(least: int = 0, most: int = INT64_MAX, **options: Any) -> Integer:
    """Return a whole number within these bounds, also as text, as in a query."""
    return Integer(validate=validate.Range(least, most), **options)


def limit(default: int, most: int = 100) -> Integer:
    """Return the field for the number of items of a page."""
    return number(1, most, load_default=default)


def integer(least: int = 0, most: int = INT64_MAX, **options: Any) -> Integer:
    """Return a whole number in a body: not text, and within these bounds."""
    return number(least, most, strict=True, **options)


def text(least: int | None = None, most: int | None = None, **options: Any) -> Text:
    return Text(validate=validate.Length(least, most), **options)


def counts(about: str, **options: Any) -> Dict:
    """Return a count of each kind."""
    return Dict(keys=String(), values=Integer(), about=about, **options)


def one_of(*choices: str, **options: Any) -> String:
    return String(validate=validate.OneOf(choices), **options)


class Items(List):
    """List of at most `most` items. Its length is checked before its items are."""

    def __init__(self, inner: fields.Field, most: int, least: int | None = None, **options: Any) -> None:
        self.length = validate.Length(least, most)
        super().__init__(inner, validate=self.length, **options)  # for the document

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if isinstance(value, list):
            self.length(value)
        return super()._deserialize(value, attr, data, **kwargs)


EXPECTED_VERSION = integer(
    0, INT32_MAX, load_default=None, attribute="expected", about="409 if it is not the newest version."
)
AS_OF = UtcDateTime(load_default=None, about="List what was true at this time, not what is true now.")

Field = fields.Field
