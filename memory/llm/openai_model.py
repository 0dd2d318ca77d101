"""Answers of a chat model of an OpenAI-compatible server, tried again where that may help.

Invariants (tests/model_client/test_client.py):
- A client's request is sent as it came.  Only what its server refuses, and an answer can do without, is left out, in
  later requests at once.
- No request is tried again after its first part was yielded (see `retries`).  An answer in JSON is yielded as a whole.
- MODEL_TIMEOUT bounds all tries together.  Of a stream it bounds the silence, and LASTING_MAX times as much the whole.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from memory.errors import CONTEXT_EXCEEDED, ModelError
from memory.llm import QUIET_SECONDS, Cancelled, ModelEvent, ModelRequest, StreamEnd, Waiting, estimate_prompt
from memory.llm.openai import ProviderClient
from memory.llm.request_form import RequestForm
from memory.llm.response_parser import parse_completion
from memory.llm.retries import PLAIN_AFTER, Retries
from memory.llm.thoughts import ThoughtSplitter

BUSY_SECONDS = 10.0  # what the caller is told to wait if a busy server does not say
LASTING_MAX = 10  # times MODEL_TIMEOUT that a stream may take in all
WINDOW_SHARE, WINDOW_TOKENS_MIN = 0.75, 500  # of a prompt that was too long where the server names no limit


class OpenAIModel:
    """`LanguageModel`: the model `name` at `provider`, chosen by the environment variable `setting`.

    Threads may share it.  backoff, clock: of `Retries`.
    """

    def __init__(
        self,
        provider: ProviderClient,
        name: str,
        setting: str = "OPENAI_MODEL",
        *,
        backoff: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.provider = provider
        self.name = name
        self.form = RequestForm()
        """How this model's requests are written, as learned so far."""
        self._errors = provider.errors(name, setting)
        self._retries = Retries(provider.timeout, backoff, clock)

    @property
    def supports_tools(self) -> bool:
        """True until the server has refused tools once."""
        return self.form.tools

    @property
    def window(self) -> int | None:
        """Return the tokens that the model can read in one prompt, once the server has refused a longer one."""
        return self.form.window

    @property
    def down(self) -> str | None:
        """Return the code of the error with which the model failed lately."""
        return self._retries.down

    def answer(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See `LanguageModel`.  Closing the iterator early closes the connection."""
        silence = self.provider.timeout
        began_at = time.monotonic()
        deadline = began_at + silence * (LASTING_MAX if request.stream else 1)
        form = self.form
        tries = 0
        began = False
        is_lesson = True
        while True:
            try:
                events = self._events(request, form, deadline)
                for event in events if request.schema is None else _whole(events):
                    if not began and not isinstance(event, Waiting):  # only now it is known that the form helps
                        began = True
                        self._retries.succeeded()
                        self.form = self.form.merged(form) if is_lesson and form is not self.form else self.form
                    yield event
                return
            except ModelError as failed:
                error = failed
            if request.cancel.cancelled:  # which may have broken the connection
                raise Cancelled
            other = None if began else form.without_refused(error, request)
            if other is not None:
                form = other
                continue
            tries += 1
            seconds = time.monotonic() - began_at
            pause = self._retries.pause(error, tries, seconds, is_client=request.client is not None)
            self._complete(error, request)
            if not began:
                self._retries.failed(error)
            if began or pause is None:
                raise error
            if tries == PLAIN_AFTER and error.code == "model_failed":  # perhaps at its own calls, JSON or stream
                form = replace(form, tools=False, json_mode="text", streams=bool(form.streams))
                is_lesson = False
            yield from _wait(pause, request)

    def _events(self, request: ModelRequest, form: RequestForm, deadline: float) -> Iterator[ModelEvent]:
        """Yield the answer of one try."""
        splitter = ThoughtSplitter(implicit=form.implicit_thoughts and request.stream)
        provider = self.provider
        path = "/chat/completions"
        body = form.body(self.name, request, cache_key=provider.server.takes_cache_key)
        if request.stream:
            chunks = provider.chunks_ahead(path, body, self._errors, deadline, request.cancel, provider.timeout)
        else:
            chunks = provider.chunks(path, body, self._errors, deadline, request.cancel)
        with contextlib.closing(chunks):
            for event in parse_completion(chunks, request, self._errors, splitter):
                if isinstance(event, StreamEnd) and splitter.had_implicit_thought != form.implicit_thoughts:
                    self.form = replace(self.form, implicit_thoughts=splitter.had_implicit_thought)
                yield event

    def _complete(self, error: ModelError, request: ModelRequest) -> None:
        """Add what the server did not say: the window that a prompt exceeds, and how long a busy model may take."""
        if error.code == CONTEXT_EXCEEDED:
            share = int(estimate_prompt(request) * WINDOW_SHARE)
            error.window = error.window or max(WINDOW_TOKENS_MIN, share)
            self.form = replace(self.form, window=error.window)
        if error.code in ("model_busy", "model_loading") and error.retry_after is None:
            error.retry_after = BUSY_SECONDS


def _whole(events: Iterator[ModelEvent]) -> Iterator[ModelEvent]:
    """Yield the events of an answer in JSON once all have come, as half of it is of no use; until then, `Waiting`."""
    complete: list[ModelEvent] = []
    for event in events:
        complete.append(event)
        yield Waiting()
    yield from complete


def _wait(seconds: float, request: ModelRequest) -> Iterator[Waiting]:
    """Wait before another try, and tell the reader of a stream.  Raises Cancelled."""
    while seconds > 0:
        if request.cancel.wait(min(seconds, QUIET_SECONDS)):
            raise Cancelled
        seconds -= QUIET_SECONDS
        if request.stream and seconds > 0:
            yield Waiting()
