"""Chats as most programs write them: `{"id", "title", "messages": [{"role", "content", "created_at", "id"}]}`.

A message may also stand alone, with its `session_id`. Other names of these fields, used by APIs and frameworks, are
read too, and so are the state of a LangGraph thread, chats of Open WebUI, and the lines that Claude Code writes. A
message without an id is known by its place in its chat, one that stands alone by its time and text.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memory.transfer.sources.values import (
    Record,
    chat,
    digest,
    drafts,
    mapping,
    moment,
    objects,
    role_of,
    text,
    words,
)
from models.messages import MessageDraft

_IDS = ("session_id", "sessionId", "thread_id", "conversation_id", "id", "uuid")
_TIMES = ("created_at", "timestamp", "time", "create_time")
_ROLES = ("role_type", "role", "type", "sender")


def recognises(item: Mapping[str, Any]) -> bool:
    """Return whether this is a chat, or a message of one."""
    item = _unwrapped(item)
    return isinstance(item.get("messages"), list) or ("content" in item and _role(item) is not None)


def records(item: Mapping[str, Any], now: datetime) -> Iterator[Record]:
    item = _unwrapped(item)
    if item.get("isMeta") or item.get("isSidechain"):  # what Claude Code told itself, or a helper of its own
        return
    if "messages" not in item:
        places = *(item.get(name) for name in _IDS[:4]), "imported"
        alone = digest(str(_time(item)), str(_role(item)), words(item.get("content")))
        yield chat("chat", places, "", _drafts(item, alone, None))
        return
    began, messages = _time(item), objects(item["messages"])
    all_drafts = (draft for number, message in enumerate(messages, 1) for draft in _drafts(message, str(number), began))
    first = (words(message.get("content")) for message in messages[:2])
    ids = *(item.get(name) for name in _IDS), f"chat-{digest(*first)}"
    yield chat("chat", ids, item.get("title") or item.get("name"), all_drafts, began, moment(item.get("updated_at")))


def _unwrapped(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a chat or message with what its frame has beside it."""
    for frame in ("values", "chat"):
        if isinstance(item.get(frame), Mapping):
            return {**mapping(item.get("metadata")), **item[frame], **item}
    return {**mapping(item["message"]), **item, "id": item.get("uuid")} if "message" in item else item


def _drafts(message: Mapping[str, Any], place: str, began: datetime | None) -> Iterator[MessageDraft]:
    role = _role(message)
    if role is not None:
        key = next((text(message.get(name)) for name in ("id", "uuid") if text(message.get(name))), place)
        at, name = _time(message) or began, text(message.get("name"))
        yield from drafts(role, words(message.get("content")), at, key, name)


def _role(message: Mapping[str, Any]) -> str | None:
    return next((role for name in _ROLES if (role := role_of(message.get(name)))), None)


def _time(item: Mapping[str, Any]) -> datetime | None:
    return next((at for name in _TIMES if (at := moment(item.get(name)))), None)
