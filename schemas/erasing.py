"""Receipts of what was erased."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime, about

_FORGOTTEN = about("How many of the named facts existed.")


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


UserReceipt = Receipt.from_dict({"user_id": fields.String()}, name="UserReceipt")
SessionReceipt = Receipt.from_dict({"session_id": fields.String()}, name="SessionReceipt")
MessageReceipt = SessionReceipt.from_dict({"message_id": fields.Integer()}, name="MessageReceipt")
FactReceipt = Receipt.from_dict({"fact_id": fields.Integer()}, name="FactReceipt")
FactsReceipt = Receipt.from_dict({"forgotten": fields.Integer(metadata=_FORGOTTEN)}, name="FactsReceipt")
