"""Overviews: what matters now about a person."""

from collections.abc import Mapping, Sequence
from typing import Any

from marshmallow import Schema, validate

from models.overview import Sentence as SentenceValue
from schemas import fields
from schemas.fields import EXPECTED_VERSION, HAS_WORDS, INT32_MAX
from schemas.shapes import Input, ValueSchema

SENTENCES_MAX, SENTENCE_CHARS, SOURCES_MAX = 20, 400, 100


class OverviewSource(Input):
    session_id = fields.SessionId(required=True)
    version = fields.integer(1, INT32_MAX, required=True)


class Sentence(Schema):
    """Sentence of an overview, with what it rests on."""

    text = fields.String()
    facts = fields.List(fields.Integer(), about="The ids of facts.")
    summaries = fields.Function(
        lambda sentence: [{"session_id": session, "version": version} for session, version in sentence.summaries],
        about="Versions of summaries, each as `session_id` and `version`.",
    )
    author = fields.String(about="`model` or `person`.")


class OverviewVersion(Schema):
    version = fields.Integer(about="0 until something is written.")
    sentences = fields.List(fields.Nested(Sentence), attribute="value.sentences")
    author = fields.String(allow_none=True, about="`model`, `person`, `rollback`, `correction` or `erasure`.")
    created_at = fields.UtcDateTime(allow_none=True)


class Overview(OverviewVersion):
    is_shown = fields.Boolean(about="Whether prompts show it: not where OVERVIEW is off.")
    is_updating = fields.Boolean(about="Whether the mini model writes it, or does so within seconds.")
    error = fields.String(allow_none=True, about="Why the last update failed.")


class WrittenSentence(ValueSchema):
    """Sentence of the person's. It may rest on what the present sentences rest on, and goes with it."""

    @staticmethod
    def value(text: str, facts: Sequence[int], summaries: Sequence[Mapping[str, Any]]) -> SentenceValue:
        places = ((place["session_id"], place["version"]) for place in summaries)
        return SentenceValue(" ".join(text.split()), tuple(facts), tuple(places), "person")

    text = fields.Text(required=True, validate=[validate.Length(1, SENTENCE_CHARS), HAS_WORDS])
    facts = fields.Items(fields.integer(1), SOURCES_MAX, load_default=())
    summaries = fields.Items(fields.Nested(OverviewSource), SOURCES_MAX, load_default=())


class OverviewEdit(Input):
    sentences = fields.Items(fields.Nested(WrittenSentence), SENTENCES_MAX, required=True)
    expected_version = EXPECTED_VERSION
