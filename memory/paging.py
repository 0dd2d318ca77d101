"""Pages of a listing, and the opaque cursors between them.

A cursor holds the last row's sort key, so a page stays right while rows are added before it.
"""

import base64
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import Select

from memory.errors import InvalidRequest

T = TypeVar("T")
CURSOR_CHARS_MAX = 100  # the longest key takes fewer


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items, and the cursor of the next page (None: this is the last).

    previous_cursor: leads the other way, for a page from the middle of a listing.
    """

    items: tuple[T, ...]
    next_cursor: str | None = None
    previous_cursor: str | None = None


def encode_cursor(*key: int | datetime) -> str:
    """Return a cursor that holds `key`; times are in UTC."""
    parts = [part.isoformat() if isinstance(part, datetime) else part for part in key]
    return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *types: type) -> tuple[Any, ...]:
    """Return the sort key in `cursor`, one part for each of `types`.

    Raises InvalidRequest (`bad_cursor`) for any text that `encode_cursor` would not make of such a key.
    """
    key: tuple[Any, ...] = ()
    with suppress(ValueError, TypeError):
        parts = json.loads(base64.urlsafe_b64decode(cursor[:CURSOR_CHARS_MAX] + "=" * (-len(cursor) % 4)))
        pairs = zip(types, parts, strict=True)
        key = tuple(datetime.fromisoformat(part) if kind is datetime else part for kind, part in pairs)
    if tuple(map(type, key)) != types or not all(map(_is_in_range, key)) or encode_cursor(*key) != cursor:
        raise InvalidRequest(
            "bad_cursor", "This cursor is not one Recap gave out. Start again without it.", param="cursor"
        )
    return key


def _is_in_range(part: int | datetime) -> bool:
    return part.tzinfo == UTC if isinstance(part, datetime) else 0 <= part < 2**63


def rows_of_page(
    query: Select[*tuple[Any, ...]], by: Any, cursor: str | None, limit: int, *, newest_first: bool = True
) -> Select[*tuple[Any, ...]]:
    """Narrow `query` to the rows that `page_of` needs. by: a column of integers, the cursor's sort key."""
    if cursor is not None:
        (last,) = decode_cursor(cursor, int)
        query = query.where(by < last if newest_first else by > last)
    return query.order_by(by.desc() if newest_first else by).limit(limit + 1)


def page_of(rows: Sequence[T], limit: int, key: Callable[[T], tuple[Any, ...]]) -> Page[T]:
    """Return a page of up to `limit` + 1 rows. key: returns a row's sort key, which becomes the cursor."""
    items = tuple(rows[:limit])
    return Page(items, encode_cursor(*key(items[-1])) if len(rows) > limit else None)


def slice_page(items: Sequence[T], cursor: str | None, limit: int) -> Page[T]:
    """Return a page of a list that has no sort key, such as a ranking; its cursor holds a place in the list."""
    start = decode_cursor(cursor, int)[0] if cursor is not None else 0
    end = start + limit
    return Page(tuple(items[start:end]), encode_cursor(end) if end < len(items) else None)
