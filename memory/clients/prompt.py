"""The prompt of a client's request: its own instructions and messages, with the memory in two places.

    [its instructions; at the end of the last one: how to read the memory, the summary, the facts]
    [the tail: as the client sent it, and where it left messages out, as they are stored]
    [its newest message, after what was recalled][calls of tools and their results][instructions]

Guarantee: every field and part that the client sent goes to the model, but for these two additions.  The order is one
that models accept: each tool's result follows the assistant's call of it, and each call has all its results.  A result
without its call is quoted, and a call without its results is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory import tokens
from memory.clients.conversation import Conversation, Raw, Sent, as_chat_message, sent_again, text_of
from memory.domain import Message
from memory.llm import ChatMessage
from memory.rendering import quoted, spoken


@dataclass(frozen=True)
class ClientView:
    """What a client sent; `sent` are its messages by the ids under which they are stored."""

    conversation: Conversation
    sent: Mapping[int, Sent] = field(default_factory=dict)

    @property
    def instruction_tokens(self) -> int:
        standing = (*self.conversation.instructions, *self.conversation.after)
        return sum(tokens.estimate_message(text_of(raw)) for raw in standing)


def client_messages(
    client: ClientView, memory: str, stored: Sequence[Message], newest: Message, recalled: str
) -> Sequence[ChatMessage]:
    """The messages to send: `memory` is the head's text, `recalled` goes into the person's `newest` message."""
    messages = _instructed(client.conversation.instructions, memory)
    for message in stored:
        sent = client.sent.get(message.id)
        messages += map(_plain, sent.before if sent is not None else ())
        shown = _shown(message, sent)
        if recalled and message.id == newest.id and message.role == "user":
            shown = _with_recalled(shown, recalled)
        messages.append(shown)
    return in_sequence([*messages, *map(_plain, client.conversation.after)])


def unmodified(conversation: Conversation) -> tuple[ChatMessage, ...]:
    """The client's messages as they came."""
    return tuple(map(_plain, conversation.raw))


def in_sequence(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with calls and results in pairs."""
    out: list[ChatMessage] = []
    at = 0
    while at < len(messages):
        message, at = messages[at], at + 1
        calls = _called(message)
        end = at
        while calls and end < len(messages) and messages[end].role not in ("user", "assistant"):
            end += 1
        following, at = messages[at:end], end
        results = [_answers(other) for other in following if other.role == "tool"]
        wanted: set[str | None] = set()
        if not calls:
            out.append(_quoted(message) if message.role == "tool" else message)
        elif len(results) >= len(calls) and all(call is None or call in results for call in calls):
            wanted = set(results if None in calls else calls)  # any result may answer a call without an id
            out.append(message)
        elif message.content.strip():
            out.append(_without_calls(message))
        out += [_quoted(one) if one.role == "tool" and _answers(one) not in wanted else one for one in following]
    return out


def _instructed(instructions: Sequence[Raw], memory: str) -> list[ChatMessage]:
    """The instructions, the last of them with the memory at its end."""
    if not instructions:
        return [ChatMessage("system", memory)] if memory else []
    *before, last = instructions
    if not memory:
        return list(map(_plain, instructions))
    content = last.get("content")
    more: Any = f"{content}\n\n{memory}" if isinstance(content, str) and content else memory
    if isinstance(content, list):
        more = [*content, {"type": "text", "text": memory}]
    told = ChatMessage(str(last.get("role")), f"{text_of(last)}\n\n{memory}", raw={**last, "content": more})
    return [*map(_plain, before), told]


def _shown(message: Message, sent: Sent | None) -> ChatMessage:
    if sent is not None:
        return as_chat_message(message, sent.raw)
    if message.extra and (message.role == "assistant" or "tool_call_id" in message.extra):
        return as_chat_message(message, sent_again(message))
    return ChatMessage(*spoken(message))


def _with_recalled(message: ChatMessage, recalled: str) -> ChatMessage:
    text = f"{recalled}\n\n{message.content}"
    if message.raw is None:
        return ChatMessage(message.role, text)
    content = message.raw.get("content")
    said = [{"type": "text", "text": recalled}, *content] if isinstance(content, list) else f"{recalled}\n\n{content}"
    return ChatMessage(message.role, text, raw={**message.raw, "content": said})


def _plain(raw: Raw) -> ChatMessage:
    return ChatMessage(str(raw.get("role")), text_of(raw), raw=raw)


def _called(message: ChatMessage) -> list[str | None]:
    """The ids that results of a message's calls have to name, of the old form the function's name; None if unknown."""
    if message.role != "assistant" or message.raw is None:
        return []
    calls, function = message.raw.get("tool_calls"), message.raw.get("function_call")
    ids: list[Any] = [call.get("id") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    if isinstance(function, Mapping):
        ids.append(f"function {function.get('name')}")
    return [one if isinstance(one, str) else None for one in ids]


def _answers(message: ChatMessage) -> str | None:
    """The id of the call that a tool's result answers."""
    raw = message.raw or {}
    answered = f"function {raw.get('name')}" if raw.get("role") == "function" else raw.get("tool_call_id")
    return answered if isinstance(answered, str) else None


def _without_calls(message: ChatMessage) -> ChatMessage:
    kept = {name: value for name, value in (message.raw or {}).items() if name not in ("tool_calls", "function_call")}
    return ChatMessage(message.role, message.content, raw=kept)


def _quoted(message: ChatMessage) -> ChatMessage:
    return ChatMessage("user", quoted(message.role, message.content))
