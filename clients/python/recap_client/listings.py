"""The items of a listing, all of them or page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from recap_client.calls import Call, given

Item = TypeVar("Item")
Page = TypeVar("Page")

LIMIT = 100  # items of a page


def _page_of(call: Call, cursor: str | None, limit: int) -> Call:
    return replace(call, query={**call.query, **given(cursor=cursor, limit=limit)})


class Listing(Iterator[Item], Generic[Item, Page]):
    """Iterate over it for all items; `page` asks for one page."""

    def __init__(self, send: Callable[[Call], Any], call: Call) -> None:
        self._send, self._call = send, call
        self._items = self._each()

    def page(self, cursor: str | None = None, limit: int = LIMIT) -> Page:
        """Return the page at a cursor, or the first: its `items` and `next_cursor`, None on the last page."""
        return cast(Page, self._send(_page_of(self._call, cursor, limit)))

    def __next__(self) -> Item:
        return next(self._items)

    def _each(self) -> Iterator[Item]:
        cursor = None
        while True:
            page: Any = self.page(cursor)
            yield from page["items"]
            if (cursor := page["next_cursor"]) is None:
                return


class AsyncListing(AsyncIterator[Item], Generic[Item, Page]):
    """As Listing, for `async for`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], call: Call) -> None:
        self._send, self._call = send, call
        self._items = self._each()

    async def page(self, cursor: str | None = None, limit: int = LIMIT) -> Page:
        """Return a page, as Listing's `page`."""
        return cast(Page, await self._send(_page_of(self._call, cursor, limit)))

    async def __anext__(self) -> Item:
        return await anext(self._items)

    async def _each(self) -> AsyncIterator[Item]:
        cursor = None
        while True:
            page: Any = await self.page(cursor)
            for item in page["items"]:
                yield item
            if (cursor := page["next_cursor"]) is None:
                return
