"""What the C library is told about memory."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.serving import ROOT
from memory.ops.allocator import ARENAS

HELD_BY_THREADS = """
import ctypes, sys, threading
from memory.ops.allocator import share_arenas
share_arenas()
libc, together, over = ctypes.CDLL(None), threading.Barrier(17), threading.Event()
def hold():
    held = [bytes(600 + n) for n in range(100)]  # more than Python's own small blocks
    together.wait()
    over.wait()
threads = [threading.Thread(target=hold) for _ in range(16)]
for thread in threads:
    thread.start()
together.wait()
libc.fopen.restype = ctypes.c_void_p
told = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, told)
libc.fclose(told)
over.set()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
@pytest.mark.parametrize(("setting", "most"), [("", ARENAS), ("3", 3)])
def test_threads_share_few_heaps_unless_the_environment_says_how_many(tmp_path: Path, setting: str, most: int) -> None:
    told = tmp_path / "told.xml"
    environ = {**os.environ, "MALLOC_ARENA_MAX": setting}
    if not setting:
        del environ["MALLOC_ARENA_MAX"]
    subprocess.run([sys.executable, "-c", HELD_BY_THREADS, told], cwd=ROOT, env=environ, check=True, timeout=60)
    assert len(re.findall("<heap nr=", told.read_text())) == most
