"""Jobs."""

from marshmallow import Schema

from schemas import fields
from schemas.shapes import PageQuery

STATES = ("pending", "running", "failed")
POSITION = (
    "Its place among the waiting jobs of its kind, from 1; null when it does not wait. Jobs of other tenants are not "
    "counted: tenants take turns. A job whose `run_at` has not come is passed over until then."
)


class Job(Schema):
    """Work that is done after a reply.  A job that succeeded is deleted."""

    id = fields.Integer()
    kind = fields.String()
    state = fields.String(about="`pending`, `running` or `failed`.")
    session_id = fields.String(allow_none=True)
    attempts = fields.Integer()
    run_at = fields.UtcDateTime()
    error = fields.String(allow_none=True, about="Why it failed last, without words of the conversation.")
    position = fields.Integer(allow_none=True, about=POSITION)
    age = fields.Integer(about="Seconds since it was asked for.")
    created_at = fields.UtcDateTime()
    updated_at = fields.UtcDateTime()


class JobQuery(PageQuery):
    state = fields.one_of(*STATES, load_default=None)
    session_id = fields.SessionId(load_default=None)
