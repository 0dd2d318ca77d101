"""The CPU time, memory and disk space that a server uses."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

CHECKPOINT_SECONDS = 20.0  # to wait for transactions that keep the write-ahead log from being merged


@dataclass(frozen=True)
class Memory:
    """The memory of one process in megabytes.

    `pss` divides shared pages among the processes that share them, so a sum over processes is exact.  `rss` counts
    shared pages in full.
    """

    pss: float
    rss: float


def cpu_seconds(pid: int) -> float | None:
    """CPU time so far of a process and its descendants, ended ones included; None if the process itself has ended."""
    if not psutil.pid_exists(pid):
        return None
    first = psutil.Process(pid)
    seconds = 0.0
    for process in (first, *first.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            seconds += sum(process.cpu_times()[:4])
    return seconds


def worker_memory(pid: int) -> Memory | None:
    """The memory of the largest worker of the gunicorn master process `pid`; None on systems that do not tell PSS."""
    if not psutil.LINUX:
        return None
    workers = [worker.memory_full_info() for worker in psutil.Process(pid).children(recursive=True)]
    largest = max(workers, key=lambda one: one.rss)
    return Memory(pss=round(largest.pss / 1024**2, 1), rss=round(largest.rss / 1024**2, 1))


def database_bytes(data_dir: Path) -> int:
    """The size of the SQLite database with its write-ahead log merged.  Raises RuntimeError if that is not possible."""
    database = data_dir / "recap.db"
    deadline = time.monotonic() + CHECKPOINT_SECONDS
    with closing(sqlite3.connect(database, timeout=CHECKPOINT_SECONDS)) as connection:
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # 1: a reader still needs the log
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"The write-ahead log of {database} could not be merged: other connections kept reading."
                )
            time.sleep(0.05)
    return folder_bytes(data_dir, "recap.db*")


def folder_bytes(folder: Path, pattern: str = "*") -> int:
    """The total size of all files below `folder` whose names match `pattern`."""
    sizes = []
    for file in folder.rglob(pattern):
        try:
            sizes.append(file.stat().st_size if file.is_file() else 0)
        except FileNotFoundError:  # a merge of the index deleted it meanwhile
            continue
    return sum(sizes)
