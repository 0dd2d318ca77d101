"""Person as a whole, and the holder of a key."""

from marshmallow import Schema

from models.keys import SCOPES
from schemas import fields
from schemas.shapes import Input

REMEMBER = (
    "False: memory is off for this person, in every session and for every client. No turn recalls, shows or learns "
    "anything beyond its own session, and programs get nothing of the memory through MCP."
)


class ListedUser(Schema):
    """Person of whom something is stored."""

    user_id = fields.String()
    created_at = fields.UtcDateTime(about="When the first thing was stored.")


class User(Schema):
    user_id = fields.String(allow_none=True)
    space = fields.String(allow_none=True)
    remember = fields.Boolean(about=REMEMBER)
    sessions = fields.Integer()
    messages = fields.Integer(about="Messages that were not replaced or erased.")
    facts = fields.Integer(about="Facts that are true now.")
    items = fields.Integer(about="Items of the store that have not expired.")
    documents = fields.Integer(about="Files and texts that were added.")
    archives = fields.Integer(about="Sessions that were taken out of memory.")
    summaries = fields.Integer(about="Versions of summaries, of all sessions.")
    created_at = fields.UtcDateTime()
    first_message_at = fields.UtcDateTime(allow_none=True)
    last_message_at = fields.UtcDateTime(allow_none=True)
    tokens_today = fields.Integer(about="Tokens of all model calls since midnight UTC; see DAILY_TOKENS.")
    facts_forgotten = fields.Integer(
        about="Facts that were forgotten or erased in the last 30 days. No word of them is kept for it."
    )
    last_forgotten_at = fields.UtcDateTime(allow_none=True, about="When the last of these facts was.")


class UserChange(Input):
    remember = fields.Boolean(about=REMEMBER)


class Backlog(Schema):
    """Part of a person's sessions that no summary covers."""

    sessions = fields.Integer(about="Sessions with messages that no summary covers.")
    tokens = fields.Integer(about="Estimated tokens of the mini model's calls for their summaries.")
    waiting = fields.Integer(about="Updates of summaries that wait or run.")
    failed = fields.Integer(about="Updates that have failed for good; `GET /api/jobs` says why.")


class Me(Schema):
    tenant = fields.String()
    user_id = fields.String(allow_none=True, about="The one person the key belongs to; null: any person, or nobody.")
    scopes = fields.Function(
        lambda me: [scope for scope in SCOPES if scope in me["scopes"]],
        about="The scopes of the key, of `chat`, `read` and `admin`.",
        metadata={"type": "array", "items": {"type": "string"}},
    )
    spaces = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        allow_none=True,
        about="The spaces that the key names, each with its right there: `read` or `write`. Null: it names none; "
        "without a person, it opens every space.",
    )
    may = fields.Dict(
        keys=fields.String(),
        values=fields.Boolean(),
        about="What the key may do: `chat`; `read` what is remembered; `change`, export and erase it; change what "
        "holds for everyone of the `tenant`, as prompts and retention; set the model of the `server`.",
    )
