"""Images and text files that come with a message, as parts of its content in the form of OpenAI's protocol."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, validate

from schemas import fields
from schemas.charsets import decode
from schemas.fields import OPTIONAL, UNSTORABLE
from schemas.shapes import Input

ATTACHMENTS_MAX = 10  # of one message
ATTACHMENT_BYTES_MAX = 20_000_000  # of one image or file: model servers take no larger ones
CONTENT_PARTS_MAX = 100
NAME_CHARS = 255
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what models read
_URL_CHARS = 8000
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*){0,9});base64,", re.I)
_CHARSET = re.compile(r";\s*charset=\"?([^;\"]*)", re.I)
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f]")


class Attachment(Schema):
    """Image, file or recording that came with a message. It was sent to the model, and is not stored itself."""

    type = fields.Text(required=True, about="`image`, `file` or `audio`.")
    name = fields.Text(**OPTIONAL)
    size = fields.integer(**OPTIONAL, about="Bytes; null where only its address came.")
    hash = fields.Text(required=True, about="The same for the same attachment, sent in the same way.")


class StoredAttachment(fields.Described):
    """Attachment as a message keeps it: before it had a name and a size, its hash alone."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, Mapping):
            return Attachment(unknown=INCLUDE).load(value)
        return fields.Text().deserialize(value)


def _check_image(url: str) -> None:
    """Raise ValidationError unless an address is that of an image."""
    if url.startswith("data:"):
        media_type, _, _ = _decode(url)
        if media_type not in IMAGES:
            raise ValidationError(f"Must be an image of one of these types: {', '.join(IMAGES)}.")
    elif not re.match(r"https://[^\s/]", url) or len(url) > _URL_CHARS:
        raise ValidationError("Must be a data: URL or an https address.")


class _Image(Input):
    url = fields.Text(required=True, validate=_check_image)
    detail = fields.String(validate=validate.OneOf(("auto", "low", "high")))


class _File(Input):
    filename = fields.Text(
        required=True, validate=[validate.Length(1, NAME_CHARS), validate.Regexp(r"[^\x00-\x1f\x7f-\x9f]+\Z")]
    )
    file_data = fields.Text(required=True)


_PARTS = {
    kind: Input.from_dict({"type": fields.String(), kind: field})()
    for kind, field in (
        ("text", fields.Text(required=True)),
        ("image_url", fields.Nested(_Image, required=True)),
        ("file", fields.Nested(_File, required=True)),
    )
}


class _Part(fields.Described):
    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        kind = value.get("type") if isinstance(value, Mapping) else None
        if not isinstance(kind, str) or kind not in _PARTS:
            raise ValidationError(f"Its type must be one of: {', '.join(_PARTS)}.")
        loaded: dict[str, Any] = _PARTS[kind].load(value)
        if kind == "file" and (text := _read_file(loaded[kind]["file_data"])) is not None:
            loaded["text"] = text
        return loaded


_CONTENT = fields.Items(_Part(), CONTENT_PARTS_MAX)


def read_parts(content: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Check the parts of a message, and return them: a text file also has its `text`.  Raises ValidationError."""
    parts = _CONTENT.deserialize(content)
    if sum(part["type"] != "text" for part in parts) > ATTACHMENTS_MAX:
        raise ValidationError(f"Has more than {ATTACHMENTS_MAX} images and files. Send them in several messages.")
    return tuple(parts)


def _read_file(file_data: str) -> str | None:
    """Return the text of a file; None for an image."""
    try:
        media_type, charset, data = _decode(file_data)
        if media_type in IMAGES:
            return None
        text = decode(data, charset)
        if text is None or _NO_TEXT.search(text) or UNSTORABLE.search(text):
            raise ValidationError(f"Is neither text in UTF-8 nor an image of one of these types: {', '.join(IMAGES)}.")
        return text
    except ValidationError as error:
        raise ValidationError({"file": {"file_data": error.messages}}) from None


def _decode(url: str) -> tuple[str, str, bytes]:
    """Return the media type, the charset and the bytes of a data: URL, or of base64 alone."""
    prefix = _DATA_URL.match(url)
    if prefix is None and url.startswith("data:"):
        raise ValidationError("Must have its data as base64: data:image/png;base64,...")
    try:
        data = base64.b64decode(url[prefix.end() :] if prefix else url, validate=True)
    except (binascii.Error, ValueError):
        raise ValidationError("Is not base64.") from None
    if len(data) > ATTACHMENT_BYTES_MAX:
        raise ValidationError(f"Has {len(data):,} bytes, but at most {ATTACHMENT_BYTES_MAX:,} are allowed.")
    if prefix is None:
        return "", "", data
    charset = _CHARSET.search(prefix[2])
    return prefix[1].strip().lower(), charset[1].strip() if charset else "", data
