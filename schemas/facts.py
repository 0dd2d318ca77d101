"""Facts."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from memory.domain import FACT_CATEGORIES
from memory.facts.grounding import TEXT_CHARS_MAX
from schemas.fields import INT64_MAX, PageQuery, SessionId, Text, UserId, UtcDateTime

_TEXT = validate.Length(1, TEXT_CHARS_MAX)
_IMPORTANCE = validate.Range(1, 5)
FORGET_MAX = 1000


class FactScore(Schema):
    """Why a fact stands where it stands: weighted parts and their sum."""

    total = fields.Float()
    importance = fields.Float()
    recency = fields.Float()
    use = fields.Float()
    relevance = fields.Float(metadata={"description": "0 where no message is in view."})


class Fact(Schema):
    """One statement with its source."""

    id = fields.Integer()
    text = fields.String()
    category = fields.String()
    importance = fields.Integer()
    scope = fields.String(metadata={"description": "`session`, or `user`: it holds in all of the person's sessions."})
    session_id = fields.String(allow_none=True)
    source_message_id = fields.Integer(
        allow_none=True, metadata={"description": "None: the person stated it directly."}
    )
    quote = fields.String(metadata={"description": "The words it rests on, as they stand in its source."})
    pinned = fields.Boolean()
    recalled_count = fields.Integer(metadata={"description": "How many messages it was relevant to."})
    valid_from = UtcDateTime()
    valid_to = UtcDateTime(allow_none=True, metadata={"description": "None: it still holds."})
    superseded_by = fields.Integer(allow_none=True)
    created_at = UtcDateTime()
    score = fields.Nested(FactScore, allow_none=True)


class FactPage(Schema):
    items = fields.List(fields.Nested(Fact))
    next_cursor = fields.String(allow_none=True)


class FactQuery(PageQuery):
    session_id = SessionId(load_default=None)
    q = Text(
        load_default=None,
        validate=validate.Length(max=200),
        metadata={"description": "Words, or parts of them, that the text must have."},
    )
    category = fields.String(load_default=None, validate=validate.OneOf(FACT_CATEGORIES))
    as_of = UtcDateTime(load_default=None, metadata={"description": "What held then, instead of what holds now."})


class FactCreate(Schema):
    user_id = UserId(load_default=None)
    session_id = SessionId(load_default=None)
    text = Text(required=True, validate=_TEXT)
    category = fields.String(load_default="other", validate=validate.OneOf(FACT_CATEGORIES))
    importance = fields.Integer(load_default=3, strict=True, validate=_IMPORTANCE)
    pinned = fields.Boolean(load_default=False)


class FactChange(Schema):
    text = Text(validate=_TEXT)
    category = fields.String(validate=validate.OneOf(FACT_CATEGORIES))
    importance = fields.Integer(strict=True, validate=_IMPORTANCE)
    scope = fields.String(validate=validate.OneOf(["session", "user"]))
    pinned = fields.Boolean()


class FactsToForget(Schema):
    user_id = UserId(load_default=None)
    ids = fields.List(
        fields.Integer(strict=True, validate=validate.Range(1, INT64_MAX)),
        required=True,
        validate=validate.Length(1, FORGET_MAX),
    )


class FactRevision(Schema):
    """The fact, or one it superseded, as it was after a change."""

    fact_id = fields.Integer()
    action = fields.String(metadata={"description": "`made`, `edited` or `superseded`."})
    author = fields.String(metadata={"description": "`model` or `person`."})
    text = fields.String()
    category = fields.String()
    importance = fields.Integer()
    pinned = fields.Boolean()
    at = UtcDateTime()


class FactHistory(Schema):
    items = fields.List(fields.Nested(FactRevision))
