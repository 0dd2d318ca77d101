"""Items of OpenAI's Responses and Conversations: as messages of a chat completion, and stored messages as items.

The id of an item of a stored message names that message and its session.  A message with calls of functions has
several items: its words, if there are any, then each call.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flask import Response, jsonify
from marshmallow import ValidationError, post_load

from api.protocols import client_requests as chat
from api.protocols.client_requests import Object
from api.protocols.openai import MESSAGES_MAX, OpenRequest
from memory.transcripts.transcript import INSTRUCTING, answered, calls_of
from models.messages import ListedMessage, Message
from schemas import fields
from schemas.messages import APPENDED_MESSAGES_MAX
from schemas.shapes import Open

_ROLES = ("user", "assistant", *INSTRUCTING)
_WORDS = ("text", "input_text", "output_text")
REASONING = "rs_"  # begins the id of what the model thought, which nobody keeps
CONVERSATION = "conv_"  # begins the id of a session that was made as a conversation
_OF_CONVERSATION = re.compile(rf"msg_[0-9]+_({CONVERSATION}[0-9a-f]{{32}})")  # the id of a message in one


def messages_of(items: Any, field: str = "input") -> list[dict[str, Any]]:
    """Return items, or an input of one text, as messages. Raises ValidationError.

    Calls of functions belong to the assistant's message that they follow. field: the name of the request's field.
    """
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    if not isinstance(items, list) or len(items) > MESSAGES_MAX:
        raise ValidationError(f"Must be a string, or a list of at most {MESSAGES_MAX:,} items.", field)
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        place = f"{field}.{number}"
        if isinstance(item, Mapping) and "type" not in item:
            item = {**item, "type": "message"}
        kind = chat.type_of(item, place)
        if kind == "message":
            messages.append(_message(item, place))
        elif kind in ("function_call", "custom_tool_call"):
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            id, name = (chat.string(item, field_name, place) for field_name in ("call_id", "name"))
            call = chat.called(id, name, _arguments(item, place))
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = _words(item.get("output"), f"{place}.output")
            messages.append({"role": "tool", "tool_call_id": chat.string(item, "call_id", place), "content": output})
        else:
            _pass_over(item, kind, place)
    return messages


def _pass_over(item: Object, kind: str, place: str) -> None:
    is_reasoning = kind == "reasoning" or str(item.get("id")).startswith(REASONING)
    if kind == "item_reference" and not is_reasoning:
        raise ValidationError("Recap keeps no items to refer to. Send the item itself.", place)
    if not is_reasoning:
        chat.leave_out(place, kind)


def _arguments(call: Object, place: str) -> str:
    if call["type"] == "custom_tool_call":
        return json.dumps({"input": chat.string(call, "input", place)}, ensure_ascii=False)
    return chat.string(call, "arguments", place)


def _message(item: Object, place: str) -> dict[str, Any]:
    role, content, place = item.get("role"), item.get("content"), f"{place}.content"
    if role not in _ROLES:
        raise ValidationError(f"Must be one of {', '.join(_ROLES)}.", place.replace("content", "role"))
    if isinstance(content, str):
        return {"role": role, "content": content}
    if role == "assistant":
        return {"role": role, "content": _words(content, place)}
    known = [_part(*part) for part in chat.parts(content, place, (*_WORDS, "input_image", "input_file"))]
    return {"role": role, "content": known or "[left out]"}


def _part(place: str, kind: str, part: Object) -> dict[str, Any]:
    if kind in _WORDS:
        return {"type": "text", "text": chat.string(part, "text", place)}
    if kind == "input_file" and part.get("file_url"):  # a chat completion takes no address
        chat.leave_out(f"{place}.file_url")
        return {"type": "text", "text": f"{part.get('filename') or 'document'}: {chat.string(part, 'file_url', place)}"}
    if kind == "input_file":
        return {
            "type": "file",
            "file": chat.given({name: part.get(name) for name in ("filename", "file_data", "file_id")}),
        }
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


def items_of(messages: Iterable[Message | ListedMessage]) -> Iterator[dict[str, Any]]:
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
