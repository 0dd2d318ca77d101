"""Pages of a listing, and the opaque cursors between them.

A cursor holds the last row's sort key, so a page stays right while rows are added before it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from memory.errors import InvalidRequest

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items, and the cursor of the next page (None: this is the last).

    `previous_cursor` leads the other way, for a page from the middle of a listing.
    """

    items: tuple[T, ...]
    next_cursor: str | None = None
    previous_cursor: str | None = None


def encode_cursor(*key: int | str) -> str:
    return base64.urlsafe_b64encode(json.dumps(key, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *types: type) -> tuple[Any, ...]:
    """The sort key in `cursor`, checked against `types`.  Raises InvalidRequest (`bad_cursor`)."""
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        key = None
    well_formed = (
        isinstance(key, list)
        and tuple(map(type, key)) == types
        and all(abs(part) < 2**63 for part in key if isinstance(part, int))
    )
    if not well_formed:
        raise InvalidRequest(
            "bad_cursor", "This cursor is not one Recap gave out. Start again without it.", param="cursor"
        )
    return tuple(key)


def page_of(rows: Sequence[T], limit: int, key: Any) -> Page[T]:
    """A page from up to `limit` + 1 rows; `key(row)` gives the cursor's sort key as a tuple."""
    items = tuple(rows[:limit])
    return Page(items, encode_cursor(*key(items[-1])) if len(rows) > limit else None)
