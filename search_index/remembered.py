"""Caches keyed by what people wrote, all of which can be emptied at once.

Guarantee: after `forget_texts` no cache of this process holds a word anybody wrote before.  What has to be worked out
again is; nothing depends on a cache but time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
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
