"""Tool calls on the wire: put together from what servers send, and sent back as servers take them.

A plain body holds whole calls, a stream fragments: the first of a call with its id and name, the others with more of
its arguments, told apart by `index`.  Servers take liberties with that: no index at all, whole calls in one chunk, the
same index for parallel calls, the name once more with every fragment, no id, arguments as an object.

Guarantee: every call that comes out has a name and an id that no other has; nothing that comes in raises.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory import tokens
from memory.llm import ModelRequest, Tool, ToolCall

_NAME_CHARS = 64  # OpenAI's limit
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: Any = None


class Calls:
    """Collects the calls of one answer: `add` each delta (or the one message), then take the `whole`."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, delta: Any) -> None:
        """Take what `delta` has of calls."""
        fragments = delta.get("tool_calls") if isinstance(delta, dict) else None
        before = len(self._calls)
        for fragment in fragments if isinstance(fragments, list) else ():
            function = fragment.get("function") if isinstance(fragment, dict) else None
            if isinstance(function, dict):
                self._take(fragment, function, self._calls[before:])

    def whole(self, clean: Callable[[str], str]) -> list[ToolCall]:
        """The calls, their texts made `clean`."""
        out: list[ToolCall] = []
        for call in self._calls:
            call_id, name = clean(call.id), clean(call.name)
            if not call_id or any(call_id == other.id for other in out):
                call_id = f"call_{uuid.uuid4().hex[:24]}"
            if name:
                out.append(ToolCall(call_id, name, clean("".join(call.arguments)), call.extra))
        return out

    def _take(self, fragment: Mapping[str, Any], function: Mapping[str, Any], beside: Sequence[_Call]) -> None:
        call_id, name = _text(fragment.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        arguments = _text(arguments)
        index = fragment.get("index")
        index = index if isinstance(index, int) else None
        call = self._continued(index, call_id, name, arguments, beside)
        if call is None:
            call = _Call(index)
            self._calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        call.extra = call.extra or fragment.get("extra_content")
        call.arguments.append(arguments)

    def _continued(
        self, index: int | None, call_id: str, name: str, arguments: str, beside: Sequence[_Call]
    ) -> _Call | None:
        """The call that a fragment goes on with; None when it begins another.  `beside` came in the same chunk."""
        if call_id:
            same = next((call for call in self._calls if call.id == call_id), None)
            if same is not None and (index is None or same.index in (index, None)):
                return same
        if index is None:
            return self._calls[-1] if self._calls and not (call_id or name) else None
        last = next((call for call in reversed(self._calls) if call.index == index), None)
        if last is None or (call_id and last.id and call_id != last.id):
            return None
        if name and last.name and (last in beside or (arguments and _is_object("".join(last.arguments)))):
            return None  # parallel calls under one index, each whole
        return last


def sent_tool(tool: Tool) -> dict[str, Any]:
    """A tool as it stands in a request's body."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def sent_call(call: ToolCall) -> dict[str, Any]:
    """A call as it stands in an assistant's message.

    Servers refuse a whole conversation for a name with a dot in it or arguments that are no object, so what a model
    wrote wrongly goes back without; the tool's answer says what was wrong.
    """
    function = {
        "name": _NOT_IN_NAMES.sub("_", call.name)[:_NAME_CHARS],
        "arguments": call.arguments if _is_object(call.arguments) else "{}",
    }
    extra = {} if call.extra is None else {"extra_content": call.extra}
    return {"id": call.id, "type": "function", "function": function, **extra}


def estimate_call(call: ToolCall) -> int:
    """Tokens of a call, by our estimate."""
    return tokens.estimate(call.name) + tokens.estimate(call.arguments)


def estimate_prompt(request: ModelRequest) -> int:
    """Tokens of a request's messages and tools, by our estimate."""
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
