"""Read the conversation that a client sends: each message as it came, and as it is stored.

As it came, a message goes on to the model.  Stored are its words, with `[image]` where an image stood, and in `extra`
what it takes to recognise the message and to send it again:

    tool_calls      the assistant's calls, as they came
    tool_call_id    the call that a tool's result answers
    attachments     type, name, size and hash of each image, file or recording, which are not stored themselves

Messages of the system or the developer are instructions for this request: they go to the model and are not stored.
The same goes for messages with nothing in them, and for what a coding agent puts before the person's words
(see `persons_words`).  Of a long result of a tool the beginning and the end are stored, with its size.  Thoughts that a
client keeps in the assistant's words are left out: they are not stored, and not sent to the model again.

Guarantee: the same message is stored in the same way each time it comes, and no input raises an error.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

from sqlalchemy import Row

from memory import tokens
from memory.json_values import dict_in, dicts_in, text_in
from memory.llm import ChatMessage, ToolCall
from memory.llm.thoughts import without_thoughts
from memory.quoting import quoted, strip_markup, tagged, to_prompt_message
from memory.transcripts.persons_words import find_summary, split_speaker, texts_in, without_agents, words_of_person
from memory.transcripts.reconcile import MessageKey
from models.messages import Message, MessageDraft
from schemas.fields import MESSAGE_CHARS_MAX

Raw = Mapping[str, Any]

STORED_ROLES = ("user", "assistant", "tool")
INSTRUCTING = ("system", "developer")
KEPT = ("tool_calls", "tool_call_id")
_TEXTS = ("text", "refusal", "input_text", "output_text")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
TOOL_RESULT_CHARS_MAX = 8_000  # of which the last tenth is the end


@dataclass(frozen=True)
class TranscriptMessage:
    """Message that counts, as it came (`raw`) and as it is stored.

    `before` are the instructions, and messages with nothing in them, that stand between the last one and this. place:
    in the client's list.
    """

    raw: Raw
    draft: MessageDraft
    before: tuple[Raw, ...] = ()
    place: int = 0

    @cached_property
    def key(self) -> MessageKey:
        return message_key(self.draft)

    @classmethod
    def of_parts(cls, parts: Sequence[Raw]) -> Self:
        """Return a person's message with these images and text files: a file's text is quoted for the model."""
        text, attachments = _content(list(parts))
        draft = MessageDraft("user", text, extra={"attachments": attachments})
        return cls({"role": "user", "content": list(map(_part_to_send, parts))}, draft)


@dataclass(frozen=True)
class Transcript:
    """Client's list: the instructions it begins with, the messages that count, and what stands after the last.

    prefill: the words of the assistant's that the list ends with, after a message: the model goes on from them.
    is_abridged: a summary of the program's stands in the place of the beginning.
    """

    raw: tuple[Raw, ...]
    instructions: tuple[Raw, ...]
    messages: tuple[TranscriptMessage, ...]
    after: tuple[Raw, ...]
    prefill: str = ""
    is_abridged: bool = False

    @classmethod
    def read(cls, raw: Sequence[Raw], *, continues: bool = False) -> Self:
        """Read the conversation in a request's `messages`. continues: the model goes on from the assistant's last."""
        messages: list[TranscriptMessage] = []
        waiting: list[Raw] = []
        clean = list(map(_without_thoughts, raw))
        summary = find_summary(clean)
        for place, (item, persons) in enumerate(zip(clean, without_agents(clean, summary), strict=True)):
            draft = _draft(persons) if persons is not None else None
            if draft is None:
                waiting.append(item)
            else:
                messages.append(TranscriptMessage(item, draft, tuple(waiting), place))
                waiting.clear()
        if not messages:
            return cls(tuple(raw), tuple(waiting), (), ())
        prefill = ""
        if len(messages) > 1 and not waiting and _is_prefill(messages[-1], continues=continues):
            begun = messages.pop()
            prefill = begun.draft.content
            waiting = [*begun.before, begun.raw]
        first = messages[0]
        messages[0] = replace(first, before=())
        return cls(tuple(raw), first.before, tuple(messages), tuple(waiting), prefill, summary >= 0)

    @property
    def instruction_tokens(self) -> int:
        """Return the tokens of the instructions, with those at the end."""
        return sum(tokens.estimate_message(text_of(raw)) for raw in (*self.instructions, *self.after))

    @property
    def is_filled_in(self) -> bool:
        """Return whether all of it is a message of the person's, and a program wrote more around their words."""
        return len(self.messages) == 1 and self.asked not in ("", text_of(self.messages[0].raw))

    def whole(self, reply: str) -> str:
        """Return a reply with the words that the client began it with, which some models repeat."""
        return reply if reply.startswith(self.prefill) else self.prefill + reply

    @property
    def asked(self) -> str:
        """Return the person's last message; "" when there is none."""
        return self._newest.content

    @property
    def words(self) -> str:
        """Return the words of the person's last message alone, without what stands for images and files."""
        text = self._newest.content
        for attachment in (self._newest.extra or {}).get("attachments", ()):
            text = text.replace(_placeholder(attachment), "", 1)
        return text.strip()

    @property
    def _newest(self) -> MessageDraft:
        drafts = (message.draft for message in reversed(self.messages))
        return next((draft for draft in drafts if draft.role == "user"), MessageDraft("user", ""))


