"""The one place that knows the `openai` package: requests to a model server, and the bytes of its responses.

Requests go through the package's low-level `post` with `cast_to`, which sends a body unchanged.  The typed calls, as
`chat.completions.create`, take several times as long.  `answers` reads the bytes instead of the package, because it
reports the deviations of servers as unrelated errors.

Guarantee: whatever happens to a request raises ModelError, or Refused for an HTTP error.  A response ends by its
deadline; one that is not read ahead may stay silent for as long again before that is noticed.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Generator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
import openai

from config import Settings, SettingsError
from memory.errors import ModelError
from memory.llm.failures import Failures
from memory.llm.model import Call

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 5.0
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class Refused(Exception):
    """The server answered with an HTTP status that is no success."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


class Endpoint:
    """One model server, and the `openai` client that this process calls it with.  Threads may share it.

    `refused` holds, for each model, the parameters that the server does not take.  Raises SettingsError if no request
    could be made with `settings`.
    """

    def __init__(self, settings: Settings) -> None:
        url, key = settings.openai_base_url or OPENAI_URL, settings.openai_api_key
        try:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError
        except ValueError:
            raise SettingsError("OPENAI_BASE_URL must be a whole address, as in http://127.0.0.1:11434/v1.") from None
        if not (key.isascii() and key.isprintable()):
            raise SettingsError("OPENAI_API_KEY holds a character that no key has; copy it again.")
        self.address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
        try:
            if parts.hostname in _THIS_MACHINE:  # without proxies; ssl itself reads SSL_CERT_FILE
                http = openai.DefaultHttpxClient(auth=auth, trust_env=False, verify=ssl.create_default_context())
            else:
                http = openai.DefaultHttpxClient(auth=auth)
        except (ValueError, ImportError) as error:
            raise SettingsError(f"The environment's proxy can't be used for OPENAI_BASE_URL: {error}") from None
        self.client = openai.OpenAI(
            base_url=self.address, api_key=key or "no-key-needed", http_client=http, max_retries=0
        )
        self.timeout = settings.model_timeout
        self.refused: dict[str, frozenset[str]] = {}
        self._secrets = tuple(filter(None, (key, parts.password)))

    def failures(self, model: str, setting: str) -> Failures:
        """The errors of the model that `setting` names."""
        return Failures(self.address, model, setting, self._secrets)

    def fetch(
        self, path: str, body: Mapping[str, Any] | None, failures: Failures, seconds: float | None = None
    ) -> bytes:
        """What the server answers at `path`, to a POST of `body` or else to a GET.  Raises ModelError."""
        seconds = seconds or self.timeout
        try:
            return b"".join(Response(self.client, path, body, failures, time.monotonic() + seconds, seconds).chunks())
        except Refused as refusal:
            raise failures.refused(refusal.status, refusal.headers, refusal.body) from None

    def close(self) -> None:
        self.client.close()


class Response:
    """One request and its response, whose bytes can be read once.

    It ends at `deadline` (of time.monotonic()); the error then says that it took `seconds`.  Set `complete` when the
    answer is whole: then the rest is read in the background, and the connection can be used again.
    """

    def __init__(
        self,
        client: openai.OpenAI,
        path: str,
        body: Mapping[str, Any] | None,
        failures: Failures,
        deadline: float,
        seconds: float,
    ) -> None:
        self.complete = False
        self._client = client
        self._path = path
        self._body = body
        self._failures = failures
        self._deadline = deadline
        self._seconds = seconds
        self._response: httpx2.Response | None = None
        self._ended = False

    def chunks(self) -> Generator[bytes, None, None]:
        """The bytes as they come.  Closing the generator early closes the connection."""
        try:
            with self._open() as stream:
                self._response = stream.response
                for chunk in () if self._ended else stream.response.iter_bytes():
                    yield chunk
                    if self._ended:
                        return
                    if time.monotonic() >= self._deadline:
                        raise self._failures.timed_out(self._seconds)
        except openai.APIStatusError as error:
            raise Refused(error.status_code, error.response.headers, error.response.content) from None
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            if isinstance(error.__cause__, httpx2.ConnectTimeout):
                raise self._failures.unreachable(f"no connection in {CONNECT_SECONDS:g} seconds") from None
            raise self._failures.timed_out(self._seconds) from None
        except openai.APIConnectionError as error:
            raise self._failures.unreachable(str(error.__cause__) or type(error.__cause__).__name__) from None
        except httpx2.DecodingError:
            raise self._failures.bad_answer("its compression is broken") from None
        except (httpx2.TransportError, OSError):
            raise self._failures.cut_off() from None

    def read(self, call: Call) -> Generator[bytes, None, None]:
        """The bytes, read in the caller's thread.  A stop of `call` ends them once the response has begun."""
        with call.on_stop(self.end):
            yield from self.chunks()

    def read_ahead(self, call: Call) -> Generator[bytes, None, None]:
        """The bytes, read in a thread of their own.  A stop of `call` and the deadline end them at once.

        Before the response begins, its thread cannot be woken by public means, and ends with its read timeout.
        """
        arrived = queue.SimpleQueue[bytes | Exception | None]()

        def read_all() -> None:
            problem: Exception | None = None
            try:
                for chunk in self.chunks():
                    arrived.put(chunk)
            except (ModelError, Refused) as error:
                problem = error
            finally:
                arrived.put(problem)

        threading.Thread(target=read_all, name="recap-model", daemon=True).start()
        try:
            with call.on_stop(lambda: arrived.put(None)):
                while (item := arrived.get(timeout=max(0.0, self._deadline - time.monotonic()))) is not None:
                    if isinstance(item, Exception):
                        raise item
                    yield item
        except queue.Empty:
            raise self._failures.timed_out(self._seconds) from None
        finally:
            if not self.complete:
                self.end()

    def end(self) -> None:
        """End the response, also while another thread waits for its next byte.

        Tried: `Response.close` of httpx2 does not wake the reading thread.  Shutting the socket down does.
        """
        self._ended = True
        if self._response is not None and not self._response.is_closed:
            connection = self._response.extensions["network_stream"].get_extra_info("socket")
            with contextlib.suppress(OSError):  # the server has closed it
                # Not the TLS socket's own shutdown, which takes the session away under the reading thread.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _open(self) -> openai.Stream[object]:
        left = max(0.001, self._deadline - time.monotonic())
        timeout = openai.Timeout(left, connect=min(left, CONNECT_SECONDS))
        how: Any = {"cast_to": object, "options": {"timeout": timeout}, "stream": True}
        how["stream_cls"] = openai.Stream[object]
        if self._body is None:
            return self._client.get(self._path, **how)
        # As bytes: the package fails to encode half a surrogate pair, which careless frontends send.
        content = json.dumps(self._body, ensure_ascii=False).encode("utf-8", "replace")
        return self._client.post(self._path, content=content, **how)
