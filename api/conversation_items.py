"""Items of OpenAI's Conversations, which are the messages of a session."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from flask import Response, jsonify
from marshmallow import EXCLUDE

from api import client_requests as chat
from api.blueprint import ApiBlueprint, Caller, current_engine
from api.named_person import client_caller
from api.response_items import (
    ConversationItem,
    ConversationItems,
    ConversationObject,
    NewItems,
    item_list,
    items_of,
)
from api.response_sessions import find_conversation
from memory.erasing.message import erase_message
from memory.errors import NotFound
from memory.paging import encode_cursor
from memory.sessions.sessions import SessionInfo
from memory.transcripts.matching import new_drafts
from models.keys import CHAT
from models.messages import ListedMessage
from schemas import fields
from schemas.shapes import Input


class ItemQuery(Input):
    """Page of a list of items."""

    class Meta:
        unknown = EXCLUDE  # `include` asks for what no item has

    after = fields.Text(load_default=None, about="The id of an item: those after it are listed.")
    limit = fields.limit(20)
    order = fields.one_of("asc", "desc", load_default="desc")


blueprint = ApiBlueprint(
    "conversation items", "Items of OpenAI's Conversations.", prefix="/v1/conversations/<conversation_id>/items"
)


@blueprint.get("", query=ItemQuery, returns=ConversationItems)
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


@blueprint.post("", body=NewItems, returns=ConversationItems, scope=CHAT, slow=True)
def create_items(body: dict[str, Any], conversation_id: str) -> Response:
    """Append items to a conversation without asking a model

    An exchange that the conversation ends with already, since Recap answered it, is not stored again.
    """
    whom = client_caller({})
    find_conversation(whom, conversation_id)
    return item_list(list(items_of(append_items(whom, conversation_id, body["items"]))))


@blueprint.get("/<item_id>", returns=ConversationItem)
def get_item_of_conversation(conversation_id: str, item_id: str) -> Response:
    """Read an item of a conversation"""
    message = _message(client_caller({}), conversation_id, item_id)
    return jsonify(next(item for item in items_of([message]) if item["id"] == item_id))


@blueprint.delete("/<item_id>", returns=ConversationObject, slow=True)
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
