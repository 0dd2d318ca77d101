"""OpenAI's Conversations, which are sessions; their items, as messages of a chat completion, and as stored.

The id of an item of a stored message names that message and its session.  A message with calls of functions has
several items: its words, if there are any, then each call.
"""

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from flask import Response, jsonify
from marshmallow import EXCLUDE, ValidationError, post_load

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.identity import client_caller
from api.protocols import client_requests as chat
from api.protocols.client_requests import Object
from api.protocols.openai import MESSAGES_MAX, OpenRequest
from memory.erasing.erasing import erase_session
from memory.erasing.message import erase_message
from memory.errors import NotFound
from memory.paging import encode_cursor
from memory.transcripts.matching import new_drafts
from memory.transcripts.transcript import INSTRUCTING, answered, calls_of
from models.keys import CHAT
from models.messages import Message
from schemas import fields
from schemas.messages import APPENDED_MESSAGES_MAX
from schemas.shapes import Input, Open

_ROLES = ("user", "assistant", *INSTRUCTING)
_WORDS = ("text", "input_text", "output_text")
_SHOWN = (*_WORDS, "input_image", "input_file")
CALLS = ("function_call", "custom_tool_call")
REASONING = "rs_"  # begins the id of what the model thought, which nobody keeps
CONVERSATION = "conv_"  # begins the id of a session that was made as a conversation
_SECRET = re.compile(rf"{CONVERSATION}[0-9a-f]{{32}}")  # an id that nobody guesses, unlike an application's own
_OF_CONVERSATION = re.compile(rf"msg_[0-9]+_({_SECRET.pattern})")  # the id of a message in one


def messages_of(items: Any, field: str = "input") -> list[dict[str, Any]]:
    """Return items, or an input of one text, as messages. Raises ValidationError.

    Calls of functions belong to the assistant's message that they follow; what their outputs show, as images, follows
    as the person's. field: the name of the request's field.
    """
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    if not isinstance(items, list) or len(items) > MESSAGES_MAX:
        raise ValidationError(f"Must be a string, or a list of at most {MESSAGES_MAX:,} items.", field)
    messages: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []  # images and files of results, until the last result
    for number, item in enumerate(items):
        place = f"{field}.{number}"
        kind = _kind(item, place)
        if kind in ("message", *CALLS):
            messages += _of_person(shown)
            shown = []
        if kind == "message":
            messages.append(_message(item, place))
        elif kind in CALLS:
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(_call(item, place))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            found = chat.parts(item.get("output"), f"{place}.output", _SHOWN)
            output, images = chat.result_of(_part(*part) for part in found)
            shown += images
            messages.append({"role": "tool", "tool_call_id": chat.string(item, "call_id", place), "content": output})
        elif kind not in ("item_reference", "reasoning"):
            chat.leave_out(place, kind)
    return [*messages, *_of_person(shown)]


