"""The turns of a session."""

from __future__ import annotations

from typing import Any

from api.blueprint import caller, resource, services
from schemas import chat as schema
from schemas.fields import CallerQuery

blueprint = resource("turns", "How each turn ended, what it cost, and which memory its prompt showed.")


@blueprint.get("/sessions/<session_id>/turns")
@blueprint.arguments(schema.TurnQuery, location="query")
@blueprint.response(200, schema.TurnPage)
def list_turns(query: dict[str, Any], session_id: str) -> Any:
    """List a session's turns, newest first

    Turns of messages that were replaced are left out.
    """
    newest_first = query.pop("order") == "desc"
    return services().turns.page(caller(query.pop("user_id")), session_id, newest_first=newest_first, **query)


@blueprint.get("/sessions/<session_id>/turns/<int64:message_id>")
@blueprint.arguments(CallerQuery, location="query")
@blueprint.response(200, schema.TurnWithMemory)
def get_turn(query: dict[str, Any], session_id: str, message_id: int) -> Any:
    """Read one turn, named by its message or its reply, with the memory its prompt showed"""
    return services().turns.get(caller(query["user_id"]), session_id, message_id)
