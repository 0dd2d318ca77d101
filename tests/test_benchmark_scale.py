"""The scale benchmark: how messages are spread, what it says of Whoosh, a whole run made small, and an early end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import filling
from benchmarks.resources import cpu_seconds, folder_bytes
from benchmarks.scale import ENOUGH_MS, main, spread, verdict
from benchmarks.serving import ROOT

SOON = ["--set", "SUMMARY_DEBOUNCE=0.1"]


def test_messages_are_spread_unevenly_and_nobody_loses_any_when_there_are_more() -> None:
    before = {person.name: 0 for person in spread(1_000, 1_000)}
    for messages in (1_000, 10_000, 100_000, 1_000_000):
        people = spread(1_000, messages)
        counts = [person.messages for person in people]
        assert sum(counts) == pytest.approx(messages, rel=0.1)
        assert counts == sorted(counts, reverse=True)
        assert all(person.messages >= before[person.name] for person in people)
        before = {person.name: person.messages for person in people}
    assert 0.03 < counts[0] / sum(counts) < 0.05
    assert counts[500] < 0.6 * sum(counts) / 1_000 and counts[-1] > 100


def test_it_says_where_whoosh_stops_being_enough_and_what_to_do() -> None:
    def measured(messages: int, search: float, turn: float) -> dict[str, Any]:
        return {"messages": messages, "search_ms": {"p95": search}, "overhead_ms": {"p95": turn}}

    fast = [measured(1_000, 8.0, 9.0), measured(10_000, ENOUGH_MS, 80.0)]
    assert "enough for 10,000 messages" in verdict(fast) and f"take {ENOUGH_MS:.0f} ms or less" in verdict(fast)
    slow = [measured(100_000, 70.0, 700.0), measured(200_000, 900.0, 90.0)]
    between = verdict([*fast, *slow])
    assert "between 10,000 and 100,000 messages" in between and "700 ms" in between and "user_id" in between
    assert "before 200,000 messages" in verdict(slow[1:])


def test_what_a_process_takes_is_counted_with_its_children_and_their_files(tmp_path: Path) -> None:
    spin = "sum(range(3_000_000))"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{spin}']); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seconds = cpu_seconds(process.pid)
        assert seconds is not None and 0.02 < seconds < 10
        process.communicate(b"\n")
    assert cpu_seconds(process.pid) is None
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.db").write_bytes(b"12345")
    (tmp_path / "b.txt").write_bytes(b"123")
    assert (folder_bytes(tmp_path), folder_bytes(tmp_path, "*.db")) == (8, 5)


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few searches and turns at each size."""
    monkeypatch.setattr(filling, "SEARCHES", 5)
    monkeypatch.setattr(filling, "TURNS", 3)


def run(results: Path, *arguments: str) -> dict[str, Any]:
    """What a run stores, once its figures were found to be such as there can be."""
    main([*arguments, *SOON, "--results", str(results)])
    [file] = results.glob("scale-*.json")
    stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert not stored["ended_early"]
    for figures in (*stored["many"], *stored["single"]):
        assert figures["filled_per_second"] > 0
        assert 0 < figures["search_ms"]["p50"] <= figures["search_ms"]["p95"]
        assert 0 < figures["overhead_ms"]["p50"] <= figures["overhead_ms"]["p95"]
        assert figures["index_bytes"] > 0 and figures["database_bytes"] > 0
        assert figures["memory_mb"]["rss"] >= figures["memory_mb"]["pss"] > 0
    return stored


@pytest.mark.slow
@pytest.mark.usefixtures("little")
def test_the_sizes_of_many_people_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run(tmp_path, "--messages", "20", "40", "--owners", "4", "--single")
    assert [figures["messages"] for figures in results["many"]] == [20, 40]
    assert all(figures["start_seconds"] > 0 for figures in results["many"])
    printed = capsys.readouterr().out
    assert "4 people" in printed and "2 workers, SUMMARY_DEBOUNCE=0.1." in printed
    assert [line.split()[-2:] for line in printed.splitlines() if line.startswith("  messages ")] == [["20", "40"]]
    assert "Whoosh" not in printed


@pytest.mark.slow
@pytest.mark.usefixtures("little")
def test_one_persons_index_is_made_again_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [figures] = run(tmp_path, "--messages", "--single", "30")["single"]
    assert figures["messages"] == 30 and figures["rebuild_seconds"] > 0
    assert 0 < figures["search_session_ms"]["p50"] <= figures["search_session_ms"]["p95"]
    printed = capsys.readouterr().out
    assert "one person" in printed and "rebuild, s" in printed and "Whoosh" in printed


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that will take hours, in a process of its own and a temporary folder for what it makes."""
    arguments = ["--messages", "300000", "--owners", "3", "--single", *SOON, "--results", str(tmp_path / "results")]
    (tmp_path / "made").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.scale", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path / "made")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ended_early_it_prints_what_there_is_and_leaves_nothing_behind(
    running: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    assert running.stderr is not None
    shown = ""
    while not re.search(r" [1-9]\d+/300000 ", shown):  # until messages are brought in
        shown += running.stderr.read(1)
        assert running.poll() is None, shown
    children = [int(one) for one in Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()]
    assert children
    running.send_signal(number)
    printed, _ = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "It was ended early" in printed and "Measured on" in printed
    [file] = (tmp_path / "results").glob("scale-*.json")
    assert json.loads(file.read_text(encoding="utf-8"))["ended_early"]
    assert [*(tmp_path / "made").iterdir()] == []
    assert not any(Path(f"/proc/{child}").exists() for child in children)
