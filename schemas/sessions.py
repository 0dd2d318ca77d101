"""Sessions and messages."""

from __future__ import annotations

import json
import sys
from typing import Any

from marshmallow import EXCLUDE, INCLUDE, Schema, ValidationError, fields, post_load, validate, validates_schema

from models import Refusal
from models.messages import EXTERNAL_ID_CHARS, MessageDraft, NamedMessages
from models.owners import USER_ID_CHARS
from schemas.attachments import StoredAttachment
from schemas.fields import (
    INT32_MAX,
    OPTIONAL,
    PARTS_MAX,
    CallerQuery,
    Input,
    Items,
    PageQuery,
    SessionId,
    Text,
    UtcDateTime,
    ValueSchema,
    describe,
    integer,
    limit,
    list_of,
    number,
    one_of,
    optional_text,
    page_of,
)

MESSAGE_CHARS_MAX = 100_000  # more than any prompt can hold


_EXTRA_KEPT = describe(
    "What it holds besides its text, kept as it is. Models get `tool_calls`, `function_call` and `tool_call_id` of it."
)
REMEMBER = describe(
    "False: memory is off. A turn looks at this session alone, and what is said while it is off is neither recalled in "
    "others nor read for facts, also once it is on again. A search still finds it."
)
ROLES = ("user", "assistant", "system", "tool")
APPENDED_MESSAGES_MAX = 1000


class Session(Schema):
    """Conversation."""

    id = fields.String()
    user_id = fields.String(allow_none=True)
    space = fields.String(allow_none=True, metadata=describe("The space that it stands in."))
    title = fields.String()
    system_prompt = fields.String(allow_none=True)
    pinned = fields.Boolean()
    archived = fields.Boolean(metadata=describe("An archived session is remembered as any other."))
    remember = fields.Boolean(metadata=REMEMBER)
    type = fields.String(
        allow_none=True, metadata=describe("The type that was set; null: Recap tells it from the words.")
    )
    message_count = fields.Integer()
    tokens = fields.Integer(metadata=describe("An estimate for all of its messages."))
    summary_version = fields.Integer(metadata=describe("The newest version of its summary; 0 if it has none yet."))
    created_at = UtcDateTime()
    updated_at = UtcDateTime()
    imported_at = UtcDateTime(
        allow_none=True, metadata=describe("When messages of it were last imported; null: never.")
    )
    busy = fields.Boolean(metadata=describe("Whether a reply is being written now."))


SessionPage = page_of(Session)


class SessionQuery(PageQuery):
    limit = limit(20)
    q = Text(load_default=None, metadata=describe("Words to look for in titles."))
    pinned = fields.Boolean(load_default=None)
    archived = fields.Boolean(load_default=None)
    before = UtcDateTime(load_default=None)
    after = UtcDateTime(load_default=None)
    except_user_id = optional_text(
        USER_ID_CHARS, metadata=describe("Leave this person's out: those of other people, and of programs, stay.")
    )


class SessionCreate(CallerQuery):
    session_id = SessionId(load_default=None, metadata=describe("Without it, Recap makes an id."))
    title = Text(load_default="", validate=validate.Length(max=200))
    system_prompt = optional_text(20_000, least=None)
    remember = fields.Boolean(load_default=True, metadata=REMEMBER)


class SessionChange(Input):
    title = Text(validate=validate.Length(1, 200))
    system_prompt = Text(allow_none=True, validate=validate.Length(max=20_000))
    pinned = fields.Boolean()
    archived = fields.Boolean()
    remember = fields.Boolean(metadata=REMEMBER)
    type = Text(
        allow_none=True, validate=validate.Length(1, 64), metadata=describe("A type of `GET /api/conversation-types`.")
    )


class Refused(ValueSchema):
    """Reason why no prompt shows a message any more: a model server refused it."""

    class Meta:
        unknown = EXCLUDE

    value = Refusal

    code = Text(required=True, validate=validate.Length(1, 64), metadata=describe("The code of the error."))
    reason = Text(
        required=True,
        validate=validate.Length(max=2_000),
        metadata=describe("A sentence for the person, with the server's own words."),
    )
    at = UtcDateTime(required=True)


class Message(Schema):
    """Stored message."""

    id = fields.Integer()
    session_id = fields.String()
    position = fields.Integer(metadata=describe("Its number within the session, from 1."))
    role = fields.String()
    name = fields.String(allow_none=True)
    content = fields.String()
    created_at = UtcDateTime()
    external_id = fields.String(allow_none=True)
    tokens = fields.Integer(metadata=describe("An estimate."))
    extra = fields.Raw(
        allow_none=True,
        metadata=describe(
            "What it holds besides its text: tool calls; and `attachments`, the `type`, `name`, `size` in bytes and "
            "`hash` of each image and file that came with it (older ones are a hash alone).",
            type="object",
        ),
    )
    hidden_at = UtcDateTime(allow_none=True, metadata=describe("Since when the session's prompts do not show it."))
    refused = fields.Nested(
        Refused,
        allow_none=True,
        metadata=describe("Why no prompt, summary or search shows it: a model server refused it. Null for most."),
    )


class ListedMessage(Message):
    """Stored message, with what the person thinks of it."""

    thumbs = fields.String(
        allow_none=True, metadata=describe("Of a reply: `up` or `down` by `POST /api/feedback`, else null.")
    )


_EARLIER = describe("With `around`: the cursor for earlier messages, to be sent with order=desc.")
MessagePage = page_of(ListedMessage, previous_cursor=fields.String(allow_none=True, metadata=_EARLIER))


