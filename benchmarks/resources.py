"""What a server takes of its machine: time on the cores, memory, and bytes on the disk.

Read from /proc, where there is one: elsewhere processor time and memory are None.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

CHECKPOINT_SECONDS = 20.0  # for a server's transactions to let the log be folded in


@dataclass(frozen=True)
class Memory:
    """Megabytes of one process.  `pss`: pages that several processes share count by their share, so the sum over them
    is what the machine gives; `rss`: they count in full."""

    pss: float
    rss: float


def cpu_seconds(pid: int) -> float | None:
    """Processor time so far of a process and all its descendants, those that have ended included."""
    found = _processes()
    if pid not in found:
        return None
    ticks = sum(found[one][1] for one in [pid, *_below(pid, found)])
    return ticks / os.sysconf("SC_CLK_TCK")


def worker_memory(pid: int) -> Memory | None:
    """Of the largest worker below gunicorn's first process."""
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
    """Of Recap's SQLite, its write-ahead log folded in.  Raises RuntimeError when the log can't be."""
    database = data_dir / "recap.db"
    deadline = time.monotonic() + CHECKPOINT_SECONDS
    with closing(sqlite3.connect(database, timeout=CHECKPOINT_SECONDS)) as connection:
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # 1: somebody reads in it
            if time.monotonic() > deadline:
                raise RuntimeError(f"{database} is read in all the time; its size can't be told.")
            time.sleep(0.05)
    return folder_bytes(data_dir, "recap.db*")


def folder_bytes(folder: Path, pattern: str = "*") -> int:
    """Of all files below it whose names match."""
    sizes = []
    for file in folder.rglob(pattern):
        try:
            sizes.append(file.stat().st_size if file.is_file() else 0)
        except FileNotFoundError:  # merged away since it was listed
            continue
    return sum(sizes)


def _processes() -> dict[int, tuple[int, int]]:
    """Every process's parent, and the ticks it and its ended children took."""
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
