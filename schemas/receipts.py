"""Receipts of erasures."""

from marshmallow import Schema

from schemas import fields


class Receipt(Schema):
    """Receipt of an erasure, with what the call named: a person, a session, a message and so on."""

    erased = fields.counts(
        "How many of each, including replaced messages and corrected facts. `turns` are records of how messages were "
        "answered, `summaries` versions, `edited_summaries` those that the person wrote, `item_versions` earlier "
        "values of items in the store, `documents` files and texts that were added, `archives` sessions that were "
        "taken out of memory, `index_documents` messages and passages in the search index."
    )
    pending = fields.List(
        fields.String(),
        about="Empty when no byte is left. Otherwise `search_index` or `database_files` still hold traces, because "
        "they were in use, or because single messages and facts are collected for some seconds. A job removes them. "
        "`events`: the event that the person was erased names them, and is kept for a week.",
    )
    erased_at = fields.UtcDateTime()
    user_id = fields.String(attribute="named.user_id", sometimes=True)
    space = fields.String(attribute="named.space", sometimes=True)
    session_id = fields.String(attribute="named.session_id", sometimes=True)
    message_id = fields.Integer(attribute="named.message_id", sometimes=True)
    fact_id = fields.Integer(attribute="named.fact_id", sometimes=True)
    document_id = fields.String(attribute="named.document_id", sometimes=True)
    example_id = fields.Integer(attribute="named.example_id", sometimes=True)
    mark_id = fields.Integer(attribute="named.mark_id", sometimes=True)
    archive_id = fields.Integer(attribute="named.archive_id", sometimes=True)
    name = fields.String(attribute="named.name", sometimes=True)
    namespace = fields.List(fields.String(), attribute="named.namespace", sometimes=True)
    key = fields.String(attribute="named.key", sometimes=True)
    forgotten = fields.Integer(
        attribute="named.forgotten", about="How many of the named facts there were.", sometimes=True
    )
