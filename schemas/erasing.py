"""Receipts of what was erased."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime, about


class Erased(Schema):
    """How many of each were erased, including replaced messages and corrected facts."""

    sessions = fields.Integer()
    messages = fields.Integer()
    turns = fields.Integer(metadata=about("Records of how messages were answered."))
    summaries = fields.Integer(metadata=about("Versions."))
    edited_summaries = fields.Integer(metadata=about("How many of these versions the person wrote."))
    facts = fields.Integer()
    fact_revisions = fields.Integer()
    jobs = fields.Integer()
    index_documents = fields.Integer(metadata=about("Messages in the search index."))


class Receipt(Schema):
    """What was erased."""

    erased = fields.Nested(Erased)
    pending = fields.List(
        fields.String(),
        metadata=about(
            "Empty when no byte is left. Otherwise `search_index` or `database_files` still hold traces, because they "
            "were in use, or because single messages and facts are collected for some seconds. A job removes them."
        ),
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
    forgotten = fields.Integer(metadata=about("How many of the named facts existed."))
