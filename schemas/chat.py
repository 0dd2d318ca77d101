"""Turn: the request, the reply with what it tells about its memory, and turns of the past."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, post_load, validate

from models.messages import Excerpt as ExcerptValue
from models.messages import MessageDraft
from models.turns import RECALL_MODES
from schemas import fields
from schemas.attachments import read_parts
from schemas.examples import Example
from schemas.facts import Fact
from schemas.fields import OPTIONAL, describe, numbers_by_name
from schemas.messages import MESSAGE_CHARS_MAX, Message
from schemas.model_server import MODEL_CHARS
from schemas.overview import Sentence
from schemas.shapes import CallerQuery, PageQuery, ValueSchema


class Open(Schema):
    """Object to which the model server may add fields."""

    class Meta:
        unknown = INCLUDE


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
_CONTENT = describe(
    'Its text, or {"role": "user", "content": ...}. The content may be a list of parts: `text`; `image_url`, with a '
    "data: URL or an https address; and `file`, with `filename` and `file_data`, for text files and images. The model "
    "gets images as they are and text files as quoted text; of both, only name, size and a hash are stored.",
    oneOf=[{"type": "string"}, {"type": "object"}],
)


class MessageText(fields.Text):
    """Message: a string, or `{"role": "user", "content": "..."}`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(_content_of(value), attr, data, **kwargs)
        if not text.strip():
            raise ValidationError("Is empty. Send some words.")
        return text


