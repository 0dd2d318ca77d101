"""A conversation as a client of the OpenAI protocol sends it: each message as it came, and as it is stored.

As it came, a message goes on to the model.  Stored are its words, with `[image]` where an image stood, and in `extra`
what it takes to recognise the message and to send it again:

    tool_calls, function_call    the assistant's calls, as they came
    tool_call_id                 the call that a tool's result answers
    attachments                  a fingerprint of each image, file or recording; these themselves are not stored

Messages of the system or the developer are instructions for this request: they go to the model and are not stored.
The same goes for messages with nothing in them.

Guarantee: the same message is stored in the same way each time it comes, and no input raises an error.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from memory.clients.reconcile import Said
from memory.domain import Message
from memory.llm import ChatMessage, ToolCall
from memory.sessions.messages import MESSAGE_CHARS_MAX, MessageDraft

Raw = Mapping[str, Any]

ROLES = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}  # of what is stored
_KEPT = ("tool_calls", "function_call", "tool_call_id")
_PLACEHOLDERS = {"image_url": "image", "input_image": "image", "input_audio": "audio", "video_url": "video"}
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Sent:
    """One message that counts, as it came (`raw`) and as it is stored.

    `before` are the instructions, and messages with nothing in them, that stand between the last one and this.
    """

    raw: Raw
    role: str
    text: str
    name: str | None
    extra: dict[str, Any] | None
    before: tuple[Raw, ...] = ()

    @cached_property
    def said(self) -> Said:
        return said(self.role, self.text, self.name, self.extra)

    @property
    def draft(self) -> MessageDraft:
        return MessageDraft(self.role, self.text, self.name, extra=self.extra)


@dataclass(frozen=True)
class Conversation:
    """A client's list: the instructions it begins with, the messages that count, and what stands after the last."""

    raw: tuple[Raw, ...]
    instructions: tuple[Raw, ...]
    messages: tuple[Sent, ...]
    after: tuple[Raw, ...]

    @classmethod
    def read(cls, raw: Sequence[Raw]) -> Conversation:
        """The conversation in a request's `messages`."""
        messages: list[Sent] = []
        waiting: list[Raw] = []
        for one in raw:
            sent = _sent(one, tuple(waiting))
            if sent is None:
                waiting.append(one)
            else:
                messages.append(sent)
                waiting.clear()
        if not messages:
            return cls(tuple(raw), tuple(waiting), (), ())
        first = messages[0]
        return cls(tuple(raw), first.before, (replace(first, before=()), *messages[1:]), tuple(waiting))

    @property
    def asked(self) -> str:
        """What the person said last; "" when there is nothing of theirs."""
        return next((one.text for one in reversed(self.messages) if one.role == "user"), "")


@dataclass(frozen=True)
class ClientRequest:
    """A request of a client: its conversation, and its other parameters, which are passed on as they are.

    `whole`: the client always sends its conversation from the start.  `retried`: it says that it sends this again.
    `temporary`: nothing of it may be stored.  `fingerprint` is the same for the same request.
    """

    conversation: Conversation
    parameters: Raw
    fingerprint: str
    whole: bool = False
    retried: bool = False
    temporary: bool = False


def said(role: str, text: str, name: str | None, extra: Raw | None, *, cut: bool = False, erased: bool = False) -> Said:
    """A message as it is compared; `cut`: it is an answer that was interrupted, `erased`: only its place is left."""
    if not extra:
        return Said(role, text, name, cut=cut, erased=erased)
    answers = _text(extra.get("tool_call_id")) or None
    return Said(role, text, name, _calls(extra), tuple(extra.get("attachments") or ()), answers, cut)


def text_of(raw: Raw) -> str:
    """The words of a message as it came."""
    return _content(raw.get("content"))[0]


