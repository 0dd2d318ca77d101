"""Caches keyed by what people wrote, all of which can be emptied at once.

Guarantee: after `forget_texts` no cache of this process holds a word anybody wrote before.  What has to be worked out
again is; nothing depends on a cache but time.  Other processes learn from a file, a `Notice`, that they are to do it.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, update_wrapper
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

_TOKEN_BYTES = 16

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_caches: WeakSet[Any] = WeakSet()  # weak: some belong to an object, and go with it


def remembered(most: int, longest: int | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Like `lru_cache(most)`, for a function of texts.

    One whose first argument may be of any length says the `longest` that is remembered, in characters: else a few
    thousand messages of 100,000 would fill the memory.  Looking at the length costs 0.1 µs.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached: Any = lru_cache(maxsize=most)(function)
        _caches.add(cached)
        if longest is None:
            return cached
        whole: Any = function

        def short_ones(text: str, *more: Any) -> T:
            return cached(text, *more) if len(text) <= longest else whole(text, *more)

        short: Any = update_wrapper(short_ones, function)
        return short

    return decorate


def forget_texts() -> None:
    """Empty every such cache."""
    for cache in list(_caches):
        cache.cache_clear()


@dataclass(frozen=True)
class Figures:
    """How full a cache is."""

    currsize: int
    bytes: int


class Kept(Generic[K, V]):
    """Values that take up much memory, of which those used last are kept, as many as fit into `most` bytes.

    Any thread may use it.  What a value takes up is said by whoever hands it in.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        _caches.add(self)

    def get(self, key: K) -> V | None:
        """The value of `key`, None where it is not kept."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            return kept[0]

    def keep(self, key: K, value: V, size: int) -> None:
        """Keep a value of `size` bytes in place of any other of its key, if there is room for one as large as that."""
        with self._lock:
            self._bytes -= self._kept.pop(key, (None, 0))[1]
            if size > self._most:
                return
            self._kept[key] = value, size
            self._bytes += size
            while self._bytes > self._most:
                self._bytes -= self._kept.popitem(last=False)[1][1]

    def cache_clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def cache_info(self) -> Figures:
        with self._lock:
            return Figures(len(self._kept), self._bytes)


class Notice:
    """A file that whoever wants texts forgotten writes anew, and everybody else looks at before they use a cache."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = str(path)
        self._seen = self._written()

    def post(self) -> None:
        """Tell all others, and later this process once more: a thread may be filling a cache just now."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f"{self._path.name}-{secrets.token_hex(8)}")
        new.write_bytes(secrets.token_hex(_TOKEN_BYTES // 2).encode())
        new.replace(self._path)

    def is_new(self) -> bool:
        """Whether it was written since this was asked last."""
        written = self._written()
        new, self._seen = written != self._seen, written
        return new

    def _written(self) -> bytes:
        try:
            descriptor = os.open(self._file, os.O_RDONLY)  # at every search: twice as fast as by pathlib
        except OSError:  # nobody wrote it, or nobody may read it: then the caches live as long as their process
            return b""
        try:
            return os.read(descriptor, _TOKEN_BYTES)
        except OSError:
            return b""
        finally:
            os.close(descriptor)
