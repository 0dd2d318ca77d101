"""The scale benchmark: how messages are spread, a whole run made small, and an early end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import filling
from benchmarks.scale import main, spread
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


@pytest.mark.slow
def test_the_sizes_of_many_people_and_of_one_stand_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "SEARCHES", 5)
    monkeypatch.setattr(filling, "TURNS", 3)
    main(["--messages", "20", "40", "--owners", "4", "--single", "30", *SOON, "--results", str(tmp_path)])
    [file] = tmp_path.glob("scale-*.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    assert not results["ended_early"]
    assert [figures["messages"] for figures in results["many"]] == [20, 40]
    assert [figures["messages"] for figures in results["single"]] == [30]
    for figures in (*results["many"], *results["single"]):
        assert figures["filled_per_second"] > 0
        assert figures["index_bytes"] > 0 and figures["database_bytes"] > 0
        assert figures["memory_mb"]["rss"] >= figures["memory_mb"]["pss"] > 0
        for measured in ("search_ms", "overhead_ms"):
            assert 0 < figures[measured]["p50"] <= figures[measured]["p95"]
    printed = capsys.readouterr().out
    for said in ("4 people", "one person", "rebuild, s", "Whoosh", "2 workers, SUMMARY_DEBOUNCE=0.1."):
        assert said in printed


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
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
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
