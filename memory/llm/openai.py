"""Requests to a model server by the `openai` package: chat completions, embeddings, and the bytes of its responses.

Requests go through the package's low-level `post`, which sends a body unchanged.  Its typed calls take several times as
long, and report the deviations of servers as unrelated errors.

Invariants (tests/model_client/test_client.py):
- Whatever happens to a request raises ModelError.
- A client's request is sent as it came.  Only what its server refuses, and an answer can do without, is left out, in
  later requests at once.
- No request is tried again after its first part was yielded (see `retries`).  An answer in JSON is yielded as a whole.
- MODEL_TIMEOUT bounds all tries together.  Of a stream it bounds the silence, and LASTING_MAX times as much the whole.
"""

import contextlib
import json
import math
import queue
import re
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import httpx2
import numpy as np
import openai
from numpy.typing import NDArray

from config import Server, SettingsError
from config.model_servers import OPENAI_URL
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, ModelError
from memory.llm import (
    QUIET_SECONDS,
    Cancelled,
    CancelToken,
    ModelEvent,
    ModelRequest,
    StreamEnd,
    Waiting,
    estimate_prompt,
)
from memory.llm.provider_errors import THIS_MACHINE, ProviderErrors
from memory.llm.request_form import RequestForm
from memory.llm.response_parser import parse_completion
from memory.llm.retries import PLAIN_AFTER, Retries
from memory.llm.thoughts import ThoughtSplitter
from memory.ops.metrics import Metrics
from search_index import EmbeddingUnavailable

CONNECT_SECONDS = 5.0
_MOST_BYTES = 64 * 1024 * 1024  # of one response; real ones have a thousandth of that

_AZURE = re.compile(r"(?P<endpoint>.*?)(/openai)?(/deployments/(?P<deployment>[^/]+)(/embeddings)?)?(?<!/v1)")
"""An address of Azure's older protocol, where /openai/v1 is OpenAI's."""

_OF_THIS_MACHINE = ("Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version")
# What the package would tell every server; no server needs it.
_UNSENT = {f"X-Stainless-{name}": openai.Omit() for name in (*_OF_THIS_MACHINE, "Async", "Retry-Count", "Read-Timeout")}

Body = Mapping[str, Any]


