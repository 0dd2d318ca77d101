"""Retention of sessions, and the archives of sessions that were taken out of memory."""

from marshmallow import Schema

from models.retention import Policy
from schemas import fields
from schemas.fields import INT32_MAX, OPTIONAL
from schemas.shapes import PageQuery, ValueSchema


class Archive(Schema):
    """Session that was taken out of memory. `GET /api/archives/{archive_id}` has its document."""

    id = fields.Integer()
    user_id = fields.String(allow_none=True)
    space = fields.String(allow_none=True)
    session_id = fields.String(about="The id that the session had.")
    title = fields.String()
    message_count = fields.Integer()
    first_message_at = fields.UtcDateTime(allow_none=True)
    last_message_at = fields.UtcDateTime(allow_none=True)
    created_at = fields.UtcDateTime(about="When the session was taken out.")


DAYS_MAX = 36_500


class RetentionPolicy(ValueSchema):
    """Rule by which sessions stay. A pinned session stays in any case, and so does one with a pinned fact."""

    value = Policy

    days = fields.integer(
        1, DAYS_MAX, **OPTIONAL, about="Days after its last message or import that a session stays; null: any number."
    )
    sessions = fields.integer(
        1, INT32_MAX, **OPTIONAL, about="Number of each person's newest sessions that stay; null: all."
    )
    archive = fields.Boolean(
        load_default=True, about="Whether a session that is taken out becomes an archive. Else it is erased."
    )


class ArchiveQuery(PageQuery):
    session_id = fields.SessionId(load_default=None)