def sent_again(message: Message) -> Raw:
    """A stored message as it is sent to a model: with its calls, and placeholders where its images stood."""
    extra = message.extra or {}
    again = {"role": message.role, "content": message.content, **{name: extra[name] for name in _KEPT if name in extra}}
    if message.name and message.role == "user":
        again["content"] = f"{message.name}: {message.content}"
    if message.role == "assistant" and not message.content:
        again["content"] = None
    return again


def as_chat_message(message: Message, raw: Raw) -> ChatMessage:
    """`message` for a prompt, to be sent as `raw`; its other fields are for estimates."""
    calls = tuple(ToolCall("", name, arguments) for name, arguments in _calls(message.extra))
    return ChatMessage(message.role, message.content, calls, (message.extra or {}).get("tool_call_id"), raw)


def reply_extra(calls: Sequence[ToolCall]) -> dict[str, Any] | None:
    """What a reply has beside its words, from the model's calls."""
    sent = []
    for call in calls:  # as the model wrote them, so that they are the same when the client sends them back
        extra = {"extra_content": call.extra} if call.extra else {}
        function = {"name": call.name, "arguments": call.arguments}
        sent.append({"id": call.id, "type": "function", "function": function, **extra})
    return {"tool_calls": sent} if sent else None


def calls_of(extra: Raw | None) -> tuple[ToolCall, ...]:
    """The calls that `reply_extra` kept."""
    found = []
    for call in (extra or {}).get("tool_calls") or ():
        function = call.get("function") or {}
        name, arguments = _text(function.get("name")), _text(function.get("arguments"))
        found.append(ToolCall(_text(call.get("id")), name, arguments, call.get("extra_content")))
    return tuple(found)


def _sent(raw: Raw, before: tuple[Raw, ...]) -> Sent | None:
    role = ROLES.get(str(raw.get("role")))
    if role is None:
        return None
    text, attachments = _content(raw.get("content"))
    text = text or _text(raw.get("refusal"))
    extra = {name: _storable_json(raw[name]) for name in _KEPT if raw.get(name)}
    if attachments:
        extra["attachments"] = attachments
    if not text.strip() and not extra:
        return None
    name = _text(raw.get("name"))[:128] if role == "user" else ""
    return Sent(raw, role, _clipped(storable(text)), storable(name) or None, extra or None, before)


def _content(content: Any) -> tuple[str, list[str]]:
    """The words of a message's content, with placeholders, and the fingerprints of what those stand for."""
    if not isinstance(content, list):
        return _text(content), []
    words, attachments = list[str](), list[str]()
    for part in content:
        kind = str(part.get("type", "text")) if isinstance(part, Mapping) else "text"
        if kind in _TEXTS:
            words.append(_text(part.get(_TEXTS[kind])) if isinstance(part, Mapping) else _text(part))
            continue
        file = part.get("file")
        name = f" {_text(file.get('filename'))}" if isinstance(file, Mapping) and file.get("filename") else ""
        words.append(f"[{_PLACEHOLDERS.get(kind, kind)}{name}]")
        attachments.append(hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16])
    return "\n".join(filter(None, words)), attachments


def _calls(extra: Raw | None) -> tuple[tuple[str, str], ...]:
    """The calls of a message by name and arguments.  Ids are not compared: some clients give calls new ones."""
    if not extra:
        return ()
    calls = extra.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    found = [one for one in (*functions, extra.get("function_call")) if isinstance(one, Mapping)]
    return tuple((_text(one.get("name")), _canonical(one.get("arguments"))) for one in found)


def _canonical(arguments: Any) -> str:
    """Arguments in one form, whatever white space and order they came in."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return _text(arguments).strip()
    return json.dumps(value, sort_keys=True)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _clipped(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARS_MAX else text[: MESSAGE_CHARS_MAX - 1] + "…"


def storable(text: str) -> str:
    """`text` without what no database takes: NUL, and halves of surrogate pairs."""
    if not _UNSTORABLE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "")


def _storable_json(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable_json(item) for item in value]
    if isinstance(value, Mapping):
        return {storable(str(name)): _storable_json(item) for name, item in value.items()}
    return value
