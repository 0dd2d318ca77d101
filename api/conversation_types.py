"""Types of conversations, and what a turn does differently in them."""

from __future__ import annotations

from typing import Any

from api.identity import caller
from api.resource import ApiBlueprint, current_engine
from memory.erasing import erasing
from schemas import conversation_types as schema
from schemas.fields import CallerQuery, Receipt

blueprint = ApiBlueprint(
    "conversation-types", "What conversations are for, known by their words, and what turns do then."
)


@blueprint.get("/conversation-types", query=CallerQuery, returns=schema.ConversationTypeList)
def list_conversation_types(query: dict[str, Any]) -> dict[str, Any]:
    """List the types that are built in, the tenant's, and the person's own, which come before the tenant's"""
    return {"items": current_engine().types.list_types(caller(query["user_id"]))}


@blueprint.get("/conversation-types/<conversation_type>", query=CallerQuery, returns=schema.ConversationType)
def get_conversation_type(query: dict[str, Any], conversation_type: str) -> Any:
    """Read a type"""
    return current_engine().types.get(caller(query["user_id"]), conversation_type)


@blueprint.put(
    "/conversation-types/<conversation_type>", body=schema.ConversationTypePut, returns=schema.ConversationType
)
def put_conversation_type(body: dict[str, Any], conversation_type: str) -> Any:
    """Add a type, or say what one of the same name does instead, also one that is built in

    Its mode of recall and its budgets take the place of the settings while the conversation has the type.
    """
    return current_engine().types.put(caller(body.pop("user_id")), conversation_type, **body)


@blueprint.delete("/conversation-types/<conversation_type>", query=CallerQuery, returns=Receipt)
def delete_conversation_type(query: dict[str, Any], conversation_type: str) -> Any:
    """Erase a type of one's own; one that is built in changes nothing from then on"""
    engine = current_engine()
    return erasing.erase_documents(engine, caller(query["user_id"]), engine.types.find, name=conversation_type)
