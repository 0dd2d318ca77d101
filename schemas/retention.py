"""How long sessions stay, and the archives of those that were taken out of memory."""

from __future__ import annotations

from marshmallow import fields

from memory.erasing.retention import Policy
from memory.transfer.export_format import Archive
from schemas.fields import INT32_MAX, OPTIONAL, PageQuery, SessionId, ValueSchema, about, integer, page_of

DAYS_MAX = 36_500


class RetentionPolicy(ValueSchema):
    """Which sessions stay.  A pinned one stays in any case, and so does one with a pinned fact."""

    value = Policy

    days = integer(1, DAYS_MAX, **OPTIONAL, metadata=about("Since the last message or import; null: for ever."))
    sessions = integer(1, INT32_MAX, **OPTIONAL, metadata=about("Of each person, the newest; null: all."))
    archive = fields.Boolean(
        load_default=True, metadata=about("Whether a session that is taken out becomes an archive. Else it is erased.")
    )


ArchivePage = page_of(Archive)


class ArchiveQuery(PageQuery):
    session_id = SessionId(load_default=None)
