"""Health."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import SOMETIMES, describe


class Live(Schema):
    status = fields.String(metadata=describe("`ok`; of /health/ready `ready`, or `unready` with status 503."))


class Ready(Live):
    """Readiness to serve requests, and the models that answer."""

    database = fields.String()
    data_dir = fields.String()
    model = fields.Dict(metadata=describe("The names of the `main` and the `mini` model; and whether it is `builtin`."))
    notice = fields.String(metadata=describe("Only present when no model server answers; says why.", **SOMETIMES))
    recall = fields.String(metadata=describe("The setting RECALL: when to look back if a request does not say."))
    summary_prompt = fields.String(metadata=describe("The setting SUMMARY_PROMPT: the prompt for summaries."))
    jobs = fields.Dict(keys=fields.String(), values=fields.Integer())
    jobs_late = fields.String(
        metadata=describe("Only present when jobs are due and nothing runs them; says why.", **SOMETIMES)
    )
    embeddings = fields.String(
        metadata=describe("Only present while the embedding server fails; says why.", **SOMETIMES)
    )
    webhooks = fields.String(
        metadata=describe("Only present while webhooks are disabled because they failed; says so.", **SOMETIMES)
    )
    rate_limits = fields.String(
        metadata=describe("Only present while RATE_LIMIT_STORAGE is unreachable; says so.", **SOMETIMES)
    )
