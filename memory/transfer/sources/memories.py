"""Memories of mem0, Zep and Letta.

mem0's `get_all` returns memories with their text as `memory`. Zep's graph has facts as `fact`, with the time in which
each was valid. Both become facts. Zep's threads and episodes are chats (see `chats`).

Letta's agent files (`.af`) have agents with their messages, and blocks of memory. An agent becomes a session, and the
block `human` the profile. Other blocks say who the agent is, or are notes that it works with: they are left out, with
its instructions, tools and thoughts. An older agent says its words with a tool, `send_message`, beside thoughts, and
wraps the person's in JSON; a newer one writes both as text.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from memory.json_values import dict_in, dicts_in, object_in
from memory.transfer.sources.times import Times
from memory.transfer.sources.values import Record, chat, digest, drafts, memory, profile, role_of, text, words
from models.messages import MessageDraft

PERSON = "human"  # the label of Letta's block that says who the person is


def recognises_mem0(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("memory"), str) and "id" in item


def of_mem0(item: Mapping[str, Any], times: Times) -> Iterator[Record]:
    if statement := text(item["memory"]):
        since = item.get("updated_at"), item.get("created_at")
        yield memory(statement, times, since, ends=(item.get("expiration_date"),))


def recognises_zep(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("fact"), str) and "uuid" in item


def of_zep(item: Mapping[str, Any], times: Times) -> Iterator[Record]:
    if statement := text(item["fact"]):
        since, until = (item.get("valid_at"), item.get("created_at")), (item.get("invalid_at"), item.get("expired_at"))
        yield memory(statement, times, since, until)


def recognises_letta(item: Mapping[str, Any]) -> bool:
    """Return whether this is an agent, or a block of its memory."""
    return ("agent_type" in item and "messages" in item) or {"label", "value", "limit"} <= item.keys()


def of_letta(item: Mapping[str, Any], times: Times) -> Iterator[Record]:
    """Yield the session of an agent, and what it knows of the person."""
    works_alone = item.get("agent_type") == "sleeptime_agent"  # it tidies another agent's memory
    messages = dicts_in(item.get("messages")) if not works_alone else []
    began = next((at for message in messages if (at := times.read(message.get("created_at")))), None)
    if messages:
        id = f"letta-{digest(text(item.get('name')), str(began))}"  # agents are numbered anew in each file
        says = any(call for message in messages for call in _sent(message))
        all_drafts = (
            draft
            for place, message in enumerate(messages, 1)
            for draft in _drafts(message, place, times, says_by_tool=says)
        )
        yield chat("letta", [id], item.get("name"), all_drafts, began)
    for block in (item, *dicts_in(item.get("core_memory"))):
        if block.get("label") == PERSON and text(block.get("value")):
            yield profile({"about": block["value"]}, times.read(block.get("updated_at")) or times.now)


def _drafts(message: Mapping[str, Any], place: int, times: Times, *, says_by_tool: bool) -> Iterator[MessageDraft]:
    role, content = role_of(message.get("role")), words(message.get("content"))
    if role == "assistant" and says_by_tool:
        content = "\n".join(_sent(message))
    elif role == "user" and (kind := (event := object_in(content) or {}).get("type")):  # else the person's own words
        content = text(event.get("message")) if kind == "user_message" else ""
    if role is not None:
        yield from drafts(role, content, times.read(message.get("created_at")), f"{place}-{digest(content)}")


def _sent(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that an agent sent to the person with a tool."""
    for call in dicts_in(message.get("tool_calls")):
        function = dict_in(call.get("function"))
        if function.get("name") == "send_message":
            yield text(dict_in(object_in(function.get("arguments"))).get("message"))
