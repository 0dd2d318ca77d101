"""Reading chat completions off the wire: server-sent events or one JSON object, whichever came.

Guarantee: whatever the bytes, reading them yields text, tool calls if they are wanted, or both, and then one `End`,
or raises ModelError; a call is yielded when it is whole, after all text.  What a server adds
or leaves out (unknown fields, nulls, comments, usage, the reason for stopping) does no harm; what is not a chat
completion is said to be so.  Text is clean: no lone surrogates and no NUL, which databases refuse.

For a `client` what was read comes as it was as well: each event, or the object, after the text in it.  Then an answer
without words is an answer too, and of several choices the first is the one that is read.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memory.domain import Usage
from memory.errors import ModelError
from memory.llm import ToolCall
from memory.llm.failures import Failures
from memory.llm.tool_calls import Calls

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_decode = json.JSONDecoder().raw_decode
_LONGEST_BODY = 32 * 1024 * 1024  # bytes of one JSON object or one event; a thousand times any real one


@dataclass(frozen=True)
class End:
    """How a completion ended, as far as the server said."""

    reason: str
    model: str | None
    usage: Usage | None


Part = str | dict[str, Any] | ToolCall | End


def read(chunks: Iterable[bytes], failures: Failures, tools: bool = False, *, client: bool = False) -> Iterator[Part]:
    """The text of a completion, piece by piece, its calls if it was offered `tools`, then its `End`.

    Which of the two forms it is shows in its first bytes: content types are often wrong, and servers answer a
    streamed request plainly and a plain one with a stream.  `chunks` is left unread after a stream's `[DONE]`.
    """
    start, chunks = b"", iter(chunks)
    for chunk in chunks:
        start += chunk
        head = start.removeprefix(_BOM).lstrip()
        if len(head) >= len(b"event:") or head.endswith((b"\n", b"\r")):
            break
    else:
        head = start.removeprefix(_BOM).lstrip()
    rest = itertools.chain((head,), chunks)
    return (_read_events if head.startswith(_FIELDS) else _read_object)(rest, failures, tools or client, client)


def events(chunks: Iterable[bytes]) -> Iterator[tuple[str, str, bool]]:
    """Server-sent events as (name, data, whole), by the WHATWG's rules: comments skipped, `data` lines joined.

    A last event that lacks its empty line comes with `whole` False: sloppy servers end so, and cut connections too.
    """
    pending = bytearray()
    name, data = "", list[bytes]()
    for chunk in chunks:
        if not pending and chunk.endswith(b"\n"):  # whole lines, as almost always
            lines = chunk.splitlines()
        else:
            pending += chunk
            if b"\n" not in chunk and b"\r" not in chunk and len(pending) < _LONGEST_BODY:
                continue
            ended = bytes(pending).splitlines(keepends=True)
            # A line that ends in CR waits as well: its LF may come with the next chunk.
            pending = bytearray(b"" if ended[-1].endswith(b"\n") else ended.pop())
            lines = [line.rstrip(b"\r\n") for line in ended]
        for line in lines:
            if line.startswith(b"data: "):
                data.append(line[6:])
            elif line:
                name = _take(line, name, data)
            else:
                if data:
                    yield name, _text_of(data), True
                name, data = "", []
        if len(pending) >= _LONGEST_BODY:
            break
    if pending.rstrip(b"\r\n"):
        name = _take(bytes(pending.rstrip(b"\r\n")), name, data)
    if data:
        yield name, _text_of(data), False


def _take(line: bytes, name: str, data: list[bytes]) -> str:
    """Put one field where it belongs, and return the event's name."""
    key, _, value = line.partition(b":")
    value = value.removeprefix(b" ")
    if key == b"data":
        data.append(value)
    return value.decode("utf-8", "replace") if key == b"event" else name


def _text_of(data: Sequence[bytes]) -> str:
    return b"\n".join(data).decode("utf-8", "replace")


