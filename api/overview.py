"""Overview of a person: what matters now, and its versions."""

from __future__ import annotations

from typing import Any

from api.identity import caller
from api.resource import ApiBlueprint, current_engine
from schemas import overview as schema
from schemas.fields import WHOM, PageQuery

blueprint = ApiBlueprint("overview", "What matters now about a person, each sentence with its sources.")
OF_PERSON = "/users/<path:user_id>/overview"


@blueprint.get(OF_PERSON, returns=schema.Overview)
def get_overview(user_id: str) -> Any:
    """Read the overview as it is, and whether it is being written"""
    return current_engine().overviews.get(caller(user_id))


@blueprint.put(
    OF_PERSON,
    body=schema.OverviewEdit,
    returns=schema.Overview,
    errors={409: "The overview has changed since `expected_version`. Nothing was stored."},
)
def edit_overview(body: dict[str, Any], user_id: str) -> Any:
    """Set the sentences of the overview

    The next prompt shows them. What the person wrote stays until they change it; what they leave out does not come
    back from the same facts or in the same words. A sentence that is sent as it stands keeps its sources.
    """
    return current_engine().overviews.edit(caller(user_id), body["sentences"], body["expected_version"])


@blueprint.get(f"{OF_PERSON}/versions", query=PageQuery(exclude=WHOM), returns=schema.OverviewPage)
def list_overview_versions(query: dict[str, Any], user_id: str) -> Any:
    """List all versions of the overview, newest first"""
    return current_engine().overviews.versions(caller(user_id), **query)


@blueprint.post(f"{OF_PERSON}/rollback", body=schema.OverviewRollback, returns=schema.Overview)
def roll_back_overview(body: dict[str, Any], user_id: str) -> Any:
    """Bring an earlier version of the overview back, as a new version

    Sentences whose facts hold no longer are left out.
    """
    return current_engine().overviews.rollback(caller(user_id), body["version"])


@blueprint.post(f"{OF_PERSON}/refresh", returns=schema.Overview, status=202)
def refresh_overview(user_id: str) -> Any:
    """Have the mini model write the overview now, also after an update has failed"""
    return current_engine().overviews.refresh(caller(user_id))
