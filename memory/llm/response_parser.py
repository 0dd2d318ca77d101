"""Parse a chat completion, in whatever form the server sends it: server-sent events, or one JSON object.

Invariants (tests/model_client/test_answers.py):
- Whatever the bytes are, `parse_completion` yields what a `LanguageModel` yields, or raises ModelError.
- Unknown fields, nulls, comments and missing usage do no harm.
- Text has no lone surrogates and no NUL, which databases refuse.
- Every call of a tool has a name and an id of its own.
- Thoughts are told apart from the words, wherever the server puts them.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from memory import tokens
from memory.errors import ModelError
from memory.json_values import dict_in, dicts_in, list_in, object_in, text_in
from memory.llm import (
    ModelEvent,
    ModelRequest,
    RawChunk,
    StreamEnd,
    TextDelta,
    Thought,
    ToolCall,
    Waiting,
    estimate_prompt,
)
from memory.llm.openai_form import as_completion, for_client
from memory.llm.provider_errors import ProviderErrors
from memory.llm.text_calls import TextCalls
from memory.llm.thoughts import ThoughtSplitter
from models.base import MODEL_NAME_CHARS
from models.owners import Usage

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_USAGE_TOKENS_MAX = 2**31
REPLY_CHARS_MAX = 1_000_000  # twice what the largest models write at once; a broken one never ends

_REASONS = {
    "length": "length max_tokens model_length",
    "content_filter": "content_filter safety recitation prohibited_content blocklist spii sensitive",
    "load": "load",  # Ollama's, of a request that only loaded the model
    "error": "error abort insufficient_system_resource network_error malformed_function_call",
}
"""What servers call the ends of an answer that is not whole."""
_REASON_OF = {name: reason for reason, names in _REASONS.items() for name in names.split()}
_THOUGHTS = ("reasoning_content", "reasoning")  # the fields of a message in which servers send thoughts
_DETAILS = "reasoning_details"  # OpenRouter's, a list


def parse_completion(
    chunks: Iterable[bytes], request: ModelRequest, errors: ProviderErrors, splitter: ThoughtSplitter
) -> Iterator[ModelEvent]:
    """Yield the answer to `request` in `chunks`.  An empty chunk tells that the server is silent.

    Calls count only if tools were offered.  A client's calls are its own and its answer may be empty; of several
    choices the first is read.
    """
    completion = Completion(request, errors, splitter)
    try:
        for data in _objects(chunks, errors):
            if data:
                yield from completion.feed(data)
            elif request.stream:
                yield Waiting()
            if completion.error is not None:
                break
    except ModelError:
        if not completion.reason:  # with a reason to end, the answer is complete
            raise
    yield from completion.end()


class Completion:
    """Parts of an answer that have come so far.

    content: as the server sent it; thoughts: the fields with thoughts of their own, which go back to the server with
    calls of tools. reason: why it ended; error: why it is of no use.
    """

    def __init__(self, request: ModelRequest, errors: ProviderErrors, splitter: ThoughtSplitter) -> None:
        self.reason = self.model = ""
        self.error: ModelError | None = None
        self.thoughts: dict[str, Any] = {}
        self._request = request
        self._errors = errors
        self._splitter = splitter
        after_calls = request.messages[-1].role == "tool"  # of the last round, in which no tool is offered
        has_text_calls = request.client is None and (request.tools or after_calls)
        called = (call.name for message in request.messages for call in message.tool_calls)
        self._text_calls = TextCalls({*(tool.name for tool in request.tools), *called}) if has_text_calls else None
        # Of the events of a text; where the request has tools of Recap's, without the calls that are written in it.
        self._events_of = self._text_calls.without_calls if self._text_calls is not None else iter
        self._has_begun = False
        self._calls: list[ToolCallDelta] = []
        self._usage: Usage | None = None
        self._content = list[str]()  # in pieces
        self._chars = 0  # of all pieces
        self._sent: list[dict[str, Any]] = []  # to a client, as it came
        self._last: dict[str, Any] = {}

    def feed(self, data: dict[str, Any]) -> Iterator[ModelEvent]:
        """Take in an object of the server's, and yield what it adds."""
        self._last = data
        client = self._request.client
        self.model = self.model or text_in(data.get("model"))
        self._usage = _usage(data.get("usage")) or self._usage
        choice = dict_in(next(iter(list_in(data.get("choices"))), None))
        if error := choice.get("error"):
            self.error = self._errors.reported(error)
            return
        if ("delta" in choice or "message" in choice) and not choice.get("index"):
            yield from self._add(choice)
        if client is not None:
            self._sent.append(data)
            if self._request.stream and (chunk := for_client(data, client)):
                yield RawChunk(chunk)

    def end(self) -> Iterator[ModelEvent]:
        """Yield the rest of the text, the calls of tools and the end.  Raises ModelError for an answer of no use."""
        request = self._request
        if self.error is not None:
            raise self.error
        if not self._has_begun:
            raise self._errors.bad_answer("it holds no message", json.dumps(self._last, ensure_ascii=False))
        yield from self._events_of(self._splitter.end())
        if self._text_calls is not None:
            words, text_calls = self._text_calls.end()
            self._calls += [ToolCallDelta(None, name=name, arguments=[arguments]) for name, arguments in text_calls]
            if words:
                yield TextDelta(words)
        calls = _whole(self._calls) if request.tools or request.client is not None else []
        has_words = self._splitter.has_words and (self._text_calls is None or self._text_calls.has_words)
        if request.client is None and not calls and not has_words:
            yield self._misplaced()
        reason = self.reason if self.reason in ("length", "content_filter") else "stop"
        if calls:  # beside which many servers say "stop"
            reason = "tool_calls"
        content = "".join(self._content)
        usage = self._usage
        if usage is None:
            written = tokens.estimate(content + "".join(call.name + call.arguments for call in calls))
            usage = Usage(estimate_prompt(request), written, estimated=True)
        end = StreamEnd(reason, (self.model or self._errors.model)[:MODEL_NAME_CHARS], usage, self.thoughts)
        if request.client is not None and not request.stream:
            yield RawChunk(as_completion(self._sent, content, end, calls))
        yield from calls
        yield end

    def _add(self, choice: dict[str, Any]) -> Iterator[TextDelta | Thought]:
        """Take in a choice with a whole message or a part of it, and yield its text and thoughts."""
        self._has_begun = True
        if reason := text_in(choice.get("finish_reason")):
            names = reason.lower().replace(":", " ").split()
            self.reason = next((_REASON_OF[name] for name in names if name in _REASON_OF), "stop")
            if self.reason == "error":
                self.error = self._errors.reported({"message": f"the answer ended with {reason!r}"})
        delta = choice.get("delta")  # beside which Perplexity has a message with all that came before
        message = dict_in(choice.get("message") if delta is None else delta)
        if fragments := message.get("tool_calls"):
            _collect(self._calls, fragments)
        if thought := self._thought(message):
            self._splitter.has_thought = True
            yield Thought(thought)
        if content := _content(message):
            self._content.append(content)
            self._chars += len(content)
            if self._chars > REPLY_CHARS_MAX:
                raise self._errors.bad_answer("it is too long")
            yield from self._events_of(self._splitter.feed(content))

    def _misplaced(self) -> TextDelta:
        """Return JSON that was asked for, where the server took it for thoughts or for the arguments of a call."""
        places = [*map(text_in, self.thoughts.values()), *("".join(call.arguments) for call in self._calls)]
        text = next((text for text in places if object_in(text) is not None), None)
        if text is None or self._request.schema is None:
            raise self._errors.empty_answer(self.reason, thought=self._splitter.has_thought)
        return TextDelta(text)

    def _thought(self, message: dict[str, Any]) -> str:
        """Return the thoughts that stand beside the content, or in parts of it as at Mistral."""
        details = message.get(_DETAILS)
        if isinstance(details, list):
            self.thoughts.setdefault(_DETAILS, []).extend(details)
        for name in _THOUGHTS:
            if text := text_in(message.get(name)):
                self.thoughts[name] = self.thoughts.get(name, "") + text
                return text
        parts = [dict_in(part).get("thinking") for part in list_in(message.get("content"))]
        return "".join(text_in(dict_in(inner).get("text")) for part in parts for inner in list_in(part))


