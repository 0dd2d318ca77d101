"""Export's format: one JSON document with everything of a person, written and read; and Markdown, only written.

`{"format": "recap-export", "version": 1, "exported_at", "user_id", "sessions": [...], "facts": [...], "items": [...]}`,
with "space" in the place of "user_id" for a space.
A message is named by its position in its session, from 1; a fact's `id` means something only within the document.

Invariants:
- Writing and reading hold one session, fact or item at a time (test_users, test_import).
- What is written can be read and stored again without loss (test_import).
"""

import json
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, validate, validates_schema

from memory.knowledge import profile
from memory.knowledge.entities import key
from memory.knowledge.profile_patch import Profile
from memory.knowledge.summaries import SummaryVersion as SummaryVersionValue
from memory.knowledge.summary_update import LINKS_MAX
from memory.quoting import format_time, normalize, one_line
from memory.transfer.export import (
    FORMAT,
    DocumentRecord,
    Export,
    FactRecord,
    ItemRecord,
    Passage,
    SessionRecord,
    TurnRecord,
)
from memory.turn.request import TurnUsage
from models.facts import ENTITY_KINDS, Relation
from models.facts import FactRevision as FactRevisionValue
from models.messages import MessageDraft
from models.owners import Usage
from models.store import ItemVersion, Source
from schemas import fields
from schemas.facts import CATEGORY, NAME_CHARS_MAX
from schemas.fields import INT32_MAX, OPTIONAL
from schemas.messages import Extra, MessageToAppend, Refused
from schemas.retention import Archive
from schemas.shapes import Input, ValueSchema
from schemas.store import NAME, TTL, JsonValue, Namespace, index_paths
from schemas.summaries import Sections

_NAMED = validate.Length(1, NAME_CHARS_MAX)
VERSION = 1


class _Record(ValueSchema):
    """Part of the document. Fields that a later Recap adds are ignored."""

    class Meta:
        unknown = EXCLUDE


class ExportedMessage(_Record, MessageToAppend):
    content = fields.Text(required=True)
    created_at = fields.UtcDateTime(required=True)
    extra = Extra(**OPTIONAL, about="What the message holds besides its text.")
    erased_at = fields.UtcDateTime(**OPTIONAL, about="When it was erased. Then only its place is left, no text.")
    hidden_at = fields.UtcDateTime(**OPTIONAL)
    refused = fields.Nested(Refused, **OPTIONAL)


class ExportedCost(_Record):
    """Cost of a version of the summary, and what became of the facts that came with it."""

    value = dict

    prompt_tokens = fields.integer()
    completion_tokens = fields.integer()
    calls = fields.integer()
    facts = fields.Dict(keys=fields.String(), values=fields.integer())


class ExportedSummary(_Record):
    value = partial(SummaryVersionValue, replaced=False)

    version = fields.integer(1, INT32_MAX, required=True)
    sections = fields.Nested(Sections, required=True)
    through = fields.integer(required=True, about="The position of the last message it covers.")
    tokens = fields.integer(required=True)
    author = fields.text(1, 16, required=True)
    model = fields.ModelName(**OPTIONAL)
    prompt = fields.text(0, 80, **OPTIONAL)
    usage = fields.Nested(ExportedCost, **OPTIONAL)
    restores = fields.integer(**OPTIONAL)
    created_at = fields.UtcDateTime(required=True)


class ExportedUsage(_Record):
    value = staticmethod(lambda spent, full_history_tokens: TurnUsage(Usage(**spent), full_history_tokens))

    prompt_tokens = fields.integer(attribute="spent.prompt_tokens", required=True)
    completion_tokens = fields.integer(attribute="spent.completion_tokens", required=True)
    estimated = fields.Boolean(attribute="spent.estimated", load_default=False)
    full_history_tokens = fields.integer(required=True)


class ExportedTurn(_Record):
    """Cost of a turn."""

    value = TurnRecord

    user_position = fields.integer(1, required=True)
    reply_position = fields.integer(1, **OPTIONAL)
    model = fields.ModelName(**OPTIONAL)
    finish_reason = fields.text(0, 32, **OPTIONAL)
    usage = fields.Nested(ExportedUsage, **OPTIONAL)
    started_at = fields.UtcDateTime(required=True)
    finished_at = fields.UtcDateTime(**OPTIONAL)


