"""Reads a chat completion, in whatever form the server sends it: server-sent events, or one JSON object.

Guarantee: whatever the bytes are, `read` yields text, tool calls if tools were offered, or both, and then one `End`;
or it raises ModelError.  Unknown fields, nulls, comments and missing usage do no harm.  Text has no lone surrogates
and no NUL, which databases refuse.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from memory.domain import Usage
from memory.errors import ModelError
from memory.llm.failures import Failures
from memory.llm.model import ToolCall
from memory.llm.tool_calls import ToolCallReader

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_LONGEST = 32 * 1024 * 1024  # bytes of one JSON object or one line; real ones have a thousandth of that


@dataclass(frozen=True)
class End:
    """How a completion ended, as far as the server said."""

    reason: str
    model: str | None
    usage: Usage | None


Part = str | dict[str, Any] | ToolCall | End


def read(chunks: Iterable[bytes], failures: Failures, *, tools: bool = False, client: bool = False) -> Iterator[Part]:
    """The text of a completion in pieces, then its calls if `tools` were offered, then its `End`.

    The first bytes tell events from an object: content types are often wrong, and some servers stream unasked or
    answer a streamed request with one object.  For a `client` every event or object comes too, after its text; its
    calls are its own, its answer may be empty, and of several choices the first is read.
    """
    start, chunks = b"", iter(chunks)
    for chunk in chunks:
        start += chunk
        head = start.removeprefix(_BOM).lstrip()
        if len(head) >= len(b"event:") or head.endswith((b"\n", b"\r")):
            break
    start = start.removeprefix(_BOM).lstrip()
    streamed = start.startswith(_FIELDS)
    chunks = itertools.chain((start,), chunks)

    calls = ToolCallReader()
    reason: str | None = None
    model: str | None = None
    usage: Usage | None = None
    said = chosen = False
    try:
        for data in _events_data(chunks, failures) if streamed else _object_data(chunks, failures):
            model = model or _text(data.get("model"))
            usage = _usage(data.get("usage")) or usage
            choice = _first_choice(data)
            if choice is not None and not (client and streamed and choice.get("index")):
                chosen = True
                reason = _text(choice.get("finish_reason")) or reason
                message = choice.get("delta") or choice.get("message")
                if tools or client:
                    calls.add(message)
                text = _clean(_content(message))
                if text:
                    said = said or not text.isspace()
                    yield text
            if client:
                yield data
    except ModelError:
        if reason is None:  # with a reason to end, the answer is complete
            raise
    if not chosen:
        raise failures.bad_answer("no choices")
    if reason == "error":
        raise failures.told("the model stopped with an error")
    whole_calls = calls.whole(_clean)
    if not said and not whole_calls and not client:
        raise failures.empty_answer(reason or "stop")
    yield from whole_calls
    if whole_calls:  # many servers say "stop"
        reason = "tool_calls"
    elif reason not in ("length", "content_filter"):
        reason = "stop"
    yield End(reason, _clean(model[:200]) if model else None, usage)


def events(chunks: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Server-sent events as (name, data), by the WHATWG's rules.

    Not openai's `Stream`: it closes the connection at `[DONE]`, and the next call opens a new one.  Not httpx2's
    `iter_lines`: it also splits at U+2028, which JSON may hold.
    """
    name, data = "", list[bytes]()
    for line in itertools.chain(_lines(chunks), (b"",)):  # some servers leave out the last empty line
        key, _, value = line.partition(b":")
        if key == b"data":
            data.append(value.removeprefix(b" "))
        elif key == b"event":
            name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif not line:
            if data:
                yield name, b"\n".join(data).decode("utf-8", "replace").strip()
            name, data = "", []


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        if len(pending) > _LONGEST:
            return
        if b"\n" in chunk or b"\r" in chunk:
            lines = bytes(pending).splitlines(keepends=True)
            # A line that ends in CR waits too: its LF may come with the next chunk.
            pending = bytearray() if lines[-1].endswith(b"\n") else bytearray(lines.pop())
            for line in lines:
                yield line.rstrip(b"\r\n")
    if pending:
        yield bytes(pending).rstrip(b"\r\n")


def _events_data(chunks: Iterable[bytes], failures: Failures) -> Iterator[dict[str, Any]]:
    """The object in each event up to `[DONE]`."""
    began = False
    for name, payload in events(chunks):
        if payload == "[DONE]":
            return
        try:
            data = json.loads(payload)
        except (ValueError, RecursionError):
            if name == "error":
                raise failures.told(payload) from None
            # After good events half an event means that the connection broke.
            raise failures.cut_off() if began else failures.bad_answer("an event that is not JSON", payload) from None
        if not isinstance(data, dict):
            raise failures.bad_answer("an event that is not an object", payload)
        _raise_error(data, failures, named=name == "error")
        began = True
        yield data
    raise failures.cut_off()


def _object_data(chunks: Iterable[bytes], failures: Failures) -> Iterator[dict[str, Any]]:
    """The one object that `chunks` are, if it is a completion."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > _LONGEST:
            raise failures.bad_answer("more than 32 MB")
    text = body.decode("utf-8", "replace").strip()
    if not text:
        raise failures.bad_answer("nothing at all")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise failures.bad_answer("not JSON", text) from None
    if not isinstance(data, dict):
        raise failures.bad_answer("not an object", text)
    _raise_error(data, failures)
    choice = _first_choice(data)
    if choice is None:
        raise failures.bad_answer("no choices", text)
    if not isinstance(choice.get("message"), dict):
        raise failures.bad_answer("a choice without a message", text)
    yield data


def _raise_error(data: dict[str, Any], failures: Failures, *, named: bool = False) -> None:
    """Some servers answer 200 and put the error into the body."""
    if data.get("error"):
        raise failures.told(data["error"])
    if named or data.get("object") == "error":
        raise failures.told(data)


def _first_choice(data: dict[str, Any]) -> dict[str, Any] | None:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _content(message: Any) -> str:
    """The words of a message or delta, without its reasoning."""
    if not isinstance(message, dict):
        return ""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(map(_part, content))
    return _text(content) or _text(message.get("refusal")) or ""


def _part(part: Any) -> str:
    if isinstance(part, dict) and part.get("type", "text") in ("text", "output_text", "refusal"):
        return _text(part.get("text")) or _text(part.get("refusal")) or ""
    return part if isinstance(part, str) else ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _clean(text: str) -> str:
    """`text` without NUL, and with U+FFFD for each half of a surrogate pair."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")


def _usage(value: Any) -> Usage | None:
    """What the server counted, if it counted both prompt and completion."""
    if not isinstance(value, dict):
        return None
    prompt, completion = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    details = value.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(prompt, completion, cached_tokens=min(cached or 0, prompt))


def _count(value: Any) -> int | None:
    """A number of tokens; some servers write it as text."""
    try:
        number = int(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else -1
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < 2**31 else None
