"""ChatGPT's `conversations.json`, or `conversations-000.json` and so on, and DeepSeek's: each is a tree of messages.

Of each conversation, the branch that the person saw last is imported: from `current_node` up through the parents. An
image, a recording or a file becomes a placeholder such as `[image]`. Calls of tools and thoughts are left out. Custom
instructions go to the profile.

DeepSeek does not say which branch was seen last, so the one with the newest message is. Its messages are in fragments,
of which those with thoughts and searches are left out.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memory.json_values import dict_in, dicts_in
from memory.transfer.sources.times import Times
from memory.transfer.sources.values import Record, branch, chat, digest, drafts, profile, text
from models.messages import MessageDraft

_CITATION = re.compile("\ue200[^\ue200\ue201]*\ue201")  # a mark of ChatGPT's page, not words
_INNER = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
_SPEAKERS = ("user", "assistant")
_FRAGMENTS = {"REQUEST": "user", "RESPONSE": "assistant"}  # of DeepSeek's
_CUSTOM = {  # the profile's names for instructions, and ChatGPT's two
    "about": ("about_user_message", "user_profile"),
    "wishes": ("about_model_message", "user_instructions"),
}
_FENCED = re.compile(r"\A.*?```(.*)```.*", re.DOTALL)  # the person's own words, in what the model is told of them


def recognises(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("mapping"), Mapping)


def records(conversation: Mapping[str, Any], times: Times) -> Iterator[Record]:
    """Yield the session of a conversation, and its custom instructions."""
    nodes = {key: node for key, node in conversation["mapping"].items() if isinstance(node, Mapping)}
    began = times.read(conversation.get("create_time"))
    ids = conversation.get("conversation_id"), conversation.get("id"), f"chatgpt-{digest(*nodes)}"
    updated = times.read(conversation.get("update_time"))
    messages = (
        draft
        for key, message, at in _branch(nodes, "create_time", began, times, conversation.get("current_node"))
        if _is_shown(message)
        for draft in drafts(message["author"]["role"], _words(message), at, text(key))
    )
    yield chat("chatgpt", ids, conversation.get("title"), messages, began, updated)
    for node in nodes.values():
        message = dict_in(node.get("message"))
        custom = dict_in(dict_in(message.get("metadata")).get("user_context_message_data"))
        content = dict_in(message.get("content"))
        if custom or content.get("content_type") == "user_editable_context":
            shown = {field: _FENCED.sub(r"\1", text(content.get(name))) for field, (_, name) in _CUSTOM.items()}
            yield profile(
                {field: custom.get(own) or shown[field] for field, (own, _) in _CUSTOM.items()}, began or times.now
            )


def recognises_deepseek(item: Mapping[str, Any]) -> bool:
    return recognises(item) and "inserted_at" in item


def of_deepseek(conversation: Mapping[str, Any], times: Times) -> Iterator[Record]:
    began, updated = times.read(conversation.get("inserted_at")), times.read(conversation.get("updated_at"))
    branch = _branch(conversation["mapping"], "inserted_at", began, times)
    messages = (draft for key, message, at in branch for draft in _of_fragments(message, at, key))
    yield chat("deepseek", [conversation.get("id")], conversation.get("title"), messages, began, updated)


def _of_fragments(message: Mapping[str, Any], at: datetime | None, key: str) -> Iterator[MessageDraft]:
    names = (text(file.get("file_name")) for file in dicts_in(message.get("files")))
    files = [f"[file: {name}]" if name else "[file]" for name in names]
    for kind, role in _FRAGMENTS.items():
        fragments = dicts_in(message.get("fragments"))
        words = [text(fragment.get("content")) for fragment in fragments if fragment.get("type") == kind]
        if words:
            yield from drafts(role, "\n".join([*words, *(files if role == "user" else ())]), at, f"{key}-{role}")


def _branch(
    nodes: Mapping[str, Any], time: str, began: datetime | None, times: Times, tip: Any = None
) -> Iterator[tuple[str, Mapping[str, Any], datetime | None]]:
    """Yield the ids, messages and times of the branch that ends with `tip`. time: the name of a message's time."""
    messages = {key: dict_in(dict_in(node).get("message")) for key, node in nodes.items()}
    parents = {key: dict_in(node).get("parent") for key, node in nodes.items()}
    at_of = {key: times.read(message.get(time)) for key, message in messages.items()}
    at = began
    for key in branch(parents, at_of, tip):
        at = at_of[key] or at
        yield key, messages[key], at


def _is_shown(message: Mapping[str, Any]) -> bool:
    """Return whether the page shows the message to the person."""
    hidden = dict_in(message.get("metadata")).get("is_visually_hidden_from_conversation")
    inner = dict_in(message.get("content")).get("content_type") in _INNER
    to_a_tool = message.get("recipient") not in (None, "all")
    return dict_in(message.get("author")).get("role") in _SPEAKERS and not (hidden or inner or to_a_tool)


def _words(message: Mapping[str, Any]) -> str:
    """Return the text of a message, with placeholders for everything else."""
    content = dict_in(message.get("content"))
    if not content:
        return ""
    parts = content.get("parts")
    if isinstance(parts, list):
        pieces = [_part(part) for part in parts]
        if any(dict_in(part).get("content_type") == "audio_transcription" for part in parts):  # it has the words
            pieces = [piece for piece in pieces if piece not in ("[audio]", "[video]")]
    else:
        pieces = [_part(content)]
    return text(_CITATION.sub("", "\n".join(piece for piece in (*pieces, *_files(message)) if piece)))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    kind = str(part.get("content_type") or "attachment")
    return next((f"[{name}]" for name in ("image", "video", "audio") if name in kind), f"[{kind.replace('_', ' ')}]")


def _files(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield placeholders for attached files. Images are among the parts already."""
    for item in dicts_in(dict_in(message.get("metadata")).get("attachments")):
        if not str(item.get("mime_type") or "").startswith("image/"):
            yield f"[file: {item['name']}]" if isinstance(item.get("name"), str) else "[file]"
