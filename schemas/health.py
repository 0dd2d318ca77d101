"""Health."""

from marshmallow import Schema

from schemas import fields


class Live(Schema):
    status = fields.String(about="`ok`; of /health/ready `ready`, or `unready` with status 503.")


class Ready(Live):
    database = fields.String()
    data_dir = fields.String()
    model = fields.Dict(about="The names of the `main` and the `mini` model; and whether it is `builtin`.")
    notice = fields.String(about="Only present when no model server answers; says why.", sometimes=True)
    recall = fields.String(about="The setting RECALL: when to look back if a request does not say.")
    summary_prompt = fields.String(about="The setting SUMMARY_PROMPT: the prompt for summaries.")
    jobs = fields.Dict(keys=fields.String(), values=fields.Integer())
    jobs_late = fields.String(about="Only present when jobs are due and nothing runs them; says why.", sometimes=True)
    embeddings = fields.String(about="Only present while the embedding server fails; says why.", sometimes=True)
    webhooks = fields.String(
        about="Only present while webhooks are disabled because they failed; says so.", sometimes=True
    )
    rate_limits = fields.String(about="Only present while RATE_LIMIT_STORAGE is unreachable; says so.", sometimes=True)
