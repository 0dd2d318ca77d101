"""Caches of what people wrote, and one call that empties them all.

Guarantee: after `clear_all` no cache of this process holds a word that was written before.  A cache saves time and
nothing else: what was cleared is computed again.  A file tells other processes that they must clear theirs.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Hashable
from functools import lru_cache, update_wrapper
from pathlib import Path
from typing import Any, Generic, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

from cachetools import LRUCache

_caches: WeakSet[Any] = WeakSet()  # weak, because some caches belong to an object and go with it


class Sized(Protocol):
    """A value that knows how many bytes it takes."""

    @property
    def nbytes(self) -> int: ...


P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V", bound=Sized)


def cached(maxsize: int, longest: int | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`lru_cache`, registered so that erasing clears it.

    Results for a first argument of more than `longest` characters are not kept: long messages would fill the memory.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        kept: Any = lru_cache(maxsize=maxsize)(function)
        _caches.add(kept)
        if longest is None:
            return kept
        plain: Any = function

        def short_texts(text: str, *more: Any) -> T:
            return kept(text, *more) if len(text) <= longest else plain(text, *more)

        wrapped: Any = update_wrapper(short_texts, function)
        return wrapped

    return decorate


class SizedCache(Generic[V]):
    """The most recently used values, at most `maxsize` bytes of them.  Safe to use from many threads."""

    def __init__(self, maxsize: int) -> None:
        self._values: LRUCache[Hashable, V] = LRUCache(maxsize, getsizeof=lambda value: value.nbytes)
        self._lock = threading.Lock()
        _caches.add(self)

    def get(self, key: Hashable) -> V | None:
        with self._lock:
            return self._values.get(key)

    def put(self, key: Hashable, value: V) -> None:
        """Keep `value`, unless it alone is larger than the cache."""
        with self._lock:
            self._values.pop(key, None)
            if value.nbytes <= self._values.maxsize:
                self._values[key] = value

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
    """How many values each cache of this process has."""
    return [len(cache) if isinstance(cache, SizedCache) else cache.cache_info().currsize for cache in list(_caches)]


class ClearNotice:
    """A file that a process writes when all processes must clear their caches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._read()

    def post(self) -> None:
        """Tell every process, this one included: a thread of it may be filling a cache at this moment."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f"{self._path.name}-{secrets.token_hex(8)}")
        new.write_text(secrets.token_hex(8))
        new.replace(self._path)

    def is_new(self) -> bool:
        """Whether the file was written since the last call."""
        seen, self._seen = self._seen, self._read()
        return seen != self._seen

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError:  # nobody wrote it yet, or this process may not read it
            return b""
