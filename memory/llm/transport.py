"""The connection to one model server, over the OpenAI SDK's transport; the only file that knows either.

The idea: the SDK brings authentication, the connection pool and its errors, by its documented `client.post`; bodies
are written and read elsewhere, since the typed `create()` costs more time than everything else of a call together.

Guarantee: a call ends in time.  Its deadline bounds the whole of it, the time the caller takes between chunks included.
A server that falls silent is noticed when the time is up if it never answered; one that answers and falls silent in the
middle is noticed after as many seconds again as were left when the request went out, because a read's time-out is fixed
by then: so within twice the time, and three times for a broken error page.  One that keeps dripping is noticed at the
next byte.  (Bytes of the response's header are the exception: each has its own time-out.)
"""

from __future__ import annotations

import contextlib
import json
import logging
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from config import Settings, SettingsError
from memory.errors import ModelError
from memory.llm.failures import Failures
from memory.llm.interrupt import let_go, traced

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 5.0
_NO_KEY = "no-key-needed"  # servers at home want none, but the SDK does
_ERROR_BYTES = 64 * 1024
_UNREAD: bool = True  # leave the body to us; as a literal, the SDK's types want a class to parse it with


class Refused(Exception):
    """A response that is no success, read as far as is worth it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


class Opened:
    """A response whose body is still to be read: iterate for its chunks, then `close` it.

    Iterating raises ModelError for what breaks, and when the deadline has come.
    """

    def __init__(self, response: httpx2.Response, failures: Failures, deadline: float, seconds: float) -> None:
        self._response = response
        self._chunks = _timed(response, deadline, failures, seconds)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def read_out(self) -> None:
        """Read past a stream's [DONE] to its end, without which its connection could not be used again.

        A new one costs two round trips and a handshake.  A body that only ends with its connection is left alone.
        """
        if "transfer-encoding" in self._response.headers or "content-length" in self._response.headers:
            with contextlib.suppress(ModelError):
                for _ in self._chunks:
                    pass

    def close(self) -> None:
        self._response.close()


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

    def failures(self, model: str, setting: str) -> Failures:
        """The sentences for what goes wrong with `model`, which `setting` names."""
        return Failures(self.address, model, setting, self.secrets)

    def post(
        self, path: str, body: Mapping[str, Any], failures: Failures, deadline: float, seconds: float | None = None
    ) -> Opened:
        """Send `body` to the server's `path`.  Raises Refused, and ModelError when there is no answer in time.

        `deadline` is of time.monotonic(); an error says that it is after `seconds`, or after MODEL_TIMEOUT.
        """
        # "replace": half a surrogate pair from a careless frontend has no bytes.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        return self._opened(path, content, failures, deadline, seconds or self.timeout)

    def get(self, path: str, failures: Failures, deadline: float) -> Opened:
        """Read the server's `path`.  Raises as `post`."""
        return self._opened(path, None, failures, deadline, self.timeout)

    def _opened(self, path: str, content: bytes | None, failures: Failures, deadline: float, seconds: float) -> Opened:
        left = deadline - time.monotonic()
        if left <= 0:
            raise failures.timed_out(seconds)
        options: Any = {"timeout": httpx2.Timeout(left, connect=min(left, CONNECT_SECONDS))}
        try:
            if content is None:
                response = self.client.get(path, cast_to=httpx2.Response, options=options, stream=_UNREAD)
            else:
                response = self.client.post(
                    path, cast_to=httpx2.Response, content=content, options=options, stream=_UNREAD
                )
        except openai.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, httpx2.TimeoutException) and not isinstance(cause, httpx2.ConnectTimeout):
                raise failures.timed_out(seconds) from None
            raise failures.unreachable(str(cause or error) or type(cause).__name__) from None
        assert isinstance(response, httpx2.Response)
        return Opened(response, failures, deadline, seconds)

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
            event_hooks={"request": [_trace], "response": [_raise_for_status]},
        ),
    )
    return Transport(
        client=client,
        address=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        timeout=settings.model_timeout,
        secrets=tuple(filter(None, (key, parts.password))),
        backoff=backoff,
    )


def _trace(request: httpx2.Request) -> None:
    """Have the connections tell for whom they work, so that a call can be interrupted."""
    request.extensions["trace"] = traced


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
    let_go()
    raise Refused(response.status_code, response.headers, body)


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
