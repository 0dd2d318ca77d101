"""Claude's export: `conversations.json`, `projects.json` and `memories.json`, or a file for each.

Of a conversation, the branch with the newest message is imported. Long pasted text, which Claude keeps beside the
message, is part of it. Thoughts and calls of tools are left out. A project becomes a session of its instructions and
documents. Each sentence that Claude remembers becomes a fact.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memory.json_values import dict_in, dicts_in
from memory.transfer.sources.times import Times
from memory.transfer.sources.values import Record, branch, chat, drafts, memory, role_of, text, words
from models.messages import MessageDraft

_MEMORIES = ("conversations_memory", "project_memories")
_UNSUPPORTED = re.compile(  # a tool's call
    r"(?<!\s)\s*+```\s*This block is not supported on your current device yet\.\s*```\s*"
)
_HEADING = re.compile(r"#+ .*|\*\*[^*]+\*\*:?")
_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+(?=\S)")


def recognises(item: Mapping[str, Any]) -> bool:
    """Return whether this is a conversation, a project or the memory of an account."""
    project = "uuid" in item and not item.keys().isdisjoint(("docs", "prompt_template"))
    return "chat_messages" in item or project or not item.keys().isdisjoint(_MEMORIES)


def records(item: Mapping[str, Any], times: Times) -> Iterator[Record]:
    if not item.keys().isdisjoint(_MEMORIES):
        remembered = [item.get("conversations_memory"), *dict_in(item.get("project_memories")).values()]
        for line in "\n".join(map(text, remembered)).splitlines():
            if not _HEADING.fullmatch(line.strip()):
                sentences = _SENTENCES.split(line.strip(" \t-*"))
                yield from (memory(sentence, times) for sentence in sentences if sentence)
        return
    began, updated = times.read(item.get("created_at")), times.read(item.get("updated_at"))
    messages = _messages(item, times) if "chat_messages" in item else _documents(item, began, times)
    yield chat("claude", [item.get("uuid")], item.get("name"), messages, began, updated)


def _messages(conversation: Mapping[str, Any], times: Times) -> Iterator[MessageDraft]:
    at = times.read(conversation.get("created_at"))
    messages = enumerate(dicts_in(conversation["chat_messages"]))
    by_key = {text(message.get("uuid")) or str(number): message for number, message in messages}
    above = {key: text(message.get("parent_message_uuid")) for key, message in by_key.items()}
    parents = {key: parent if parent in by_key else None for key, parent in above.items()}  # the first one's is unknown
    at_of = {key: times.read(message.get("created_at")) for key, message in by_key.items()}
    path = branch(parents, at_of, conversation.get("current_leaf_message_uuid")) if any(above.values()) else by_key
    for key in path:
        message = by_key[key]
        at = at_of[key] or at
        role = role_of(message.get("sender"))
        if role is not None:
            yield from drafts(role, _words(message), at, key)


def _words(message: Mapping[str, Any]) -> str:
    own = text(_UNSUPPORTED.sub("\n\n", words(message.get("content")) or text(message.get("text"))))
    attached = dicts_in(message.get("attachments"))
    pasted = [text(file.get("extracted_content")) for file in attached if not (own and text(file.get("file_name")))]
    names = [file.get("file_name") for file in (*attached, *dicts_in(message.get("files")))]
    files = dict.fromkeys(f"[file: {text(name)}]" for name in names if text(name))
    return text("\n".join(filter(None, (own, *pasted, *files))))


def _documents(project: Mapping[str, Any], at: datetime | None, times: Times) -> Iterator[MessageDraft]:
    for name in ("description", "prompt_template"):
        yield from drafts("user", text(project.get(name)), at, name)
    for number, file in enumerate(dicts_in(project.get("docs"))):
        content = text(f"{text(file.get('filename'))}\n\n{text(file.get('content'))}")
        key = text(file.get("uuid")) or f"document {number}"
        yield from drafts("user", content, times.read(file.get("created_at")) or at, key)