@dataclass(frozen=True)
class TranscriptRequest:
    """Request of a client: its conversation, and its other parameters, which are passed on as they are.

    is_complete: the client always sends its conversation from the start or, with a `previous_reply_id` (a message of
    the session that the request names), all that comes after that reply.
    is_declared_retry: the client says that it sends this again.
    holds_several: the session that it names may have several conversations, as those of an agent's helpers.
    bypass: it may not be stored, so its turn uses no memory. fingerprint: the same for the same request.
    """

    conversation: Transcript
    parameters: Raw
    fingerprint: str
    is_complete: bool = False
    previous_reply_id: int | None = None
    is_declared_retry: bool = False
    holds_several: bool = False
    bypass: bool = False

    @property
    def takes_tools(self) -> bool:
        """Return whether the model may also be offered tools that the client does not know."""
        free = self.parameters.get("tool_choice") in (None, "auto") and self.parameters.get("n") in (None, 1)
        return free and "functions" not in self.parameters

    @property
    def keys(self) -> list[MessageKey]:
        """Return the messages that count, as they are compared."""
        return [message.key for message in self.conversation.messages]


def _is_prefill(last: TranscriptMessage, *, continues: bool) -> bool:
    """Return whether these words of the assistant's begin its reply: the client says so, or they end no sentence.

    An agent's whole message may also be the last one, for another agent to answer.
    """
    if last.draft.role != "assistant" or last.draft.extra:
        return False
    if continues or last.raw.get("prefix") is True:
        return True
    return not last.raw.get("name") and not last.draft.content.rstrip().endswith(_SENTENCE_ENDS)


def message_key(
    message: MessageDraft | Message | Row[Any],
    *,
    is_reply: bool = False,
    cut: bool = False,
    erased: bool = False,
) -> MessageKey:
    """Return a message as it is compared. cut: it is an answer that was interrupted."""
    extra = message.extra or {}
    calls = tuple((call.name, _canonical(call.arguments)) for call in calls_of(extra))
    attachments = tuple(file if isinstance(file, str) else file["hash"] for file in extra.get("attachments") or ())
    compared = message.role, message.content, message.name, calls, attachments, answered(extra)
    return MessageKey(*compared, is_reply, cut, erased)


def tool_tokens(parameters: Raw) -> int:
    """Return the estimated tokens of a client's tools."""
    return sum(tokens.estimate(json.dumps(tool)) for tool in dicts_in(parameters.get("tools")))


def tool_names(parameters: Raw) -> set[str]:
    """Return the names of a client's own tools."""
    functions = (dict_in(tool.get("function")) for tool in dicts_in(parameters.get("tools")))
    return {str(function["name"]) for function in functions if "name" in function}


def text_of(raw: Raw) -> str:
    """Return the words of a message as it came."""
    return _content(raw.get("content"))[0]


def attachments_of(raw: Raw) -> list[dict[str, Any]]:
    """Return the records of the images, files and recordings in a message as it came."""
    return _content(raw.get("content"))[1]


def answered(extra: Raw | None) -> str | None:
    """Return the id of the call that a tool's result answers."""
    return text_in((extra or {}).get("tool_call_id")) or None


def calls_of(extra: Raw | None) -> tuple[ToolCall, ...]:
    """Return the calls of tools that a message has beside its words."""
    calls = ((call, call.get("function")) for call in dicts_in((extra or {}).get("tool_calls")))
    return tuple(
        ToolCall(
            text_in(call.get("id")),
            text_in(function.get("name")),
            text_in(function.get("arguments")),
            call.get("extra_content"),
        )
        for call, function in calls
        if isinstance(function, dict)
    )


