"""Recap and AsyncRecap: a Recap server, and on whose behalf it is called."""

from __future__ import annotations

import asyncio
import copy
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Iterator
from contextlib import aclosing, closing
from dataclasses import replace
from typing import Any, Self

import httpx

from recap_client.calls import Answer, Call, Calls, Listing, Streamed
from recap_client.errors import NoAnswer
from recap_client.http import Outcome, pause_after, request_parts, succeeded
from recap_client.streams import AsyncStream, Stream

Body = dict[str, Any]


class _Client(Calls[Answer, Listing, Streamed]):
    """Base of both clients."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        user_id: str | None = None,
        *,
        timeout: float = 30.0,
        reply_timeout: float = 600.0,
        retries: int = 2,
    ) -> None:
        """Connect to a server.

        timeout: the longest wait in seconds; reply_timeout: that for a model.  retries: of one call.
        """
        headers = {"Authorization": f"Bearer {api_key}"} if api_key is not None else {}
        self._user_id = user_id
        self._retries = retries
        self._slow = httpx.Timeout(timeout, read=reply_timeout)
        self._connect(base_url=base_url, headers=headers, timeout=timeout)

    @abstractmethod
    def _connect(self, **options: Any) -> None:
        """Make the HTTP client."""

    def for_user(self, user_id: str | None) -> Self:
        """Return the same client on behalf of another person, over the same connections."""
        other = copy.copy(self)
        other._user_id = user_id
        return other

    def _request(self, http: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
        timeout = self._slow if call.key is not None else httpx.USE_CLIENT_DEFAULT
        return http.build_request(**request_parts(call, self._user_id), timeout=timeout)


class Recap(_Client[Body, Iterator[Body], Stream]):
    """For plain programs.  Thread-safe.  Every call raises RecapError."""

    def _connect(self, **options: Any) -> None:
        self._http = httpx.Client(**options)

    def send(self, call: Call) -> Body:
        answer: Body = self._sent(call).json()
        return answer

    def each(self, call: Call) -> Iterator[Body]:
        while True:
            page = self.send(call)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            call = replace(call, query={**call.query, "cursor": page["next_cursor"]})

    def open(self, call: Call) -> Stream:
        return Stream(self._lines(call))

    def close(self) -> None:
        """Close the connections, also for the clients that `for_user` made of this one."""
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
        request = self._request(self._http, call)
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


class AsyncRecap(_Client[Awaitable[Body], AsyncIterator[Body], AsyncStream]):
    """As Recap, for asyncio: calls are awaited, listings and streams are for `async for`."""

    def _connect(self, **options: Any) -> None:
        self._http = httpx.AsyncClient(**options)

    async def send(self, call: Call) -> Body:
        answer: Body = (await self._sent(call)).json()
        return answer

    async def each(self, call: Call) -> AsyncIterator[Body]:
        while True:
            page = await self.send(call)
            for item in page["items"]:
                yield item
            if page["next_cursor"] is None:
                return
            call = replace(call, query={**call.query, "cursor": page["next_cursor"]})

    def open(self, call: Call) -> AsyncStream:
        return AsyncStream(self._lines(call))

    async def aclose(self) -> None:
        """As Recap's `close`."""
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
        request = self._request(self._http, call)
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
