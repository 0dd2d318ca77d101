"""Caches keyed by what people wrote, all of which can be emptied at once.

Guarantee: after `forget_texts` no cache of this process holds a word anybody wrote before.  What has to be worked out
again is; nothing depends on a cache but time.  Other processes learn from a file, a `Notice`, that they are to do it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
T = TypeVar("T")

_caches: WeakSet[Any] = WeakSet()  # weak: some belong to an object, and go with it


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Like `lru_cache(most)`, for a function of texts."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached: Any = lru_cache(maxsize=most)(function)
        _caches.add(cached)
        return cached

    return decorate


def forget_texts() -> None:
    """Empty every such cache."""
    for cache in list(_caches):
        cache.cache_clear()


class Notice:
    """A file that whoever wants texts forgotten writes anew, and everybody else looks at before they use a cache."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._written()

    def post(self) -> None:
        """Tell all others, and later this process once more: a thread may be filling a cache just now."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f"{self._path.name}-{secrets.token_hex(8)}")
        new.write_bytes(secrets.token_hex(8).encode())
        new.replace(self._path)

    def is_new(self) -> bool:
        """Whether it was written since this was asked last."""
        written = self._written()
        new, self._seen = written != self._seen, written
        return new

    def _written(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError:  # nobody wrote it, or nobody may read it: then the caches live as long as their process
            return b""
