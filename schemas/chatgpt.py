"""ChatGPT's export, `conversations.json`: a list of conversations, each a tree of messages.

Of each conversation, the branch that the person saw last is imported: from `current_node` up through the parents.  It
has the words of the person and of the assistant; an image, a recording or a file becomes a placeholder such as
`[image]`.  The assistant's calls of tools, its thoughts and the person's settings are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memory.people.export import SessionRecord
from memory.sessions.messages import MESSAGE_CHARS_MAX, MessageDraft
from schemas.fields import ID, UNSTORABLE

_CITATION = re.compile("\ue200[^\ue201]*\ue201")  # a mark of ChatGPT's page, not words
_INNER = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
_SPEAKERS = ("user", "assistant")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def looks_right(conversation: Any) -> bool:
    """Whether this is a conversation of ChatGPT's."""
    return isinstance(conversation, Mapping) and isinstance(conversation.get("mapping"), Mapping)


def session(conversation: Mapping[str, Any]) -> SessionRecord:
    """A conversation as a session.  It has no messages when nobody said anything."""
    began = _time(conversation.get("create_time"))
    title = conversation.get("title")
    return SessionRecord(
        id=_id(conversation),
        title=" ".join(_clean(title).split())[:200] if isinstance(title, str) else "",
        system_prompt=None,
        created_at=began,
        updated_at=_time(conversation.get("update_time")),
        facts_through=0,
        messages=tuple(_messages(conversation, began)),
        by_external_id=True,
    )


def _id(conversation: Mapping[str, Any]) -> str:
    for name in ("conversation_id", "id"):
        given = conversation.get(name)
        if isinstance(given, str) and ID.fullmatch(given) and not UNSTORABLE.search(given):
            return given
    # Older exports may have none.  The ids of its messages are unique.
    return "chatgpt-" + hashlib.sha256("\0".join(conversation["mapping"]).encode("utf-8", "replace")).hexdigest()[:32]


def _messages(conversation: Mapping[str, Any], began: datetime | None) -> Iterator[MessageDraft]:
    at = began
    for node_id, message in _branch(conversation):
        text = _text_of(message)
        at = _time(message.get("create_time")) or at
        external_id = _clean(node_id)[:250]
        for number, start in enumerate(range(0, len(text), MESSAGE_CHARS_MAX), 1):
            yield MessageDraft(
                role=message["author"]["role"],
                content=text[start : start + MESSAGE_CHARS_MAX],
                created_at=at,
                external_id=external_id if number == 1 else f"{external_id}#{number}",
            )


def _branch(conversation: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The messages the person saw last, in order, each with the id of its node."""
    nodes: Mapping[str, Any] = {key: node for key, node in conversation["mapping"].items() if isinstance(node, Mapping)}
    at = conversation.get("current_node")
    if not isinstance(at, str) or at not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        at = max(leaves, key=lambda key: _said_at(nodes[key]), default=None)
    branch: list[tuple[str, Mapping[str, Any]]] = []
    seen: set[str] = set()
    while isinstance(at, str) and at in nodes and at not in seen:
        seen.add(at)
        message = _mapping(nodes[at].get("message"))
        if _is_said(message):
            branch.append((at, message))
        at = nodes[at].get("parent")
    return branch[::-1]


def _said_at(node: Mapping[str, Any]) -> datetime:
    return _time(_mapping(node.get("message")).get("create_time")) or _LONG_AGO


def _is_said(message: Mapping[str, Any]) -> bool:
    """Whether the person wrote it, or saw it as an answer."""
    hidden = _mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
    inner = _mapping(message.get("content")).get("content_type") in _INNER
    to_a_tool = message.get("recipient") not in (None, "all")
    return _mapping(message.get("author")).get("role") in _SPEAKERS and not (hidden or inner or to_a_tool)


def _text_of(message: Mapping[str, Any]) -> str:
    """Its words, with placeholders for everything else."""
    content = _mapping(message.get("content"))
    if not content:
        return ""
    parts = content.get("parts")
    if isinstance(parts, list):
        pieces = [_part(part) for part in parts]
        if any(_mapping(part).get("content_type") == "audio_transcription" for part in parts):  # which has the words
            pieces = [piece for piece in pieces if piece not in ("[audio]", "[video]")]
    else:
        pieces = [_part(content)]
    return _clean("\n".join(piece for piece in (*pieces, *_files(message)) if piece)).strip()


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
    """Placeholders for attached files.  Images are among the parts already."""
    attached = _mapping(message.get("metadata")).get("attachments")
    for item in attached if isinstance(attached, list) else ():
        if isinstance(item, Mapping) and not str(item.get("mime_type") or "").startswith("image/"):
            yield f"[file: {item['name']}]" if isinstance(item.get("name"), str) else "[file]"


def _mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one: no field of the export is certain to be there."""
    return value if isinstance(value, Mapping) else {}


def _clean(text: str) -> str:
    """`text` without what can't be stored, and without ChatGPT's marks of citations."""
    return UNSTORABLE.sub("\ufffd", _CITATION.sub("", text))


def _time(seconds: Any) -> datetime | None:
    """A moment from seconds since 1970; None for anything else."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
