"""Recap and AsyncRecap: a Recap server, and on whose behalf it is called."""

from __future__ import annotations

import asyncio
import copy
import os
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, closing
from typing import Any, Generic, Self, TypeVar

import httpx

from recap_client.calls import Call
from recap_client.errors import NoAnswer
from recap_client.http import Outcome, answer_of, pause_after, request_parts, succeeded
from recap_client.listings import AsyncListing, Listing
from recap_client.operations import AsyncOperations, Operations
from recap_client.streams import AsyncEventStream, AsyncStream, EventStream, Stream

Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)

_SLOW = ("/api/import", "/api/model-server/test", "/v1/completions", "/v1/embeddings", "/v1/moderations")
DEFAULT_URL = "http://127.0.0.1:8000"


class _Client(Generic[Http]):
    """Base of both clients."""

    _make: type[Http]  # of the HTTP client

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        api_key: str | None = None,
        user_id: str | None = None,
        *,
        timeout: float = 30.0,
        reply_timeout: float = 600.0,
        retries: int = 2,
        headers: Mapping[str, str] | None = None,
        http_client: Http | None = None,
    ) -> None:
        """Connect to a server.

        user_id: the person whose memory it is. timeout: the longest wait in seconds; reply_timeout: that for a model,
        an import or the next event. retries: of one call. headers: of every call. http_client: your own, with its
        proxies and certificates; `close` leaves it open.
        """
        self._base_url = base_url.rstrip("/")
        self._user_id = user_id
        self._timeout, self._reply_timeout, self._retries = timeout, reply_timeout, retries
        api_key = (api_key or "").strip()
        key = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._headers = {**key, **(headers or {})}
        self._owns_http = http_client is None
        self._http: Http = http_client if http_client is not None else self._make()

    @classmethod
    def from_env(cls, **options: Any) -> Self:
        """Connect as RECAP_URL, RECAP_API_KEY and RECAP_USER_ID say. `options` are those of the class, and stronger."""
        named = {"base_url": "RECAP_URL", "api_key": "RECAP_API_KEY", "user_id": "RECAP_USER_ID"}
        found = {option: os.environ[name] for option, name in named.items() if os.environ.get(name)}
        return cls(**{**found, **options})

    def for_user(self, user_id: str | None) -> Self:
        """Return the same client on behalf of another person, over the same connections."""
        other = copy.copy(self)
        other._user_id, other._owns_http = user_id, False
        return other

    def with_options(
        self,
        *,
        timeout: float | None = None,
        reply_timeout: float | None = None,
        retries: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the same client with other options, for some calls: `recap.with_options(timeout=2).search("tea")`."""
        other = self.for_user(self._user_id)
        other._timeout = self._timeout if timeout is None else timeout
        other._reply_timeout = self._reply_timeout if reply_timeout is None else reply_timeout
        other._retries = self._retries if retries is None else retries
        other._headers = {**self._headers, **(headers or {})}
        return other

    def _request(self, call: Call, whole: bool) -> httpx.Request:
        parts = request_parts(call, self._user_id)
        parts["url"] = f"{self._base_url}{parts['url']}"
        parts["headers"] = {**self._headers, **parts["headers"]}
        read = self._reply_timeout if call.is_turn or call.path in _SLOW or not whole else self._timeout
        return self._http.build_request(**parts, timeout=httpx.Timeout(self._timeout, read=read))


class Recap(_Client[httpx.Client], Operations):
    """For plain programs.  Thread-safe.  Every call raises RecapError, and ValueError for another client's person."""

    _make = httpx.Client

    def send(self, call: Call) -> Any:
        return answer_of(self._sent(call))

    def each(self, call: Call) -> Listing[Any, Any]:
        return Listing(self.send, call)

    def open(self, call: Call) -> Stream:
        return Stream(self._lines(call))

    def listen(self, call: Call) -> EventStream:
        return EventStream(self._lines(call))

    def close(self) -> None:
        """Close the connections, also for the clients that `for_user` and `with_options` made of this one."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _lines(self, call: Call) -> Generator[str, None, None]:
        with closing(self._sent(call, whole=False)) as response:
            try:
                yield from response.iter_lines()
            except httpx.TransportError as error:
                raise NoAnswer(repr(error)) from error

    def _sent(self, call: Call, whole: bool = True) -> httpx.Response:
        request = self._request(call, whole)
        for attempt in range(self._retries):
            outcome = self._outcome(request, whole)
            pause = pause_after(attempt, call, outcome)
            if pause is None:
                return succeeded(outcome)
            time.sleep(pause)
        return succeeded(self._outcome(request, whole))

    def _outcome(self, request: httpx.Request, whole: bool) -> Outcome:
        try:
            response = self._http.send(request, stream=True)
            if whole or not response.is_success:
                response.read()
        except httpx.TransportError as error:
            return error
        return response


class AsyncRecap(_Client[httpx.AsyncClient], AsyncOperations):
    """As Recap, for asyncio: calls are awaited, listings and streams are for `async for`."""

    _make = httpx.AsyncClient

    async def send(self, call: Call) -> Any:
        return answer_of(await self._sent(call))

    def each(self, call: Call) -> AsyncListing[Any, Any]:
        return AsyncListing(self.send, call)

    def open(self, call: Call) -> AsyncStream:
        return AsyncStream(self._lines(call))

    def listen(self, call: Call) -> AsyncEventStream:
        return AsyncEventStream(self._lines(call))

    async def aclose(self) -> None:
        """As Recap's `close`."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _lines(self, call: Call) -> AsyncGenerator[str, None]:
        async with aclosing(await self._sent(call, whole=False)) as response:
            try:
                async for line in response.aiter_lines():
                    yield line
            except httpx.TransportError as error:
                raise NoAnswer(repr(error)) from error

    async def _sent(self, call: Call, whole: bool = True) -> httpx.Response:
        request = self._request(call, whole)
        for attempt in range(self._retries):
            outcome = await self._outcome(request, whole)
            pause = pause_after(attempt, call, outcome)
            if pause is None:
                return succeeded(outcome)
            await asyncio.sleep(pause)
        return succeeded(await self._outcome(request, whole))

    async def _outcome(self, request: httpx.Request, whole: bool) -> Outcome:
        try:
            response = await self._http.send(request, stream=True)
            if whole or not response.is_success:
                await response.aread()
        except httpx.TransportError as error:
            return error
        return response
