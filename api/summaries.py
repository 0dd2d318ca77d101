"""Session's summary and its versions."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory.knowledge import summaries, summary_preview
from models.keys import READ
from schemas import summaries as schema
from schemas.shapes import PageQuery, Rollback

blueprint = ApiBlueprint("summary", "The structured summary that stands for a session's older messages in prompts.")


@blueprint.get("/sessions/<session_id>/summary", returns=schema.Summary)
def get_summary(caller: Caller, session_id: str) -> Any:
    """Read the newest summary, and whether it is up to date"""
    return summaries.get(current_engine(), caller, session_id)


@blueprint.put("/sessions/<session_id>/summary", body=schema.SummaryEdit, returns=schema.Summary)
def edit_summary(caller: Caller, body: dict[str, Any], session_id: str) -> Any:
    """Replace the summary with an edited one

    It becomes a new version. The next prompt shows it.
    """
    return summaries.edit(current_engine(), caller, session_id, **body)


@blueprint.get("/sessions/<session_id>/summary/versions", query=PageQuery, page_of=schema.SummaryVersion)
def list_summary_versions(caller: Caller, query: dict[str, Any], session_id: str) -> Any:
    """List all versions, newest first"""
    return summaries.versions(current_engine(), caller, session_id, **query)


@blueprint.post("/sessions/<session_id>/summary/rollback", body=Rollback, returns=schema.Summary)
def roll_back_summary(caller: Caller, body: dict[str, Any], session_id: str) -> Any:
    """Bring an earlier version back, as a new version

    Messages that it does not cover are sent word for word until the next update.
    """
    return summaries.rollback(current_engine(), caller, session_id, **body)


@blueprint.post("/sessions/<session_id>/summary/refresh", returns=schema.Summary, status=202)
def refresh_summary(caller: Caller, session_id: str) -> Any:
    """Update the summary now, also after an update has failed"""
    return summaries.refresh(current_engine(), caller, session_id)


@blueprint.post(
    "/sessions/<session_id>/summary/preview",
    body=schema.PreviewCall,
    returns=schema.SummaryPreview,
    scope=READ,
    slow=True,
    errors={
        502: "The model server failed, or its summary could not be used.",
        503: "The model server is busy, or all threads for such calls are in use. Retry-After says when to retry.",
        504: "The model took longer than MODEL_TIMEOUT.",
    },
)
def preview_summary(caller: Caller, body: dict[str, Any], session_id: str) -> Any:
    """Try a summary prompt on this conversation, and store nothing

    The mini model reads the whole conversation with this prompt. If that is too much for one call, it continues the
    earliest version of the summary after which the rest fits.
    """
    return summary_preview.preview(current_engine(), caller, session_id, **body)
