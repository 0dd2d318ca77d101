"""Decide after a failure whether a model is asked again, and whether it is asked after its fallbacks.

Invariant (tests/model_client/test_client.py): one of our own requests takes at most TRIES_MAX.  A client's takes one,
because clients try again themselves.  Both wait LOADING_SECONDS for a model that its server loads.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from memory.errors import ModelError

PASSING = frozenset({"model_unreachable", "model_busy", "model_failed", "model_cut_off", "model_loading"})
"""The codes of failures that another try a moment later may avoid."""
DOWN_SECONDS = {
    **dict.fromkeys((*PASSING, "model_timeout", "model_quota_exhausted", "model_key_refused"), 20.0),
    "model_not_found": 60.0,
}
"""For so many seconds a model that failed is asked after its fallbacks. Other failures say nothing about the next."""

TRIES_MAX = 3  # of one request
PLAIN_AFTER = TRIES_MAX - 1  # failed tries; the next goes without tools, JSON mode and stream, where a server may fail
PAUSE_SECONDS_MAX = 5.0  # a server that asks for a longer one is reported
BACKOFF_SECONDS_MAX = 1.0
LOADING_SECONDS = 60.0  # that an answer waits for a model that its server loads; at most half of MODEL_TIMEOUT


@dataclass
class Retries:
    """Failures of one model, and what they mean for its next requests. Threads may share it.

    timeout: seconds of all tries together. backoff: the pause in seconds before the first retry; the second is twice as
    long.
    """

    timeout: float
    backoff: float
    clock: Callable[[], float]
    _last: tuple[float, str] | None = field(default=None, init=False)  # when the last failure came, and its code

    @property
    def down(self) -> str | None:
        """Return the code of the error with which the model failed lately."""
        if self._last is None or self.clock() >= self._last[0] + DOWN_SECONDS[self._last[1]]:
            return None
        return self._last[1]

    def pause(self, error: ModelError, tries: int, seconds: float, *, is_client: bool) -> float | None:
        """Return how long to wait before another try; None: there is none.

        seconds: since the first try began. is_client: the request is a client's.
        """
        # With jitter, so that callers who failed together do not return together.
        backoff = min(self.backoff * 2 ** (tries - 1), BACKOFF_SECONDS_MAX) * (1 + random.random() / 4)  # nosec B311
        pause = backoff if error.retry_after is None else error.retry_after
        if error.code == "model_loading":
            return pause if seconds + pause < min(LOADING_SECONDS, self.timeout / 2) else None
        may_help = error.code in PASSING and not is_client and tries < TRIES_MAX
        return pause if may_help and pause <= min(PAUSE_SECONDS_MAX, self.timeout - seconds) else None

    def failed(self, error: ModelError) -> None:
        """Remember a failure before the first part of an answer."""
        if error.code in DOWN_SECONDS:
            self._last = self.clock(), error.code

    def succeeded(self) -> None:
        """Forget the last failure."""
        self._last = None
