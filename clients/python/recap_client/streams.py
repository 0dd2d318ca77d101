"""A reply while it is written."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Any, cast

from recap_client.errors import NoAnswer, error_of
from recap_client.types import ChatReply, Event


class _Reply:
    """The events of a stream so far."""

    def __init__(self) -> None:
        self._chunks: dict[str, Any] = {}
        self._words: list[str] = []
        self._whole = False

    @property
    def answer(self) -> ChatReply:
        """Return what `chat` would have returned.  Raises RuntimeError before the last words came."""
        if not self._whole:
            raise RuntimeError("The reply is not complete. Iterate over the stream to its end first.")
        return cast(ChatReply, self._chunks)

    def _take(self, line: str) -> str:
        """Return the words that a line brings, if any."""
        field, _, event = line.partition(": ")
        if event == "[DONE]":
            self._finish()
        elif field == "data":
            chunk = json.loads(event)
            if "error" in chunk:
                raise error_of(200, chunk)
            self._chunks |= chunk  # later values replace earlier ones
            if chunk.get("withdraws"):  # the words so far were a thought
                self._words.clear()
            words: str = chunk["choices"][0]["delta"].get("content", "")
            self._words.append(words)
            return words
        return ""

    def _finish(self) -> None:
        reply = "".join(self._words)
        choice = {**self._chunks["choices"][0], "message": {"role": "assistant", "content": reply}}
        del choice["delta"]
        self._chunks |= {"object": "chat.completion", "choices": [choice], "reply": reply}
        self._whole = True

    def _ended(self) -> None:
        if not self._whole:
            raise NoAnswer("the stream was cut")


class Stream(_Reply):
    """Iterate over it for the words of a reply as they come; then `answer` has the rest.

    The message is sent when the iteration begins.  To leave earlier, `close` it; the server goes on and stores the
    reply.  Raises RecapError, also in the middle.
    """

    def __init__(self, lines: Generator[str, None, None]) -> None:
        super().__init__()
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            if words := self._take(line):
                yield words
        self._ended()

    def close(self) -> None:
        self._lines.close()


class AsyncStream(_Reply):
    """As Stream, for `async for`; it has `aclose`."""

    def __init__(self, lines: AsyncGenerator[str, None]) -> None:
        super().__init__()
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            if words := self._take(line):
                yield words
        self._ended()

    async def aclose(self) -> None:
        await self._lines.aclose()


class _Events:
    """Where in the events of a server a reader is: `events(after=position)` goes on behind it."""

    position: str | None = None

    def _take(self, line: str) -> Event | None:
        field, _, value = line.partition(": ")
        if field == "id":
            self.position = value
        return cast(Event, json.loads(value)) if field == "data" else None


class EventStream(_Events):
    """Iterate over it for the events as they come, until the server ends the stream.  Raises RecapError."""

    def __init__(self, lines: Generator[str, None, None]) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[Event]:
        for line in self._lines:
            if event := self._take(line):
                yield event

    def close(self) -> None:
        self._lines.close()


class AsyncEventStream(_Events):
    """As EventStream, for `async for`; it has `aclose`."""

    def __init__(self, lines: AsyncGenerator[str, None]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[Event]:
        async for line in self._lines:
            if event := self._take(line):
                yield event

    async def aclose(self) -> None:
        await self._lines.aclose()
