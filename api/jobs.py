"""Jobs."""

from __future__ import annotations

from typing import Any

from api.blueprint import ID, caller, resource, services
from memory.jobs.listing import JobInfo
from memory.paging import Page
from schemas.fields import CallerQuery
from schemas.ops import Job, JobPage, JobQuery

blueprint = resource("jobs", "Work that happens after a reply: what waits, what failed and why.")


@blueprint.get("/jobs", errors={404: "The session is not there, or belongs to someone else."})
@blueprint.arguments(JobQuery, location="query")
@blueprint.response(200, JobPage)
def list_jobs(query: dict[str, Any]) -> Page[JobInfo]:
    """List jobs that are not done

    With `session_id`: those of that session alone. Indexing is a person's, so it is in no session's list.
    """
    return services().jobs.page(caller(query.pop("user_id")), **query)


@blueprint.post(
    f"/jobs/{ID % 'job_id'}/retry",
    errors={404: "There is no such job; one that has succeeded is gone."},
)
@blueprint.arguments(CallerQuery, location="query")
@blueprint.response(202, Job)
def retry_job(query: dict[str, Any], job_id: int) -> JobInfo:
    """Try a job again now"""
    return services().jobs.retry(caller(query["user_id"]), job_id)