class ProviderClient:
    """Model server, and the `openai` client that this process calls it with.  Threads may share it.

    timeout: seconds that an answer may take. client: the caller's own, which stays open.
    Raises SettingsError if no request could be made to `server`.
    """

    def __init__(self, server: Server, timeout: float, client: openai.OpenAI | None = None) -> None:
        url = server.url or OPENAI_URL
        key = server.key
        try:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or len(url.split()) > 1:
                raise ValueError
        except ValueError:
            raise SettingsError(
                f"{server.url_setting} must be a whole address, as in http://127.0.0.1:11434/v1."
            ) from None
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise SettingsError(f"{server.key_setting} holds a character that no key has; copy it again.")
        self.server, self.timeout = server, timeout
        path = parts.path.rstrip("/").removesuffix("/chat/completions")  # as manuals show the whole address of a call
        self.address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"
        self._secrets = tuple(filter(None, (key, parts.password)))
        if client is not None:
            self._client = client.with_options(max_retries=0)
            self._by_deployment = isinstance(client, openai.AzureOpenAI)
            self.close: Callable[[], object] = lambda: None
            return
        auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
        try:
            if parts.hostname in THIS_MACHINE:  # without proxies; ssl itself reads SSL_CERT_FILE
                http = openai.DefaultHttpxClient(auth=auth, trust_env=False, verify=ssl.create_default_context())
            else:
                http = openai.DefaultHttpxClient(auth=auth)
        except (ValueError, ImportError) as error:
            raise SettingsError(f"The environment's proxy can't be used for {server.url_setting}: {error}") from None
        self._client, self._by_deployment = _client(self.address, dict(parse_qsl(parts.query)), key, http)
        self.close = weakref.finalize(self, self._client.close)  # at the latest when the last turn with it is over

    def errors(self, model: str, setting: str, seconds: float | None = None) -> ProviderErrors:
        """Return the errors of the model that `setting` names, whose answers may take `seconds` (or MODEL_TIMEOUT)."""
        return ProviderErrors(self.address, model, setting, seconds or self.timeout, self._secrets, self.server)

    def get(self, path: str, body: Body | None = None, seconds: float | None = None) -> bytes:
        """Return the server's answer at `path`, to a POST of `body` or else to a GET.  Raises ModelError."""
        errors = self.errors("of the server", "OPENAI_MODEL", seconds)
        return b"".join(self.chunks(path, body, errors, time.monotonic() + errors.seconds, CancelToken()))

    def chunks(
        self,
        path: str,
        body: Body | None,
        errors: ProviderErrors,
        deadline: float,
        cancel: CancelToken,
        silence: float | None = None,
    ) -> Generator[bytes, None, None]:
        """Yield the bytes of a response as they come, until `deadline` (of time.monotonic()).

        silence: the seconds in which nothing may come; without it only the deadline counts.
        Cancelling `cancel` breaks the connection once the response has begun.  So does closing the generator early.
        """
        size = 0
        try:
            with (
                contextlib.closing(self._send(path, body, deadline, silence)) as response,
                cancel.on_cancel(lambda: _shutdown_socket(response)),
            ):
                for chunk in response.iter_bytes():
                    size += len(chunk)
                    if size > _MOST_BYTES:
                        raise errors.bad_answer("it is too long")
                    yield chunk
                    if time.monotonic() >= deadline:
                        raise errors.timed_out()
        except openai.APIStatusError as error:
            raise errors.refused(error.status_code, error.response.headers, error.response.content) from None
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            if isinstance(error.__cause__, httpx2.ConnectTimeout):
                raise errors.unreachable(f"no connection in {CONNECT_SECONDS:g} seconds") from None
            raise errors.timed_out(silent=silence is not None) from None
        except openai.APIConnectionError as error:
            raise errors.unreachable(str(error.__cause__) or type(error.__cause__).__name__) from None
        except httpx2.DecodingError:
            raise errors.bad_answer("its compression is broken") from None
        except (httpx2.TransportError, OSError):
            raise errors.cut_off() from None

    def chunks_ahead(
        self, path: str, body: Body | None, errors: ProviderErrors, deadline: float, cancel: CancelToken, silence: float
    ) -> Generator[bytes, None, None]:
        """As `chunks`, but read in a thread of their own: a cancelled token and the deadline end them at once.

        Yields no bytes, b"", for each QUIET_SECONDS in which nothing comes.
        When the generator is closed, the thread reads on: if nothing more comes, the connection can be used again.
        A thread that waits for a silent server ends with its read timeout.
        """
        arrived = queue.SimpleQueue[bytes | ModelError | None]()
        closed = threading.Event()

        def read_all() -> None:
            try:
                with contextlib.closing(self.chunks(path, body, errors, deadline, cancel, silence)) as chunks:
                    for chunk in chunks:
                        if closed.is_set():
                            break
                        arrived.put(chunk)
            except ModelError as error:
                arrived.put(error)
            finally:
                arrived.put(None)

        threading.Thread(target=read_all, name="recap-model", daemon=True).start()
        try:
            with cancel.on_cancel(lambda: arrived.put(None)):
                while True:
                    left = deadline - time.monotonic()
                    try:
                        item = arrived.get(timeout=max(0.0, min(QUIET_SECONDS, left)))
                    except queue.Empty:
                        if left <= QUIET_SECONDS:
                            raise errors.timed_out() from None
                        item = b""
                    if item is None:
                        return
                    if isinstance(item, ModelError):
                        raise item
                    yield item
        finally:
            closed.set()

    def _send(self, path: str, body: Body | None, deadline: float, silence: float | None) -> httpx2.Response:
        """Return the response to a request, once its head has come.  Raises the package's own errors."""
        left = max(0.001, min(deadline - time.monotonic(), silence or math.inf))
        options: Any = {"timeout": openai.Timeout(left, connect=min(left, CONNECT_SECONDS)), "headers": _UNSENT}
        if self._by_deployment and body is not None:  # Azure names the model in the path
            path = f"/deployments/{quote(str(body.get('model')), safe='')}{path}"
        if body is None:
            return self._client.get(path, cast_to=httpx2.Response, stream=True, options=options)
        # As bytes: the package fails to encode half a surrogate pair, which careless frontends send.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return self._client.post(path, cast_to=httpx2.Response, stream=True, content=content, options=options)


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


def _client(address: str, query: Mapping[str, str], key: str, http: httpx2.Client) -> tuple[openai.OpenAI, bool]:
    """Return the client for an address, and whether a request's path names the model.

    Azure's older addresses have an api-version.  One that names a deployment is of that model alone.
    """
    options: dict[str, Any] = {"api_key": key or "no-key-needed", "http_client": http, "max_retries": 0}
    azure = _AZURE.fullmatch(address) if "api-version" in query else None
    if azure is None:
        return openai.OpenAI(base_url=address, default_query=query, **options), False
    client = openai.AzureOpenAI(
        azure_endpoint=azure["endpoint"],
        azure_deployment=azure["deployment"],
        api_version=query["api-version"],
        **options,
    )
    return client, azure["deployment"] is None


