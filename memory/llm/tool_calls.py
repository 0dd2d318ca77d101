"""Tool calls as servers send them and as they are sent back.

A plain answer holds whole calls.  A stream holds fragments, which `index` tells apart: the first has the id and name,
the others have more of the arguments.  Servers deviate: no index, whole calls in one chunk, one index for parallel
calls, the name repeated in every fragment, no id, arguments as an object.

Guarantee: every call has a name and a unique id; no input raises an error.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory import tokens
from memory.llm.model import ModelRequest, Tool, ToolCall

_NAME_CHARS = 64  # OpenAI's limit
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass
class PartialCall:
    """A call of which more fragments may come."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: Any = None


def collect(calls: list[PartialCall], message: Any) -> None:
    """Add to `calls` what a delta or a whole message holds of them."""
    fragments = message.get("tool_calls") if isinstance(message, dict) else None
    for fragment in fragments if isinstance(fragments, list) else ():
        function = fragment.get("function") if isinstance(fragment, dict) else None
        if not isinstance(function, dict):
            continue
        index, call_id, name = fragment.get("index"), _text(fragment.get("id")), _text(function.get("name"))
        index = index if isinstance(index, int) else None
        arguments = function.get("arguments")
        arguments = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else _text(arguments)
        call = _continued(calls, index, call_id, name, arguments)
        if call is None:
            call = PartialCall(index)
            calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        call.extra = call.extra or fragment.get("extra_content")
        call.arguments.append(arguments)


def _continued(
    calls: Sequence[PartialCall], index: int | None, call_id: str, name: str, arguments: str
) -> PartialCall | None:
    """The call that a fragment continues; None if it begins another."""
    last = next((call for call in reversed(calls) if index is None or call.index == index), None)
    if last is None or (call_id and last.id):
        return last if last is not None and last.id == call_id else None
    named_twice = name and last.name
    another = named_twice and (name != last.name or (arguments and _is_object("".join(last.arguments))))
    return None if another else last


def whole_calls(calls: Iterable[PartialCall], clean: Callable[[str], str]) -> list[ToolCall]:
    """The calls that have a name, with `clean` applied to their texts."""
    out: list[ToolCall] = []
    for call in calls:
        call_id, name = clean(call.id), clean(call.name)
        if not call_id or any(call_id == other.id for other in out):
            call_id = f"call_{uuid.uuid4().hex[:24]}"
        if name:
            out.append(ToolCall(call_id, name, clean("".join(call.arguments)), call.extra))
    return out


def sent_tool(tool: Tool) -> dict[str, Any]:
    """A tool in the form of a request's body."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def sent_call(call: ToolCall) -> dict[str, Any]:
    """A call in the form of an assistant's message.

    Servers refuse a conversation with a bad name or arguments that are no object, so bad ones are replaced.
    """
    function = {
        "name": _NOT_IN_NAMES.sub("_", call.name)[:_NAME_CHARS],
        "arguments": call.arguments if _is_object(call.arguments) else "{}",
    }
    extra = {} if call.extra is None else {"extra_content": call.extra}
    return {"id": call.id, "type": "function", "function": function, **extra}


def estimate_call(call: ToolCall) -> int:
    """The estimated tokens of a call."""
    return tokens.estimate(call.name) + tokens.estimate(call.arguments)


def estimate_prompt(request: ModelRequest) -> int:
    """The estimated tokens of a request's messages and tools."""
    messages = sum([tokens.estimate(message.content) for message in request.messages])
    calls = sum([estimate_call(call) for message in request.messages for call in message.tool_calls])
    tools = sum([tokens.estimate(json.dumps(sent_tool(tool))) for tool in request.tools])
    return messages + tokens.MESSAGE_OVERHEAD * len(request.messages) + calls + tools


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