class MessageContent(fields.Described):
    """Message whose content may be a list of parts: it loads as these where one of them is an image or a file."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        content = _content_of(value)
        if not (isinstance(value, Mapping) and isinstance(content, list)):
            return MessageText().deserialize(value)
        try:
            parts = read_parts(content)
        except ValidationError as error:
            raise ValidationError({"content": error.messages}) from None
        if any(part["type"] != "text" for part in parts):
            return parts
        return MessageText().deserialize("\n".join(part["text"] for part in parts))


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
    content = fields.Text(required=True, validate=validate.Length(1, MESSAGE_CHARS_MAX))


class Question(CallerQuery):
    """Message for which the memory is read, and the person whose memory it is."""

    long = True

    message: fields.Field[Any] = MessageText(required=True, about='Its text, or {"role": "user", "content": "..."}.')
    user_id = fields.UserId(**OPTIONAL)
    space = fields.SpaceName(**OPTIONAL)
    timezone = fields.TimeZone(load_default=UTC, about='The zone of words like "yesterday". The default is UTC.')
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
    """Message to answer."""

    message = MessageContent(required=True, metadata=_CONTENT)
    session_id = fields.SessionId(**OPTIONAL, about="Without it, a session is created.")
    name = fields.optional_text(128)
    stream = fields.Boolean(load_default=False)
    recall = fields.one_of(*RECALL_MODES, **OPTIONAL)
    model = fields.optional_text(MODEL_CHARS, about="One of `GET /api/models`. Without it, the main model answers.")
    remember = fields.Boolean(
        load_default=True,
        about="False: the reply looks at this session alone, and nothing of the turn comes up in others: no facts are "
        "taken from it, and it is not recalled. A search still finds it.",
    )
    prompt = fields.optional_text(
        64, attribute="summary_prompt", about="The name of the prompt for this turn's summary."
    )
    system_prompt = fields.optional_text(20_000)
    temporary = fields.Boolean(load_default=False, about="Use the memory, but store nothing of this turn.")
    replaces = fields.integer(1, **OPTIONAL, about="The id of the message it replaces.")

    @post_load
    def _fits(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        if data["history"] and not data["temporary"]:
            raise ValidationError("Is allowed only with `temporary`. A session has its own history.", "history")
        if data["replaces"] is not None and data["session_id"] is None:
            raise ValidationError("Is required with `replaces`: the session of that message.", "session_id")
        if data["replaces"] is not None and data["temporary"]:
            raise ValidationError("Is not allowed with `temporary`: such a turn changes nothing.", "replaces")
        return data if data["remember"] else {**data, "recall": "off"}  # it looks at this session alone


class ShownFact(Fact):
    """Fact as a prompt showed it."""

    class Meta:
        fields = ("id", "text", "category", "pinned", "session_id", "source_message_id", "valid_from", "score")


class ExcerptMessage(Message):
    """Message within an excerpt."""

    class Meta:
        fields = ("id", "position", "role", "name", "content", "created_at", "page")

    page = fields.Integer(allow_none=True, about="Of a passage: its page in a PDF.", sometimes=True)


_SAID = ("id", "position", "role", "name", "content", "created_at")


class Gist(Schema):
    """Lines of the summary of an earlier conversation."""

    text = fields.String()
    updated_at = fields.UtcDateTime(about="When the conversation was last talked in.")


class DocumentPlace(Schema):
    """Document that passages are of."""

    id = fields.String()
    title = fields.String()
    uri = fields.String(allow_none=True)
    page = fields.Integer(about="The page of a PDF that the best passage is on.", sometimes=True)


class Excerpt(Schema):
    """Part of an earlier conversation that was recalled: messages, its summary, or both; or passages of a document."""

    session_id = fields.String(allow_none=True, about="Null for a document.")
    document = fields.Nested(
        DocumentPlace, about="The document that the passages are of, in place of a session.", sometimes=True
    )
    title = fields.String(about="The title of the session or document.")
    messages = fields.List(fields.Nested(ExcerptMessage))
    hits = fields.List(fields.Integer(), about="The ids of the messages that the search found.")
    score = fields.Float()
    why = fields.Dict(keys=fields.String(), values=fields.Float())
    summary = fields.Nested(Gist, allow_none=True, about="What it shows of the conversation's summary; null: nothing.")

    def dump(self, obj: ExcerptValue, *, many: bool | None = None) -> dict[str, Any]:
        messages = [
            {name: getattr(message, name) for name in _SAID} | {"created_at": message.created_at.isoformat()}
            for message in obj.messages
        ]
        values = {name: getattr(obj, name) for name in ("session_id", "title", "hits", "score", "why")}
        gist = obj.gist
        summary = gist and {"text": "\n".join(gist.lines), "updated_at": gist.updated_at.isoformat()}
        shown = {**values, "messages": messages, "summary": summary}
        if obj.is_document:
            extras = {message.id: message.extra or {} for message in obj.messages}
            for message in messages:
                message |= {"page": extras[message["id"]].get("page")}
            place = {"id": obj.session_id, "title": obj.title, "uri": None, **extras[obj.hits[0]]}
            shown |= {"session_id": None, "document": place}
        return shown


class RecallCall(Schema):
    """Search that the model made. Its words are not stored, so `query` is null in the answer to a retry."""

    name = fields.String()
    query = fields.String()
    after = fields.UtcDateTime()
    before = fields.UtcDateTime()
    excerpts = fields.Integer()
    error = fields.String()


_recall_call = RecallCall()


def _recall(report: Any) -> dict[str, Any]:
    recall = {name: getattr(report.recalled, name) for name in ("mode", "reason", "kind")}
    return {**recall, "calls": _recall_call.dump(report.calls, many=True)} if recall["mode"] == "tools" else recall


class Call(Schema):
    """Call of the API."""

    method = fields.String()
    path = fields.String()
    body = fields.Dict(sometimes=True)


class WrittenFact(Schema):
    """Fact that the model wrote with a tool."""

    action = fields.one_of("remember", "correct", "forget")
    fact_id = fields.Integer()
    text = fields.String(
        allow_none=True,
        about="What is known now or, forgotten, what was known. Null when it is gone since.",
    )
    quote = fields.String(allow_none=True, about="The person's words that it rests on, or that ask for it.")
    replaces = fields.String(allow_none=True, about="What a correction replaced.")
    undo = fields.Nested(
        Call,
        allow_none=True,
        about="The call that undoes it. What was forgotten is told once: later there is none.",
    )


class ShownProfile(Schema):
    """Part of a profile."""

    version = fields.Integer(about="0: none was shown.")
    values = fields.Function(
        lambda shown: [{"name": value.name, "value": value.value, **value.source} for value in shown.values],
        about="Each with `name`, `value` and what it rests on: the `quote`, `session_id` and `position` of a message, "
        "`since` and `author`.",
    )


class ShownOverview(Schema):
    """Sentences of an overview."""

    version = fields.Integer(about="0: none was shown.")
    sentences = fields.List(fields.Nested(Sentence))


class ShownText(Schema):
    """Instruction, or text of a type of conversation."""

    kind = fields.one_of("instruction", "type")
    name = fields.String()
    version = fields.Integer()
    text = fields.String()
    of_tenant = fields.Boolean(about="Whether it is for all people of the tenant.")


class OtherMemory(Schema):
    """Part of another memory that a prompt showed: of a space or, where `space` is null, of the person who acts."""

    space = fields.String(allow_none=True)
    facts = fields.List(fields.Nested(ShownFact))
    excerpts = fields.List(fields.Nested(Excerpt))


class Memory(Schema):
    """Memory that the prompt of a turn showed, and why."""

    summary = fields.Function(
        lambda report: {
            "version": report.summary_version,
            "state": report.state,
            "head_version": report.head_version,
        },
        metadata=describe(
            "The version and state of the stored summary, and the version that was shown.", type="object"
        ),
    )
    profile = fields.Nested(
        ShownProfile, about="The part of the profile that was shown, instead of the facts it contains."
    )
    overview = fields.Nested(
        ShownOverview,
        about="What mattered lately, as the prompt showed it, each sentence with its sources.",
    )
    instructions = fields.List(
        fields.Nested(ShownText),
        attribute="texts",
        about="The instructions that were shown, and the text of the conversation's type.",
    )
    type = fields.String(allow_none=True, about="The type of the conversation, if its words tell one.")
    facts = fields.List(fields.Nested(ShownFact))
    excerpts = fields.List(fields.Nested(Excerpt), attribute="recalled.excerpts")
    examples = fields.List(fields.Nested(Example))
    others = fields.List(
        fields.Nested(OtherMemory),
        about="What was shown of other memories that the turn reads. Only in the answer to the turn itself: others may "
        "read the session.",
    )
    recall = fields.Function(
        _recall,
        metadata=describe(
            "The mode; why something was recalled, or why not, in words and as a `kind`, for texts in other languages; "
            "and in mode `tools` the model's `calls`.",
            type="object",
        ),
    )
    written = fields.List(
        fields.Nested(WrittenFact), about="The facts that the model wrote in this turn, in mode `tools`."
    )
    tail = fields.Function(
        lambda report: {"messages": report.tail_messages, "dropped": report.tail_dropped},
        metadata=describe(
            "How many messages were sent word for word, and how many did not fit.", **numbers_by_name("integer")
        ),
    )


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


MEMORY, USAGE, WRITTEN = Memory(), ChatUsage(), Memory(only=("written",))


class Turn(Schema):
    """Message and its reply: how the turn ended, and what it cost."""

    user_message_id = fields.Integer()
    message_id = fields.Integer(allow_none=True, about="The id of the reply; null if there is none (yet).")
    state = fields.String(
        about="`answering`; `finished`; `interrupted`: it was stopped, or the model failed in its middle, and the "
        "words so far are kept; `broken_off`: no reply came, and sending the same message again continues the turn; or "
        "`refused`: a model server refused the message, which tells why, and the session goes on without it."
    )
    so_far = fields.String(
        allow_none=True,
        about="While there is no reply: what the model had said of it a few seconds ago; null if nothing.",
    )
    model = fields.String(allow_none=True)
    finish_reason = fields.String(allow_none=True)
    usage = fields.Nested(ChatUsage, allow_none=True)
    started_at = fields.UtcDateTime()
    finished_at = fields.UtcDateTime(allow_none=True)


class TurnWithMemory(Turn):
    """Turn, and what its prompt showed of the memory, except what was erased since."""

    memory = fields.Nested(Memory, allow_none=True)


class TurnQuery(PageQuery):
    limit = fields.limit(100, most=500)
    order = fields.one_of("asc", "desc", load_default="desc")
