"""DeepSeek's `conversations.json`: conversations, each a tree of messages in fragments.

Of each conversation, the branch with the newest message is imported. Thoughts and searches are left out; a file becomes
a placeholder.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memory.json_values import dict_in, dicts_in
from memory.transfer.sources.times import Times
from memory.transfer.sources.values import Record, branch, chat, drafts, text
from models.messages import MessageDraft

_SPEAKERS = {"REQUEST": "user", "RESPONSE": "assistant"}


def recognises(item: Mapping[str, Any]) -> bool:
    """Return whether this is a conversation of DeepSeek's."""
    return isinstance(item.get("mapping"), Mapping) and "inserted_at" in item


def records(conversation: Mapping[str, Any], times: Times) -> Iterator[Record]:
    """Yield the session of a conversation."""
    began, updated = times.read(conversation.get("inserted_at")), times.read(conversation.get("updated_at"))
    messages = _messages(conversation["mapping"], began, times)
    yield chat("deepseek", [conversation.get("id")], conversation.get("title"), messages, began, updated)


def _messages(nodes: Mapping[str, Any], began: datetime | None, times: Times) -> Iterator[MessageDraft]:
    messages = {key: dict_in(dict_in(node).get("message")) for key, node in nodes.items()}
    parents = {key: dict_in(node).get("parent") for key, node in nodes.items()}
    at_of = {key: times.read(message.get("inserted_at")) for key, message in messages.items()}
    at = began
    for key in branch(parents, at_of):
        at = at_of[key] or at
        names = (text(file.get("file_name")) for file in dicts_in(messages[key].get("files")))
        files = [f"[file: {name}]" if name else "[file]" for name in names]
        for kind, role in _SPEAKERS.items():
            fragments = dicts_in(messages[key].get("fragments"))
            words = [text(fragment.get("content")) for fragment in fragments if fragment.get("type") == kind]
            if words:
                yield from drafts(role, "\n".join([*words, *(files if role == "user" else ())]), at, f"{key}-{role}")
