"""Passing a server's answer on to the client that asked, in the form it asked for.

Almost always that is the form it came in, and every field of it goes through, known here or not.  But servers answer a
streamed request plainly, and a plain one with a stream; and the usage that Recap asks for is not always the client's
wish.  Functions over JSON's types; nothing that comes in raises.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memory.llm import Chunk, Finish, Piece, ToolCall
from memory.llm.tool_calls import sent_call

CHUNK, COMPLETION = "chat.completion.chunk", "chat.completion"


def in_chunks(
    pieces: Sequence[str],
    end: Finish,
    client: Mapping[str, Any],
    *,
    stream: bool,
    calls: Sequence[ToolCall] = (),
    id: str | None = None,
) -> Iterator[Piece | Chunk]:
    """An answer that comes from no server, in OpenAI's form: as a client with these parameters expects it."""
    common = {"id": id or f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": end.model}
    usage = {
        "prompt_tokens": end.usage.prompt_tokens,
        "completion_tokens": end.usage.completion_tokens,
        "total_tokens": end.usage.total_tokens,
    }
    if not stream:
        text = "".join(pieces)
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
        message |= {"tool_calls": [sent_call(call) for call in calls]} if calls else {}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.reason}
        yield Piece(text)
        yield Chunk({**common, "object": COMPLETION, "choices": [choice], "usage": usage})
        return

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Chunk:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return Chunk({**common, "object": CHUNK, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces:
        yield Piece(piece)
        yield chunk({"content": piece})
    if calls:
        yield chunk({"tool_calls": [{"index": place, **sent_call(call)} for place, call in enumerate(calls)]})
    yield chunk({}, end.reason)
    if last := for_client({**common, "object": CHUNK, "choices": [], "usage": usage}, client):
        yield Chunk(last)


def last_chunk(before: Mapping[str, Any], finish: str) -> dict[str, Any]:
    """The end of a stream that was broken off after the chunk `before`."""
    choice = {"index": 0, "delta": {}, "finish_reason": finish}
    return {**before, "object": CHUNK, "choices": [choice]}


def for_client(data: Mapping[str, Any], client: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A chunk as a client with these parameters should see it; None for one that has nothing but unwanted usage."""
    options = (client or {}).get("stream_options")
    wanted = isinstance(options, dict) and options.get("include_usage")
    choices = _choices(data)
    if not wanted and not choices and data.get("usage"):
        return None
    chunk = {name: value for name, value in data.items() if name != "usage" or value is not None or wanted}
    if any("message" in choice and "delta" not in choice for choice in choices):
        chunk |= {"object": CHUNK, "choices": [_as_delta(choice) for choice in choices]}
    return chunk


def assembled(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The completion that came: in one part, or in the chunks of a stream nobody asked for."""
    if len(parts) == 1 and all("message" in choice for choice in _choices(parts[0])):
        return dict(parts[0])
    completion: dict[str, Any] = {}
    choices: dict[Any, dict[str, Any]] = {}
    for part in parts:
        completion |= {name: value for name, value in part.items() if value is not None and name != "choices"}
        for choice in _choices(part):
            _take(choices, choice)
    return {**completion, "object": COMPLETION, "choices": [choices[index] for index in sorted(choices, key=str)]}


def _as_delta(choice: Mapping[str, Any]) -> dict[str, Any]:
    message = dict(choice.get("message") or {})
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        message["tool_calls"] = [{"index": place, **call} for place, call in enumerate(calls) if isinstance(call, dict)]
    return {**{name: value for name, value in choice.items() if name != "message"}, "delta": message}


def _take(choices: dict[Any, dict[str, Any]], choice: Mapping[str, Any]) -> None:
    """Add what a stream's `choice` tells to the completion's choice of the same index."""
    index = choice.get("index") or 0
    whole = choices.setdefault(index, {"index": index, "message": {"role": "assistant", "content": None}})
    for name, value in choice.items():
        if name not in ("index", "delta", "message") and value is not None:
            whole[name] = _joined(whole.get(name), value)
    delta = choice.get("delta") or choice.get("message")
    if isinstance(delta, dict):
        for name, value in delta.items():
            if name == "role" or value is None:
                continue
            known = whole["message"].get(name)
            whole["message"][name] = _calls(known or [], value) if name == "tool_calls" else _joined(known, value)


def _joined(known: Any, more: Any) -> Any:
    """Text and lists go on, mappings are filled up, anything else is told anew."""
    if isinstance(known, str) and isinstance(more, str):
        return known + more
    if isinstance(known, list) and isinstance(more, list):
        return known + more
    if isinstance(known, dict) and isinstance(more, dict):
        return {**known, **{name: _joined(known.get(name), value) for name, value in more.items()}}
    return more


def _calls(known: list[dict[str, Any]], fragments: Any) -> list[dict[str, Any]]:
    """The calls so far with these fragments, which `index` tells apart and only the completion's form does without."""
    calls = list(known)
    for fragment in fragments if isinstance(fragments, list) else ():
        if not isinstance(fragment, dict):
            continue
        place = fragment.get("index")
        place = place if isinstance(place, int) and place < len(calls) else len(calls)
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        if place == len(calls):
            calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
        call = calls[place]
        told = {"name": function.get("name") or "", "arguments": function.get("arguments") or ""}
        more = {name: value for name, value in fragment.items() if name not in ("index", "function") and value}
        calls[place] = {**call, **more, "function": _joined(call["function"], told)}
    return calls


def _choices(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    choices = data.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
