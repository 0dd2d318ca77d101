"""Reads a chat completion, in whatever form the server sends it: server-sent events, or one JSON object.

Guarantee: whatever the bytes are, `read` yields what a `LanguageModel` yields, or raises ModelError.  Unknown fields,
nulls, comments and missing usage do no harm.  Text has no lone surrogates and no NUL, which databases refuse.  Every
call of a tool has a name and an id of its own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from memory import tokens
from memory.domain import Usage
from memory.errors import ModelError
from memory.llm import Chunk, Finish, ModelRequest, Piece, ToolCall, estimate_prompt
from memory.llm.failures import Failures
from memory.llm.passing import as_completion, for_client, is_object

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_MOST_TOKENS = 2**31
_NAME_CHARS = 200  # of the model's name


def read(
    chunks: Iterable[bytes], request: ModelRequest, failures: Failures
) -> Iterator[Piece | Chunk | ToolCall | Finish]:
    """The answer to `request` in `chunks`.

    Calls count only if tools were offered.  A client's calls are its own and its answer may be empty; of several
    choices the first is read.
    """
    client = request.client
    text, calls, sent = list[str](), list[_PartialCall](), list[dict[str, Any]]()
    reason = model = ""
    usage: Usage | None = None
    message: Any = None
    data: dict[str, Any] = {}
    try:
        for data in _objects(chunks, failures):
            model = model or text_in(data.get("model"))[:_NAME_CHARS]
            usage = _usage(data.get("usage")) or usage
            choices = data.get("choices")
            choice = _dict(choices[0]) if isinstance(choices, list) and choices else {}
            if ("delta" in choice or "message" in choice) and not choice.get("index"):
                reason = text_in(choice.get("finish_reason")) or reason
                message = _dict(choice.get("delta") or choice.get("message"))
                if (fragments := message.get("tool_calls")) and (request.tools or client is not None):
                    _collect(calls, fragments)
                if piece := _content(message):
                    text.append(piece)
                    yield Piece(piece)
            if client is not None:
                sent.append(data)
                if request.stream and (chunk := for_client(data, client)):
                    yield Chunk(chunk)
    except ModelError:
        if not reason:  # with a reason to end, the answer is complete
            raise
    if message is None:
        raise failures.bad_answer("it holds no message", json.dumps(data, ensure_ascii=False))
    said, made = "".join(text), _whole(calls) if calls else []
    if client is None and not made and not said.strip():
        raise failures.empty_answer(reason)
    if made:  # many servers say "stop"
        reason = "tool_calls"
    elif reason not in ("length", "content_filter"):
        reason = "stop"
    if usage is None:
        completion = tokens.estimate(said + "".join(call.name + call.arguments for call in made))
        usage = Usage(estimate_prompt(request), completion, estimated=True)
    finish = Finish(reason, model or failures.model, usage)
    if client is not None and not request.stream:
        yield Chunk(as_completion(sent, said, finish, made))
    yield from made
    yield finish


# -- bytes


def events(chunks: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Server-sent events as (name, data), by the WHATWG's rules.

    Not openai's `Stream`: it closes the connection at `[DONE]`, and the next call opens a new one.  Not httpx2's
    `iter_lines` either: it also splits at U+2028, which JSON may hold.
    """
    name, data, pending = "", list[str](), bytearray()
    for chunk in chain(chunks, (b"\n\n",)):  # some servers leave out the last empty line
        pending += chunk
        if b"\n" not in chunk:
            continue
        *lines, pending = pending.split(b"\n")
        for line in lines:
            key, colon, value = line.removesuffix(b"\r").decode("utf-8", "replace").partition(":")
            if key == "data":
                data.append(value.removeprefix(" "))
            elif key == "event":
                name = value.removeprefix(" ")
            elif not key and not colon:
                if data:
                    yield name, "\n".join(data).strip()
                name, data = "", []


