"""Chats as most programs write them: `{"id", "title", "messages": [{"role", "content", "created_at", "id"}]}`.

A message may also stand alone, with its `session_id`. Other names of these fields, used by APIs, frameworks and
PROGRAMS, are read too, and so is the state of a LangGraph thread. Where messages name their parents, one branch is
imported. A message without an id is known by its place in its chat, one that stands alone by its time and text, and a
chat without an id by its messages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from memory.json_values import dict_in, dicts_in
from memory.transfer.sources.times import Times
from memory.transfer.sources.values import Record, branch, chat, digest, drafts, role_of, text, words
from models.messages import MessageDraft

PROGRAMS = ("AI Studio", "Claude Code", "Copilot", "Grok", "Le Chat", "LibreChat", "Open WebUI", "SillyTavern")
_CHAT_IDS = ("session_id", "sessionId", "thread_id", "conversation_id", "conversationId", "chatId")
_IDS = ("id", "uuid", "messageId", "_id")
_TIMES = ("created_at", "timestamp", "time", "create_time", "createdAt", "send_date")
_ROLES = ("role_type", "role", "type", "sender", "from")
_IS_PERSON = ("isCreatedByUser", "is_user")
_WORDS = ("content", "parts", "text", "value", "mes", "message")
_LISTS = ("messages", "conversations", "responses", "chunks")
_PARENTS = ("parentMessageId", "parentId", "parent_response_id")
_NO_PARENT = "00000000-0000-0000-0000-000000000000"


def recognises(item: Mapping[str, Any]) -> bool:
    item = _unwrapped(item)
    has_speaker = _role(item) is not None or not item.keys().isdisjoint(_IS_PERSON)
    return _listed(item) is not None or (has_speaker and not item.keys().isdisjoint(_WORDS))


def records(item: Mapping[str, Any], times: Times) -> Iterator[Record]:
    item = _unwrapped(item)
    if item.get("isMeta") or item.get("isSidechain"):  # what Claude Code told itself, or a helper of its own
        return
    messages = _listed(item)
    if messages is None:
        places = *(item.get(name) for name in _CHAT_IDS), "imported"
        alone = digest(str(_time(item, times)), str(_role(item)), _words(item))
        yield chat("chat", places, item.get("title"), _drafts(item, alone, None, times))
        return
    began = _time(item, times)
    line = _branch(messages, dict_in(item.get("history")).get("currentId"), times)
    all_drafts = (draft for key, message in line.items() for draft in _drafts(message, key, began, times))
    alike = f"chat-{digest(*map(_words, messages[:2]))}"  # also of other chats that begin in the same way
    ids = *(item.get(name) for name in (*_CHAT_IDS, *_IDS)), alike
    record = chat(
        "chat", ids, item.get("title") or item.get("name"), all_drafts, began, times.read(item.get("updated_at"))
    )
    yield replace(record, by_external_id=record.id != alike)


def _unwrapped(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a chat or message with what its frame has beside it."""
    for frame in ("values", "chat", "conversation", "chunkedPrompt"):
        if isinstance(item.get(frame), Mapping):
            return {**dict_in(item.get("metadata")), **item[frame], **item}
    message = dict_in(item.get("message"))
    return {**message, **item, "id": item.get("uuid")} if message else item


def _listed(item: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the messages of a chat, the answers to each after it; None if this is no chat."""
    listed = next((item[name] for name in _LISTS if isinstance(item.get(name), list)), None)
    if listed is None and not (listed := list(dict_in(dict_in(item.get("history")).get("messages")).values())):
        return None
    messages = [dict_in(message.get("response")) or message for message in dicts_in(listed)]
    return [part for message in messages for part in (message, *(_listed({"messages": message.get("children")}) or ()))]


def _branch(messages: list[Mapping[str, Any]], tip: Any, times: Times) -> dict[str, Mapping[str, Any]]:
    """Return the messages up to `tip`, else of the newest branch, by their ids or places; all if none has a parent."""
    by_key = {_text_of(message, _IDS) or str(place): message for place, message in enumerate(messages, 1)}
    parents = {key: _text_of(message, _PARENTS) for key, message in by_key.items()}
    if not any(parents.values()):
        return by_key
    above = {key: parent if parent not in ("", _NO_PARENT) else None for key, parent in parents.items()}
    at_of = {key: _time(message, times) for key, message in by_key.items()}
    return {key: by_key[key] for key in branch(above, at_of, tip)}


def _drafts(message: Mapping[str, Any], key: str, began: datetime | None, times: Times) -> Iterator[MessageDraft]:
    role = _role(message)
    if role is not None:
        key = _text_of(message, _IDS) or key
        yield from drafts(role, _words(message), _time(message, times) or began, key, text(message.get("name")))


def _role(message: Mapping[str, Any]) -> str | None:
    if message.get("is_system") or message.get("isThought"):
        return None
    is_person = next((message[name] for name in _IS_PERSON if isinstance(message.get(name), bool)), None)
    if is_person is not None:
        return "user" if is_person else "assistant"
    return next((role for name in _ROLES if (role := role_of(message.get(name)))), None)


def _words(message: Mapping[str, Any]) -> str:
    return next((text for name in _WORDS if (text := words(message.get(name)))), "")


def _text_of(item: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := text(item.get(name)))), "")


def _time(item: Mapping[str, Any], times: Times) -> datetime | None:
    return times.read(*(item.get(name) for name in _TIMES))
