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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory import tokens
from memory.llm.model import ModelRequest, Tool, ToolCall

_NAME_CHARS = 64  # OpenAI's limit
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass
class _Partial:
    """A call of which fragments are still to come."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: Any = None


class ToolCallReader:
    """Collects the tool calls of one answer: `add` each delta or the one message, then take the `whole` calls."""

    def __init__(self) -> None:
        self._calls: list[_Partial] = []

    def add(self, delta: Any) -> None:
        fragments = delta.get("tool_calls") if isinstance(delta, dict) else None
        before = len(self._calls)
        for fragment in fragments if isinstance(fragments, list) else ():
            function = fragment.get("function") if isinstance(fragment, dict) else None
            if isinstance(function, dict):
                self._add_fragment(fragment, function, self._calls[before:])

    def whole(self, clean: Callable[[str], str]) -> list[ToolCall]:
        """The calls, with `clean` applied to their texts."""
        out: list[ToolCall] = []
        for call in self._calls:
            call_id, name = clean(call.id), clean(call.name)
            if not call_id or any(call_id == other.id for other in out):
                call_id = f"call_{uuid.uuid4().hex[:24]}"
            if name:
                out.append(ToolCall(call_id, name, clean("".join(call.arguments)), call.extra))
        return out

    def _add_fragment(
        self, fragment: Mapping[str, Any], function: Mapping[str, Any], same_chunk: Sequence[_Partial]
    ) -> None:
        call_id, name = _text(fragment.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        arguments = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else _text(arguments)
        index = fragment.get("index")
        index = index if isinstance(index, int) else None
        call = self._continued(index, call_id, name, arguments, same_chunk)
        if call is None:
            call = _Partial(index)
            self._calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        call.extra = call.extra or fragment.get("extra_content")
        call.arguments.append(arguments)

    def _continued(
        self, index: int | None, call_id: str, name: str, arguments: str, same_chunk: Sequence[_Partial]
    ) -> _Partial | None:
        """The call that a fragment continues; None if it begins another."""
        if call_id:
            same = next((call for call in self._calls if call.id == call_id), None)
            if same is not None and (index is None or same.index in (index, None)):
                return same
        if index is None:
            return self._calls[-1] if self._calls and not (call_id or name) else None
        last = next((call for call in reversed(self._calls) if call.index == index), None)
        if last is None or (call_id and last.id and call_id != last.id):
            return None
        if name and last.name and (last in same_chunk or (arguments and _is_object("".join(last.arguments)))):
            return None  # parallel whole calls under one index
        return last


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
