"""The connection to one model server: what is asked of it comes back as an answer to be read, or as a ModelError.

The idea: a call is one POST of JSON with a key in its header.  Connections are `connections`', bodies are written and
read elsewhere, tries are `openai_client`'s, and what goes wrong is worded in `failures`.

Guarantee: a call ends in time.  Its deadline bounds the whole of it, the time the caller takes between chunks included.
A server that falls silent is noticed when the time is up, one that keeps dripping at the next byte.  What had come by
then may still be handed on.
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from config import Settings, SettingsError
from memory.errors import ModelError
from memory.llm.connections import Address, Answer, Connections, NotConnected, lines_of
from memory.llm.failures import Failures
from memory.llm.interrupt import Interrupt

OPENAI_URL = "https://api.openai.com/v1"
REDIRECTS = 20
_HEADERS = lines_of(
    {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "Recap",
    }
)
_NO_KEY = "no-key-needed"  # servers at home want none, but some of them a header
_ERROR_BYTES = 64 * 1024
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Refused(Exception):
    """A response that is no success, read as far as is worth it; the names of `headers` are in small letters."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


class Opened:
    """A response whose body is still to be read: iterate for its chunks, then `close` it.

    Iterating raises ModelError for what breaks, and when the deadline has come.
    """

    def __init__(self, answer: Answer, failures: Failures, seconds: float) -> None:
        self._answer = answer
        self._chunks = _told(answer.response.pieces(), failures, seconds)
        if answer.response.headers.get("content-encoding", "").lower() in ("gzip", "x-gzip", "deflate"):
            self._chunks = _inflated(self._chunks, failures)  # although nobody asked for it

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def read_out(self) -> None:
        """Read past a stream's [DONE] to its end, without which its connection could not be used again.

        A new one costs two round trips and a handshake.  A body that only ends with its connection is left alone.
        """
        if self._answer.response.marks_its_end:
            with contextlib.suppress(ModelError):
                for _ in self._chunks:
                    pass

    def refused(self) -> Refused:
        """The error that this response is; it is closed."""
        body = b""
        with contextlib.suppress(ModelError):  # what came says enough
            for chunk in self._chunks:
                body += chunk
                if len(body) > _ERROR_BYTES:
                    break
        self.close()
        return Refused(self._answer.response.status, self._answer.response.headers, body)

    def close(self) -> None:
        self._answer.close()


@dataclass(frozen=True)
class Transport:
    """The connection to one server, shared by its models: make one a process (`connect`), `close` it at the end.

    `headers` are sent with each request, those of `key` only to the server itself.  `timeout` is MODEL_TIMEOUT;
    `backoff` the seconds before the first retry, doubled for the next.  `without` remembers, for each model, the
    parameters its server refused.
    """

    connections: Connections
    url: str = field(repr=False)
    address: str
    headers: str
    key: str = field(repr=False)
    timeout: float
    secrets: tuple[str, ...] = field(repr=False)
    backoff: float
    without: dict[str, frozenset[str]] = field(default_factory=dict)

    def failures(self, model: str, setting: str) -> Failures:
        """The sentences for what goes wrong with `model`, which `setting` names."""
        return Failures(self.address, model, setting, self.secrets)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        failures: Failures,
        deadline: float,
        seconds: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> Opened:
        """Send `body` to the server's `path`.  Raises Refused, and ModelError when there is no answer in time.

        `deadline` is of time.monotonic(); an error says that it is after `seconds`, or after MODEL_TIMEOUT.
        `interrupt` may end the call until its response is closed.
        """
        # "replace": half a surrogate pair from a careless frontend has no bytes.
        content = _encode(body).encode("utf-8", "replace")
        return self._opened("POST", path, content, failures, deadline, seconds or self.timeout, interrupt)

    def get(self, path: str, failures: Failures, deadline: float) -> Opened:
        """Read the server's `path`.  Raises as `post`."""
        return self._opened("GET", path, b"", failures, deadline, self.timeout, None)

    def _opened(
        self,
        method: str,
        path: str,
        content: bytes,
        failures: Failures,
        deadline: float,
        seconds: float,
        interrupt: Interrupt | None,
    ) -> Opened:
        url, headers = self.url + path, self.key + self.headers
        for _ in range(REDIRECTS + 1):
            if time.monotonic() >= deadline:
                raise failures.timed_out(seconds)
            try:
                answer = self.connections.send(_address(url), method, headers, content, deadline, interrupt)
            except TimeoutError:
                raise failures.timed_out(seconds) from None
            except (NotConnected, OSError) as error:
                raise failures.unreachable(str(error) or type(error).__name__) from None
            status = answer.response.status
            moved = answer.response.headers.get("location") if status in (307, 308) else None
            if moved is None:  # the older redirects would lose the request's body
                opened = Opened(answer, failures, seconds)
                if 200 <= status < 300:
                    return opened
                raise opened.refused()
            answer.close()
            moved = urljoin(url, moved)
            try:
                elsewhere = _address(moved).server != _address(url).server
            except ValueError:
                raise failures.unreachable("it redirects to no address") from None
            if elsewhere:
                headers = self.headers
            url = moved
        raise failures.unreachable("it redirects without end")

    def close(self) -> None:
        self.connections.close()


def connect(settings: Settings, *, backoff: float = 0.5) -> Transport:
    """The transport to the server in `settings`.  Opens no connection yet.

    Raises SettingsError for a base URL, a key or a proxy that no request could be made with.
    """
    url = settings.openai_base_url or OPENAI_URL
    try:
        server = Address.of(url)
    except ValueError:
        raise SettingsError("OPENAI_BASE_URL must be a whole address, as in http://127.0.0.1:11434/v1.") from None
    key = settings.openai_api_key
    if not (key.isascii() and key.isprintable()):
        raise SettingsError("OPENAI_API_KEY holds a character that no key has; copy it again.")
    connections = Connections()
    try:
        connections.proxy_to(server)
    except ValueError as error:
        raise SettingsError(f"OPENAI_BASE_URL can't be reached: {error}.") from None
    parts = urlsplit(url)
    return Transport(
        connections=connections,
        url=url.rstrip("/"),
        address=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        headers=_HEADERS,
        key=lines_of({"Authorization": server.basic or f"Bearer {key or _NO_KEY}"}),
        timeout=settings.model_timeout,
        secrets=tuple(filter(None, (key, parts.password))),
        backoff=backoff,
    )


@functools.lru_cache(maxsize=64)
def _address(url: str) -> Address:
    """As Address.of; the same few are asked for."""
    return Address.of(url)


def _told(chunks: Iterator[bytes], failures: Failures, seconds: float) -> Iterator[bytes]:
    """The body's `chunks`; what breaks becomes a ModelError."""
    try:
        yield from chunks
    except TimeoutError:
        raise failures.timed_out(seconds) from None
    except OSError:
        raise failures.cut_off() from None


def _inflated(chunks: Iterator[bytes], failures: Failures) -> Iterator[bytes]:
    """What compressed `chunks` hold."""
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib: it sees which
    for chunk in chunks:
        try:
            text = inflate.decompress(chunk)
        except zlib.error:
            raise failures.bad_answer("its compression is broken") from None
        if text:
            yield text
