"""Caches of what people wrote, and one call that empties them all.

Guarantee: after `clear_all` no cache of this process holds a word that was written before.  A cache saves time and
nothing else: what was cleared is computed again.
"""

import threading
from collections.abc import Callable, Hashable
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeVar
from weakref import WeakSet

from cachetools import LRUCache

_caches: WeakSet[Any] = WeakSet()  # weak, because some caches belong to an object and go with it

F = TypeVar("F", bound=Callable[..., Any])


def cached(maxsize: int) -> Callable[[F], F]:
    """`lru_cache`, registered so that erasing clears it."""

    def decorate(function: F) -> F:
        kept: Any = lru_cache(maxsize=maxsize)(function)
        _caches.add(kept)
        return kept

    return decorate


class ByteLRU:
    """Most recently used values, at most `maxsize` bytes of them.  Thread-safe."""

    def __init__(self, maxsize: int) -> None:
        self._values: LRUCache[Hashable, tuple[Any, int]] = LRUCache(maxsize, getsizeof=itemgetter(1))
        self._lock = threading.Lock()
        _caches.add(self)

    def get(self, key: Hashable) -> Any:
        with self._lock:
            return self._values.get(key, (None, 0))[0]

    def put(self, key: Hashable, value: Any, nbytes: int) -> None:
        """Keep `value`, unless it alone is larger than the cache."""
        if nbytes <= self._values.maxsize:
            with self._lock:
                self._values[key] = value, nbytes

    def drop(self, key: Hashable) -> None:
        """Give up a value that nobody will ask for."""
        with self._lock:
            self._values.pop(key, None)

    def cache_clear(self) -> None:
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)


def clear_all() -> None:
    """Empty every cache of this process."""
    for cache in list(_caches):
        cache.cache_clear()


def sizes() -> list[int]:
    """Return how many values each cache of this process has."""
    return [len(cache) if isinstance(cache, ByteLRU) else cache.cache_info().currsize for cache in list(_caches)]