def _without_thoughts(raw: Raw) -> Raw:
    """Return the message; one of the assistant's without the thoughts in its words."""
    if raw.get("role") != "assistant":
        return raw
    content = raw.get("content")
    clean = _with_texts(content, without_thoughts)
    return raw if clean == content else {**raw, "content": clean}


def _with_texts(content: Any, change: Callable[[str], str]) -> Any:
    """Return a message's content, a text or a list of parts, with each of its texts changed."""
    if isinstance(content, str):
        return change(content)
    if not isinstance(content, list):
        return content
    texts = ((part, dict_in(part).get("text")) for part in content)
    return [{**part, "text": change(text)} if isinstance(text, str) else part for part, text in texts]


def _draft(raw: Raw) -> MessageDraft | None:
    """Return a message as it is stored; None for one that is not."""
    role = raw.get("role")
    if role not in STORED_ROLES:
        return None
    content = raw.get("content")
    if role == "user":
        words = partial(words_of_person, is_one_of_several=len(texts_in(content)) > 1)
        content = _with_texts(content, words)
    text, attachments = _content(content)
    text = text or text_in(raw.get("refusal"))
    extra = {name: raw[name] for name in KEPT if raw.get(name)}
    if attachments:
        extra["attachments"] = attachments
    if not text.strip() and not extra:
        return None
    name = text_in(raw.get("name"))[:128] if role == "user" else ""
    speaker, words_of_speaker = split_speaker(text)
    if role == "user" and not name and speaker.startswith("<@"):  # as Discord writes who says it
        name, text = speaker, words_of_speaker
    if role == "tool" and len(text) > TOOL_RESULT_CHARS_MAX:
        end = TOOL_RESULT_CHARS_MAX // 10
        text = f"{text[: TOOL_RESULT_CHARS_MAX - end]}\n[… of {len(text):,} characters …]\n{text[-end:]}"
    elif len(text) > MESSAGE_CHARS_MAX:
        text = text[: MESSAGE_CHARS_MAX - 1] + "…"
    return MessageDraft(role, _storable(text), _storable(name) or None, extra=_storable(extra) or None)


def _content(content: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return the words of a message's content, and what is stored of the attachments that placeholders stand for."""
    if not isinstance(content, list):
        return text_in(content), []
    words: list[str] = []
    attachments: list[dict[str, Any]] = []
    for part in content:
        part = part if isinstance(part, Mapping) else {"text": part}
        kind = str(part.get("type", "text"))
        if kind in _TEXTS:
            words.append(text_in(part.get("text") or part.get("refusal")))
            continue
        attachment = _attachment(part, kind.removeprefix("input_").removesuffix("_url"))
        words.append(_placeholder(attachment))
        attachments.append(attachment)
    return "\n".join(filter(None, words)), attachments


def _placeholder(attachment: Raw) -> str:
    return f"[{' '.join(filter(None, (attachment['type'], attachment['name'])))}]"


def _attachment(part: Raw, kind: str) -> dict[str, Any]:
    """Return the record of an image, file or recording (see schemas.attachments)."""
    file = part.get(str(part.get("type")))
    file = file if isinstance(file, Mapping) else {"url": file}
    data = next((file[name] for name in ("url", "file_data", "data") if isinstance(file.get(name), str)), "")
    if data.startswith("data:image/"):
        kind = "image"
    is_address = not data or data.startswith(("http:", "https:"))
    encoded = data.rpartition(";base64,")[2]
    return {
        "type": kind,
        "name": text_in(file.get("filename")) or None,
        "size": None if is_address else len(encoded) * 3 // 4 - encoded[-2:].count("="),
        "hash": hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16],
    }


def _part_to_send(part: Raw) -> Raw:
    """Return a part of a person's message as any model takes it: only images are no text."""
    if part["type"] != "file":
        return part
    file = part["file"]
    if "text" in part:
        text = tagged("file", [strip_markup(part["text"])], name=file["filename"])
        return {"type": "text", "text": text}
    return {"type": "image_url", "image_url": {"url": file["file_data"]}}


