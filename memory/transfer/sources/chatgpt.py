"""ChatGPT's `conversations.json`, or `conversations-000.json` and so on: conversations, each a tree of messages.

Of each conversation, the branch that the person saw last is imported: from `current_node` up through the parents. An
image, a recording or a file becomes a placeholder such as `[image]`. Calls of tools and thoughts are left out. Custom
instructions go to the profile.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memory.json_values import dict_in, dicts_in
from memory.transfer.sources.times import Times
from memory.transfer.sources.values import Record, branch, chat, digest, drafts, profile, text
from models.messages import MessageDraft

_CITATION = re.compile("\ue200[^\ue201]*\ue201")  # a mark of ChatGPT's page, not words
_INNER = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
_SPEAKERS = ("user", "assistant")
_CUSTOM = {  # the profile's names for instructions, and ChatGPT's two
    "about": ("about_user_message", "user_profile"),
    "wishes": ("about_model_message", "user_instructions"),
}
_FENCED = re.compile(r".*?```(.*)```.*", re.DOTALL)  # the person's own words, in what the model is told of them


def recognises(item: Mapping[str, Any]) -> bool:
    """Return whether this is a conversation of ChatGPT's."""
    return isinstance(item.get("mapping"), Mapping)


def records(conversation: Mapping[str, Any], times: Times) -> Iterator[Record]:
    """Yield the session of a conversation, and its custom instructions."""
    nodes = {key: node for key, node in conversation["mapping"].items() if isinstance(node, Mapping)}
    began = times.read(conversation.get("create_time"))
    ids = conversation.get("conversation_id"), conversation.get("id"), f"chatgpt-{digest(*nodes)}"
    updated = times.read(conversation.get("update_time"))
    yield chat("chatgpt", ids, conversation.get("title"), _messages(conversation, nodes, began, times), began, updated)
    for node in nodes.values():
        message = dict_in(node.get("message"))
        custom = dict_in(dict_in(message.get("metadata")).get("user_context_message_data"))
        content = dict_in(message.get("content"))
        if custom or content.get("content_type") == "user_editable_context":
            shown = {field: _FENCED.sub(r"\1", text(content.get(name))) for field, (_, name) in _CUSTOM.items()}
            yield profile(
                {field: custom.get(own) or shown[field] for field, (own, _) in _CUSTOM.items()}, began or times.now
            )


def _messages(
    conversation: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]], began: datetime | None, times: Times
) -> Iterator[MessageDraft]:
    messages = {key: dict_in(node.get("message")) for key, node in nodes.items()}
    parents = {key: node.get("parent") for key, node in nodes.items()}
    at_of = {key: times.read(message.get("create_time")) for key, message in messages.items()}
    at = began
    for key in branch(parents, at_of, conversation.get("current_node")):
        at = at_of[key] or at
        if _is_shown(messages[key]):
            yield from drafts(messages[key]["author"]["role"], _words(messages[key]), at, text(key))


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
