"""Person's profile and its versions, and the schema of a tenant's profiles."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.permissions import tenant, whole_tenant
from memory.knowledge import profile
from schemas import profile as schema
from schemas.shapes import Paged, VersionToBringBack

blueprint = ApiBlueprint("profile", "Who a person is: one document for all conversations, each value with its source.")
OF_PERSON = "/users/<path:user_id>/profile"


@blueprint.get(OF_PERSON, query=schema.ProfileQuery, returns=schema.Profile)
def get_profile(caller: Caller, query: dict[str, Any]) -> Any:
    """Read the profile as it is, or as it was at `as_of`"""
    return profile.get(current_engine(), caller, **query)


@blueprint.patch(OF_PERSON, body=schema.ProfilePatch, returns=schema.Profile)
def edit_profile(caller: Caller, body: dict[str, Any]) -> Any:
    """Edit the profile by a JSON Patch (RFC 6902)

    All of its operations apply, or none. The next prompt shows the new version. The model changes what a person wrote
    only when they say something else later.
    """
    return profile.edit(current_engine(), caller, **body)


@blueprint.get(f"{OF_PERSON}/versions", query=Paged, page_of=schema.Profile)
def list_profile_versions(caller: Caller, query: dict[str, Any]) -> Any:
    """List all versions of the profile, newest first"""
    return profile.versions(current_engine(), caller, **query)


@blueprint.post(f"{OF_PERSON}/rollback", body=VersionToBringBack, returns=schema.Profile)
def roll_back_profile(caller: Caller, body: dict[str, Any]) -> Any:
    """Bring an earlier version of the profile back, as a new version"""
    return profile.rollback(current_engine(), caller, **body)


@blueprint.post(f"{OF_PERSON}/refresh", returns=schema.Profile, status=202)
def refresh_profile(caller: Caller) -> Any:
    """Have the mini model read the new facts about the person now, also after an update has failed"""
    return profile.refresh(current_engine(), caller)


@blueprint.get("/profile/schema", query=schema.SchemaQuery, returns=schema.SchemaOfProfiles)
def get_profile_schema(query: dict[str, Any]) -> dict[str, Any]:
    """Read the JSON Schema of the tenant's profiles"""
    return {"schema": profile.get_schema(current_engine(), tenant(), query["kind"])}


@blueprint.put(
    "/profile/schema", query=schema.SchemaQuery, body=schema.SchemaOfProfiles, returns=schema.SchemaOfProfiles
)
def set_profile_schema(query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Set the JSON Schema (2020-12) of the tenant's profiles

    It is one tree, without references and patterns, and an empty profile fits it. Profiles stay as they are; the next
    change of one drops what the schema refuses.
    """
    return {"schema": profile.set_schema(current_engine(), whole_tenant(), query["kind"], body["schema"])}
