"""Holders of leases: the dead are known at once, and nobody else is taken for dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serving import ROOT
from memory.leases import holders
from memory.leases.holders import SWEPT_AFTER, Holder

pytestmark = pytest.mark.skipif(
    not Path("/proc/sys/kernel/random/boot_id").exists(), reason="here no process is known to be dead at once"
)

HOLD = """
import sys
from pathlib import Path
from memory.leases.holders import Holder
holder = Holder(Path(sys.argv[1]))
print(holder.token(), flush=True)
for line in sys.stdin:
    holder.end()
    print("ended", flush=True)
"""


@contextmanager
def another(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that holds leases, and one of its tokens."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "processes"


def killed(folder: Path) -> str:
    """A token of a process that was killed."""
    with another(folder) as (process, token):
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    return token


def test_a_process_that_was_killed_is_dead_and_a_living_one_is_not(folder: Path) -> None:
    here = Holder(folder)
    with another(folder) as (process, token):
        assert not here.is_dead(token)
        process.send_signal(signal.SIGSTOP)  # it hangs, but may come back
        assert not here.is_dead(token)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert here.is_dead(token)
        assert Holder(folder).is_dead(token)


def test_one_that_ended_properly_leaves_no_file_and_is_not_called_dead(folder: Path) -> None:
    with another(folder) as (process, token):
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ended\n"
        assert list(folder.iterdir()) == []
        assert not Holder(folder).is_dead(token)  # its leases, if it left one, run out by their time


def test_tokens_of_one_process_differ_and_are_its_own(folder: Path) -> None:
    one, other = Holder(folder), Holder(folder)  # as two processes: a lock is of the open file, not of the process
    tokens = [holder.token() for holder in (one, one, other)]
    assert len(set(tokens)) == 3
    assert not any(holder.is_dead(token) for holder in (one, other) for token in tokens)
    one.end()
    other.end()


@pytest.mark.parametrize("token", ["", "a" * 32, "../../etc/passwd", "00000000-../../../../etc/p.", "\0"])
def test_what_names_no_process_is_not_dead(folder: Path, token: str) -> None:
    assert not Holder(folder).is_dead(token)


def test_on_another_machine_or_file_system_nobody_is_known_to_be_dead(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines may share the database, and the folder as well; locks are known to one kernel and mount."""
    token = killed(folder)
    assert Holder(folder).is_dead(token)
    monkeypatch.setattr(holders, "_where", lambda descriptor: "ffffffff")
    assert not Holder(folder).is_dead(token)


def test_a_file_that_is_gone_says_nothing(folder: Path) -> None:
    token = killed(folder)
    for path in folder.iterdir():
        path.unlink()
    assert not Holder(folder).is_dead(token)


@pytest.mark.parametrize("trouble", ["no folder", "no locks", "locks that lock nothing", "no name for the kernel"])
def test_where_locks_cannot_be_relied_on_tokens_name_no_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    if trouble == "no folder":
        folder.write_text("in the way")
    elif trouble == "no name for the kernel":
        monkeypatch.setattr(holders, "_where", lambda descriptor: None)
    else:

        def flock(descriptor: int, operation: int) -> None:
            if trouble == "no locks":
                raise OSError(95, "Operation not supported")

        monkeypatch.setattr(holders.fcntl, "flock", flock)
    holder = Holder(folder)
    token = holder.token()
    assert len(token) == 32 and token != holder.token()
    assert not holder.is_dead(token)
    if folder.is_dir():
        assert list(folder.iterdir()) == []
    holder.end()


FORK = """
import os, sys
from pathlib import Path
from memory.leases.holders import Holder
holder = Holder(Path(sys.argv[1]))
mine = holder.token()
told, tell = os.pipe()
child = os.fork()
if child == 0:
    os.write(tell, holder.token().encode())
    os._exit(0)
os.waitpid(child, 0)
theirs = os.read(told, 100).decode()
others = Holder(Path(sys.argv[1]))
print(mine != theirs, holder.is_dead(theirs), holder.is_dead(mine), others.is_dead(mine))
"""


def test_a_forked_child_is_a_holder_of_its_own(folder: Path) -> None:
    command = [sys.executable, "-c", FORK, str(folder)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout
    assert told.split() == ["True", "True", "False", "False"]


def test_files_of_the_long_dead_are_swept_away_and_no_others(folder: Path) -> None:
    token = killed(folder)
    living = Holder(folder)
    living.token()
    recent = killed(folder)
    for path in folder.iterdir():
        if path.name not in recent:
            os.utime(path, (0, 0))
    Holder(folder).token()
    assert not any(path.name in token for path in folder.iterdir())
    assert Holder(folder).is_dead(recent) and not Holder(folder).is_dead(living.token())
    assert SWEPT_AFTER > 60
    living.end()


def test_a_token_fits_its_column(folder: Path, services: Any) -> None:
    from models import JobRow, SessionRow, TurnRow

    holder = Holder(folder)
    for column in (JobRow.lease_token, SessionRow.lease_token, SessionRow.stop_token, TurnRow.lease_token):
        assert len(holder.token()) <= column.type.length
    holder.end()


def test_to_know_that_we_live_we_open_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = Holder(folder)
    token = holder.token()
    monkeypatch.setattr(holders.os, "open", None)
    assert not holder.is_dead(token)