class ExportedSession(_Record):
    """Session: its messages in order, all versions of its summary, and the cost of its turns."""

    value = SessionRecord

    id = fields.SessionId(required=True)
    title = fields.text(most=200, load_default="")
    system_prompt = fields.Text(**OPTIONAL)
    pinned = fields.Boolean(load_default=False)
    archived = fields.Boolean(load_default=False)
    remember = fields.Boolean(load_default=True)
    type = fields.text(1, 64, **OPTIONAL)
    client_metadata = fields.ClientMetadata(**OPTIONAL)
    created_at = fields.UtcDateTime(required=True)
    updated_at = fields.UtcDateTime(required=True)
    facts_through = fields.integer(load_default=0, about="The position of the last message facts were taken from.")
    messages = fields.List(fields.Nested(ExportedMessage), load_default=())
    summaries = fields.List(fields.Nested(ExportedSummary), load_default=())
    turns = fields.List(fields.Nested(ExportedTurn), load_default=())


class ExportedRevision(_Record):
    value = partial(FactRevisionValue, fact_id=0)

    action = fields.text(1, 16, required=True)
    author = fields.text(1, 8, required=True)
    text = fields.Text(required=True)
    category = fields.Text(required=True, validate=CATEGORY)
    importance = fields.integer(1, 5, required=True)
    pinned = fields.Boolean(required=True)
    at = fields.UtcDateTime(required=True)


class ExportedLink(_Record):
    value = Relation

    subject = fields.Text(required=True, validate=_NAMED)
    relation = fields.Text(required=True, validate=_NAMED)
    object = fields.Text(required=True, validate=_NAMED)
    subject_kind = fields.one_of(*ENTITY_KINDS, load_default="thing")
    object_kind = fields.one_of(*ENTITY_KINDS, load_default="thing")

    @validates_schema
    def _of_two(self, data: dict[str, Any], **_: Any) -> None:
        if key(data["subject"]) == key(data["object"]):
            raise ValidationError("Must not be the subject.", "object")


class ExportedFact(_Record):
    value = FactRecord

    id = fields.integer(1, required=True)
    text = fields.Text(required=True)
    category = fields.Text(required=True, validate=CATEGORY)
    importance = fields.integer(1, 5, required=True)
    scope = fields.one_of("session", "user", required=True)
    session_id = fields.SessionId(**OPTIONAL)
    source_position = fields.integer(1, **OPTIONAL, about="The position of the message it was taken from.")
    quote = fields.Text(load_default="")
    pinned = fields.Boolean(load_default=False)
    recalled_count = fields.integer(load_default=0)
    valid_from = fields.UtcDateTime(required=True)
    valid_to = fields.UtcDateTime(**OPTIONAL)
    expires_at = fields.UtcDateTime(**OPTIONAL)
    superseded_by = fields.integer(1, **OPTIONAL)
    merged = fields.Boolean(load_default=False)
    waiting = fields.Boolean(load_default=False, about="It waits for review, so nobody is shown it.")
    created_at = fields.UtcDateTime(required=True)
    revisions = fields.List(fields.Nested(ExportedRevision), load_default=())
    links = fields.Items(fields.Nested(ExportedLink), LINKS_MAX, load_default=())


class ExportedVersion(_Record):
    """Value that an item had from `created_at` on."""

    value = ItemVersion

    version = fields.integer(1, INT32_MAX, required=True)
    value_ = JsonValue(required=True, allow_none=True, data_key="value", attribute="value")
    author = fields.text(1, 16, required=True)
    created_at = fields.UtcDateTime(required=True)


class ExportedSource(_Record):
    """Place of a message that an item rests on."""

    value = Source

    session_id = fields.SessionId(required=True)
    position = fields.integer(1, required=True)


class ExportedItem(_Record):
    value = partial(ItemRecord, id=0)

    namespace = Namespace(required=True)
    key = fields.Text(required=True, validate=NAME)
    value_ = JsonValue(required=True, allow_none=True, data_key="value", attribute="value")
    version = fields.integer(1, INT32_MAX, required=True)
    ttl = fields.Float(validate=TTL, **OPTIONAL)
    refreshes = fields.Boolean(data_key="refresh_on_read", load_default=False)
    paths = index_paths()
    expires_at = fields.UtcDateTime(**OPTIONAL)
    created_at = fields.UtcDateTime(required=True)
    updated_at = fields.UtcDateTime(required=True)
    sources = fields.List(fields.Nested(ExportedSource), load_default=())
    versions = fields.List(fields.Nested(ExportedVersion), load_default=())


class ExportedPassage(_Record):
    value = Passage

    text = fields.Text(required=True)
    page = fields.integer(1, INT32_MAX, **OPTIONAL)


