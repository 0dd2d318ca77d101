"""OpenAI's Conversations: a conversation is a session, and its items are the session's messages."""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from flask import Response, jsonify
from marshmallow import EXCLUDE

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.identity import client_caller
from api.protocols import client_requests as chat
from api.protocols.openai import OpenRequest
from api.protocols.response_items import (
    CONVERSATION,
    ConversationItem,
    ConversationItems,
    ConversationObject,
    NewItems,
    item_list,
    items_of,
)
from memory.erasing.erasing import erase_session
from memory.erasing.message import erase_message
from memory.errors import NotFound
from memory.paging import encode_cursor
from memory.sessions.sessions import SessionInfo
from memory.transcripts.matching import new_drafts
from models.keys import CHAT
from models.messages import ListedMessage
from schemas import fields
from schemas.shapes import Input, Open


class NewConversation(NewItems):
    """Conversation to begin, with its first items."""

    metadata = fields.ClientMetadata(**fields.OPTIONAL)
    user = fields.Raw(load_default=None, about="The person, unless another place names one.")
    safety_identifier = fields.Raw(load_default=None, about="The person, unless a header names one.")


class ConversationChange(OpenRequest):
    metadata = fields.ClientMetadata(required=True, allow_none=True)


class DeletedObject(Open):
    """Thing that was erased."""

    id = fields.String()
    object = fields.String()
    deleted = fields.Constant(True)


class ItemQuery(Input):
    """Page of a list of items."""

    class Meta:
        unknown = EXCLUDE  # `include` asks for what no item has

    after = fields.Text(load_default=None, about="The id of an item: those after it are listed.")
    limit = fields.limit(20)
    order = fields.one_of("asc", "desc", load_default="desc")


blueprint = ApiBlueprint("conversations", "OpenAI's Conversations, which are sessions.", prefix="/v1/conversations")
OF_CONVERSATION = "/<conversation_id>"
item_blueprint = ApiBlueprint(
    "conversation items", "Items of OpenAI's Conversations.", prefix="/v1/conversations/<conversation_id>/items"
)


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


def find_conversation(whom: Caller, id: str, *, param: str = "conversation_id") -> SessionInfo:
    """Return the session of a conversation.

    An empty one that was made without a name becomes that of the first person who is named. Raises NotFound.
    """
    sessions = current_engine().sessions
    try:
        return sessions.get(whom, id)
    except NotFound:
        is_secret = id.startswith(CONVERSATION)  # nobody guesses it, as they may the id of an application's session
        if is_secret and whom.owner is not None and (adopted := sessions.adopt(whom, id)):
            return adopted
        raise NotFound("conversation_not_found", f"There is no conversation {id!r}.", param=param) from None


@item_blueprint.get("", query=ItemQuery, returns=ConversationItems)
def list_items_of_conversation(query: dict[str, Any], conversation_id: str) -> Response:
    """List the items of a conversation, newest first

    A message of the person's, of the model's and of a function's has the id that it is retrieved by.
    """
    whom, sessions = client_caller({}), current_engine().sessions
    newest_first, limit, after = query["order"] == "desc", query["limit"], query["after"]
    cursor = None
    if after is not None:  # its message may have more items
        position = _message(whom, conversation_id, after).position
        cursor = encode_cursor(position + 1 if newest_first else position - 1)
    page = sessions.messages(whom, conversation_id, cursor=cursor, limit=limit + 1, newest_first=newest_first)
    in_order = -1 if newest_first else 1
    items = [item for message in page.items for item in list(items_of([message]))[::in_order]]
    start = next((place for place, item in enumerate(items, 1) if item["id"] == after), 0)
    shown = items[start : start + limit]
    return item_list(shown, has_more=page.next_cursor is not None or len(items) > start + limit)


@item_blueprint.post("", body=NewItems, returns=ConversationItems, scope=CHAT, slow=True)
def create_items(body: dict[str, Any], conversation_id: str) -> Response:
    """Append items to a conversation without asking a model

    An exchange that the conversation ends with already, since Recap answered it, is not stored again.
    """
    whom = client_caller({})
    find_conversation(whom, conversation_id)
    return item_list(list(items_of(append_items(whom, conversation_id, body["items"]))))


@item_blueprint.get("/<item_id>", returns=ConversationItem)
def get_item_of_conversation(conversation_id: str, item_id: str) -> Response:
    """Read an item of a conversation"""
    message = _message(client_caller({}), conversation_id, item_id)
    return jsonify(next(item for item in items_of([message]) if item["id"] == item_id))


@item_blueprint.delete("/<item_id>", returns=ConversationObject, slow=True)
def delete_item_of_conversation(conversation_id: str, item_id: str) -> SessionInfo:
    """Erase the message of an item, for good"""
    whom = client_caller({})
    conversation = find_conversation(whom, conversation_id)
    message = _message(whom, conversation_id, item_id)
    erase_message(current_engine(), whom, conversation_id, message.id)
    return conversation


def _message(whom: Caller, conversation_id: str, item_id: str) -> ListedMessage:
    """Return the message of an item. Raises NotFound."""
    session_id, message_id = chat.turn_named(item_id)
    if session_id == conversation_id:
        with suppress(NotFound):
            (message,) = current_engine().sessions.messages_around(whom, session_id, message_id, limit=1).items
            if any(item["id"] == item_id for item in items_of([message])):
                return message
    raise NotFound("item_not_found", f"There is no item {item_id!r} in the conversation.", param="item_id")


def append_items(whom: Caller, id: str, raw: Sequence[dict[str, Any]]) -> Sequence[ListedMessage]:
    """Store messages of items. A reply that the session ends with, and what comes before, is there."""
    sessions = current_engine().sessions
    last = sessions.messages(whom, id, limit=max(1, len(raw)), newest_first=True).items[::-1]
    drafts, new = new_drafts(last, raw)
    if new:
        sessions.append(whom, id, new)
    return sessions.messages(whom, id, limit=len(drafts), newest_first=True).items[::-1] if drafts else ()
