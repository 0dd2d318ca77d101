"""Models there are to choose from, and the model server."""

from marshmallow import Schema

from models.model_server import ServerDraft
from schemas import fields
from schemas.fields import OPTIONAL
from schemas.shapes import ValueSchema

ADDRESS_CHARS, KEY_CHARS, MODEL_CHARS = 2000, 1000, 256


class ModelNames(Schema):
    main = fields.String(about="The model that answers if a request names none.")
    items = fields.List(fields.String(), about="What `model` of `POST /api/chat` can name, `main` first.")


class ModelsListed(Schema):
    items = fields.List(fields.String(), about="None where the server lists none.")


class ModelServerDraft(ValueSchema):
    value = ServerDraft

    base_url = fields.text(
        most=ADDRESS_CHARS,
        load_default="",
        about="Where an OpenAI-compatible API is; it usually ends in /v1. Empty: OpenAI.",
    )
    api_key = fields.text(
        most=KEY_CHARS,
        **OPTIONAL,
        about="The key for it. Empty: none. Null: the one in use, if `base_url` is the one in use too.",
    )
    main = fields.text(most=MODEL_CHARS, load_default="", about="Empty: OPENAI_MODEL.")
    mini = fields.text(most=MODEL_CHARS, load_default="", about="Empty: OPENAI_SUMMARY_MODEL.")


class ModelServer(Schema):
    """Model server in use. Its key is never shown."""

    source = fields.String(about="`environment`, `stored`, or `none`: the built-in model answers.")
    base_url = fields.String()
    main = fields.String()
    mini = fields.String()
    key_end = fields.String(allow_none=True, about="The last four characters of its key, if it is long.")
    refusal = fields.String(allow_none=True, about="Why no other can be stored; null if it can.")
    problem = fields.String(allow_none=True, about="Why the stored one can't be used; null if it can.")


class ModelCheck(Schema):
    """Answer of one model to one short question."""

    task = fields.String(about="`main`, `mini` or `fallback`.")
    model = fields.String()
    address = fields.String()
    works = fields.Boolean()
    problem = fields.String(allow_none=True, about="Why it does not work, and what to do.")
    seconds = fields.Float()
    reply = fields.String()
    window = fields.Integer(
        allow_none=True, about="Tokens that it can read at a time; null if its server does not say."
    )
    learned = fields.List(fields.String(), about="What its server does not take, and how it writes JSON.")
    warnings = fields.List(fields.String(), about="What to change.")


class ModelTried(Schema):
    """Answer of the main model to one short question."""

    model = fields.String()
    reply = fields.String()
    seconds = fields.Float()
    checks = fields.List(fields.Nested(ModelCheck), about="All models that would be in use, the main model first.")
