"""The prompt of a client's request: its own instructions and messages, with the memory in two places.

    [its instructions; at the end of the last one: how to read the memory, the summary, the facts]
    [the tail: as the client sent it, and where it left messages out, as they are stored, with tools' results escaped]
    [its newest message, after what was recalled][calls of tools and their results][instructions]

Guarantee: every field and part that the client sent goes to the model, but for these two additions.  The order is one
that models accept: each tool's result follows the assistant's call of it, and each call has all its results.  A result
without its call is quoted, and a call without its results is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memory.clients.conversation import KEPT, Conversation, Raw, Sent, answered, calls_of, text_of
from memory.llm import ChatMessage
from memory.rendering import quoted, spoken, unmarked
from models.messages import Message


def client_messages(
    conversation: Conversation,
    sent: Mapping[int, Sent],
    memory: str,
    stored: Sequence[Message],
    newest: Message,
    recalled: str,
) -> list[ChatMessage]:
    """The messages to send: `memory` is the head's text, `recalled` goes into the person's `newest` message.

    `sent` are those of the `stored` messages that the client sent, by their ids.
    """
    messages = list(map(_plain, conversation.instructions))
    if memory and messages:
        messages[-1] = _extended(messages[-1], after=memory)
    elif memory:
        messages = [ChatMessage("system", memory)]
    for message in stored:
        one = sent.get(message.id)
        messages += map(_plain, one.before if one is not None else ())
        shown = _shown(message, one)
        if recalled and message.id == newest.id and message.role == "user":
            shown = _extended(shown, before=recalled)
        messages.append(shown)
    return _in_sequence([*messages, *map(_plain, conversation.after)])


def unmodified(conversation: Conversation, without: Collection[Sent] = ()) -> tuple[ChatMessage, ...]:
    """The client's messages as they came, but those `without` which they are to go on."""
    if not without:
        return tuple(map(_plain, conversation.raw))
    left_out = {id(one.raw) for one in without}
    return tuple(_in_sequence([_plain(raw) for raw in conversation.raw if id(raw) not in left_out]))


def _in_sequence(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with calls and results in pairs."""
    out: list[ChatMessage] = []
    at = 0
    while at < len(messages):
        message, at = messages[at], at + 1
        calls = [call.id for call in message.tool_calls if message.role == "assistant"]
        end = at
        while calls and end < len(messages) and messages[end].role not in ("user", "assistant"):
            end += 1
        following, at = messages[at:end], end
        results = [other.tool_call_id for other in following if other.role == "tool"]
        wanted: set[str | None] = set()
        if not calls:
            out.append(_quoted(message) if message.role == "tool" else message)
        elif len(results) >= len(calls) and all(not call or call in results for call in calls):
            wanted = set(calls if all(calls) else results)  # any result may answer a call without an id
            out.append(message)
        elif message.content.strip():
            raw = {name: value for name, value in (message.raw or {}).items() if name != "tool_calls"}
            out.append(ChatMessage(message.role, message.content, raw=raw))
        out += [_quoted(one) if one.role == "tool" and one.tool_call_id not in wanted else one for one in following]
    return out


def _shown(message: Message, sent: Sent | None) -> ChatMessage:
    """A stored message as the client sent it; if it did not, with its calls and placeholders for its images."""
    extra = message.extra or {}
    if sent is not None:
        raw = sent.raw
    elif extra and message.role != "user":
        kept = {name: extra[name] for name in KEPT if name in extra}
        content = unmarked(message.content) if message.role == "tool" else message.content
        raw = {"role": message.role, "content": content or None, **kept}
    else:
        return ChatMessage(*spoken(message))
    return ChatMessage(message.role, message.content, calls_of(raw), answered(raw), raw)


def _extended(message: ChatMessage, *, before: str = "", after: str = "") -> ChatMessage:
    """The message with a text before its words or after them."""

    def extended(sent: Any) -> Any:
        if isinstance(sent, list):
            start, end = ([{"type": "text", "text": text}] if text else [] for text in (before, after))
            return [*start, *sent, *end]
        return "\n\n".join(text for text in (before, sent, after) if text and isinstance(text, str))

    raw = None if message.raw is None else {**message.raw, "content": extended(message.raw.get("content"))}
    return message._replace(content=extended(message.content), raw=raw)


def _plain(raw: Raw) -> ChatMessage:
    return ChatMessage(str(raw.get("role")), text_of(raw), raw=raw)


def _quoted(message: ChatMessage) -> ChatMessage:
    return ChatMessage("user", quoted(message.role, message.content))
