"""The receipt of an erasure."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import UtcDateTime, about, counts


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