def _canonical(arguments: str) -> str:
    """Return arguments in one form, whatever white space and order they came in."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments.strip()


def _storable(value: Any) -> Any:
    """Return a text, or JSON with texts in it, without what no database takes."""
    if isinstance(value, str):
        return text_in(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, Mapping):
        return {_storable(str(name)): _storable(item) for name, item in value.items()}
    return value


def client_messages(
    conversation: Transcript,
    as_sent: Mapping[int, TranscriptMessage],
    prefix: str,
    stored: Sequence[Message],
    newest: Message,
    block: str,
) -> list[ChatMessage]:
    """Return the messages to send: with the `prefix`, and the `block` of memory in the person's `newest` message.

    The prefix is an instruction as those that the client begins with, and no word of an agent's example or answer that
    stands among them.  as_sent: those of the `stored` messages that the client sent, by their ids.
    """
    messages = list(map(_plain, conversation.instructions))
    if prefix:
        instructing = (place for place, message in enumerate(messages) if message.role in INSTRUCTING)
        place = max(instructing, default=None)
        if place is None:
            messages.insert(0, ChatMessage("system", prefix))
        else:
            messages[place] = extended(messages[place], after=prefix)
    for message in stored:
        sent = as_sent.get(message.id)
        messages += map(_plain, sent.before if sent is not None else ())
        shown = _shown(message, sent)
        if block and message.id == newest.id and message.role == "user":
            shown = extended(shown, before=block)
        messages.append(shown)
    return _in_sequence([*messages, *map(_plain, conversation.after)])


def passthrough_messages(
    conversation: Transcript, without: Collection[TranscriptMessage] = ()
) -> tuple[ChatMessage, ...]:
    """Return the client's messages as they came, `without` some of them."""
    if not without:
        return tuple(map(_plain, conversation.raw))
    left_out = {message.place for message in without}
    return tuple(_in_sequence([_plain(raw) for place, raw in enumerate(conversation.raw) if place not in left_out]))


def _in_sequence(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with calls and results in pairs."""
    out: list[ChatMessage] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        calls = [call.id for call in message.tool_calls if message.role == "assistant"]
        end = at
        while calls and end < len(messages) and messages[end].role not in ("user", "assistant"):
            end += 1
        following = messages[at:end]
        at = end
        results = [other.tool_call_id for other in following if other.role == "tool"]
        called: set[str | None] = set()
        if not calls:
            out.append(_quoted(message) if message.role == "tool" else message)
        elif len(results) >= len(calls) and all(not call or call in results for call in calls):
            called = set(calls if all(calls) else results)  # any result may answer a call without an id
            out.append(message)
        elif message.content.strip():
            raw = {name: value for name, value in (message.raw or {}).items() if name != "tool_calls"}
            out.append(ChatMessage(message.role, message.content, raw=raw))
        out += [
            _quoted(other) if other.role == "tool" and other.tool_call_id not in called else other
            for other in following
        ]
    return out


def _shown(message: Message, sent: TranscriptMessage | None) -> ChatMessage:
    """Return a stored message as the client sent it; else with its calls and placeholders for its images."""
    extra = message.extra or {}
    if sent is not None:
        raw = _signed(sent.raw, calls_of(extra))
    elif extra and message.role != "user":
        kept = {name: extra[name] for name in KEPT if name in extra}
        content = strip_markup(message.content) if message.role == "tool" else message.content
        raw = {"role": message.role, "content": content or None, **kept}
    else:
        return ChatMessage(*to_prompt_message(message))
    return ChatMessage(str(raw["role"]), message.content, calls_of(raw), answered(raw), raw)


def _signed(raw: Raw, stored: Sequence[ToolCall]) -> Raw:
    """Return a message with what the model server gave with its calls: not every client sends it back."""
    extras = [{} if call.extra is None else {"extra_content": call.extra} for call in stored]
    if not any(extras):
        return raw
    calls = zip(extras, dicts_in(raw.get("tool_calls")), strict=False)
    return {**raw, "tool_calls": [{**extra, **sent} for extra, sent in calls]}


def extended(message: ChatMessage, *, before: str = "", after: str = "") -> ChatMessage:
    """Return the message with a text before its words or after them."""

    def extended_content(sent: Any) -> Any:
        if isinstance(sent, list):
            start = [{"type": "text", "text": before}] if before else []
            end = [{"type": "text", "text": after}] if after else []
            return [*start, *sent, *end]
        return "\n\n".join(text for text in (before, sent, after) if text and isinstance(text, str))

    raw = None if message.raw is None else {**message.raw, "content": extended_content(message.raw.get("content"))}
    return message._replace(content=extended_content(message.content), raw=raw)


def _plain(raw: Raw) -> ChatMessage:
    return ChatMessage(str(raw.get("role")), text_of(raw), raw=raw)


def _quoted(message: ChatMessage) -> ChatMessage:
    return ChatMessage("user", quoted(message.role, message.content))
