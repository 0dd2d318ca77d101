"""Requests to a model server by the `openai` package, and the bytes of its responses.

Requests go through the package's low-level `post`, which sends a body unchanged.  Its typed calls take several times as
long, and report the deviations of servers as unrelated errors.

Invariant: whatever happens to a request raises ModelError (tests/model_client/test_client.py).
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
from collections.abc import Callable, Generator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import httpx2
import openai

from config import Server, SettingsError
from config.model_servers import OPENAI_URL
from memory.errors import ModelError
from memory.llm import QUIET_SECONDS, CancelToken
from memory.llm.provider_errors import THIS_MACHINE, ProviderErrors

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
