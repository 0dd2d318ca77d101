"""The connection to one model server; the only file that knows an HTTP client.

The idea: a call is one POST of JSON with a key in its header, so the HTTP client brings all there is to bring: the pool
of connections, proxies, redirects, decompression.  Bodies are written and read elsewhere, tries are `openai_client`'s,
and what goes wrong is worded in `failures`; an SDK on top would do each of these again, in as much time as the rest.

Guarantee: a call ends in time.  Its deadline bounds the whole of it, the time the caller takes between chunks included.
A server that falls silent is noticed when the time is up if it never answered; one that answers and falls silent in the
middle is noticed after as many seconds again as were left when the request went out, because a read's time-out is fixed
by then: so within twice the time, and three times for a broken error page.  One that keeps dripping is noticed at the
next byte.  (Bytes of the response's header are the exception: each has its own time-out.)
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from config import Settings, SettingsError
from memory.errors import ModelError
from memory.llm.failures import Failures
from memory.llm.interrupt import let_go, traced

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 5.0
_NO_KEY = "no-key-needed"  # servers at home want none, but some of them a header
_ERROR_BYTES = 64 * 1024
_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
_JSON = {"Content-Type": "application/json"}


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

    client: httpx2.Client
    url: str = field(repr=False)
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
        request = self.client.build_request(
            "GET" if content is None else "POST",
            _at(self.url, path),
            content=content,
            headers=None if content is None else _JSON,
            timeout=httpx2.Timeout(left, connect=min(left, CONNECT_SECONDS)),
            extensions={"trace": traced},  # connections tell for whom they work, so that a call can be interrupted
        )
        try:
            response = self.client.send(request, stream=True)
        except httpx2.TimeoutException as error:
            if isinstance(error, httpx2.ConnectTimeout):
                raise failures.unreachable(str(error) or type(error).__name__) from None
            raise failures.timed_out(seconds) from None
        except (httpx2.RequestError, ssl.SSLError) as error:
            raise failures.unreachable(str(error) or type(error).__name__) from None
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
    client = httpx2.Client(
        headers={"Authorization": f"Bearer {key or _NO_KEY}", "Accept": "application/json", "User-Agent": "Recap"},
        limits=_LIMITS,
        follow_redirects=True,
        # HTTP_PROXY is for what is outside: this machine is reached directly.
        mounts={f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")},
        event_hooks={"response": [_raise_for_status]},
    )
    return Transport(
        client=client,
        url=url.rstrip("/"),
        address=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        timeout=settings.model_timeout,
        secrets=tuple(filter(None, (key, parts.password))),
        backoff=backoff,
    )


@functools.lru_cache(maxsize=64)
def _at(url: str, path: str) -> httpx2.URL:
    """The whole address: taking one apart costs a tenth of a call."""
    return httpx2.URL(url + path)


def _raise_for_status(response: httpx2.Response) -> None:
    """Take an error before the client follows it, or anybody reads its body to the end however long that takes."""
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
