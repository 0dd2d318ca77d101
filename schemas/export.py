"""The export: one JSON document with everything of a person, as it is written and as it is read again.

`{"format": "recap-export", "version": 1, "exported_at", "user_id", "sessions": [...], "facts": [...]}`.  A message's
number is its place in its session, from 1; a fact's `id` means something only within the document.
Guarantee: writing and reading hold one item at a time, and a document is checked to its end before anything of it is
given out to be stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from marshmallow import EXCLUDE, INCLUDE, Schema, fields, post_load, validate

from memory.domain import FACT_CATEGORIES, Usage
from memory.domain import Fact as FactValue
from memory.domain import FactRevision as FactRevisionValue
from memory.people.export import Export
from memory.people.records import FactRecord, SessionRecord, TurnRecord
from memory.sessions.messages import MessageDraft
from memory.summary.summaries import SummaryVersion as SummaryVersionValue
from memory.turn.values import TurnUsage
from schemas.fields import INT64_MAX, SessionId, Text, UtcDateTime
from schemas.sessions import ROLES
from schemas.summaries import Sections

FORMAT, VERSION = "recap-export", 1
PIECE_CHARS = 1 << 16  # of the document sent at once
_number = validate.Range(0, INT64_MAX)
_place = validate.Range(1, INT64_MAX)


class _Record(Schema):
    """A part of the document.  What a later Recap adds to one is passed over."""

    class Meta:
        unknown = EXCLUDE


class _Call(Schema):
    """A call of a tool, as far as Recap reads it."""

    class Meta:
        unknown = INCLUDE

    function = fields.Dict(allow_none=True)


class _Carried(Schema):
    """What a message may carry beside its words, as far as Recap reads it."""

    class Meta:
        unknown = INCLUDE

    tool_calls = fields.List(fields.Nested(_Call), allow_none=True)
    function_call = fields.Dict(allow_none=True)
    tool_call_id = Text(allow_none=True)
    attachments = fields.List(Text(), allow_none=True)


_carried = _Carried()


class _Extra(fields.Dict):
    """What a message carries, kept as it is once its shape is known to be good."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        extra = super()._deserialize(value, attr, data, **kwargs)
        _carried.load(extra)
        whole = json.dumps(extra, ensure_ascii=False)  # shows half a pair as it is, and NUL as its escape
        Text().deserialize(whole.replace("\\u0000", "\0"))
        return extra


class ExportedMessage(_Record):
    role = fields.String(required=True, validate=validate.OneOf(ROLES))
    name = Text(load_default=None, allow_none=True, validate=validate.Length(1, 128))
    content = Text(required=True)
    created_at = UtcDateTime(required=True)
    external_id = Text(load_default=None, allow_none=True, validate=validate.Length(1, 256))
    extra = _Extra(load_default=None, allow_none=True, metadata={"description": "What it carries beside its words."})
    erased_at = UtcDateTime(
        load_default=None,
        allow_none=True,
        metadata={"description": "Then this is the place of a message that was erased, without words."},
    )

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> MessageDraft:
        return MessageDraft(**data)


class ExportedCost(_Record):
    """What a version of the summary cost, and what became of the facts that came with it."""

    prompt_tokens = fields.Integer(strict=True, validate=_number)
    completion_tokens = fields.Integer(strict=True, validate=_number)
    calls = fields.Integer(strict=True, validate=_number)
    facts = fields.Dict(keys=fields.String(), values=fields.Integer(strict=True, validate=_number))


class ExportedSummary(_Record):
    """One version."""

    version = fields.Integer(required=True, strict=True, validate=validate.Range(1, 2**31 - 1))
    sections = fields.Nested(Sections, required=True)
    through = fields.Integer(
        required=True, strict=True, validate=_number, metadata={"description": "The last message it covers."}
    )
    tokens = fields.Integer(required=True, strict=True, validate=_number)
    author = Text(required=True, validate=validate.Length(1, 16))
    model = Text(load_default=None, allow_none=True, validate=validate.Length(0, 128))
    prompt = Text(load_default=None, allow_none=True, validate=validate.Length(0, 80))
    usage = fields.Nested(ExportedCost, load_default=None, allow_none=True)
    restores = fields.Integer(load_default=None, allow_none=True, strict=True, validate=_number)
    created_at = UtcDateTime(required=True)

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> SummaryVersionValue:
        return SummaryVersionValue(**data, replaced=False)


class ExportedUsage(_Record):
    prompt_tokens = fields.Integer(attribute="spent.prompt_tokens", required=True, strict=True, validate=_number)
    completion_tokens = fields.Integer(
        attribute="spent.completion_tokens", required=True, strict=True, validate=_number
    )
    estimated = fields.Boolean(attribute="spent.estimated", load_default=False)
    full_history_tokens = fields.Integer(required=True, strict=True, validate=_number)

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> TurnUsage:
        return TurnUsage(Usage(**data["spent"]), data["full_history_tokens"])


class ExportedTurn(_Record):
    """What a turn cost."""

    user_position = fields.Integer(required=True, strict=True, validate=_place)
    reply_position = fields.Integer(load_default=None, allow_none=True, strict=True, validate=_place)
    model = Text(load_default=None, allow_none=True, validate=validate.Length(0, 128))
    finish_reason = Text(load_default=None, allow_none=True, validate=validate.Length(0, 32))
    usage = fields.Nested(ExportedUsage, load_default=None, allow_none=True)
    started_at = UtcDateTime(required=True)
    finished_at = UtcDateTime(load_default=None, allow_none=True)

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> TurnRecord:
        return TurnRecord(**data)