class MessageQuery(PageQuery):
    order = one_of("asc", "desc", load_default="asc")
    around = number(1, load_default=None, metadata=describe("The id of a message, for a page with it in its middle."))
    branch = number(
        most=INT32_MAX, load_default=0, metadata=describe("1, 2, ...: what was replaced first, second, ...")
    )

    @validates_schema
    def _around(self, data: dict[str, Any], **_: Any) -> None:
        if data["around"] is not None and (data["cursor"] is not None or data["branch"] or data["order"] != "asc"):
            raise ValidationError("Can be combined only with `limit`. Use its cursors to read on.", "around")


HIDDEN_IDS_MAX = 1_000
_POSITION = describe("A position; -1 is the session's last message, -2 the one before.")


class Show(CallerQuery):
    """Messages from position `first` to position `last`, or those of these `ids`."""

    first = integer(-INT32_MAX, INT32_MAX, metadata=_POSITION)
    last = integer(-INT32_MAX, INT32_MAX, metadata=_POSITION)
    ids = Items(integer(1), HIDDEN_IDS_MAX, least=1, metadata=describe("The ids of messages, instead of a span."))

    @validates_schema
    def _in_order(self, data: dict[str, Any], **_: Any) -> None:
        first, last = data.get("first"), data.get("last")
        if (first is None) != (last is None) or 0 in (first, last):
            raise ValidationError("Is sent together with `first`; neither is 0.", "last")
        if first and last and (first < 0) == (last < 0) and first > last:
            raise ValidationError("Is not below `first`.", "last")
        if first and "ids" in data:
            raise ValidationError("Send either `first` and `last`, or `ids`.", "ids")

    @post_load
    def _named(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        named = {name: data.pop(name) for name in ("first", "last", "ids") if name in data}
        return {**data, "named": NamedMessages(**named)}


class Hide(Show):
    keep = fields.Boolean(load_default=False, metadata=describe("Hide all but these."))
    tokens = integer(0, INT32_MAX, load_default=None, metadata=describe("Hide what the tail has beyond its newest."))

    @validates_schema
    def _one_way(self, data: dict[str, Any], **_: Any) -> None:
        names = "first" in data or "ids" in data
        if names == (data["tokens"] is not None) or (data["keep"] and not names):
            raise ValidationError("Send `first` and `last` or `ids`, and `keep` or not; or `tokens`.", "first")


class Hidden(Schema):
    """Messages that a call has hidden or shown."""

    hidden = fields.List(fields.Integer(), metadata=describe("The positions of the messages that are hidden now."))
    shown = fields.List(fields.Integer(), metadata=describe("The positions of the messages that are shown again."))


class Versions(Schema):
    """Message that has other versions: it was replaced before, or it replaced them."""

    message_id = fields.Integer(metadata=describe("The version that the session shows now."))
    versions = fields.List(fields.Integer(), metadata=describe("The ids of all versions, in the order they were said."))


VersionList = list_of(Versions)


class RelatedQuery(CallerQuery):
    limit = limit(10)


class RelatedSession(Schema):
    """Another conversation of the same person, and why it belongs together with this one."""

    session_id = fields.String()
    title = fields.String()
    updated_at = UtcDateTime()
    score = fields.Float(metadata=describe("From 0 to 1."))
    why = fields.Function(
        lambda related: {"entities": list(related.entities), "summary": related.summary},
        metadata=describe(
            "The `entities` that both name, and how near the `summary` is (0 to 1, or null).", type="object"
        ),
    )


RelatedList = list_of(RelatedSession)


class Stopping(Schema):
    stopping = fields.Boolean(metadata=describe("False if no reply was being written."))


_CALL: dict[str, fields.Field] = {"function": fields.Dict(allow_none=True)}
_EXTRA = Schema.from_dict(  # the fields of `extra` that Recap reads
    {
        "tool_calls": Items(fields.Nested(_CALL, unknown=INCLUDE), PARTS_MAX, allow_none=True),
        "function_call": fields.Dict(allow_none=True),
        "tool_call_id": Text(allow_none=True),
        "attachments": Items(StoredAttachment(), PARTS_MAX, allow_none=True),
    }
)(unknown=INCLUDE)


class Extra(fields.Dict):
    """Fields of a message besides its text: checked, and kept as they are. most: characters as JSON."""

    def __init__(self, most: int = sys.maxsize, **options: Any) -> None:
        self.most = most
        super().__init__(**options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        extra = super()._deserialize(value, attr, data, **kwargs)
        _EXTRA.load(extra)
        try:
            whole = json.dumps(extra, ensure_ascii=False, allow_nan=False)  # with NUL as its escape
        except ValueError:
            raise ValidationError("Has a number that is not finite.") from None
        if len(whole) > self.most:
            raise ValidationError(f"Has {len(whole):,} characters as JSON, but at most {self.most:,} are allowed.")
        Text().deserialize(whole.replace("\\u0000", "\0"))
        return extra


class MessageToAppend(ValueSchema):
    value = MessageDraft

    role = one_of(*ROLES, required=True)
    content = Text(required=True, validate=validate.Length(min=1))
    name = optional_text(128)
    created_at = UtcDateTime(**OPTIONAL)
    external_id = optional_text(
        EXTERNAL_ID_CHARS, metadata=describe("The application's own id: a session stores one message for each.")
    )
    extra = Extra(MESSAGE_CHARS_MAX, **OPTIONAL, metadata=_EXTRA_KEPT)


class Append(CallerQuery):
    long = True

    messages = Items(fields.Nested(MessageToAppend), APPENDED_MESSAGES_MAX, least=1, required=True)


class Appended(Schema):
    session = fields.Nested(Session)
    message_ids = fields.List(fields.Integer(), metadata=describe("The ids of all messages that were sent, in order."))
    created = fields.Integer(metadata=describe("How many of them were new."))
