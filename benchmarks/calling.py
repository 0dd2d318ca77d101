"""A connection that is kept and its turns timed: as an application speaks to Recap, or to its model directly.

Python's own client, which takes a tenth of a millisecond: what is measured is to be the service.  A connection is for
one thread.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

SECONDS = 180.0  # without a byte: a real failure, whatever is measured
FAILURES = (OSError, http.client.HTTPException, ValueError)  # what a call raises; see Connection


@dataclass(frozen=True)
class Took:
    """A turn's times by `time.monotonic`: sent, its first text there (streamed alone), all there."""

    begun: float
    first: float | None
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.begun


class Connection:
    """To one server.  Raises FAILURES: OSError and HTTPException as the client does, ValueError for another status than
    200 and for a stream that breaks off."""

    def __init__(self, url: str) -> None:
        self._http = http.client.HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON that is answered."""
        return json.loads(self._asked(method, path, body).read())

    def turn(self, path: str, body: Mapping[str, Any]) -> Took:
        """Send a message and read its whole reply, an event at a time if `body` asks for a stream."""
        begun, first = time.monotonic(), None
        response = self._asked("POST", path, body)
        if not body.get("stream"):
            json.loads(response.read())
            return Took(begun, None, time.monotonic())
        done = False
        for line in response:
            first = first or (time.monotonic() if spoken(line) else None)
            done = done or line.strip() == b"data: [DONE]"
        if not done or first is None:
            raise ValueError(f"the reply broke off: {line.decode('utf-8', 'replace')[:300]}")
        return Took(begun, first, time.monotonic())

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None) -> http.client.HTTPResponse:
        content = None if body is None else json.dumps(body).encode()
        try:
            self._http.request(method, path, content, {"Content-Type": "application/json"})
            response = self._http.getresponse()
            if response.status != 200:
                said = response.read(1000).decode("utf-8", "replace")
                raise ValueError(f"{method} {path} answered {response.status}: {said}")
        except BaseException:
            self._http.close()  # half of an answer may be left on it; the next call opens another
            raise
        return response


def spoken(line: bytes) -> str:
    """The text in a line of a stream of chat.completion.chunk events, Recap's own or the model's."""
    event = line.removeprefix(b"data: ").strip()
    if not event.startswith(b"{"):
        return ""
    choices = json.loads(event).get("choices")
    text: str = (choices[0]["delta"].get("content") or "") if choices else ""
    return text
