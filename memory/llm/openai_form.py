"""Form of OpenAI's protocol: answers and calls of tools as a client gets them.

A server's answer to a client's request almost always has the form that the client asked for, and every field of it is
passed on.  But some servers answer a streamed request with one object, or stream unasked, and a client may not want the
usage that Recap asks for.  Guarantee: no input raises an error.
"""

import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory.json_values import dict_in, dicts_in, list_in, object_in
from memory.llm import RawChunk, StreamEnd, TextDelta, ToolCall

CHUNK, COMPLETION = "chat.completion.chunk", "chat.completion"
_TOOL_NAME_CHARS = 64  # OpenAI's limit
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def to_chunks(
    pieces: Sequence[str],
    end: StreamEnd,
    client: Mapping[str, Any],
    *,
    stream: bool,
    calls: Sequence[ToolCall] = (),
    id: str | None = None,
) -> Iterator[TextDelta | RawChunk]:
    """Yield an answer that comes from no server, as a client with these parameters expects it."""
    if not stream:
        text = "".join(pieces)
        yield TextDelta(text)
        yield RawChunk(_completion(text, end, calls, id))
        return
    common = _common(CHUNK, end, id)
    yield _delta(common, {"role": "assistant", "content": ""})
    for piece in pieces:
        yield TextDelta(piece)
        yield _delta(common, {"content": piece})
    if calls:
        yield _delta(common, {"tool_calls": [{"index": place, **sent_call(call)} for place, call in enumerate(calls)]})
    yield _delta(common, {}, end.reason)
    if last := for_client({**common, "choices": [], "usage": _usage(end)}, client):
        yield RawChunk(last)


def last_chunk(before: RawChunk) -> RawChunk:
    """Return the chunk that ends a stream which broke off after the chunk `before`."""
    return _delta({**before.data, "object": CHUNK}, {}, "stop")


def as_completion(
    sent: Sequence[Mapping[str, Any]], text: str, end: StreamEnd, calls: Sequence[ToolCall]
) -> Mapping[str, Any]:
    """Return the chunks that the server sent as one `chat.completion`.

    If the server streamed unasked, it is composed of `text` and `calls`.
    """
    if len(sent) == 1 and any("message" in choice for choice in _choices(sent[0])):
        return sent[0]
    return _completion(text, end, calls, next((str(part["id"]) for part in sent if part.get("id")), None))


def for_client(data: Mapping[str, Any], client: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a chunk for a client with these parameters.

    None: it has nothing but usage that the client does not want.
    """
    wants_usage = dict_in(client.get("stream_options")).get("include_usage")
    choices = _choices(data)
    parts = [choice.get(name) for choice in choices for name in ("delta", "message", "finish_reason")]
    if not wants_usage and not any(parts) and data.get("usage"):
        return None
    chunk = {name: value for name, value in data.items() if name != "usage" or value is not None or wants_usage}
    if any("message" in choice and "delta" not in choice for choice in choices):
        chunk |= {"object": CHUNK, "choices": [_as_delta(choice) for choice in choices]}
    elif choices or data.get("choices"):
        chunk["choices"] = [_well_formed(choice) for choice in choices]
    return chunk


def to_openai(call: ToolCall) -> dict[str, Any]:
    """Return a call in the form of an assistant's message, with the name and arguments that the model wrote."""
    extra = {} if call.extra is None else {"extra_content": call.extra}
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function, **extra}


def sent_call(call: ToolCall) -> dict[str, Any]:
    """Return a call as it is sent.

    Servers refuse a conversation with a bad name or arguments that are no object, so bad ones are replaced.
    """
    name = _NOT_IN_NAMES.sub("_", call.name)[:_TOOL_NAME_CHARS]
    return to_openai(replace(call, name=name, arguments="{}" if object_in(call.arguments) is None else call.arguments))


def _delta(common: Mapping[str, Any], delta: dict[str, Any], finish: str | None = None) -> RawChunk:
    return RawChunk({**common, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _well_formed(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice without what is no object in the place of one, which its readers need not look for."""
    if "delta" not in choice:
        return dict(choice)
    delta = dict_in(choice["delta"])
    if calls := delta.get("tool_calls"):
        whole = [call for call in dicts_in(calls) if isinstance(call.get("function"), dict | None)]
        delta = {**delta, "tool_calls": whole}
    return {**choice, "delta": delta}


def _as_delta(choice: Mapping[str, Any]) -> dict[str, Any]:
    message = dict(dict_in(choice.get("message")))
    if calls := list_in(message.get("tool_calls")):
        message["tool_calls"] = [{"index": place, **dict_in(call)} for place, call in enumerate(calls)]
    return {**{name: value for name, value in choice.items() if name != "message"}, "delta": message}


def _completion(text: str, end: StreamEnd, calls: Sequence[ToolCall], id: str | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = [sent_call(call) for call in calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.reason}
    return {**_common(COMPLETION, end, id), "choices": [choice], "usage": _usage(end)}


def _common(kind: str, end: StreamEnd, id: str | None) -> dict[str, Any]:
    return {"id": id or f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": end.model}


def _usage(end: StreamEnd) -> dict[str, int]:
    return {
        "prompt_tokens": end.usage.prompt_tokens,
        "completion_tokens": end.usage.completion_tokens,
        "total_tokens": end.usage.total_tokens,
    }


def _choices(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(filter(None, dicts_in(data.get("choices"))))
