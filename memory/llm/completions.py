"""The chat completions of any OpenAI-compatible server as a `LanguageModel`.

A client's request is sent as it came: its parameters unchanged, its messages as they are.  Recap adds parameters of its
own only where the client names none.  What a server refuses of a request, and an answer can do without, is learned: the
request goes again in another form, and later ones in that form at once.

Invariants: one of our own requests takes at most three tries, none after its first part was yielded; a client's takes
one, because clients try again themselves.  A server that fails for long is left alone for some seconds.  MODEL_TIMEOUT
bounds all tries together, with the pauses between them; of a stream it bounds the silence, and LASTING_MAX times as
much the whole (tests/model_client/test_client.py).
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import replace

from memory.errors import CONTEXT_EXCEEDED, ModelError
from memory.llm import Finish, Interrupted, ModelEvent, ModelRequest, Waiting, estimate_prompt
from memory.llm.answers import read
from memory.llm.client import Endpoint
from memory.llm.failures import WORTH_ANOTHER_TRY
from memory.llm.request_form import RequestForm
from memory.llm.thoughts import ThoughtSplitter

TRIES = 3
LONGEST_PAUSE = 5.0  # seconds; a server that asks for a longer one is reported
BUSY_SECONDS = 10.0  # what the caller is told to wait if a busy server does not say
LASTING_MAX = 10  # times MODEL_TIMEOUT that a stream may take in all
LASTING = frozenset({"model_failed", "model_unreachable"})  # failures that tell of more than one request
WINDOW_SHARE, WINDOW_MIN = 0.75, 500  # of a prompt that was too long where the server names no limit; tokens


class OpenAIModel:
    """A `LanguageModel`: the model `name` at `endpoint`, chosen by the environment variable `setting`.

    Threads may share it.  `backoff` is the pause in seconds before the first retry; the second is twice as long.
    `rest` is for how long a server is left alone that failed TRIES times in a row.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        setting: str = "OPENAI_MODEL",
        *,
        backoff: float = 0.5,
        rest: float = 3.0,
    ) -> None:
        self.endpoint = endpoint
        self.name = name
        self.form = RequestForm()
        """How this model's requests are written, as learned so far."""
        self._failures = endpoint.failures(name, setting)
        self._backoff = backoff
        self._rest = rest
        self._failed = 0  # times in a row
        self._last_failure: tuple[float, ModelError] | None = None

    @property
    def can_call_tools(self) -> bool:
        """True until the server has refused tools once."""
        return self.form.tools

    @property
    def window(self) -> int | None:
        """The tokens that the model can read in one prompt, once the server has refused a longer one."""
        return self.form.window

    def answer(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See `LanguageModel`.  Closing the iterator early closes the connection."""
        self._raise_while_resting()
        silence = self.endpoint.timeout
        deadline = time.monotonic() + silence * (LASTING_MAX if request.stream else 1)
        last_try = time.monotonic() + silence
        form, tries, began = self.form, 0, False
        while True:
            try:
                for event in self._events(request, form, deadline):
                    if not began and not isinstance(event, Waiting):  # only now it is known that the form helps
                        self._learn(form)
                        began = True
                    yield event
                return
            except ModelError as failed:
                error = failed
            if request.call.stopped:  # which may have broken the connection
                raise Interrupted
            if error.code == CONTEXT_EXCEEDED:
                error.window = error.window or max(WINDOW_MIN, int(estimate_prompt(request) * WINDOW_SHARE))
                self.form = replace(self.form, window=error.window)
            other = None if began else form.without_refused(error, request)
            if other is not None:
                form = other
                continue
            tries += 1
            pause = error.retry_after
            if pause is None:  # with jitter, so that callers who failed together do not return together
                pause = self._backoff * 2 ** (tries - 1) * (1 + random.random() / 4)  # nosec B311 # a pause
            if not began and error.code in LASTING:
                self._failed += 1
                self._last_failure = time.monotonic(), error
            final = began or error.code not in WORTH_ANOTHER_TRY or request.client is not None or pause > LONGEST_PAUSE
            if final or tries == TRIES or time.monotonic() + pause >= last_try:
                if error.code == "model_busy" and error.retry_after is None:
                    error.retry_after = BUSY_SECONDS
                raise error
            if request.call.wait(pause):
                raise Interrupted

    def _events(self, request: ModelRequest, form: RequestForm, deadline: float) -> Iterator[ModelEvent]:
        """Yield the answer of one try."""
        splitter = ThoughtSplitter(implicit=form.implicit_thoughts and request.stream)
        endpoint, path = self.endpoint, "/chat/completions"
        body = form.body(self.name, request, cache_key=endpoint.takes_cache_key)
        if request.stream:
            chunks = endpoint.chunks_ahead(path, body, self._failures, deadline, request.call, endpoint.timeout)
        else:
            chunks = endpoint.chunks(path, body, self._failures, deadline, request.call)
        with contextlib.closing(chunks):
            for event in read(chunks, request, self._failures, splitter):
                if isinstance(event, Finish) and splitter.had_implicit_thought != form.implicit_thoughts:
                    self.form = replace(self.form, implicit_thoughts=splitter.had_implicit_thought)
                yield event

    def _learn(self, form: RequestForm) -> None:
        self._failed, self._last_failure = 0, None
        if form is not self.form:
            self.form = self.form.merged(form)

    def _raise_while_resting(self) -> None:
        """Raise the last error again while the server is left alone, without asking it."""
        last = self._last_failure
        if self._failed < TRIES or last is None:
            return
        left = last[0] + self._rest - time.monotonic()
        if left > 0:
            raise last[1].again(left)
