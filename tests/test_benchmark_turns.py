"""What a turn costs: the notes that are talked of, how time is told from the model's, and a whole run, made small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.calling import Took
from benchmarks.model import Call
from benchmarks.serving import MAIN, MINI
from benchmarks.turns import TOKENS_OVER, answering, main, overheads, tokens_at

ASKED = [{"role": "user", "content": "Hello there, you two people."}]  # five words, two marks, and the message


def call(begun: float, ended: float, model: str = MAIN) -> Call:
    return Call(model, begun, ended, ASKED)


def test_the_models_time_is_that_in_which_any_call_was_being_answered() -> None:
    calls = [call(3.0, 4.0), call(0.0, 1.5), call(1.2, 2.0, MINI), call(3.1, 3.2), call(6.0, 9.0)]
    assert answering(calls, 1.0, 5.0) == pytest.approx(2.0)  # from 1 to 2 and from 3 to 4
    assert answering(calls, 3.5, 7.0) == pytest.approx(1.5)
    assert answering([], 1.0, 2.0) == 0.0
    assert overheads([Took(1.0, None, 5.0), Took(3.5, None, 7.0)], calls) == {
        "overhead_ms": {"p50": 2_000.0, "p95": 2_000.0},
        "last_over_first": 1.0,
    }


def test_prompt_tokens_are_those_of_all_calls_of_the_last_turns() -> None:
    taken = [Took(at, None, at + 0.5) for at in range(30)]
    calls = [call(at + 0.1, at + 0.2) for at in range(30)]
    assert calls[0].tokens == 10
    assert tokens_at(20, taken, calls) == tokens_at(30, taken, calls) == tokens_at(1, taken, calls) == 10
    calls += [call(12.7, 13.0, MINI)] * TOKENS_OVER  # in the pause after turn 13
    assert tokens_at(20, taken, calls) == 20
    assert tokens_at(12, taken, calls) == 10
    calls += [call(29.6, 30.0, MINI)] * TOKENS_OVER  # after the last turn: none of it
    assert tokens_at(30, taken, calls) == 10


@pytest.mark.slow
def test_a_turns_cost_is_measured_on_a_server_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--turns", "8", "--conversations", "2", "--each", "2", "--slow-turns", "2", "--latency", "0.1"]
    main([*small, "--set", "SUMMARY_DEBOUNCE=0.1", "--set", "WEB_THREADS=8", "--results", str(tmp_path)])
    printed = capsys.readouterr().out
    [file] = tmp_path.glob("turns-*.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    recap, alone = results["recap"], results["model_alone"]
    assert 0 < alone["overhead_ms"]["p50"] < recap["overhead_ms"]["p50"] <= recap["overhead_ms"]["p95"]
    assert 1 < recap["calls"] <= 2.5
    assert recap["prompt_tokens"]["8"] > 100
    assert recap["found_percent"] == 100
    assert recap["disk_kb"] > 0
    assert recap["cpu_ms"] > 0 and recap["memory_mb"]["pss"] <= recap["memory_mb"]["rss"]
    for one in (recap, alone):
        assert (one["at_once"]["failed"], one["at_once"]["first_failure"]) == (0, None)
        assert one["at_once"]["turns_per_second"] > 0
        assert 100 <= one["slow"]["first_text_ms"]["p50"] <= one["slow"]["turn_ms"]["p95"]
    for said in ("one conversation, 8 turns", "2 at once, 2 turns each", "a model of 100 ms", "model alone", str(file)):
        assert said in printed
    assert "SUMMARY_DEBOUNCE=0.1, WEB_THREADS=8" in printed and "Measured on" in printed