def _objects(chunks: Iterable[bytes], failures: Failures) -> Iterator[dict[str, Any]]:
    """The object in each event up to `[DONE]`, or the one object that the answer is.

    The first line tells: content types are often wrong, and some servers stream unasked or answer a streamed request
    with one object.
    """
    rest, read_on = iter(chunks), bytearray()
    for chunk in rest:
        read_on += chunk
        if b"\n" in chunk and read_on.strip():
            break
    start = bytes(read_on).lstrip().removeprefix(_BOM)
    streamed, began = start.startswith(_FIELDS), False
    if streamed:
        payloads = events(chain((start,), rest))
    else:
        payloads = iter([("", (start + b"".join(rest)).decode("utf-8", "replace"))])
    for name, payload in payloads:
        if payload == "[DONE]":
            return
        try:
            data = json.loads(payload)
        except (ValueError, RecursionError):
            if name == "error":
                raise failures.told(payload) from None
            if began:  # half an event after good ones means that the connection broke
                raise failures.cut_off() from None
            raise failures.bad_answer("not JSON" if payload else "nothing at all", payload) from None
        if not isinstance(data, dict):
            raise failures.bad_answer("not an object", payload)
        # Some servers answer 200 and put the error into the body.
        if error := data.get("error") or ((name == "error" or data.get("object") == "error") and data):
            raise failures.told(error)
        began = True
        yield data
    if streamed:
        raise failures.cut_off()


# -- fields


def _content(message: dict[str, Any]) -> str:
    """The words of a message or delta, without its reasoning."""
    content = message.get("content")
    if isinstance(content, list):  # of Mistral's reasoning models
        content = "".join(text_in(_dict(part).get("text")) for part in content if _dict(part).get("type") == "text")
    return text_in(content) or text_in(message.get("refusal"))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def text_in(value: Any) -> str:
    """`value` if it is text, as databases take it: without NUL, and with U+FFFD for each half of a surrogate pair."""
    if not isinstance(value, str):
        return ""
    if not value.isascii():
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value.replace("\0", "")


def _usage(value: Any) -> Usage | None:
    """What the server counted, if it counted both prompt and completion."""
    counted = _dict(value)
    cached = _dict(counted.get("prompt_tokens_details")).get("cached_tokens")
    prompt, completion, cached = (
        count if isinstance(count, int) and 0 <= count < _MOST_TOKENS else None
        for count in (counted.get("prompt_tokens"), counted.get("completion_tokens"), cached)
    )
    if prompt is None or completion is None:
        return None
    return Usage(prompt, completion, cached_tokens=min(cached or 0, prompt))


# -- calls of tools


@dataclass
class _PartialCall:
    """A call of which more fragments may come."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: Any = None


def _collect(calls: list[_PartialCall], fragments: Any) -> None:
    """Add what a message holds of calls, whole ones or fragments, which `index` tells apart.

    Of a call's fragments the first has the id and name, the others have more of the arguments.  Servers deviate: no
    index, whole calls in one chunk, one index for parallel calls, the name repeated in every fragment, no id.
    """
    for fragment in filter(None, map(_dict, fragments if isinstance(fragments, list) else ())):
        function = fragment.get("function")
        if not isinstance(function, dict):
            continue
        index = fragment["index"] if isinstance(fragment.get("index"), int) else None
        call_id, name, arguments = text_in(fragment.get("id")), text_in(function.get("name")), function.get("arguments")
        arguments = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else text_in(arguments)
        call = next((call for call in reversed(calls) if index is None or call.index == index), None)
        if call is None or _is_another(call, call_id, name, arguments):
            call = _PartialCall(index)
            calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        call.extra = call.extra or fragment.get("extra_content")
        call.arguments.append(arguments)


def _is_another(call: _PartialCall, call_id: str, name: str, arguments: str) -> bool:
    """Whether a fragment begins a call of its own, rather than to continue `call`."""
    if call_id and call.id:
        return call_id != call.id
    named_twice = bool(name and call.name)
    return named_twice and (name != call.name or bool(arguments and is_object("".join(call.arguments))))


def _whole(calls: Sequence[_PartialCall]) -> list[ToolCall]:
    """The calls that have a name."""
    whole: dict[str, ToolCall] = {}
    for call in calls:
        call_id = call.id if call.id and call.id not in whole else f"call_{uuid.uuid4().hex[:24]}"
        if call.name:
            whole[call_id] = ToolCall(call_id, call.name, "".join(call.arguments), call.extra)
    return list(whole.values())
