"""Receipts of what was erased."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime


class Erased(Schema):
    """How many of each were erased, replaced messages and corrected facts included."""

    sessions = fields.Integer()
    messages = fields.Integer()
    turns = fields.Integer(metadata={"description": "What is known of how they were answered."})
    summaries = fields.Integer(metadata={"description": "Versions."})
    edited_summaries = fields.Integer(metadata={"description": "Those of them that the person wrote."})
    facts = fields.Integer()
    fact_revisions = fields.Integer()
    jobs = fields.Integer()
    index_documents = fields.Integer(metadata={"description": "Messages that the search index held."})


class Receipt(Schema):
    """What was erased."""

    erased = fields.Nested(Erased)
    pending = fields.List(
        fields.String(),
        metadata={
            "description": "Empty: no byte is left. Else `search_index` or `database_files` are not free of it yet: "
            "single messages and facts gather for some seconds, or somebody was using them. A job goes on."
        },
    )
    erased_at = UtcDateTime()


class UserReceipt(Receipt):
    user_id = fields.String()


class SessionReceipt(Receipt):
    session_id = fields.String()


class MessageReceipt(Receipt):
    session_id = fields.String()
    message_id = fields.Integer()


class FactReceipt(Receipt):
    fact_id = fields.Integer()


class FactsReceipt(Receipt):
    forgotten = fields.Integer(metadata={"description": "How many of the named facts were there."})
