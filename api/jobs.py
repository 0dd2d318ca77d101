"""Jobs."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory import job_listing
from schemas import jobs as schema

blueprint = ApiBlueprint("jobs", "Work that is done after a reply: what waits, what failed, and why.")


@blueprint.get("/jobs", query=schema.JobQuery, page_of=schema.Job)
def list_jobs(caller: Caller, query: dict[str, Any]) -> Any:
    """List jobs that wait, run or failed

    With `session_id`, only the jobs of that session. Index jobs belong to a person, not to a session.
    """
    return job_listing.page(current_engine(), caller, **query)


@blueprint.post("/jobs/<int64:job_id>/retry", returns=schema.Job, status=202)
def retry_job(caller: Caller, job_id: int) -> Any:
    """Retry a job now"""
    return job_listing.retry(current_engine(), caller, job_id)


@blueprint.delete("/jobs/<int64:job_id>", status=204, errors={409: "The job is needed: memory would be lost."})
def cancel_job(caller: Caller, job_id: int) -> None:
    """Cancel a job of the kind `consolidation`, also while it runs: it changes nothing then"""
    job_listing.cancel(current_engine(), caller, job_id)
