"""Any OpenAI-compatible server as a `LanguageModel`, over the OpenAI SDK's transport.

The idea: the SDK brings authentication, the connection pool and its errors, by its documented `client.post`; bodies
are written and read here, since the typed `create()` costs more time than everything else of a call together, and
lets through what is not a chat completion (see `completion`).  What goes wrong becomes a sentence in `failures`.

Guarantee: an answer takes at most three tries (and, once a process, one call more for each parameter that its server
refuses), none after its first piece of text was yielded; and it ends in time.  MODEL_TIMEOUT bounds the whole call:
waits between tries, and the time the caller takes between pieces, included.  A server that falls silent is noticed
when the time is up if it never answered; one that answers and falls silent in the middle is noticed after as many
seconds again as were left when the request went out, because a read's time-out is fixed by then: so within twice
MODEL_TIMEOUT, and three times for a broken error page.  One that keeps dripping is noticed at the next byte.  (Bytes
of the response's header are the exception: each has its own time-out.)
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import ssl
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
import numpy as np
import openai
from numpy.typing import NDArray

from config import Settings, SettingsError
from memory import tokens
from memory.domain import Usage
from memory.errors import ModelError
from memory.llm import ChatMessage, DigestMaterial, Finish, ModelRequest, Piece, ToolCall
from memory.llm.completion import End, read
from memory.llm.failures import WORTH_ANOTHER_TRY, Failures, parameter_refused
from memory.llm.tool_calls import estimate_call, estimate_prompt, sent_call, sent_tool
from search_index import DIMENSIONS, EmbeddingUnavailable

OPENAI_URL = "https://api.openai.com/v1"
RETRIES = 2
CONNECT_SECONDS = 5.0
EMBEDDING_SECONDS = 8.0  # a search waits for it
LONGEST_SLEEP = 5.0  # a server that asks for more is reported instead of waited for
BUSY_SECONDS = 10.0  # what to tell the caller of a busy server that does not say how long
_NO_KEY = "no-key-needed"  # servers at home want none, but the SDK does
_ERROR_BYTES = 64 * 1024
_UNREAD: bool = True  # leave the body to us; as a literal, the SDK's types want a class to parse it with

_OPTIONAL = {
    "stream_options": ("stream_options",),
    "response_format": ("response_format", "json_schema"),
    "tools": ("tools", "tool_choice", "tool choice", "tool use", "tool calling", "function calling"),
}
"""Parameters an answer can do without, and the words by which a server's refusal of them is known."""


@dataclass(frozen=True)
class Transport:
    """The connection to one server, shared by its models: make one a process (`connect`), `close` it at the end.

    `timeout` is MODEL_TIMEOUT; `backoff` the seconds before the first retry, doubled for the next.  `without`
    remembers, for each model, the parameters its server refused.
    """

    client: openai.OpenAI
    address: str
    timeout: float
    secrets: tuple[str, ...] = field(repr=False)
    backoff: float
    without: dict[str, frozenset[str]] = field(default_factory=dict)

    def close(self) -> None:
        self.client.close()


