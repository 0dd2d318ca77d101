"""The recall benchmark: what it counts, and a whole run of it over the project's own conversation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.conversation import Conversation, Question
from benchmarks.rankings import RECIPES, Corpus, Judge
from benchmarks.recall import main

OURS = Path(__file__).parent.parent / "benchmarks" / "conversation.json"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.of(Conversation.load(OURS, unanswerable=True))


def test_what_is_found_is_judged_by_share_order_and_tokens(corpus: Corpus) -> None:
    said = corpus.documents
    first, last = said[0], said[-1]
    ids = frozenset(corpus.conversation.said[one.message_id - 1].external_id for one in (first, last))
    question = Question("both?", ids, 1)
    assert corpus.evidence(question) == {first.message_id, last.message_id}
    judge = Judge(corpus)
    good = judge.scores(question, [last.message_id, first.message_id])
    assert {good[name] for name in ("recall@5", "recall@20", "in 500", "in 2000")} == {100.0}
    assert (good["hit@1"], good["ndcg@5"]) == (1.0, 1.0)
    other = next(one.message_id for one in said if one.session_id not in (first.session_id, last.session_id))
    late = judge.scores(question, [other] * 5 + [last.message_id])
    assert (late["recall@5"], late["recall@10"], late["hit@1"]) == (0.0, 50.0, 0.0)
    assert 0 < late["ndcg@5"] < 1
    everything = judge.scores(question, [one.message_id for one in said])
    assert everything["in 500"] == 50.0  # the last message of them all is not reached
    assert judge.scores(question, [])["ndcg@5"] == 0.0


@pytest.mark.slow
def test_all_rankings_stand_in_one_table_and_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talks = tmp_path / "talks"
    talks.mkdir()
    for name in ("one", "two"):
        shutil.copy(OURS, talks / f"{name}.json")
    main([str(talks), "--leave-one-out", "--results", str(tmp_path / "results")])
    printed = capsys.readouterr().out
    (file,) = (tmp_path / "results").glob("recall-*.json")
    results = json.loads(file.read_text())
    figures = results["rankings"]
    assert set(RECIPES) < set(figures) and all(name in printed for name in figures)
    for one in figures.values():
        assert 0 <= one["recall@5"] <= one["recall@10"] <= one["recall@20"] <= 100
        assert 0 <= one["in 500"] <= one["in 1000"] <= one["in 2000"] <= 100
        assert 0 < one["hit@1"] <= 1 and 0 < one["ndcg@5"] <= 1 and 0 < one["p50"] <= one["p95"]
    assert figures["default"]["recall@10"] > figures["BM25"]["recall@10"] > 50
    assert results["index"]["bytes_per_message"] > results["index"]["bytes_per_message_without_vectors"] > 0
    tuned = results["leave_one_out"]
    assert set(tuned["chosen"]) == {"one", "two"}
    assert tuned["defaults"]["recall@10"] == pytest.approx(figures["default"]["recall@10"], abs=0.01)
    assert "left out" in printed and str(file) in printed
