"""A person as a whole."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime


class User(Schema):
    """What is stored of a person."""

    user_id = fields.String()
    sessions = fields.Integer()
    messages = fields.Integer(metadata={"description": "Without those that were replaced."})
    facts = fields.Integer(metadata={"description": "Those that hold now."})
    summaries = fields.Integer(metadata={"description": "All versions of all sessions."})
    created_at = UtcDateTime()
    first_message_at = UtcDateTime(allow_none=True)
    last_message_at = UtcDateTime(allow_none=True)


class ErasedThings(Schema):
    """How many of each were erased, replaced and corrected ones included."""

    sessions = fields.Integer()
    messages = fields.Integer()
    turns = fields.Integer()
    summaries = fields.Integer()
    facts = fields.Integer()
    fact_revisions = fields.Integer()
    jobs = fields.Integer()
    index_documents = fields.Integer(metadata={"description": "Messages that the search index held."})


class Receipt(Schema):
    """What was erased."""

    user_id = fields.String()
    erased = fields.Nested(ErasedThings)
    pending = fields.List(
        fields.String(),
        metadata={
            "description": "Empty: no byte is left. Else `search_index` or `database_files` could not be freed of it "
            "yet, as somebody was using them, and a job goes on trying."
        },
    )
    erased_at = UtcDateTime()