class ExportedSession(_Record):
    """A session with all of it: messages in the order they were said, every summary version, what turns cost."""

    id = SessionId(required=True)
    title = Text(load_default="", validate=validate.Length(max=200))
    system_prompt = Text(load_default=None, allow_none=True)
    created_at = UtcDateTime(required=True)
    updated_at = UtcDateTime(required=True)
    facts_through = fields.Integer(
        load_default=0,
        strict=True,
        validate=_number,
        metadata={"description": "Facts were taken from its messages up to this one."},
    )
    messages = fields.List(fields.Nested(ExportedMessage), load_default=())
    summaries = fields.List(fields.Nested(ExportedSummary), load_default=())
    turns = fields.List(fields.Nested(ExportedTurn), load_default=())

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> SessionRecord:
        return SessionRecord(**data)


class ExportedRevision(_Record):
    """The fact as it was after a change."""

    action = Text(required=True, validate=validate.Length(1, 16))
    author = Text(required=True, validate=validate.Length(1, 8))
    text = Text(required=True)
    category = fields.String(required=True, validate=validate.OneOf(FACT_CATEGORIES))
    importance = fields.Integer(required=True, strict=True, validate=validate.Range(1, 5))
    pinned = fields.Boolean(required=True)
    at = UtcDateTime(required=True)

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> FactRevisionValue:
        return FactRevisionValue(fact_id=0, **data)


class ExportedFact(_Record):
    """A fact, with how it came to be what it is."""

    id = fields.Integer(attribute="fact.id", required=True, strict=True, validate=_place)
    text = Text(attribute="fact.text", required=True)
    category = fields.String(attribute="fact.category", required=True, validate=validate.OneOf(FACT_CATEGORIES))
    importance = fields.Integer(attribute="fact.importance", required=True, strict=True, validate=validate.Range(1, 5))
    scope = fields.String(attribute="fact.scope", required=True, validate=validate.OneOf(["session", "user"]))
    session_id = SessionId(attribute="fact.session_id", load_default=None, allow_none=True)
    source_position = fields.Integer(
        load_default=None,
        allow_none=True,
        strict=True,
        validate=_place,
        metadata={"description": "The message of its session it was taken from."},
    )
    quote = Text(attribute="fact.quote", load_default="")
    pinned = fields.Boolean(attribute="fact.pinned", load_default=False)
    recalled_count = fields.Integer(attribute="fact.recalled_count", load_default=0, strict=True, validate=_number)
    valid_from = UtcDateTime(attribute="fact.valid_from", required=True)
    valid_to = UtcDateTime(attribute="fact.valid_to", load_default=None, allow_none=True)
    superseded_by = fields.Integer(
        attribute="fact.superseded_by", load_default=None, allow_none=True, strict=True, validate=_place
    )
    created_at = UtcDateTime(attribute="fact.created_at", required=True)
    revisions = fields.List(fields.Nested(ExportedRevision), load_default=())

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> FactRecord:
        fact = FactValue(**data["fact"], source_message_id=None)
        return FactRecord(fact, data["source_position"], tuple(data["revisions"]))


class ExportDocument(Schema):
    """Everything of a person."""

    format = fields.Constant(FORMAT)
    version = fields.Constant(VERSION)
    exported_at = UtcDateTime()
    user_id = fields.String()
    sessions = fields.List(fields.Nested(ExportedSession))
    facts = fields.List(fields.Nested(ExportedFact))


# -- writing

_head = ExportDocument(exclude=("sessions", "facts"))
_session_head = ExportedSession(exclude=("messages", "summaries", "turns"))
_message, _summary, _turn, _fact = ExportedMessage(), ExportedSummary(), ExportedTurn(), ExportedFact()


def text_of(export: Export) -> Iterator[str]:
    """The document, piece by piece."""
    pieces: list[str] = []
    size = 0
    for piece in _document(export):
        pieces.append(piece)
        size += len(piece)
        if size >= PIECE_CHARS:
            yield "".join(pieces)
            pieces, size = [], 0
    yield "".join(pieces)


def _document(export: Export) -> Iterator[str]:
    sessions = (_session(record) for record in export.sessions)
    facts = ([_json(_fact.dump(record))] for record in export.facts)
    yield from _object(_head.dump(export), sessions=sessions, facts=facts)
    yield "\n"


def _session(record: SessionRecord) -> Iterator[str]:
    return _object(
        _session_head.dump(record),
        messages=([_json(_message.dump(one))] for one in record.messages),
        summaries=([_json(_summary.dump(one))] for one in record.summaries),
        turns=([_json(_turn.dump(one))] for one in record.turns),
    )


def _object(head: Mapping[str, Any], **arrays: Iterable[Iterable[str]]) -> Iterator[str]:
    """A JSON object of `head` and then arrays, each of whose items comes in pieces."""
    yield _json(head)[:-1]
    for name, items in arrays.items():
        between = f', "{name}": [\n'
        for item in items:
            yield between
            yield from item
            between = ",\n"
        yield "\n]" if between == ",\n" else f"{between.rstrip()}]"
    yield "}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