def _of_person(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": shown}] if shown else []


def _kind(item: Any, place: str) -> str:
    """Return the type of an item: one that names none is a message. Raises ValidationError for a reference."""
    kind = "message" if isinstance(item, Mapping) and item.get("type") is None else chat.type_of(item, place)
    if kind == "item_reference" and not str(item.get("id")).startswith(REASONING):
        raise ValidationError("Recap keeps no items to refer to. Send the item itself.", place)
    return kind


def _call(item: Object, place: str) -> dict[str, Any]:
    id, name = (chat.string(item, field, place) for field in ("call_id", "name"))
    if item["type"] == "custom_tool_call":
        return chat.called(id, name, json.dumps({"input": chat.string(item, "input", place)}, ensure_ascii=False))
    return chat.called(id, name, chat.string(item, "arguments", place))


def _message(item: Object, place: str) -> dict[str, Any]:
    role = item.get("role")
    content = item.get("content")
    place = f"{place}.content"
    if role not in _ROLES:
        raise ValidationError(f"Must be one of {', '.join(_ROLES)}.", place.replace("content", "role"))
    if isinstance(content, str):
        return {"role": role, "content": content}
    if role == "assistant":
        return {"role": role, "content": _words(content, place)}
    known = [_part(*part) for part in chat.parts(content, place, _SHOWN)]
    return {"role": role, "content": known or "[left out]"}


def _part(place: str, kind: str, part: Object) -> dict[str, Any]:
    if kind in _WORDS:
        return {"type": "text", "text": chat.string(part, "text", place)}
    if kind == "input_file" and part.get("file_url"):  # a chat completion takes no address
        chat.leave_out(f"{place}.file_url")
        return {"type": "text", "text": f"{part.get('filename') or 'document'}: {chat.string(part, 'file_url', place)}"}
    if kind == "input_file":
        file = {name: part.get(name) for name in ("filename", "file_data", "file_id")}
        return {"type": "file", "file": chat.given(file)}
    return chat.image(chat.string(part, "image_url", place), **chat.given({"detail": part.get("detail")}))


def _words(content: Any, place: str) -> str:
    texts = chat.parts(content, place, (*_WORDS, "refusal"))
    return "\n".join(chat.string(part, "refusal" if kind == "refusal" else "text", here) for here, kind, part in texts)


def conversation_in(items: Any) -> str | None:
    """Return the conversation that the first of these items was read from, if its id says so.

    The sessions of the Agents SDK read their conversation, and send it with each request.
    """
    for item in items if isinstance(items, list) else ():
        found = _OF_CONVERSATION.fullmatch(str(item.get("id"))) if isinstance(item, Mapping) else None
        if found:
            return found[1]
    return None


class NewItems(OpenRequest):
    """Items to append: messages, calls of functions and their outputs."""

    items = fields.Items(fields.Dict(), APPENDED_MESSAGES_MAX, load_default=(), allow_none=True)

    @post_load
    def _read_items(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {**data, "items": messages_of(list(data["items"] or ()), "items")}


class ConversationObject(Open):
    """Conversation: a session with the same id."""

    id = fields.String()
    object = fields.Constant("conversation")
    created_at = fields.Function(lambda session: int(session.created_at.timestamp()), metadata={"type": "integer"})
    metadata = fields.Function(
        lambda session: session.client_metadata or {}, metadata={"type": "object", "additionalProperties": {}}
    )


class ConversationItem(Open):
    """Message, call of a function, or its output."""

    id = fields.String()
    type = fields.String()


class ConversationItems(Open):
    """Items, and whether there are more after the last."""

    object = fields.Constant("list")
    data = fields.List(fields.Nested(ConversationItem))
    first_id = fields.String(allow_none=True)
    last_id = fields.String(allow_none=True)
    has_more = fields.Boolean()


def items_of(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    """Yield stored messages as items."""
    for message in messages:
        place = f"{message.id}_{message.session_id}"
        if message.role == "tool":
            result = {"call_id": answered(message.extra) or "", "output": message.content, "status": "completed"}
            yield {"type": "function_call_output", "id": f"fco_{place}", **result}
        elif message.content:
            yield message_item(message.role, message.content, f"msg_{place}")
        for number, call in enumerate(calls_of(message.extra)):
            named = {"call_id": call.id, "name": call.name, "arguments": call.arguments, "status": "completed"}
            yield {"type": "function_call", "id": f"fc{number}_{place}", **named}


def message_item(role: str, text: str, id: str) -> dict[str, Any]:
    content = output_text(text) if role == "assistant" else {"type": "input_text", "text": text}
    return {"type": "message", "id": id, "status": "completed", "role": role, "content": [content]}


def output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def item_list(items: Sequence[Mapping[str, Any]], *, has_more: bool = False) -> Response:
    """Answer with a list of items in OpenAI's form."""
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return jsonify(object="list", data=items, first_id=first, last_id=last, has_more=has_more)


class NewConversation(NewItems):
    metadata = fields.ClientMetadata(**fields.OPTIONAL)
    user = fields.Raw(load_default=None, about="The person, unless another place names one.")
    safety_identifier = fields.Raw(load_default=None, about="The person, unless a header names one.")


class ConversationChange(OpenRequest):
    metadata = fields.ClientMetadata(required=True, allow_none=True)


class DeletedObject(Open):
    id = fields.String()
    object = fields.String()
    deleted = fields.Constant(True)


class ItemQuery(Input):
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
def create_conversation(body: dict[str, Any]) -> Any:
    """Begin a conversation

    Without items it is empty. The first person who is named in it has it.
    """
    whom = client_caller(body)
    id = f"{CONVERSATION}{uuid.uuid4().hex}"
    created = current_engine().sessions.create(whom, id, client_metadata=body["metadata"])
    append_items(whom, id, body["items"])
    return created


@blueprint.get(OF_CONVERSATION, returns=ConversationObject)
def get_conversation(conversation_id: str) -> Any:
    """Read a conversation: any session by its id"""
    return find_conversation(client_caller({}), conversation_id)


@blueprint.post(OF_CONVERSATION, body=ConversationChange, returns=ConversationObject)
def update_conversation(body: dict[str, Any], conversation_id: str) -> Any:
    """Change what is kept with a conversation"""
    whom = client_caller({})
    changes = {"client_metadata": body["metadata"]}
    find_conversation(whom, conversation_id)
    return current_engine().sessions.change(whom, conversation_id, changes)


@blueprint.delete(OF_CONVERSATION, returns=DeletedObject, slow=True)
def delete_conversation(conversation_id: str) -> dict[str, Any]:
    """Erase a conversation with its items, as DELETE /api/sessions/{session_id} does"""
    whom = client_caller({})
    find_conversation(whom, conversation_id)
    erase_session(current_engine(), whom, conversation_id)
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}


def find_conversation(whom: Caller, id: str, *, param: str = "conversation_id") -> Any:
    """Return the session of a conversation.

    An empty one that was made without a name becomes that of the first person who is named, outside of spaces.
    Raises NotFound.
    """
    sessions = current_engine().sessions
    try:
        return sessions.get(whom, id)
    except NotFound:
        is_secret = _SECRET.fullmatch(id)
        if is_secret and whom.user_id is not None and whom.space is None and (adopted := sessions.adopt(whom, id)):
            return adopted
        raise NotFound("conversation_not_found", f"There is no conversation {id!r}.", param=param) from None


@item_blueprint.get("", query=ItemQuery, returns=ConversationItems)
def list_items_of_conversation(query: dict[str, Any], conversation_id: str) -> Response:
    """List the items of a conversation, newest first

    A message of the person's, of the model's and of a function's has the id that it is retrieved by.
    """
    whom = client_caller({})
    sessions = current_engine().sessions
    find_conversation(whom, conversation_id)
    newest_first = query["order"] == "desc"
    limit = query["limit"]
    after = query["after"]
    cursor = None
    if after is not None:  # its message may have more items
        position = _message_of_item(whom, conversation_id, after).position
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
    message = _message_of_item(client_caller({}), conversation_id, item_id)
    return jsonify(next(item for item in items_of([message]) if item["id"] == item_id))


@item_blueprint.delete("/<item_id>", returns=ConversationObject, slow=True)
def delete_item_of_conversation(conversation_id: str, item_id: str) -> Any:
    """Erase the message of an item, for good"""
    whom = client_caller({})
    conversation = find_conversation(whom, conversation_id)
    message = _message_of_item(whom, conversation_id, item_id)
    erase_message(current_engine(), whom, conversation_id, message.id)
    return conversation


def _message_of_item(whom: Caller, conversation_id: str, item_id: str) -> Message:
    """Return the message of an item. Raises NotFound."""
    session_id, message_id = chat.turn_named(item_id)
    if session_id == conversation_id:
        with suppress(NotFound):
            (message,) = current_engine().sessions.messages_around(whom, session_id, message_id, limit=1).items
            if any(item["id"] == item_id for item in items_of([message])):
                return message
    raise NotFound("item_not_found", f"There is no item {item_id!r} in the conversation.", param="item_id")


def append_items(whom: Caller, id: str, raw: Sequence[dict[str, Any]]) -> Sequence[Message]:
    """Store messages of items. A reply that the session ends with, and what comes before, is there."""
    sessions = current_engine().sessions
    last = sessions.messages(whom, id, limit=max(1, len(raw)), newest_first=True).items[::-1]
    drafts, new = new_drafts(last, raw)
    if new:
        sessions.append(whom, id, new)
    return sessions.messages(whom, id, limit=len(drafts), newest_first=True).items[::-1] if drafts else ()