def _read_events(chunks: Iterable[bytes], failures: Failures, tools: bool, client: bool) -> Iterator[Part]:
    calls = Calls()
    reason: str | None = None
    model: str | None = None
    usage: Usage | None = None
    held = ""  # half of a surrogate pair, until the other half comes
    said, chosen, done = False, False, False
    try:
        for name, payload, whole in events(chunks):
            payload = payload.strip()
            if payload == "[DONE]":
                done = True
                break
            try:
                data = _decoded(payload)
            except (ValueError, RecursionError):
                if name == "error":
                    raise failures.told(payload) from None
                raise (
                    failures.bad_answer("an event that is not JSON", payload) if whole else failures.cut_off()
                ) from None
            if not isinstance(data, dict):
                raise failures.bad_answer("an event that is not an object", payload)
            _raise_if_error(data, failures, named=name == "error")
            model = model or _name(data.get("model"))
            usage = _usage(data.get("usage")) or usage
            choice = _first_choice(data)
            if choice is None or (client and choice.get("index")):
                if client:
                    yield data
                continue
            chosen = True
            reason = _text(choice.get("finish_reason")) or reason
            delta = choice.get("delta") or choice.get("message")
            if tools:
                calls.add(delta)
            text, held = _clean(held + _content(delta))
            if text:
                said = said or not text.isspace()
                yield text
            if client:
                yield data
    except ModelError:
        if reason is None:  # with a reason the answer is complete, however its connection ends
            raise
    if not done and reason is None:
        raise failures.cut_off()
    if not chosen:
        raise failures.bad_answer("no choices")
    whole_calls = calls.whole(_printable)
    if not said and not whole_calls and not client:
        raise failures.empty_answer(reason or "stop")
    yield from whole_calls
    yield End(_reason(reason, failures, whole_calls), model, usage)


def _read_object(chunks: Iterable[bytes], failures: Failures, tools: bool, client: bool) -> Iterator[Part]:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > _LONGEST_BODY:
            raise failures.bad_answer("more than 32 MB")
    text = body.decode("utf-8", "replace").strip()
    if not text:
        raise failures.bad_answer("nothing at all")
    try:
        data = _decoded(text)
    except (ValueError, RecursionError):
        raise failures.bad_answer("not JSON", bytes(body)) from None
    if not isinstance(data, dict):
        raise failures.bad_answer("not an object", bytes(body))
    _raise_if_error(data, failures)
    choice = _first_choice(data)
    if choice is None:
        raise failures.bad_answer("no choices", bytes(body))
    message = choice.get("message")
    if not isinstance(message, dict):
        raise failures.bad_answer("a choice without a message", bytes(body))
    reason = _text(choice.get("finish_reason"))
    text, _ = _clean(_content(message))
    calls = Calls()
    if tools:
        calls.add(message)
    whole_calls = calls.whole(_printable)
    if not text.strip() and not whole_calls and not client:
        raise failures.empty_answer(reason or "stop")
    if text:
        yield text
    if client:
        yield data
    yield from whole_calls
    yield End(_reason(reason, failures, whole_calls), _name(data.get("model")), _usage(data.get("usage")))


def _decoded(text: str) -> Any:
    """The JSON that `text` is, without space around it.  json.loads takes half as long again to look for it, and for
    encodings.  Raises as it does."""
    value, end = _decode(text)
    if end != len(text):
        raise ValueError("something follows the JSON")
    return value


def _raise_if_error(data: dict[str, Any], failures: Failures, *, named: bool = False) -> None:
    """Some servers begin with 200 and then put the error into the body."""
    if data.get("error"):
        raise failures.told(data["error"])
    if named or data.get("object") == "error":
        raise failures.told(data)


def _first_choice(data: dict[str, Any]) -> dict[str, Any] | None:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _content(message: Any) -> str:
    """The words of a message or a delta; what it reasoned before (`reasoning_content`) is not part of the answer."""
    if not isinstance(message, dict):
        return ""
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    return _text(content) or _text(message.get("refusal")) or ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    if part.get("type", "text") not in ("text", "output_text", "refusal"):
        return ""
    return _text(part.get("text")) or _text(part.get("refusal")) or ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _name(value: Any) -> str | None:
    """A model's name, as far as anyone would print it."""
    return _clean(value[:200])[0] if isinstance(value, str) and value else None


def _printable(text: str) -> str:
    """`text` as it may be stored and sent on."""
    whole, half = _clean(text)
    return f"{whole}\ufffd" if half else whole


def _clean(text: str) -> tuple[str, str]:
    """`text` without what no database takes, and the half of a pair it ends in, which belongs to the next piece."""
    if text.isascii():
        return (text.replace("\0", "") if "\0" in text else text), ""
    held = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
    paired = text.removesuffix(held).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired.replace("\0", ""), held


def _reason(said: str | None, failures: Failures, calls: Sequence[ToolCall]) -> str:
    if said == "error":
        raise failures.told("the model stopped with an error")
    if calls:  # many servers say "stop"
        return "tool_calls"
    return said if said in ("length", "content_filter") else "stop"


def _usage(value: Any) -> Usage | None:
    """What the provider counted, if it counted both; numbers written as text will do."""
    if not isinstance(value, dict):
        return None
    prompt, completion = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    details = value.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(prompt, completion, cached_tokens=min(cached or 0, prompt))


def _count(value: Any) -> int | None:
    try:
        number = int(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else -1
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < 2**31 else None
