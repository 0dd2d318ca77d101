"""Models there are to choose from, and the model server."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from models.model_server import MODEL_CHARS, ServerDraft
from schemas.fields import Text, ValueSchema, describe

ADDRESS_CHARS, KEY_CHARS = 2000, 1000


class ModelNames(Schema):
    main = fields.String(metadata=describe("The model that answers if a request names none."))
    items = fields.List(fields.String(), metadata=describe("What `model` of `POST /api/chat` can name, `main` first."))


class ModelsListed(Schema):
    items = fields.List(fields.String(), metadata=describe("None where the server lists none."))


class ModelServerDraft(ValueSchema):
    """Model server to try or to store."""

    value = ServerDraft

    base_url = Text(
        load_default="",
        validate=validate.Length(max=ADDRESS_CHARS),
        metadata=describe("Where an OpenAI-compatible API is; it usually ends in /v1. Empty: OpenAI."),
    )
    api_key = Text(
        load_default=None,
        allow_none=True,
        validate=validate.Length(max=KEY_CHARS),
        metadata=describe("The key for it. Empty: none. Null: the one in use, if `base_url` is the one in use too."),
    )
    main = Text(load_default="", validate=validate.Length(max=MODEL_CHARS), metadata=describe("Empty: OPENAI_MODEL."))
    mini = Text(
        load_default="", validate=validate.Length(max=MODEL_CHARS), metadata=describe("Empty: OPENAI_SUMMARY_MODEL.")
    )


class ModelServer(Schema):
    """Model server in use. Its key is never shown."""

    source = fields.String(metadata=describe("`environment`, `stored`, or `none`: the built-in model answers."))
    base_url = fields.String()
    main = fields.String()
    mini = fields.String()
    key_end = fields.String(allow_none=True, metadata=describe("The last four characters of its key, if it is long."))
    refusal = fields.String(allow_none=True, metadata=describe("Why no other can be stored; null if it can."))
    problem = fields.String(allow_none=True, metadata=describe("Why the stored one can't be used; null if it can."))


class ModelCheck(Schema):
    """Answer of one model to one short question."""

    task = fields.String(metadata=describe("`main`, `mini` or `fallback`."))
    model = fields.String()
    address = fields.String()
    works = fields.Boolean()
    problem = fields.String(allow_none=True, metadata=describe("Why it does not work, and what to do."))
    seconds = fields.Float()
    reply = fields.String()
    window = fields.Integer(
        allow_none=True, metadata=describe("Tokens that it can read at a time; null if its server does not say.")
    )
    learned = fields.List(fields.String(), metadata=describe("What its server does not take, and how it writes JSON."))
    warnings = fields.List(fields.String(), metadata=describe("What to change."))


class ModelTried(Schema):
    """Answer of the main model to one short question."""

    model = fields.String()
    reply = fields.String()
    seconds = fields.Float()
    checks = fields.List(
        fields.Nested(ModelCheck), metadata=describe("All models that would be in use, the main model first.")
    )
