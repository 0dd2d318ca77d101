"""Overview of a person: what matters now, and its versions."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory.knowledge import overview
from schemas import overview as schema
from schemas.shapes import Paged, VersionToBringBack

blueprint = ApiBlueprint("overview", "What matters now about a person, each sentence with its sources.")
OF_PERSON = "/users/<path:user_id>/overview"


@blueprint.get(OF_PERSON, returns=schema.Overview)
def get_overview(caller: Caller) -> Any:
    """Read the overview as it is, and whether it is being written"""
    return overview.get(current_engine(), caller)


@blueprint.put(OF_PERSON, body=schema.OverviewEdit, returns=schema.Overview)
def edit_overview(caller: Caller, body: dict[str, Any]) -> Any:
    """Set the sentences of the overview

    The next prompt shows them. What the person wrote stays until they change it; what they leave out does not come
    back from the same facts or in the same words. A sentence that is sent as it stands keeps its sources.
    """
    return overview.edit(current_engine(), caller, **body)


@blueprint.get(f"{OF_PERSON}/versions", query=Paged, page_of=schema.OverviewVersion)
def list_overview_versions(caller: Caller, query: dict[str, Any]) -> Any:
    """List all versions of the overview, newest first"""
    return overview.versions(current_engine(), caller, **query)


@blueprint.post(f"{OF_PERSON}/rollback", body=VersionToBringBack, returns=schema.Overview)
def roll_back_overview(caller: Caller, body: dict[str, Any]) -> Any:
    """Bring an earlier version of the overview back, as a new version

    Sentences whose facts hold no longer are left out.
    """
    return overview.rollback(current_engine(), caller, **body)


@blueprint.post(f"{OF_PERSON}/refresh", returns=schema.Overview, status=202)
def refresh_overview(caller: Caller) -> Any:
    """Have the mini model write the overview now, also after an update has failed"""
    return overview.refresh(current_engine(), caller)
