"""A person as a whole, what was erased of them, and the holder of a key."""

from __future__ import annotations

from marshmallow import Schema, fields

from memory.access.keys import SCOPES
from schemas.fields import UtcDateTime, about, counts


class User(Schema):
    """How much is stored of a person."""

    user_id = fields.String()
    sessions = fields.Integer()
    messages = fields.Integer(metadata=about("Without those that were replaced or erased."))
    facts = fields.Integer(metadata=about("Those that are true now."))
    items = fields.Integer(metadata=about("In the store, without those that have expired."))
    archives = fields.Integer(metadata=about("Sessions that were taken out of memory."))
    summaries = fields.Integer(metadata=about("All versions, of all sessions."))
    created_at = UtcDateTime()
    first_message_at = UtcDateTime(allow_none=True)
    last_message_at = UtcDateTime(allow_none=True)
    tokens_today = fields.Integer(metadata=about("Tokens of all model calls since midnight UTC; see DAILY_TOKENS."))


class Backlog(Schema):
    """What of a person's sessions no summary covers."""

    sessions = fields.Integer(metadata=about("Those with such messages."))
    tokens = fields.Integer(metadata=about("An estimate of what the mini model's calls for them take."))
    waiting = fields.Integer(metadata=about("Updates of summaries that wait or run."))
    failed = fields.Integer(metadata=about("Updates that have failed for good; `GET /api/jobs` says why."))


class Receipt(Schema):
    """What was erased, and of `user_id` to `forgotten` what the call named."""

    erased = counts(
        "How many of each, including replaced messages and corrected facts. `turns` are records of how messages were "
        "answered, `summaries` versions, `edited_summaries` those that the person wrote, `item_versions` earlier "
        "values of items in the store, `archives` sessions that were taken out of memory, `index_documents` "
        "messages in the search index."
    )
    pending = fields.List(
        fields.String(),
        metadata=about(
            "Empty when no byte is left. Otherwise `search_index` or `database_files` still hold traces, because they "
            "were in use, or because single messages and facts are collected for some seconds. A job removes them."
        ),
    )
    erased_at = UtcDateTime()
    user_id = fields.String(attribute="named.user_id")
    session_id = fields.String(attribute="named.session_id")
    message_id = fields.Integer(attribute="named.message_id")
    fact_id = fields.Integer(attribute="named.fact_id")
    example_id = fields.Integer(attribute="named.example_id")
    mark_id = fields.Integer(attribute="named.mark_id")
    archive_id = fields.Integer(attribute="named.archive_id")
    name = fields.String(attribute="named.name")
    namespace = fields.List(fields.String(), attribute="named.namespace")
    key = fields.String(attribute="named.key")
    forgotten = fields.Integer(attribute="named.forgotten", metadata=about("How many of the named facts there were."))


class Me(Schema):
    """The holder of a key."""

    tenant = fields.String()
    user_id = fields.String(allow_none=True, metadata=about("The one person the key belongs to; null: any person."))
    scopes = fields.Function(
        lambda holder: [scope for scope in SCOPES if scope in holder.scopes],
        metadata=about("Those it has of `chat`, `read` and `admin`."),
    )
