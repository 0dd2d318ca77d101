"""Memory that the prompt of a turn showed, as replies and lists of turns report it."""

from typing import Any

from marshmallow import Schema

from models.messages import Excerpt as ExcerptValue
from schemas import fields
from schemas.examples import Example
from schemas.facts import Fact
from schemas.fields import numbers_by_name
from schemas.messages import Message
from schemas.overview import Sentence


class ShownFact(Fact):
    class Meta:
        fields = ("id", "text", "category", "pinned", "session_id", "source_message_id", "valid_from", "score")


class ExcerptMessage(Message):
    class Meta:
        fields = ("id", "position", "role", "name", "content", "created_at", "page")

    page = fields.Integer(
        attribute="extra.page", allow_none=True, about="Of a passage: its page in a PDF.", sometimes=True
    )


class Gist(Schema):
    """Lines of the summary of an earlier conversation."""

    text = fields.String()
    updated_at = fields.UtcDateTime(about="When the conversation was last talked in.")


class DocumentPlace(Schema):
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
    summary = fields.Nested(
        Gist, attribute="gist", allow_none=True, about="What it shows of the conversation's summary; null: nothing."
    )

    def get_attribute(self, obj: ExcerptValue, attr: str, default: Any) -> Any:
        if obj.is_document and attr == "session_id":
            return None
        if obj.is_document and attr == "document":
            best = next(message.extra for message in obj.messages if message.id == obj.hits[0])
            return {"id": obj.session_id, "title": obj.title, "uri": None, **(best or {})}
        return super().get_attribute(obj, attr, default)


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
    method = fields.String()
    path = fields.String()
    body = fields.Dict(sometimes=True)


class WrittenFact(Schema):
    action = fields.one_of(
        *("remember", "correct", "forget"),
        about="`forget` also leaves the messages that say the fact, and the request, out of memory, each as a whole.",
    )
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
    version = fields.Integer(about="0: none was shown.")
    values = fields.Function(
        lambda shown: [{"name": value.name, "value": value.value, **value.source} for value in shown.values],
        about="Each with `name`, `value` and what it rests on: the `quote`, `session_id` and `position` of a message, "
        "`since` and `author`.",
    )


class ShownOverview(Schema):
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
        about="The version and state of the stored summary, and the version that was shown.",
        metadata={"type": "object"},
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
    facts = fields.List(
        fields.Nested(ShownFact),
        about="The facts that the model was shown, in mode `tools` also those in the results of its searches.",
    )
    excerpts = fields.List(fields.Nested(Excerpt), attribute="recalled.excerpts")
    examples = fields.List(fields.Nested(Example))
    others = fields.List(
        fields.Nested(OtherMemory),
        attribute="other_memories",
        about="What was shown of other memories that the turn reads. Only in the answer to the turn itself: others may "
        "read the session.",
    )
    recall = fields.Function(
        _recall,
        about="The mode; why something was recalled, or why not, in words and as a `kind`, for texts in other "
        "languages; and in mode `tools` the model's `calls`.",
        metadata={"type": "object"},
    )
    written = fields.List(
        fields.Nested(WrittenFact), about="The facts that the model wrote in this turn, in mode `tools`."
    )
    tail = fields.Function(
        lambda report: {"messages": report.tail_messages, "dropped": report.tail_dropped},
        about="How many messages were sent word for word, and how many did not fit.",
        metadata=numbers_by_name("integer"),
    )


MEMORY = Memory()
WRITTEN = Memory(only=("written",))
