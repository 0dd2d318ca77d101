"""Kept-alive connections that time turns, with Recap or directly with its model server.

It uses Python's `http.client` because that takes little time itself, and the service is to be measured.  A connection
must be used by one thread only.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

SECONDS = 180.0  # without receiving a byte, after which a call counts as failed
FAILURES = (OSError, http.client.HTTPException, ValueError)  # raised by calls; see Connection


@dataclass(frozen=True)
class Took:
    """The times of a turn by `time.monotonic`: its start, its first text (only if streamed), its end."""

    begun: float
    first: float | None
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.begun


class Connection:
    """A connection to one server.

    Its calls raise FAILURES: OSError and HTTPException from the client, ValueError for a status of 300 or more and for
    a stream that breaks off.
    """

    def __init__(self, url: str, key: str = "", seconds: float = SECONDS) -> None:
        self._http = http.client.HTTPConnection(urlsplit(url).netloc, timeout=seconds)
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Make a call and return the JSON of the response."""
        return json.loads(self._asked(method, path, body).read())

    def turn(self, path: str, body: Mapping[str, Any]) -> Took:
        """Send a message and read the whole reply, event by event if `body` requests a stream."""
        begun, first = time.monotonic(), None
        response = self._asked("POST", path, body)
        if not body.get("stream"):
            json.loads(response.read())
            return Took(begun, None, time.monotonic())
        done = False
        for line in response:
            first = first or (time.monotonic() if _spoken(line) else None)
            done = done or line.strip() == b"data: [DONE]"
        if not done or first is None:
            raise ValueError(f"the reply broke off: {line.decode('utf-8', 'replace')[:300]}")
        return Took(begun, first, time.monotonic())

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None) -> http.client.HTTPResponse:
        content = None if body is None else json.dumps(body).encode()
        try:
            self._http.request(method, path, content, self._headers)
            response = self._http.getresponse()
            if response.status >= 300:
                said = response.read(1000).decode("utf-8", "replace")
                raise ValueError(f"{method} {path} answered {response.status}: {said}")
        except BaseException:
            self._http.close()  # part of a response may be unread; the next call opens a new connection
            raise
        return response


@dataclass(frozen=True)
class Conversed:
    """Conversations at once: their turns, the errors of turns that failed, and the seconds of each conversation."""

    taken: list[Took]
    errors: list[str]
    seconds: list[float]


def at_once(
    url: str, path: str, conversations: Sequence[Sequence[Mapping[str, Any]]], bar: Any, over: float = 0.0
) -> Conversed:
    """Send the turns of conversations, each on its own connection.  They begin evenly over the first `over` seconds."""
    done = Conversed([], [], [])

    def converse(number: int) -> None:
        time.sleep(over * number / len(conversations))
        begun = time.monotonic()
        with Connection(url) as connection:
            for body in conversations[number]:
                try:
                    done.taken.append(connection.turn(path, body))
                except FAILURES as error:
                    done.errors.append(f"{type(error).__name__}: {error}")
                bar.update()
        done.seconds.append(time.monotonic() - begun)

    with ThreadPoolExecutor(len(conversations)) as pool:
        list(pool.map(converse, range(len(conversations))))
    return done


def _spoken(line: bytes) -> str:
    """The text in one line of a stream of chat.completion.chunk events, of Recap or of a model."""
    event = line.removeprefix(b"data: ").strip()
    if not event.startswith(b"{"):
        return ""
    choices = json.loads(event).get("choices")
    text: str = (choices[0]["delta"].get("content") or "") if choices else ""
    return text
