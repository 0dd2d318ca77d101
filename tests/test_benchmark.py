"""The benchmark: its conversation, its figures, and the whole run over a server of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.conversation import ANSWERABLE, Conversation, Question, recall_at
from benchmarks.replay import main
from memory.summary.compare import read_messages

OURS = Path(__file__).parent.parent / "benchmarks" / "conversation.json"


def test_our_conversation_has_everything_the_benchmark_and_the_comparison_need() -> None:
    talk = Conversation.load(OURS)
    assert len(talk.sessions) == 5
    assert len(talk.said) >= 80
    assert {one.role for one in talk.said} == {"user", "assistant"}
    assert len(talk.questions) >= 25
    assert {question.category for question in talk.questions} == set(ANSWERABLE)
    assert any(len(question.evidence) > 1 for question in talk.questions)
    assert any("[photo: " in one.content for one in talk.said)
    times = [one.created_at for one in talk.said]
    assert times == sorted(times)
    data = json.loads(OURS.read_text(encoding="utf-8"))
    assert len(read_messages(data)) >= 80 and len(data["stated_facts"]) >= 10


def test_recall_is_the_share_of_each_questions_evidence() -> None:
    questions = [Question("both?", frozenset({"a", "b"}), 1), Question("one?", frozenset({"c"}), 4)]
    found: list[list[str | None]] = [["a", "x", "b"], ["x", None, "y"]]
    assert recall_at(found, questions, 2) == 25.0
    assert recall_at(found, questions, 3) == 50.0
    assert recall_at([], [], 5) == 0.0


@pytest.mark.slow
def test_the_benchmark_runs_on_a_server_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(OURS), "--serve", "--turns", "30", "--results", str(tmp_path / "results")])
    printed = capsys.readouterr().out
    (file,) = (tmp_path / "results").glob("*.json")
    results = json.loads(file.read_text())
    figures = results["conversations"]["conversation"]
    assert results["model"]["builtin"] is True
    assert results["machine"]["cores"] >= 1
    assert 60 < figures["recall"]["5"] <= figures["recall"]["10"] <= figures["recall"]["20"] <= 100
    assert figures["import_per_second"]["one_session"] > 0
    assert 0 < figures["took_ms"]["p50"] <= figures["search_ms"]["p50"] <= figures["search_ms"]["p95"]
    chat = figures["chat"]
    assert chat["turns"] == 30
    assert chat["full_history_tokens"] - chat["prompt_tokens"] == chat["saved_tokens"]
    for said in ("recall@10, %", f"{figures['recall']['10']:.1f}", "search p95, ms", "full history", str(file)):
        assert said in printed