# -- bytes


def events(chunks: Iterable[bytes]) -> Iterator[tuple[str, str] | None]:
    """Yield server-sent events as (name, data), by the WHATWG's rules; None for a chunk that tells nothing.

    Not openai's `Stream`: it closes the connection at `[DONE]`, and the next call opens a new one.  Not httpx2's
    `iter_lines` either: it also splits at U+2028, which JSON may hold.
    """
    name = ""
    data: list[str] = []
    pending = bytearray()
    end = b"\n\n"  # some servers leave out the last empty line
    for chunk in chain(chunks, (end,)):
        pending += chunk
        silent = not chunk
        if b"\n" in chunk:
            *lines, pending = pending.split(b"\n")
            silent = all(not line.strip() or line.startswith(b":") for line in lines) and not data
            for line in lines:
                key, colon, value = line.removesuffix(b"\r").decode("utf-8", "replace").partition(":")
                if key == "data":
                    data.append(value.removeprefix(" "))
                elif key == "event":
                    name = value.removeprefix(" ")
                elif not key and not colon:
                    if any(data):
                        yield name, "\n".join(data).strip()
                    name = ""
                    data = []
        if silent and chunk is not end:
            yield None


def _objects(chunks: Iterable[bytes], errors: ProviderErrors) -> Iterator[dict[str, Any]]:
    """Yield the object in each event up to `[DONE]`, or the one object that the answer is; {} while nothing comes.

    The first line tells: content types are often wrong, and some servers stream unasked or answer a streamed request
    with one object.
    """
    rest = iter(chunks)
    read_on = bytearray()
    for chunk in rest:
        read_on += chunk
        if b"\n" in read_on.lstrip():
            break
        if not chunk.strip():
            yield {}
    start = bytes(read_on).lstrip().removeprefix(_BOM)
    began = False
    if not start.startswith(_FIELDS):
        parts = [start]
        for chunk in rest:
            parts.append(chunk)
            if not chunk:
                yield {}
        yield _object("", b"".join(parts).decode("utf-8", "replace"), errors, began=False)
        return
    for event in events(chain((start,), rest)):
        if event is None:
            yield {}
        elif event[1] == "[DONE]":
            return
        else:
            yield _object(*event, errors, began=began)
            began = True
    raise errors.cut_off()


