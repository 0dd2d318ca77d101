"""Reads a chat completion, in whatever form the server sends it: server-sent events, or one JSON object.

Guarantee: whatever the bytes are, `read` yields what a `LanguageModel` yields, or raises ModelError.  Unknown fields,
nulls, comments and missing usage do no harm.  Text has no lone surrogates and no NUL, which databases refuse.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from memory import tokens
from memory.domain import Usage
from memory.errors import ModelError
from memory.llm.failures import Failures
from memory.llm.model import Chunk, Finish, ModelRequest, Piece, ToolCall
from memory.llm.passing import as_completion, for_client
from memory.llm.tool_calls import PartialCall, collect, estimate_call, estimate_prompt, whole_calls

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_MOST_TOKENS = 2**31


def read(
    chunks: Iterable[bytes], request: ModelRequest, failures: Failures
) -> Iterator[Piece | Chunk | ToolCall | Finish]:
    """The answer to `request` in `chunks`.

    Calls count only if tools were offered.  A client's calls are its own and its answer may be empty; of several
    choices the first is read.
    """
    client = request.client
    text, calls, sent = list[str](), list[PartialCall](), list[dict[str, Any]]()
    reason: str | None = None
    model: str | None = None
    usage: Usage | None = None
    chosen = False
    data: dict[str, Any] = {}
    try:
        for data in _objects(chunks, failures):
            model = model or _text(data.get("model"))
            usage = _usage(data.get("usage")) or usage
            choice = _first_choice(data)
            if choice is not None and not (client is not None and choice.get("index")):
                chosen = True
                reason = _text(choice.get("finish_reason")) or reason
                message = choice.get("delta") or choice.get("message")
                if request.tools or client is not None:
                    collect(calls, message)
                if piece := _clean(_content(message)):
                    text.append(piece)
                    yield Piece(piece)
            if client is not None:
                sent.append(data)
                if request.stream and (chunk := for_client(data, client)):
                    yield Chunk(chunk)
    except ModelError:
        if reason is None:  # with a reason to end, the answer is complete
            raise
    if not chosen:
        raise failures.bad_answer("it holds no message", json.dumps(data, ensure_ascii=False))
    said = "".join(text)
    made = whole_calls(calls, _clean) if calls else []
    if client is None and not made and (not said or said.isspace()):
        raise failures.empty_answer(reason)
    if made:  # many servers say "stop"
        reason = "tool_calls"
    elif reason not in ("length", "content_filter"):
        reason = "stop"
    if usage is None:
        completion = tokens.estimate(said) + sum(map(estimate_call, made))
        usage = Usage(estimate_prompt(request), completion, estimated=True)
    finish = Finish(reason, _clean(model[:200]) if model else failures.model, usage)
    if client is not None and not request.stream:
        yield Chunk(as_completion(sent, said, finish, made))
    yield from made
    yield finish


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end in LF or CRLF, without their ends.

    Not httpx2's `iter_lines`: it also splits at U+2028, which JSON may hold.
    """
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        if b"\n" in chunk:
            *ended, pending = pending.split(b"\n")
            for line in ended:
                yield bytes(line).removesuffix(b"\r")
    if pending:
        yield bytes(pending)


def events(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Server-sent events as (name, data), by the WHATWG's rules.

    Not openai's `Stream`: it closes the connection at `[DONE]`, and the next call opens a new one.
    """
    name, data = "", list[bytes]()
    for line in chain(lines, (b"",)):  # some servers leave out the last empty line
        key, _, value = line.partition(b":")
        if key == b"data":
            data.append(value.removeprefix(b" "))
        elif key == b"event":
            name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif not line:
            if data:
                yield name, b"\n".join(data).decode("utf-8", "replace").strip()
            name, data = "", []


def _objects(chunks: Iterable[bytes], failures: Failures) -> Iterator[dict[str, Any]]:
    """The object in each event up to `[DONE]`, or the one object that the answer is.

    The first line tells: content types are often wrong, and some servers stream unasked or answer a streamed request
    with one object.
    """
    rest = lines(chunks)
    first = next(filter(bytes.strip, rest), b"").removeprefix(_BOM)
    streamed, began = first.startswith(_FIELDS), False
    if streamed:
        payloads = events(chain((first,), rest))
    else:
        payloads = iter([("", b"\n".join((first, *rest)).decode("utf-8", "replace"))])
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
        error = data.get("error") or (data if name == "error" or data.get("object") == "error" else None)
        if error:
            raise failures.told(error)
        began = True
        yield data
    if streamed:
        raise failures.cut_off()


def _first_choice(data: dict[str, Any]) -> dict[str, Any] | None:
    """The first choice with a message or a part of one."""
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) and ("delta" in first or "message" in first) else None


def _content(message: Any) -> str:
    """The words of a message or delta, without its reasoning."""
    if not isinstance(message, dict):
        return ""
    content = message.get("content")
    if isinstance(content, list):  # of Mistral's reasoning models
        parts = (part for part in content if isinstance(part, dict) and part.get("type") == "text")
        content = "".join(_text(part.get("text")) or "" for part in parts)
    return _text(content) or _text(message.get("refusal")) or ""


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
    return value if isinstance(value, int) and 0 <= value < _MOST_TOKENS else None
