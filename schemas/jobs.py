"""Jobs."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import PageQuery, SessionId, UtcDateTime, describe, one_of, page_of

POSITION = (
    "Its place among the waiting jobs of its kind, from 1; null when it does not wait. Jobs of other tenants are not "
    "counted: tenants take turns. A job whose `run_at` has not come is passed over until then."
)


class Job(Schema):
    """Work that is done after a reply.  A job that succeeded is deleted."""

    id = fields.Integer()
    kind = fields.String()
    state = fields.String(metadata=describe("`pending`, `running` or `failed`."))
    session_id = fields.String(allow_none=True)
    attempts = fields.Integer()
    run_at = UtcDateTime()
    error = fields.String(allow_none=True, metadata=describe("Why it failed last, without words of the conversation."))
    position = fields.Integer(allow_none=True, metadata=describe(POSITION))
    age = fields.Integer(metadata=describe("Seconds since it was asked for."))
    created_at = UtcDateTime()
    updated_at = UtcDateTime()


JobPage = page_of(Job)


class JobQuery(PageQuery):
    state = one_of("pending", "running", "failed", load_default=None)
    session_id = SessionId(load_default=None)