class ExportedDocument(_Record):
    """Document with its passages, in their order."""

    value = DocumentRecord

    id = fields.SessionId(**OPTIONAL)
    title = fields.text(1, 200, required=True)
    uri = fields.text(1, 2_000, **OPTIONAL)
    external_id = fields.text(1, 256, **OPTIONAL)
    media_type = fields.text(1, 64, required=True)
    digest = fields.text(64, 64, required=True)
    size = fields.integer(most=INT32_MAX, required=True)
    pages = fields.integer(most=INT32_MAX, **OPTIONAL)
    created_at = fields.UtcDateTime(required=True)
    updated_at = fields.UtcDateTime(required=True)
    passages = fields.List(fields.Nested(ExportedPassage), load_default=())


class ExportQuery(Input):
    format = fields.one_of("json", "markdown", load_default="json")


class ExportDocument(Schema):
    """Everything of a person."""

    format = fields.Constant(FORMAT)
    version = fields.Constant(VERSION)
    exported_at = fields.UtcDateTime()
    user_id = fields.String(allow_none=True)
    space = fields.String(allow_none=True)
    remember = fields.Boolean(about="False: the person has turned their memory off.")
    sessions = fields.List(fields.Nested(ExportedSession))
    facts = fields.List(fields.Nested(ExportedFact))
    items = fields.List(fields.Nested(ExportedItem))
    documents = fields.List(fields.Nested(ExportedDocument))
    archives = fields.List(fields.Nested(Archive))


def lists_of(schema: Schema) -> dict[str, Schema]:
    """Return the schemas of the records in the lists of a schema, by field."""
    lists = {name: field.inner for name, field in schema.fields.items() if type(field) is fields.List}
    return {name: inner.schema for name, inner in lists.items() if isinstance(inner, fields.Nested)}


LISTS = lists_of(ExportDocument())
_head = ExportDocument(exclude=tuple(LISTS))


def to_json(export: Export) -> Iterator[str]:
    yield json.dumps(_head.dump(export), ensure_ascii=False).removesuffix("}")
    for name, schema in LISTS.items():
        yield f', "{name}": ['
        for number, item in enumerate(getattr(export, name)):
            yield (",\n" if number else "\n") + json.dumps(schema.dump(item), ensure_ascii=False)
        yield "\n]"
    yield "}\n"


def to_markdown(export: Export) -> Iterator[str]:
    yield f"# What Recap has of {one_line(export.name)}\n\n"
    yield f"As of {format_time(export.exported_at)}, with times in UTC.\n"
    yield from _listed("Profile", _profile(export))
    yield from _listed("Facts", _facts(export, valid=True))
    waiting = (fact.text for fact in export.facts if fact.waiting)
    yield from _listed("Facts that wait for review", waiting)
    yield from _listed("Facts that no longer hold", _facts(export, valid=False))
    for session in export.sessions:
        yield from _chat(session)
    for document in export.documents:
        yield f"\n# Document: {one_line(document.title)}\n\n{_span(document.created_at, document.updated_at)}\n"
        yield from (f"\n{_quoted(passage.text)}\n" for passage in document.passages)


def _listed(title: str, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == 0:
            yield f"\n## {title}\n\n"
        yield f"- {one_line(line)}\n"


def _profile(export: Export) -> Iterator[str]:
    for record in export.items:
        if (record.namespace, record.key) == (profile.NAMESPACE, profile.KEY):
            values = Profile.of(record.value).values()
            yield from (f"{value.name}: {value.value} ({value.source['since'][:10]})" for value in values)


def _facts(export: Export, *, valid: bool) -> Iterator[str]:
    for fact in export.facts:
        if valid and fact.valid_to is None:
            yield f"{fact.text} (since {fact.valid_from:%Y-%m-%d})"
        if not valid and fact.valid_to is not None and not fact.merged and not fact.waiting:
            yield f"{fact.text} ({fact.valid_from:%Y-%m-%d} to {fact.valid_to:%Y-%m-%d})"


def _chat(session: SessionRecord) -> Iterator[str]:
    yield f"\n# {one_line(session.title) or 'Untitled chat'}\n\n{_span(session.created_at, session.updated_at)}\n"
    for message in session.messages:
        if message.erased_at is None:
            yield f"\n## {_heading(message)}\n\n{_quoted(message.content)}\n"
    newest = max(session.summaries, key=lambda version: version.version, default=None)
    if newest is not None:
        yield f"\n## Summary, {format_time(newest.created_at)}\n\n{_quoted(str(newest.sections))}\n"


def _span(*times: datetime | None) -> str:
    return " to ".join(dict.fromkeys(format_time(time) for time in times if time is not None))


def _heading(message: MessageDraft) -> str:
    name = f" ({one_line(message.name)})" if message.name else ""
    time = f", {format_time(message.created_at)}" if message.created_at else ""
    refused = ", refused by a model server" if message.refused is not None else ""
    return f"{message.role}{name}{time}{refused}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in normalize(text).split("\n"))