def _object(name: str, payload: str, errors: ProviderErrors, *, began: bool) -> dict[str, Any]:
    """Return the object of an event. began: another one came before it.  Raises ModelError for anything else."""
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError):
        if name == "error":
            raise errors.reported(payload) from None
        if began:  # half an event after good ones means that the connection broke
            raise errors.cut_off() from None
        raise errors.bad_answer("not JSON" if payload else "nothing at all", payload) from None
    if isinstance(data, list) and len(data) == 1:  # as Gemini sends errors
        (data,) = data
    if not isinstance(data, dict):
        raise errors.bad_answer("not an object", payload)
    # Some servers answer 200 and put the error into the body.
    if error := data.get("error") or ((name == "error" or data.get("object") == "error") and data):
        raise errors.reported(error)
    return data


# -- fields


def _content(message: dict[str, Any]) -> str:
    """Return the text of a message or delta, without its reasoning."""
    content = message.get("content")
    if isinstance(content, dict | int | float):  # as Cloudflare sends JSON, and words that are numbers
        content = json.dumps(content, ensure_ascii=False)
    if isinstance(content, list):  # of Mistral's reasoning models
        content = "".join(text_in(dict_in(part).get("text")) for part in content if dict_in(part).get("type") == "text")
    return text_in(content) or text_in(message.get("refusal"))


def _usage(value: Any) -> Usage | None:
    """Return the server's count, if it has both prompt and completion; of a server that counts nothing both are 0."""
    usage = dict_in(value)
    of_prompt = dict_in(usage.get("prompt_tokens_details"))
    sent = {
        "prompt": usage.get("prompt_tokens"),
        "completion": usage.get("completion_tokens"),
        "cached": of_prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens")),
        "thought": dict_in(usage.get("completion_tokens_details")).get("reasoning_tokens"),
    }
    counts = {name: count for name, count in sent.items() if isinstance(count, int) and 0 <= count < _USAGE_TOKENS_MAX}
    prompt = counts.get("prompt")
    completion = counts.get("completion")
    if not prompt or completion is None:
        return None
    cached = min(counts.get("cached", 0), prompt)
    return Usage(prompt, completion, cached_tokens=cached, reasoning_tokens=min(counts.get("thought", 0), completion))


# -- calls of tools


@dataclass
class ToolCallDelta:
    """Call of which more fragments may come."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: Any = None


def _collect(calls: list[ToolCallDelta], fragments: Any) -> None:
    """Add the calls of a message, whole ones or fragments, which `index` tells apart.

    Of a call's fragments the first has the id and name, the others have more of the arguments.  Servers deviate: no
    index, whole calls in one chunk, one index for parallel calls, the name repeated in every fragment, no id.
    """
    for fragment in filter(None, dicts_in(fragments)):
        function = dict_in(fragment.get("function"))
        index = fragment.get("index")
        index = index if isinstance(index, int) else None
        call_id = text_in(fragment.get("id"))
        name = text_in(function.get("name"))
        arguments = function.get("arguments")
        arguments = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else text_in(arguments)
        call = next((call for call in reversed(calls) if index is None or call.index == index), None)
        if call is None or _is_another(call, call_id, name, arguments):
            call = ToolCallDelta(index)
            calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        call.extra = call.extra or fragment.get("extra_content")
        call.arguments.append(arguments)


def _is_another(call: ToolCallDelta, call_id: str, name: str, arguments: str) -> bool:
    """Return whether a fragment begins a call of its own, rather than to continue `call`."""
    if call_id and call.id:
        return call_id != call.id
    named_twice = bool(name and call.name)
    return named_twice and (name != call.name or bool(arguments and object_in("".join(call.arguments)) is not None))


def _whole(calls: Sequence[ToolCallDelta]) -> list[ToolCall]:
    """Return the calls that have a name."""
    whole: dict[str, ToolCall] = {}
    for call in calls:
        call_id = call.id if call.id and call.id not in whole else uuid.uuid4().hex[:9]  # as Mistral wants them
        if call.name:
            whole[call_id] = ToolCall(call_id, call.name, "".join(call.arguments), call.extra)
    return list(whole.values())
