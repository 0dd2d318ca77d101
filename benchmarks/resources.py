"""The CPU time, memory and disk space that a server uses.

CPU time and memory are read from /proc; on systems without /proc they are None.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

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
    """CPU time so far of a process and all its descendants, including those that have ended."""
    found = _processes()
    if pid not in found:
        return None
    ticks = sum(found[one][1] for one in [pid, *_below(pid, found)])
    return ticks / os.sysconf("SC_CLK_TCK")


def worker_memory(pid: int) -> Memory | None:
    """The memory of the largest worker of the gunicorn master process `pid`."""
    sizes = []
    for worker in _below(pid, _processes()):
        try:
            lines = Path(f"/proc/{worker}/smaps_rollup").read_text().splitlines()
        except OSError:  # it has just ended
            continue
        kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
        sizes.append(Memory(pss=round(kilobytes["Pss"] / 1024, 1), rss=round(kilobytes["Rss"] / 1024, 1)))
    return max(sizes, key=lambda one: one.rss, default=None)


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


def _processes() -> dict[int, tuple[int, int]]:
    """For each process its parent, and the CPU ticks of it and its ended children."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            told = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        found[int(file.parent.name)] = (int(told[1]), sum(map(int, told[11:15])))
    return found


def _below(pid: int, found: dict[int, tuple[int, int]]) -> list[int]:
    children = [one for one, (parent, _) in found.items() if parent == pid]
    return [*children, *(below for child in children for below in _below(child, found))]
