"""OpenAI's Conversations: a conversation is a session, and its items are the session's messages."""

import uuid
from typing import Any

from api.blueprint import ApiBlueprint, current_engine
from api.conversation_items import append_items
from api.named_person import client_caller
from api.openai import OpenRequest
from api.response_items import CONVERSATION, ConversationObject, NewItems
from api.response_sessions import find_conversation
from memory.erasing.erasing import erase_session
from memory.sessions.sessions import SessionInfo
from models.keys import CHAT
from schemas import fields
from schemas.shapes import Open


class NewConversation(NewItems):
    """Conversation to begin, with its first items."""

    metadata = fields.ClientMetadata(load_default=None, allow_none=True)
    user = fields.Raw(load_default=None, about="The person, unless another place names one.")
    safety_identifier = fields.Raw(load_default=None, about="The person, unless a header names one.")


class ConversationChange(OpenRequest):
    metadata = fields.ClientMetadata(required=True, allow_none=True)


class DeletedObject(Open):
    """Thing that was erased."""

    id = fields.String()
    object = fields.String()
    deleted = fields.Constant(True)


blueprint = ApiBlueprint("conversations", "OpenAI's Conversations, which are sessions.", prefix="/v1/conversations")
OF_CONVERSATION = "/<conversation_id>"


@blueprint.post("", body=NewConversation, returns=ConversationObject, scope=CHAT)
def create_conversation(body: dict[str, Any]) -> SessionInfo:
    """Begin a conversation

    Without items it is empty. The first person who is named in it has it.
    """
    whom, id = client_caller(body), f"{CONVERSATION}{uuid.uuid4().hex}"
    created = current_engine().sessions.create(whom, id, client_metadata=body["metadata"])
    append_items(whom, id, body["items"])
    return created


@blueprint.get(OF_CONVERSATION, returns=ConversationObject)
def get_conversation(conversation_id: str) -> SessionInfo:
    """Read a conversation: any session by its id"""
    return find_conversation(client_caller({}), conversation_id)


@blueprint.post(OF_CONVERSATION, body=ConversationChange, returns=ConversationObject)
def update_conversation(body: dict[str, Any], conversation_id: str) -> SessionInfo:
    """Change what is kept with a conversation"""
    changes = {"client_metadata": body["metadata"]}
    return current_engine().sessions.change(client_caller({}), conversation_id, changes)


@blueprint.delete(OF_CONVERSATION, returns=DeletedObject, slow=True)
def delete_conversation(conversation_id: str) -> dict[str, Any]:
    """Erase a conversation with its items, as DELETE /api/sessions/{session_id} does"""
    erase_session(current_engine(), client_caller({}), conversation_id)
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}