def _shutdown_socket(response: httpx2.Response) -> None:
    """Break the connection of a response, also while another thread waits for its next byte.

    Tried: `Response.close` of httpx2 does not wake the reading thread.  Shutting the socket down does.
    """
    if not response.is_closed:
        connection = response.extensions["network_stream"].get_extra_info("socket")
        with contextlib.suppress(OSError):  # the server has closed it
            # Not the TLS socket's own shutdown, which takes the session away under the reading thread.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)


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


INDEX_SECONDS = 30.0
PAUSE_SECONDS = 10.0  # after a failure, in which no search waits for the server
TEXTS_MAX = 32  # in one request: some servers take no more
SHORT_CHARS = 500  # of a text that the server refused as a whole
_OF_THE_TEXT = (CONTEXT_EXCEEDED, CONTENT_REFUSED, "model_rejected_request")  # and of no other text


class OpenAIEmbedder:
    """`Embedder`: the embedding model called `model` at `provider`.  Threads may share it.

    The server decides the size of the vectors: some cannot shorten them, and some refuse the parameter.
    """

    instant = False

    def __init__(self, provider: ProviderClient, model: str, metrics: Metrics) -> None:
        self.name = f"openai:{model}"
        self.dimensions = 0
        self._provider = provider
        self._model = model
        self._metrics = metrics
        self._failed: dict[str, str] = {}  # why the last request of a use failed
        self._paused_until = 0.0  # of time.monotonic()

    @property
    def failure(self) -> str | None:
        """Why the server gives no embeddings now, and what that means; None: it gives some, or was not asked yet."""
        why = next(iter(self._failed.values()), None)
        return why and f"{why} Searches compare words alone, and new messages are indexed when it answers again."

    def embed(self, texts: Sequence[str], within: float | None = None) -> NDArray[np.float32]:
        """Return a row for each text: zeros for one that the server refuses.  See Embedder.

        After a failure no search asks for PAUSE_SECONDS.
        """
        use = "index" if within is None else "search"
        if within is not None and time.monotonic() < self._paused_until:
            self._metrics.count_embedding(use, "skipped")
            raise EmbeddingUnavailable("The embedding server failed a moment ago.")
        try:
            parts = [self._rows(texts[at : at + TEXTS_MAX], within) for at in range(0, len(texts), TEXTS_MAX)]
            vectors = np.concatenate(parts)
        except (ModelError, ValueError) as error:  # pieces of different sizes
            why = self._reason(error, INDEX_SECONDS if within is None else within)
            self._failed[use] = why
            self._paused_until = time.monotonic() + PAUSE_SECONDS
            self._metrics.count_embedding(use, "failed")
            raise EmbeddingUnavailable(why) from None
        self.dimensions = vectors.shape[1]
        self._paused_until = 0.0
        self._failed.pop(use, None)
        self._metrics.count_embedding(use, "answered")
        return vectors

    def _reason(self, error: ModelError | ValueError, seconds: float) -> str:
        if not isinstance(error, ModelError):
            return f"The embedding model {self._model} changed the size of its vectors between two requests."
        if error.code == "model_timeout":
            return f"The embedding model {self._model} did not answer within {seconds:g} seconds."
        return error.kept

    def _rows(self, texts: Sequence[str], within: float | None) -> NDArray[np.float32]:
        """Embed the texts with one request; one by one, and shortened, if the server refuses them.  Raises ModelError.

        A text that is refused even so must not keep all others out of the index.
        """
        try:
            return self._request(texts, within)
        except ModelError as error:
            if error.code not in _OF_THE_TEXT or within is not None:
                raise
            if len(texts) > 1 or len(texts[0]) > SHORT_CHARS:
                return np.concatenate([self._rows([text[:SHORT_CHARS]], within) for text in texts])
            if not self.dimensions:
                raise
            return np.zeros((1, self.dimensions), np.float32)

    def _request(self, texts: Sequence[str], within: float | None) -> NDArray[np.float32]:
        seconds = INDEX_SECONDS if within is None else within
        errors = self._provider.errors(self._model, "OPENAI_EMBEDDING_MODEL", seconds)
        body = {"model": self._model, "input": list(texts)}
        # Read in a thread of its own, so that neither a name server nor a slow connection holds a search.
        deadline = time.monotonic() + seconds
        chunks = self._provider.chunks_ahead("/embeddings", body, errors, deadline, CancelToken(), seconds)
        answer = b"".join(chunks)
        try:
            rows = sorted(json.loads(answer)["data"], key=lambda row: row.get("index") or 0)
            vectors = np.array([row["embedding"] for row in rows], np.float32)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise errors.bad_answer(f"no embeddings ({error})") from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise errors.bad_answer(f"vectors of shape {vectors.shape} for {len(texts)} texts")
        return vectors
