"""Reading hostile text: what is linear takes a fraction of a second for 100,000 characters, what is not, minutes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 10.0  # of CPU: far above what any machine needs for it, far below what is not linear would take


@contextmanager
def soon_over() -> Iterator[None]:
    """Fails when the block takes longer than it may, by this thread's CPU: other load does not count."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < SECONDS
