"""Join the model calls of a turn with Recap's own tools into one answer for a client.

Invariants:
- The client gets the text of all model calls, the calls of its own tools and one end, and nothing of the calls of
  Recap's tools (test_client_tools).
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from memory.llm import QUIET_SECONDS, RawChunk, StreamEnd, ToolCall, Waiting
from memory.llm.openai_form import to_openai


class ClientAnswer:
    """Answer to a client so far. Calls of tools and ends are held back until their tool's owner is known.

    recap_tools: the names of Recap's tools.
    """

    def __init__(self, recap_tools: Collection[str], *, stream: bool) -> None:
        self._recap_tools, self._stream = recap_tools, stream
        self._indexes: dict[str, int] = {}  # of the calls that the client has got, by their ids
        self._open: dict[str, str] = {}  # the id of the call whose pieces come with the server's index
        self._first: Mapping[str, Any] = {}  # the first chunk: all others get its `id` and `created`
        self._held: list[dict[str, Any]] = []
        self._model_calls = 0  # begun, with the present one
        self._earlier_text = ""  # their text
        self._has_words = False  # the present call has brought text
        self._sent_at = time.monotonic()

    def begin(self, text: str) -> Callable[[RawChunk], Iterator[RawChunk | Waiting]]:
        """Begin a call of the model, and drop the end of the call before. text: the reply so far."""
        self._held.clear()
        self._model_calls += 1
        self._earlier_text = text
        self._has_words = False
        return self._feed

    def _feed(self, chunk: RawChunk) -> Iterator[RawChunk | Waiting]:
        """Yield the part of a chunk that the client may have now; hold back the rest."""
        self._first = self._first or chunk.data
        data = {**chunk.data, **{name: self._first[name] for name in ("id", "created") if name in self._first}}
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
        if not self._stream or choice is None:
            self._held.append(data)
            return
        delta = {name: value for name, value in (choice.get("delta") or {}).items() if name != "tool_calls"}
        if self._model_calls > 1:
            delta.pop("role", None)
            delta = self._continued(delta)
        if pieces := list(self._client_pieces((choice.get("delta") or {}).get("tool_calls"))):
            delta["tool_calls"] = pieces
        if choice.get("finish_reason"):
            self._held.append({**data, "choices": [{**choice, "delta": {}}]})
        if any(value is not None for value in delta.values()):
            yield RawChunk({**data, "choices": [{**choice, "delta": delta, "finish_reason": None}]})
        elif time.monotonic() > self._sent_at + QUIET_SECONDS:
            self._sent_at = time.monotonic()
            yield Waiting()

    def _client_pieces(self, pieces: Any) -> Iterator[dict[str, Any]]:
        """Yield the pieces of calls that must be of the client's tools, with the client's indexes.

        `end` yields the client's other calls.
        """
        for piece in pieces if isinstance(pieces, list) else ():
            function = piece.get("function") if isinstance(piece, dict) else None
            if not isinstance(function, dict):
                continue
            index = str(piece.get("index"))
            id = str(piece.get("id") or "")
            name = str(function.get("name") or "")
            if id and id not in self._indexes:
                self._open.pop(index, None)
                if name and not any(tool.startswith(name) for tool in self._recap_tools):  # a name may come in pieces
                    self._open[index] = id
                    self._indexes[id] = len(self._indexes)
            if index in self._open and id in ("", self._open[index]):
                yield {**piece, "index": self._indexes[self._open[index]]}

    @staticmethod
    def reason(reason: str, calls: Sequence[ToolCall]) -> str:
        """Return the finish reason of the answer. reason: of the last model call. calls: of the client's tools."""
        return "tool_calls" if calls else "stop" if reason == "tool_calls" else reason

    def end(self, text: str, calls: Sequence[ToolCall], end: StreamEnd) -> Iterator[RawChunk]:
        """Yield the client's calls that were held back, and the end. text: of all model calls."""
        usage = end.usage
        client_calls = [to_openai(call) for call in calls]
        unsent = [call for call in client_calls if call["id"] not in self._indexes]
        if self._stream and unsent:
            deltas = [{"index": index, **call} for index, call in enumerate(unsent, len(self._indexes))]
            choice = {"index": 0, "delta": {"tool_calls": deltas}, "finish_reason": None}
            yield RawChunk({**{k: v for k, v in self._first.items() if k != "usage"}, "choices": [choice]})
        for data in self._held:
            for choice in data.get("choices") or ():
                if choice.get("finish_reason") in (None, "tool_calls", "stop"):
                    choice["finish_reason"] = end.reason
                if not self._stream and isinstance(choice.get("message"), dict):
                    message = {name: value for name, value in choice["message"].items() if name != "tool_calls"}
                    message |= {"content": text} if self._earlier_text else {}
                    choice["message"] = message | ({"tool_calls": client_calls} if calls else {})
            if self._model_calls > 1 and isinstance(data.get("usage"), dict):
                counted = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
                data = {**data, "usage": {**data["usage"], **counted, "total_tokens": usage.total_tokens}}
            yield RawChunk(data)

    def _continued(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Return a delta of which the first text begins a paragraph after the text of earlier model calls."""
        content = delta.get("content")
        if self._has_words or not isinstance(content, str):
            return delta
        content = content.lstrip()
        self._has_words = bool(content)
        if content:
            content = f"\n\n{content}" if self._earlier_text and not self._earlier_text.endswith("\n") else content
        return {**delta, "content": content or None}
