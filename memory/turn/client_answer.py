"""Make one answer for a client of the calls of a model that Recap's own tools need.

The client sees the words of all of them, its own calls of tools and one end; nothing tells of Recap's calls
(test_client_tools).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from memory.llm import RawChunk, StreamEnd, ToolCall, Waiting
from memory.llm.openai_form import to_openai

_ALIVE_SECONDS = 1.0  # after which a stream tells, while calls are held back, that the model is at work


class ClientAnswer:
    """Answer to a client, as far as it has come. Calls and ends are held back until it is known whose they are.

    own: the names of Recap's tools.
    """

    def __init__(self, own: Collection[str], *, stream: bool) -> None:
        self._own, self._stream = own, stream
        self._places: dict[str, int] = {}  # of the client's calls that it has seen, by their ids
        self._open: dict[str, str] = {}  # the call whose pieces come with an index
        self._first: Mapping[str, Any] = {}  # the first chunk, after which all others are named
        self._held: list[dict[str, Any]] = []
        self._calls = -1  # of the model, before this one
        self._said = ""  # in those
        self._has_words = False  # in this one
        self._told_at = time.monotonic()

    def begin(self, text: str) -> Callable[[RawChunk], Iterator[RawChunk | Waiting]]:
        """Begin a call of the model, which has said `text` so far; the end of the one before is left out."""
        self._held.clear()
        self._calls, self._said, self._has_words = self._calls + 1, text, False
        return self._feed

    def _feed(self, chunk: RawChunk) -> Iterator[RawChunk | Waiting]:
        """Yield what the client may see of a chunk by now."""
        self._first = self._first or chunk.data
        data = {**chunk.data, **{name: self._first[name] for name in ("id", "created") if name in self._first}}
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
        if not self._stream or choice is None:
            self._held.append(data)
            return
        delta = {name: value for name, value in (choice.get("delta") or {}).items() if name != "tool_calls"}
        if self._calls:
            delta.pop("role", None)
            delta = self._continued(delta)
        if told := list(self._told((choice.get("delta") or {}).get("tool_calls"))):
            delta["tool_calls"] = told
        if choice.get("finish_reason"):
            self._held.append({**data, "choices": [{**choice, "delta": {}}]})
        if any(value is not None for value in delta.values()):
            yield RawChunk({**data, "choices": [{**choice, "delta": delta, "finish_reason": None}]})
        elif time.monotonic() > self._told_at + _ALIVE_SECONDS:
            self._told_at = time.monotonic()
            yield Waiting()

    def _told(self, pieces: Any) -> Iterator[dict[str, Any]]:
        """Yield the pieces of calls that are surely the client's, numbered as it sees them; `end` has the others."""
        for piece in pieces if isinstance(pieces, list) else ():
            function = piece.get("function") if isinstance(piece, dict) else None
            if not isinstance(function, dict):
                continue
            index, id, name = str(piece.get("index")), str(piece.get("id") or ""), str(function.get("name") or "")
            if id and id not in self._places:
                self._open.pop(index, None)
                if name and not any(own.startswith(name) for own in self._own):  # a name may come in pieces
                    self._open[index], self._places[id] = id, len(self._places)
            if index in self._open and id in ("", self._open[index]):
                yield {**piece, "index": self._places[self._open[index]]}

    @staticmethod
    def reason(reason: str, calls: Sequence[ToolCall]) -> str:
        """Return why the answer ends, whose calls of the client's tools are these."""
        return "tool_calls" if calls else "stop" if reason == "tool_calls" else reason

    def end(self, text: str, calls: Sequence[ToolCall], end: StreamEnd) -> Iterator[RawChunk]:
        """Yield the client's calls and the end. text: of all calls of the model."""
        usage, sent = end.usage, [to_openai(call) for call in calls]
        untold = [call for call in sent if call["id"] not in self._places]
        if self._stream and untold:
            deltas = [{"index": place, **call} for place, call in enumerate(untold, len(self._places))]
            choice = {"index": 0, "delta": {"tool_calls": deltas}, "finish_reason": None}
            yield RawChunk({**{k: v for k, v in self._first.items() if k != "usage"}, "choices": [choice]})
        for data in self._held:
            for choice in data.get("choices") or ():
                if choice.get("finish_reason") in (None, "tool_calls", "stop"):
                    choice["finish_reason"] = end.reason
                if not self._stream and isinstance(choice.get("message"), dict):
                    message = {name: value for name, value in choice["message"].items() if name != "tool_calls"}
                    message |= {"content": text} if self._said else {}
                    choice["message"] = message | ({"tool_calls": sent} if calls else {})
            if self._calls and isinstance(data.get("usage"), dict):
                counted = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
                data = {**data, "usage": {**data["usage"], **counted, "total_tokens": usage.total_tokens}}
            yield RawChunk(data)

    def _continued(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Return a delta as it goes on from the words of earlier calls, in a paragraph of its own."""
        content = delta.get("content")
        if self._has_words or not isinstance(content, str):
            return delta
        content = content.lstrip()
        self._has_words = bool(content)
        if content:
            content = f"\n\n{content}" if self._said and not self._said.endswith("\n") else content
        return {**delta, "content": content or None}