def connect(settings: Settings, *, backoff: float = 0.5) -> Transport:
    """The transport to the server in `settings`.  Opens no connection yet.

    Raises SettingsError for a base URL or a key that no request could be made with.
    """
    url = settings.openai_base_url or OPENAI_URL
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(httpx2.URL(url).host)
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable:
        raise SettingsError("OPENAI_BASE_URL must be a whole address, as in http://127.0.0.1:11434/v1.")
    key = settings.openai_api_key
    if not (key.isascii() and key.isprintable()):
        raise SettingsError("OPENAI_API_KEY holds a character that no key has; copy it again.")
    for chatty in ("httpx2", "httpcore2"):  # they log whole addresses and headers, with the credentials in them
        logging.getLogger(chatty).setLevel(logging.WARNING)
    client = openai.OpenAI(
        api_key=key or _NO_KEY,
        base_url=url,
        max_retries=0,
        # HTTP_PROXY is for what is outside: this machine is reached directly.
        http_client=openai.DefaultHttpxClient(
            mounts={f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")},
            event_hooks={"response": [_raise_for_status]},
        ),
    )
    return Transport(
        client=client,
        address=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        timeout=settings.model_timeout,
        secrets=tuple(filter(None, (key, parts.password))),
        backoff=backoff,
    )


class OpenAIModel:
    """A `LanguageModel`: the model called `name` at the server of `transport`.  Any number of threads may use it."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport = transport
        self.name = name

    @property
    def can_call_tools(self) -> bool:
        """True until the server has refused them once."""
        return "tools" not in self.transport.without.get(self.name, frozenset())

    def answer(self, request: ModelRequest) -> Iterator[Piece | ToolCall | Finish]:
        """Yield the answer's text, its calls, and then its `Finish`; closing the iterator early drops the connection.

        Raises ModelError as `failures` words it.  Failures that may pass are met with up to two more tries as long
        as no text was yielded, there is time left, and the server does not ask to wait longer than five seconds.
        """
        failures = self._failures(request)
        deadline = time.monotonic() + self.transport.timeout
        for attempt in range(RETRIES + 1):
            spoken = False
            try:
                with contextlib.closing(self._attempt(request, failures, deadline)) as parts:
                    for part in parts:
                        spoken = True
                        yield part
                return
            except ModelError as error:
                pause = self._pause(error, attempt)
                if spoken or pause is None or time.monotonic() + pause >= deadline:
                    if error.code == "model_busy" and error.retry_after is None:
                        error.retry_after = BUSY_SECONDS
                    raise
            time.sleep(pause)

    def _pause(self, error: ModelError, attempt: int) -> float | None:
        """Seconds to wait before another try, None for no other try."""
        if attempt == RETRIES or error.code not in WORTH_ANOTHER_TRY:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= LONGEST_SLEEP else None
        # Jitter, so that callers who failed together do not return together.
        return self.transport.backoff * 2**attempt * (1 + random.random() / 4)

    def _attempt(
        self, request: ModelRequest, failures: Failures, deadline: float
    ) -> Generator[Piece | ToolCall | Finish, None, None]:
        response = self._open(request, failures, deadline)
        try:
            chunks = _timed(response, deadline, failures, self.transport.timeout)
            text: list[str] = []
            calls: list[ToolCall] = []
            for part in read(chunks, failures, bool(request.tools)):
                if isinstance(part, str):
                    text.append(part)
                    if request.stream:
                        yield Piece(part)
                    continue
                if isinstance(part, ToolCall):
                    calls.append(part)
                    continue
                if text and not request.stream:
                    yield Piece("".join(text))  # one piece, also from a server that streamed unasked
                yield from calls
                try:
                    yield self._finish(part, request, "".join(text), calls)
                finally:  # many callers ask for nothing after the Finish
                    _read_out(response, chunks)
        finally:
            response.close()

    def _open(self, request: ModelRequest, failures: Failures, deadline: float) -> httpx2.Response:
        """The response to `request`, its body still to be read; parameters the server refuses are left out."""
        known = without = self.transport.without.get(self.name, frozenset())
        while True:
            body = self._body(request, without)
            try:
                response = self._post(body, failures, deadline)
            except _Refused as refusal:
                optional = {name: words for name, words in _OPTIONAL.items() if name in body}
                name = parameter_refused(refusal.status, refusal.body, optional)
                if name is None:
                    raise failures.refused(refusal.status, refusal.headers, refusal.body) from None
                without |= {name}
                continue
            if without != known:  # remembered only now that leaving it out is known to have helped
                self.transport.without[self.name] = self.transport.without.get(self.name, frozenset()) | without
            return response

    def _body(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [_sent(message) for message in request.messages],
            "stream": request.stream,
        }
        if request.tools:
            body["tools"] = [sent_tool(tool) for tool in request.tools]
        if request.stream:
            body["stream_options"] = {"include_usage": True}
        if request.schema is not None:
            schema = {"name": "memory_update", "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {name: value for name, value in body.items() if name not in without}

    def _post(self, body: dict[str, Any], failures: Failures, deadline: float) -> httpx2.Response:
        left = deadline - time.monotonic()
        if left <= 0:
            raise failures.timed_out(self.transport.timeout)
        try:
            response = self.transport.client.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                # "replace": half a surrogate pair from a careless frontend has no bytes.
                content=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
                options={"timeout": httpx2.Timeout(left, connect=min(left, CONNECT_SECONDS))},
                stream=_UNREAD,
            )
        except openai.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, httpx2.TimeoutException) and not isinstance(cause, httpx2.ConnectTimeout):
                raise failures.timed_out(self.transport.timeout) from None
            raise failures.unreachable(str(cause or error) or type(cause).__name__) from None
        assert isinstance(response, httpx2.Response)
        return response

    def _finish(self, end: End, request: ModelRequest, text: str, calls: Sequence[ToolCall]) -> Finish:
        usage = end.usage
        if usage is None:
            completion = tokens.estimate(text) + sum(map(estimate_call, calls))
            usage = Usage(estimate_prompt(request), completion, estimated=True)
        return Finish(end.reason, end.model or self.name, usage)

    def _failures(self, request: ModelRequest) -> Failures:
        setting = "OPENAI_SUMMARY_MODEL" if isinstance(request.material, DigestMaterial) else "OPENAI_MODEL"
        return Failures(self.transport.address, self.name, setting, self.transport.secrets)


def _sent(message: ChatMessage) -> dict[str, Any]:
    """A message as it stands in a request's body."""
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:  # some servers refuse empty text, and all take none beside calls
        sent |= {"content": message.content or None, "tool_calls": [sent_call(call) for call in message.tool_calls]}
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


class OpenAIEmbedder:
    """An `Embedder`: the embedding model called `name` at the server of `transport`, in one call for many texts."""

    instant = False

    def __init__(self, transport: Transport, name: str) -> None:
        self.name = f"openai:{name}:{DIMENSIONS}"
        self._transport = transport
        self._model = name

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of DIMENSIONS numbers for each text.  Raises EmbeddingUnavailable, also for other shapes."""
        failures = Failures(self._transport.address, self._model, "OPENAI_EMBEDDING_MODEL", self._transport.secrets)
        body = {"model": self._model, "input": list(texts), "dimensions": DIMENSIONS, "encoding_format": "float"}
        try:
            response = self._transport.client.post(
                "/embeddings", cast_to=httpx2.Response, body=body, options={"timeout": EMBEDDING_SECONDS}
            )
            rows = sorted(response.json()["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], np.float32)
        except _Refused as refusal:
            raise EmbeddingUnavailable(
                failures.refused(refusal.status, refusal.headers, refusal.body).message
            ) from None
        except openai.APIConnectionError as error:
            raise EmbeddingUnavailable(failures.unreachable(str(error.__cause__ or error)).message) from None
        except (ValueError, LookupError, TypeError) as error:
            raise EmbeddingUnavailable(failures.bad_answer(f"no embeddings ({error})").message) from None
        if vectors.shape != (len(texts), DIMENSIONS):
            raise EmbeddingUnavailable(
                f"The model {self._model} made vectors of shape {vectors.shape} for {len(texts)} texts, "
                f"not {DIMENSIONS} numbers each: it can't shorten them. Choose another with OPENAI_EMBEDDING_MODEL."
            )
        return vectors


class _Refused(Exception):
    """A response that is no success, read as far as is worth it."""

    def __init__(self, status: int, headers: httpx2.Headers, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


def _raise_for_status(response: httpx2.Response) -> None:
    """Take an error before the SDK does, which would read its body to the end however long that takes."""
    if response.is_success or (response.has_redirect_location and response.status_code in (307, 308)):
        return  # those two redirect the request as it is; the older ones would lose its body
    until = time.monotonic() + response.request.extensions["timeout"]["read"]
    body = b""
    with contextlib.suppress(httpx2.HTTPError, ssl.SSLError):
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _ERROR_BYTES or time.monotonic() > until:
                break
    raise _Refused(response.status_code, response.headers, body)


def _timed(response: httpx2.Response, deadline: float, failures: Failures, seconds: float) -> Iterator[bytes]:
    """The body's chunks, until the deadline; what breaks becomes a ModelError."""
    try:
        for chunk in response.iter_bytes():
            yield chunk
            if time.monotonic() > deadline:
                raise failures.timed_out(seconds)
    except httpx2.TimeoutException:
        raise failures.timed_out(seconds) from None
    except httpx2.DecodingError:
        raise failures.bad_answer("its compression is broken") from None
    except (httpx2.HTTPError, ssl.SSLError):
        raise failures.cut_off() from None


def _read_out(response: httpx2.Response, chunks: Iterator[bytes]) -> None:
    """Read past a stream's [DONE] to its end, without which its connection could not be used again.

    A new one costs two round trips and a handshake.  A body that only ends with its connection is left alone.
    """
    if "transfer-encoding" in response.headers or "content-length" in response.headers:
        with contextlib.suppress(ModelError):
            for _ in chunks:
                pass
