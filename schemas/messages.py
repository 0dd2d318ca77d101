"""Messages of a session: their shapes, and how long they may be."""

from typing import Any

from marshmallow import EXCLUDE, INCLUDE, Schema, ValidationError, validates_schema

from models import Refusal
from models.messages import MessageDraft
from schemas import fields
from schemas.attachments import StoredAttachment
from schemas.fields import EXTERNAL_ID_CHARS, INT32_MAX, OPTIONAL, PARTS_MAX
from schemas.sessions import Session
from schemas.shapes import CallerQuery, PageQuery, ValueSchema, page_of

ROLES = ("user", "assistant", "system", "tool")
APPENDED_MESSAGES_MAX = 1000
_EXTRA_KEPT = (
    "What it holds besides its text, kept as it is. Models get `tool_calls`, `function_call` and `tool_call_id` of it."
)


class Refused(ValueSchema):
    """Reason why no prompt shows a message any more: a model server refused it."""

    class Meta:
        unknown = EXCLUDE

    value = Refusal

    code = fields.text(1, 64, required=True, about="The code of the error.")
    reason = fields.text(most=2_000, required=True, about="A sentence for the person, with the server's own words.")
    at = fields.UtcDateTime(required=True)


class Message(Schema):
    id = fields.Integer()
    session_id = fields.String()
    position = fields.Integer(about="Its number within the session, from 1.")
    role = fields.String()
    name = fields.String(allow_none=True)
    content = fields.String()
    created_at = fields.UtcDateTime()
    external_id = fields.String(allow_none=True)
    tokens = fields.Integer(about="An estimate.")
    extra = fields.Raw(
        allow_none=True,
        about="What it holds besides its text: tool calls; and `attachments`, the `type`, `name`, `size` in bytes and "
        "`hash` of each image and file that came with it (older ones are a hash alone).",
        metadata={"type": "object"},
    )
    hidden_at = fields.UtcDateTime(allow_none=True, about="Since when the session's prompts do not show it.")
    refused = fields.Nested(
        Refused,
        allow_none=True,
        about="Why no prompt, summary or search shows it: a model server refused it. Null for most.",
    )


class ListedMessage(Message):
    """Stored message, with what the person thinks of it."""

    thumbs = fields.String(allow_none=True, about="Of a reply: `up` or `down` by `POST /api/feedback`, else null.")


_EARLIER = "With `around`: the cursor for earlier messages, to be sent with order=desc."
MessagePage = page_of(ListedMessage, previous_cursor=fields.String(allow_none=True, about=_EARLIER))


class MessageQuery(PageQuery):
    order = fields.one_of("asc", "desc", load_default="asc")
    around = fields.number(1, load_default=None, about="The id of a message, for a page with it in its middle.")
    branch = fields.number(most=INT32_MAX, load_default=0, about="1, 2, ...: what was replaced first, second, ...")

    @validates_schema
    def _around(self, data: dict[str, Any], **_: Any) -> None:
        if data["around"] is not None and (data["cursor"] is not None or data["branch"] or data["order"] != "asc"):
            raise ValidationError("Can be combined only with `limit`. Use its cursors to read on.", "around")


HIDDEN_IDS_MAX = 1_000
_POSITION = "A position; -1 is the session's last message, -2 the one before."


class Show(CallerQuery):
    """Messages from position `first` to position `last`, or those of these `ids`."""

    first = fields.integer(-INT32_MAX, INT32_MAX, about=_POSITION)
    last = fields.integer(-INT32_MAX, INT32_MAX, about=_POSITION)
    ids = fields.Items(fields.integer(1), HIDDEN_IDS_MAX, least=1, about="The ids of messages, instead of a span.")

    @validates_schema
    def _in_order(self, data: dict[str, Any], **_: Any) -> None:
        first, last = data.get("first"), data.get("last")
        if (first is None) != (last is None) or 0 in (first, last):
            raise ValidationError("Is sent together with `first`; neither is 0.", "last")
        if first and last and (first < 0) == (last < 0) and first > last:
            raise ValidationError("Is not below `first`.", "last")
        if first and "ids" in data:
            raise ValidationError("Send either `first` and `last`, or `ids`.", "ids")


class Hide(Show):
    keep = fields.Boolean(load_default=False, about="Hide all but these.")
    tokens = fields.integer(
        0,
        INT32_MAX,
        load_default=None,
        about="Hide the recent messages that are older than the newest of so many tokens.",
    )

    @validates_schema
    def _one_way(self, data: dict[str, Any], **_: Any) -> None:
        names = "first" in data or "ids" in data
        if names == (data["tokens"] is not None) or (data["keep"] and not names):
            raise ValidationError("Send `first` and `last` or `ids`, and `keep` or not; or `tokens`.", "first")


class Hidden(Schema):
    hidden = fields.List(fields.Integer(), about="The positions of the messages that are hidden now.")
    shown = fields.List(fields.Integer(), about="The positions of the messages that are shown again.")


class Versions(Schema):
    """Message that has other versions: it was replaced before, or it replaced them."""

    message_id = fields.Integer(about="The version that the session shows now.")
    versions = fields.List(fields.Integer(), about="The ids of all versions, in the order they were said.")


_CALL: dict[str, fields.Field] = {"function": fields.Dict(allow_none=True)}
_EXTRA = Schema.from_dict(  # the fields of `extra` that Recap reads
    {
        "tool_calls": fields.Items(fields.Nested(_CALL, unknown=INCLUDE), PARTS_MAX, allow_none=True),
        "function_call": fields.Dict(allow_none=True),
        "tool_call_id": fields.Text(allow_none=True),
        "attachments": fields.Items(StoredAttachment(), PARTS_MAX, allow_none=True),
    }
)(unknown=INCLUDE)


class Extra(fields.Dict):
    """Fields of a message besides its text: checked, and kept as they are."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        extra = super()._deserialize(value, attr, data, **kwargs)
        _EXTRA.load(extra)
        fields.check_json(extra)
        return extra


class MessageToAppend(ValueSchema):
    value = MessageDraft

    role = fields.one_of(*ROLES, required=True)
    content = fields.text(1, required=True)
    name = fields.text(1, 128, **OPTIONAL)
    created_at = fields.UtcDateTime(**OPTIONAL)
    external_id = fields.text(
        1, EXTERNAL_ID_CHARS, **OPTIONAL, about="The application's own id: a session stores one message for each."
    )
    extra = Extra(**OPTIONAL, about=_EXTRA_KEPT)


class Append(CallerQuery):
    long = True

    messages = fields.Items(fields.Nested(MessageToAppend), APPENDED_MESSAGES_MAX, least=1, required=True)


class Appended(Schema):
    session = fields.Nested(Session)
    message_ids = fields.List(fields.Integer(), about="The ids of all messages that were sent, in order.")
    created = fields.Integer(about="How many of them were new.")
