"""Jobs and health."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from schemas.fields import PageQuery, SessionId, UtcDateTime


class Job(Schema):
    """Work that happens after a reply.  One that has succeeded is gone."""

    id = fields.Integer()
    kind = fields.String()
    state = fields.String(metadata={"description": "`pending`, `running` or `failed`."})
    session_id = fields.String(allow_none=True)
    attempts = fields.Integer()
    run_at = UtcDateTime()
    error = fields.String(
        allow_none=True,
        metadata={
            "description": "Why it failed last, without what was said in the conversation: so what the model server "
            "answered is not in it. A preview of the summary shows that."
        },
    )
    created_at = UtcDateTime()
    updated_at = UtcDateTime()


class JobPage(Schema):
    items = fields.List(fields.Nested(Job))
    next_cursor = fields.String(allow_none=True)


class JobQuery(PageQuery):
    state = fields.String(load_default=None, validate=validate.OneOf(["pending", "running", "failed"]))
    session_id = SessionId(load_default=None)


class Live(Schema):
    status = fields.String()


class ReadyModel(Schema):
    main = fields.String()
    mini = fields.String()
    builtin = fields.Boolean()


class Ready(Schema):
    """Whether requests can be served, and by which models."""

    status = fields.String(metadata={"description": "`ready`, or `unready` with status 503."})
    database = fields.String()
    data_dir = fields.String()
    model = fields.Nested(ReadyModel)
    notice = fields.String(metadata={"description": "Present while the built-in model answers: says so."})
    recall = fields.String(metadata={"description": "When to look back, unless a request says: RECALL."})
    summary_prompt = fields.String(metadata={"description": "The prompt summaries are made with: SUMMARY_PROMPT."})
    jobs = fields.Dict(keys=fields.String(), values=fields.Integer())
    jobs_late = fields.String(metadata={"description": "Present while jobs are due and nobody does them: says why."})
