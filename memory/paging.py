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

from sqlalchemy import Select, literal, tuple_

from memory.errors import InvalidRequest
from models import Transaction, UTCDateTime

T = TypeVar("T")
U = TypeVar("U")
CURSOR_CHARS_MAX = 100  # the longest key takes fewer


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items, and the cursor of the next page (None: this is the last).

    previous_cursor: leads the other way, for a page from the middle of a listing.
    """

    items: tuple[T, ...]
    next_cursor: str | None = None
    previous_cursor: str | None = None

    def map(self, change: Callable[[T], U]) -> "Page[U]":
        return Page(tuple(map(change, self.items)), self.next_cursor, self.previous_cursor)


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
    fits = (part.tzinfo == UTC if isinstance(part, datetime) else 0 <= part < 2**63 for part in key)
    if tuple(map(type, key)) != types or not all(fits) or encode_cursor(*key) != cursor:
        raise InvalidRequest(
            "bad_cursor", "This cursor is not one Recap gave out. Start again without it.", param="cursor"
        )
    return key


def read_page(
    tx: Transaction, query: Select[Any], cursor: str | None, limit: int, *by: Any, newest_first: bool = True
) -> Page[Any]:
    """Return a page of a query's rows, in the order of the columns `by`, which each row has at its end.

    by: columns that tell the rows apart; their values are the cursor.
    """
    if cursor is not None:
        key = decode_cursor(cursor, *(datetime if isinstance(column.type, UTCDateTime) else int for column in by))
        last = tuple_(*(literal(part, column.type) for part, column in zip(key, by, strict=True)))
        query = query.where(tuple_(*by) < last if newest_first else tuple_(*by) > last)
    query = query.add_columns(*(column.label(f"by_{place}") for place, column in enumerate(by)))
    ordered = query.order_by(*(column.desc() if newest_first else column for column in by))
    rows = tx.execute(ordered.limit(limit + 1)).all()
    return Page(tuple(rows[:limit]), encode_cursor(*rows[limit - 1][-len(by) :]) if len(rows) > limit else None)


def slice_page(items: Sequence[T], cursor: str | None, limit: int) -> Page[T]:
    """Return a page of a list that has no sort key, such as a ranking; its cursor holds a place in the list."""
    start = decode_cursor(cursor, int)[0] if cursor is not None else 0
    end = start + limit
    return Page(tuple(items[start:end]), encode_cursor(end) if end < len(items) else None)
