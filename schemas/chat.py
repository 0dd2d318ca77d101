"""Chat: a message to answer, and the reply."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, post_load

from models.messages import MessageDraft
from models.turns import RECALL_MODES
from schemas import fields
from schemas.attachments import read_parts
from schemas.fields import MESSAGE_CHARS_MAX, OPTIONAL
from schemas.memory_report import Memory
from schemas.model_server import MODEL_CHARS
from schemas.shapes import CallerQuery, Open, ValueSchema


class Completion(Open):
    """Model server's chat.completion, or with `stream` its chat.completion.chunk events."""

    id = fields.String()
    object = fields.String()
    created = fields.Integer()
    model = fields.String()
    choices = fields.List(fields.Dict())
    usage: fields.Field = fields.Dict()


SPACES_READ_MAX = 5  # beside its own memory, by one turn
HISTORY_MAX = 200  # messages; a longer chat should be a session
_HISTORY = (
    "What was said just before, if Recap has not stored it: it tells what the message refers to. A chat takes it only "
    "with `temporary`."
)
_CONTENT = (
    'Its text, a list of parts, or {"role": "user", "content": ...} with either. Parts are `text`; `image_url`, with a '
    "data: URL or an https address; and `file`, with `filename` and `file_data`, for text files and images. The model "
    "gets images as they are and text files as quoted text; of both, only name, size and a hash are stored."
)


class MessageText(fields.Text):
    """Message: a string, or `{"role": "user", "content": "..."}`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(_content_of(value), attr, data, **kwargs)
        if not text.strip():
            raise ValidationError("Is empty. Send some words.")
        return text


_TEXT = MessageText()


class MessageContent(fields.Described):
    """Message whose content may be a list of parts: it loads as these where one of them is an image or a file."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        content = _content_of(value)
        if not isinstance(content, list):
            return _TEXT.deserialize(value)
        try:
            parts = read_parts(content)
        except ValidationError as error:
            raise ValidationError({"content": error.messages} if content is not value else error.messages) from None
        if any(part["type"] != "text" for part in parts):
            return parts
        return _TEXT.deserialize("\n".join(part["text"] for part in parts))


def _content_of(message: Any) -> Any:
    """Return the content of a message that may be an object."""
    if not isinstance(message, Mapping):
        return message
    if message.get("role", "user") != "user":
        raise ValidationError("Its role must be user. Append messages of other roles to the session instead.")
    return message.get("content")


class Said(ValueSchema):
    """Message of a temporary chat."""

    value = MessageDraft

    role = fields.one_of("user", "assistant", required=True)
    content = fields.text(1, MESSAGE_CHARS_MAX, required=True)


class Question(CallerQuery):
    """Message for which the memory is read, and the person whose memory it is."""

    long = True

    message: fields.Field[Any] = MessageText(required=True, about='Its text, or {"role": "user", "content": "..."}.')
    user_id = fields.UserId(**OPTIONAL)
    space = fields.SpaceName(**OPTIONAL)
    timezone = fields.TimeZone(
        load_default=None,
        about="The zone in which the person's days begin: of words like `yesterday`, and of the times that models see. "
        "Later turns of the session keep it, and sessions that the person begins later. The default is the setting "
        "TIMEZONE.",
    )
    spaces = fields.Items(
        fields.SpaceName(),
        SPACES_READ_MAX,
        **OPTIONAL,
        about="Spaces whose memory is read too. The default, with a person's key outside of a `space`: those it names.",
    )
    person = fields.Boolean(
        **OPTIONAL,
        about="In a `space`: whether the memory of the person who acts is read too, though the reply is the space's. "
        "The default is true with the person's own key, else false.",
    )
    history = fields.Items(fields.Nested(Said), HISTORY_MAX, load_default=(), about=_HISTORY)


