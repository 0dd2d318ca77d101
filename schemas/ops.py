"""Prompts, jobs and health."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import Input, PageQuery, SessionId, Text, UtcDateTime, about, list_of, one_of, page_of

POSITION = (
    "Its place among the waiting jobs of its kind, from 1; null when it does not wait. Jobs of other tenants are not "
    "counted: tenants take turns. A job whose `run_at` has not come is passed over until then."
)


class Job(Schema):
    """Work that is done after a reply.  A job that succeeded is deleted."""

    id = fields.Integer()
    kind = fields.String()
    state = fields.String(metadata=about("`pending`, `running` or `failed`."))
    session_id = fields.String(allow_none=True)
    attempts = fields.Integer()
    run_at = UtcDateTime()
    error = fields.String(allow_none=True, metadata=about("Why it failed last, without words of the conversation."))
    position = fields.Integer(allow_none=True, metadata=about(POSITION))
    age = fields.Integer(metadata=about("Seconds since it was asked for."))
    created_at = UtcDateTime()
    updated_at = UtcDateTime()


JobPage = page_of(Job)


class JobQuery(PageQuery):
    state = one_of("pending", "running", "failed", load_default=None)
    session_id = SessionId(load_default=None)


class Live(Schema):
    status = fields.String(metadata=about("`ok`; of /health/ready `ready`, or `unready` with status 503."))


class Ready(Live):
    """Whether requests can be served, and by which models."""

    database = fields.String()
    data_dir = fields.String()
    model = fields.Dict(metadata=about("The names of the `main` and the `mini` model; and whether it is `builtin`."))
    notice = fields.String(metadata=about("Only present when no model server answers; says why."))
    recall = fields.String(metadata=about("The setting RECALL: when to look back if a request does not say."))
    summary_prompt = fields.String(metadata=about("The setting SUMMARY_PROMPT: the prompt for summaries."))
    jobs = fields.Dict(keys=fields.String(), values=fields.Integer())
    jobs_late = fields.String(metadata=about("Only present when jobs are due and nothing runs them; says why."))
    rate_limits = fields.String(metadata=about("Only present while RATE_LIMIT_STORAGE is unreachable; says so."))


class Prompt(Schema):
    """A named prompt in use."""

    name = fields.String()
    version = fields.Integer(metadata=about("Stored versions count from 1; 0 is the text of a file."))
    source = fields.String(metadata=about("`packaged`, `file` or `stored`."))
    text = fields.String(metadata=about("A Jinja2 template."))
    created_at = UtcDateTime(allow_none=True)


PromptList = list_of(Prompt)


class PromptDeleted(Schema):
    """What was deleted."""

    name = fields.String()
    versions = fields.Integer(metadata=about("How many stored versions there were."))


class PromptPut(Input):
    text = Text(required=True)
