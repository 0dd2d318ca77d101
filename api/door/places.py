"""Places: how many requests may hold a thread for long at once.

A request holds a thread of its worker until its answer is over.  Reading takes milliseconds.  Any other call takes a
place, since it may wait for the database.  It is `slow` if it may wait for a model, a session or a large document too.

Guarantee: slow calls leave threads to all others, and those leave threads to reads.  What finds no place is refused at
once and has done nothing.  A person or a key at its limit leaves places to others.  A place is given back when the
answer is over, its reader has gone, or anything fails.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from flask import g, request

from config import Settings
from memory.errors import LimitReached, RecapError
from models.owners import Caller

SPARE = 8  # threads that slow calls leave, a quarter where there are few, and half of it for reads alone
RETRY_SECONDS = 2.0  # until somebody's turn may be over
AGAIN = "Nothing was done. Send this again after as many seconds as Retry-After says."
AT_END = "recap.at_end"  # in the WSGI environment: an ExitStack of what to do when the answer is over


class Places:
    """Counts the places that are taken in this process: all, and each key's, address's and person's."""

    def __init__(self, settings: Settings) -> None:
        self._settings, threads = settings, settings.threads
        spare = min(SPARE, threads // 4) or 1
        self._most = {"slow": max(1, threads - spare), "short": threads - spare // 2}
        self._taken: Counter[str | Caller] = Counter()
        self._lock = threading.Lock()

    def take(self, who: str | None, *, slow: bool) -> None:
        """Take a place for this request, of `who` if that is limited.  Raises RecapError, LimitReached."""
        if who is not None and slow:  # first, so that what is refused here is in nobody's way
            self._take_within(who, self._settings.turns_per_key, "This key or address", "TURNS_PER_KEY")
            g.places = self
        if not self._take("all", self._most["slow" if slow else "short"]):
            text = f"All threads for such calls are in use. {AGAIN}"
            raise RecapError("server_busy", text, status=503, retry_after=RETRY_SECONDS)

    def take_for(self, caller: Caller) -> None:
        """Count this request for its person as well.  Raises LimitReached."""
        self._take_within(caller, self._settings.turns_per_person, "This person", "TURNS_PER_PERSON")

    def _take_within(self, who: str | Caller, most: int, named: str, setting: str) -> None:
        if most and not self._take(who, most):
            text = f"{named} has {most} turns or other long calls in progress, the most at once ({setting}). {AGAIN}"
            raise LimitReached("too_many_at_once", text, retry_after=RETRY_SECONDS)

    def _take(self, who: str | Caller, most: int) -> bool:
        with self._lock:
            if self._taken[who] >= most:
                return False
            self._taken[who] += 1
        request.environ[AT_END].callback(self._give_back, who)
        return True

    def _give_back(self, who: str | Caller) -> None:
        with self._lock:
            self._taken -= Counter([who])  # what is zero goes


def with_end(wsgi_app: Any) -> Any:
    """`wsgi_app`, which does what is in AT_END when the answer has left, its reader has gone, or it fails."""

    def serve(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        with ExitStack() as end:
            environ[AT_END] = end
            answer = wsgi_app(environ, start_response)
            if close := getattr(answer, "close", None):
                end.callback(close)
            for piece in answer:  # noqa: UP028 - `yield from` would close it a second time
                yield piece

    return serve