class ChatRequest(Question):
    message = MessageContent(
        required=True,
        about=_CONTENT,
        metadata={"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}, {"type": "object"}]},
    )
    session_id = fields.SessionId(**OPTIONAL, about="Without it, a session is created.")
    name = fields.text(1, 128, **OPTIONAL, about="Who says it, where several persons share the session or the space.")
    stream = fields.Boolean(load_default=False, about="Send the reply as server-sent events.")
    recall = fields.one_of(
        *RECALL_MODES,
        **OPTIONAL,
        about="`auto`: the message decides whether to look back, and only what is near it is shown. `always`: the best "
        "excerpts, however near. `tools`: the model searches. The default is that of the conversation's type, else the "
        "setting RECALL.",
    )
    model = fields.text(
        1, MODEL_CHARS, **OPTIONAL, about="One of `GET /api/models`. Without it, the main model answers."
    )
    remember = fields.Boolean(
        load_default=True,
        about="False: the reply looks at this session alone, and nothing of the turn comes up in others: no facts are "
        "taken from it, and it is not recalled. A search still finds it.",
    )
    prompt = fields.text(
        1, 64, **OPTIONAL, attribute="summary_prompt", about="The name of the prompt for this turn's summary."
    )
    system_prompt = fields.text(
        1, 20_000, **OPTIONAL, about="Of this turn alone, in place of the one that the session or the server has."
    )
    temporary = fields.Boolean(load_default=False, about="Use the memory, but store nothing of this turn.")
    replaces = fields.integer(1, **OPTIONAL, about="The id of the person's message that it replaces.")

    @post_load
    def _fits(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        if data["history"] and not data["temporary"]:
            raise ValidationError("Is allowed only with `temporary`. A session has its own history.", "history")
        if data["replaces"] is not None and data["session_id"] is None:
            raise ValidationError("Is required with `replaces`: the session of that message.", "session_id")
        if data["replaces"] is not None and data["temporary"]:
            raise ValidationError("Is not allowed with `temporary`: such a turn changes nothing.", "replaces")
        return data if data["remember"] else {**data, "recall": "off"}  # it looks at this session alone


class ChatUsage(Schema):
    """Tokens of the main model, as the provider counts them."""

    prompt_tokens = fields.Integer(attribute="spent.prompt_tokens")
    completion_tokens = fields.Integer(attribute="spent.completion_tokens")
    total_tokens = fields.Integer(attribute="spent.total_tokens")
    estimated = fields.Boolean(attribute="spent.estimated", about="True if the provider gave no figures.")
    full_history_tokens = fields.Integer(
        about="What sending every message but hidden and refused ones would have cost."
    )
    saved_tokens = fields.Integer(about="The difference. It is below zero while a session is short.")


class ChatReply(Completion):
    """OpenAI chat.completion object, with the session, the text of the reply and the memory added.

    The choice's `finish_reason` is the model's (`stop`, `length`, ...), `interrupted` for a reply that was stopped,
    or `cut_off` for one in whose middle the model failed: what it said is kept.
    With `stream`, the same comes as chat.completion.chunk events. The first has `session_id` and `memory`. The last
    before `[DONE]` has `usage` and `message_id`, and `memory` again if the model itself looked back. What the model
    thinks comes as `reasoning_content` of a delta, only here: it is no part of the reply and not stored. A chunk that
    `withdraws` tells that the content sent so far was such a thought. A reply that is `cut_off` ends with an `error`
    event in place of `[DONE]`. While the model is silent, comments keep the connection open.
    """

    usage = fields.Nested(ChatUsage)
    session_id = fields.String(allow_none=True, about="Null for a temporary turn without a session.")
    user_message_id = fields.Integer(allow_none=True)
    message_id = fields.Integer(allow_none=True, about="The id of the stored reply.")
    reply = fields.String()
    memory = fields.Nested(Memory)
    notice = fields.String(about="Only present when the built-in model answers; says so.", sometimes=True)


USAGE = ChatUsage()
