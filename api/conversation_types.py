"""Types of conversations, and what a turn does differently in them."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory import conversation_types as types
from memory.erasing import erasing
from schemas import conversation_types as schema
from schemas.shapes import Receipt

blueprint = ApiBlueprint(
    "conversation-types", "What conversations are for, known by their words, and what turns do then."
)


@blueprint.get("/conversation-types", list_of=schema.ConversationType)
def list_conversation_types(caller: Caller) -> dict[str, Any]:
    """List the types that are built in, the tenant's, and the person's own, which come before the tenant's"""
    return {"items": current_engine().types.list_types(caller)}


@blueprint.get("/conversation-types/<conversation_type>", returns=schema.ConversationType)
def get_conversation_type(caller: Caller, conversation_type: str) -> Any:
    """Read a type"""
    return current_engine().types.get(caller, conversation_type)


@blueprint.put(
    "/conversation-types/<conversation_type>", body=schema.ConversationTypePut, returns=schema.ConversationType
)
def put_conversation_type(caller: Caller, body: dict[str, Any], conversation_type: str) -> Any:
    """Add a type, or say what one of the same name does instead, also one that is built in

    Its mode of recall and its budgets take the place of the settings while the conversation has the type.
    """
    return current_engine().types.put(caller, conversation_type, **body)


@blueprint.delete("/conversation-types/<conversation_type>", returns=Receipt)
def delete_conversation_type(caller: Caller, conversation_type: str) -> Any:
    """Erase a type of one's own; one that is built in changes nothing from then on"""
    missing = types.not_found(conversation_type)
    return erasing.erase_versions(
        current_engine(), caller, conversation_type, [types.NAMESPACE], missing, name=conversation_type
    )
