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
    """What was erased."""

    erased = counts(
        "How many of each, including replaced messages and corrected facts. `turns` are records of how messages were "
        "answered, `summaries` versions, `edited_summaries` those that the person wrote, `item_versions` earlier "
        "values of items in the store, `index_documents` messages in the search index."
    )
    pending = fields.List(
        fields.String(),
        metadata=about(
            "Empty when no byte is left. Otherwise `search_index` or `database_files` still hold traces, because they "
            "were in use, or because single messages and facts are collected for some seconds. A job removes them."
        ),
    )
    erased_at = UtcDateTime()


UserReceipt = Receipt.from_dict({"user_id": fields.String()}, name="UserReceipt")
SessionReceipt = Receipt.from_dict({"session_id": fields.String()}, name="SessionReceipt")
MessageReceipt = SessionReceipt.from_dict({"message_id": fields.Integer()}, name="MessageReceipt")
FactReceipt = Receipt.from_dict({"fact_id": fields.Integer()}, name="FactReceipt")
ItemReceipt = Receipt.from_dict({"namespace": fields.List(fields.String()), "key": fields.String()}, name="ItemReceipt")
ExampleReceipt = Receipt.from_dict({"example_id": fields.Integer()}, name="ExampleReceipt")
UnhelpfulReceipt = Receipt.from_dict({"mark_id": fields.Integer()}, name="UnhelpfulReceipt")
NamedReceipt = Receipt.from_dict({"name": fields.String()}, name="NamedReceipt")  # instructions, types
FactsReceipt = Receipt.from_dict({"forgotten": fields.Integer()}, name="FactsReceipt")  # of the named facts


class Me(Schema):
    """The holder of a key."""

    tenant = fields.String()
    user_id = fields.String(allow_none=True, metadata=about("The one person the key belongs to; null: any person."))
    scopes = fields.Function(
        lambda holder: [scope for scope in SCOPES if scope in holder.scopes],
        metadata=about("Those it has of `chat`, `read` and `admin`."),
    )
