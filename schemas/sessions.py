"""Sessions."""

from marshmallow import Schema

from schemas import fields
from schemas.fields import OPTIONAL, USER_ID_CHARS
from schemas.shapes import CallerQuery, Input, PageQuery

REMEMBER = (
    "False: memory is off. A turn looks at this session alone, and what is said while it is off is neither recalled in "
    "others nor read for facts, also once it is on again. A search still finds it."
)

_TYPE = "A type of `GET /api/conversation-types`. Without it, Recap tells the type from the words."


class Session(Schema):
    id = fields.String()
    user_id = fields.String(allow_none=True)
    space = fields.String(allow_none=True, about="The space that it stands in.")
    title = fields.String()
    system_prompt = fields.String(allow_none=True)
    pinned = fields.Boolean()
    archived = fields.Boolean(about="An archived session is remembered as any other.")
    remember = fields.Boolean(about=REMEMBER)
    type = fields.String(allow_none=True, about="The type that was set; null: Recap tells it from the words.")
    message_count = fields.Integer()
    tokens = fields.Integer(about="An estimate for all of its messages.")
    summary_version = fields.Integer(about="The newest version of its summary; 0 if it has none yet.")
    created_at = fields.UtcDateTime()
    updated_at = fields.UtcDateTime()
    imported_at = fields.UtcDateTime(allow_none=True, about="When messages of it were last imported; null: never.")
    busy = fields.Boolean(about="Whether a reply is being written now.")


class SessionQuery(PageQuery):
    limit = fields.limit(20)
    q = fields.text(0, 2000, load_default=None, about="Words to look for in titles.")
    pinned = fields.Boolean(load_default=None)
    archived = fields.Boolean(load_default=None)
    before = fields.UtcDateTime(load_default=None)
    after = fields.UtcDateTime(load_default=None)
    except_user_id = fields.text(
        1, USER_ID_CHARS, **OPTIONAL, about="Leave this person's out: those of other people, and of programs, stay."
    )


class SessionCreate(CallerQuery):
    session_id = fields.SessionId(load_default=None, about="Without it, Recap makes an id.")
    title = fields.text(most=200, load_default="")
    system_prompt = fields.text(most=20_000, **OPTIONAL)
    remember = fields.Boolean(load_default=True, about=REMEMBER)
    type = fields.text(1, 64, **OPTIONAL, about=_TYPE)


class SessionChange(Input):
    title = fields.text(1, 200)
    system_prompt = fields.text(most=20_000, allow_none=True)
    pinned = fields.Boolean()
    archived = fields.Boolean()
    remember = fields.Boolean(about=REMEMBER)
    type = fields.text(1, 64, allow_none=True, about=_TYPE)


class RelatedQuery(CallerQuery):
    limit = fields.limit(10)


class RelatedSession(Schema):
    """Another conversation of the same person, and why it belongs together with this one."""

    session_id = fields.String()
    title = fields.String()
    updated_at = fields.UtcDateTime()
    score = fields.Float(about="From 0 to 1.")
    why = fields.Function(
        lambda related: {"entities": list(related.entities), "summary": related.summary},
        about="The `entities` that both name, and how near the `summary` is (0 to 1, or null).",
        metadata={"type": "object"},
    )


class Stopping(Schema):
    stopping = fields.Boolean(about="False if no reply was being written.")
