"""Turns of a session."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory.turn import turns
from schemas import turns as schema

blueprint = ApiBlueprint("turns", "How each turn ended, what it cost, and which memory its prompt showed.")


@blueprint.get("/sessions/<session_id>/turns", query=schema.TurnQuery, page_of=schema.Turn)
def list_turns(caller: Caller, query: dict[str, Any], session_id: str) -> Any:
    """List a session's turns, newest first

    Turns of messages that were replaced are left out.
    """
    newest_first = query.pop("order") == "desc"
    return turns.page(current_engine(), caller, session_id, newest_first=newest_first, **query)


@blueprint.get("/sessions/<session_id>/turns/<int64:message_id>", returns=schema.TurnWithMemory)
def get_turn(caller: Caller, session_id: str, message_id: int) -> Any:
    """Read one turn, named by its message or its reply, with the memory its prompt showed"""
    return turns.get(current_engine(), caller, session_id, message_id)
