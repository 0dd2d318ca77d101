"""The benchmarks: what they count, and a whole run of each, made small."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest

from benchmarks import (
    cluster,
    concurrency,
    consolidation,
    fairness,
    filling,
    needs,
    prefix,
    recall,
    references,
    replay,
    scale,
    store,
    turns,
)
from benchmarks.conversation import Conversation, Question, Said
from benchmarks.postgres import PostgreSQL
from benchmarks.rankings import COMPARED, Corpus, Scorer
from benchmarks.serving import ROOT

OURS = ROOT / "benchmarks" / "conversation.json"
SOON = ["--set", "SUMMARY_DEBOUNCE=0.1"]

Run = Callable[..., tuple[Any, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a benchmark with these options: what it stores, and what it prints."""

    def run(benchmark: ModuleType, *options: str) -> tuple[Any, str]:
        benchmark.main([*options, "--results", str(tmp_path / "results")])
        (file,) = (tmp_path / "results").glob("*.json")
        printed = capsys.readouterr().out
        assert str(file) in printed
        return json.loads(file.read_text("utf-8")), printed

    return run


# -- make bench


@pytest.mark.slow
def test_a_turns_cost_is_measured_on_a_server_of_its_own(run: Run) -> None:
    small = ["--turns", "8", "--conversations", "2", "--each", "2", "--slow-turns", "2", "--latency", "0.1"]
    results, printed = run(turns, *small, *SOON, "--set", "WEB_THREADS=8")
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
    for said in ("one conversation, 8 turns", "2 at once, 2 turns each", "a model of 100 ms", "model alone"):
        assert said in printed
    assert "SUMMARY_DEBOUNCE=0.1, WEB_THREADS=8" in printed and "Measured on" in printed


# -- make bench-store


@pytest.mark.faults
def test_the_store_stands_beside_langgraphs_at_each_size(run: Run) -> None:
    results, printed = run(store, "--items", "200", "600", "--calls", "5")
    for name in ("recap", "sqlite_store"):
        assert [figures["items"] for figures in results[name]] == [200, 600]
        for figures in results[name]:
            assert set(store.KINDS) - set(figures) == ({"query"} if name == "sqlite_store" else set())
            assert all(figures[kind]["per_second"] > 0 for kind in store.KINDS if kind in figures)
    assert "SqliteStore" in printed and "Measured on" in printed


# -- make bench-consolidation


def test_merged_facts_are_judged_by_what_they_say(run: Run) -> None:
    results, printed = run(consolidation, "--facts", "80")
    builtin, right, careless = results["models"].values()
    assert (results["facts"], results["duplicates"], results["near_misses"]) == (80, 24, 8)
    assert builtin["precision"] == right["precision"] == 1.0 and builtin["recall"] < right["recall"] <= 1
    assert careless["precision"] < 1 and careless["near_misses_merged"] == 0
    assert "80 facts" in printed and "Measured on" in printed


# -- make bench-scale


@pytest.mark.faults
def test_the_sizes_of_many_people_and_of_one_stand_side_by_side(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "SEARCHES", 5)
    monkeypatch.setattr(filling, "TURNS", 3)
    results, printed = run(scale, "--messages", "20", "40", "--owners", "4", "--single", "30", *SOON)
    assert not results["ended_early"]
    assert [figures["messages"] for figures in results["many"]] == [20, 40]
    assert [figures["messages"] for figures in results["single"]] == [30]
    for figures in (*results["many"], *results["single"]):
        assert figures["filled_per_second"] > 0
        assert figures["index_bytes"] > 0 and figures["database_bytes"] > 0
        assert figures["memory_mb"]["rss"] >= figures["memory_mb"]["pss"] > 0
        for measured in ("search_ms", "overhead_ms"):
            assert 0 < figures[measured]["p50"] <= figures[measured]["p95"]
    for said in ("4 people", "one person", "rebuild, s", "Whoosh", "2 workers, SUMMARY_DEBOUNCE=0.1."):
        assert said in printed


# -- make bench-cluster


@pytest.mark.faults
def test_nodes_on_postgresql_stand_beside_sqlite_and_a_filling_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "SEARCHES", 5)
    monkeypatch.setattr(filling, "TURNS", 3)
    with TemporaryDirectory(prefix="recap-postgres-") as folder:  # the server's user must reach it
        small = ["--clients", "3", "--turns", "2", "--owners", "4", "--data", f"{folder}/data", *SOON]
        results, printed = run(cluster, "--nodes", "2", "--messages", "40", "60", *small)
        with PostgreSQL(Path(folder) / "data") as postgres:
            held = sum(postgres.held(cluster.HELD).values())
    columns = results["turns"]["columns"]
    assert list(columns) == ["SQLite, 1 node", "PostgreSQL, 2"]
    for name, figures in columns.items():
        assert figures["failed"] == 0 and figures["per_second"] > 0
        assert 0 < figures["alone_ms"]["p50"] <= figures["alone_ms"]["p95"]
        assert figures["each"]["nodes_cpu_ms"] > 0
        assert (name == "SQLite, 1 node") == ("wal_bytes" not in figures["each"])
    assert held == results["filled"][-1]["messages"] == sum(person.messages for person in scale.spread(4, 60))
    first, second = results["filled"]
    assert first["filled"]["each"]["wal_bytes"] > 0 and second["filled"] == {}, "most of it was there already"
    for figures in (first, second):
        assert figures["cold"]["each"]["read"] > 0
        sizes = {(one["of"], one["part"]): one for one in figures["sizes"]}
        assert (
            sizes["messages", "rows"]["entries"] == sizes["search_messages", "rows"]["entries"] >= figures["messages"]
        )
    for said in ("PostgreSQL, 2", f"| {held} |", "`search_messages` | ix_search_messages_terms", "Measured on"):
        assert said in printed
    (rows,) = re.findall(r"^\| derived from .*?\n\n(.*?)\n\n", printed, re.M | re.S)
    assert rows == needs.table(needs.measured_in(printed), needs.Assumed()), "the page derives from what is printed"


# -- make bench-concurrency


@pytest.mark.faults
def test_conversations_are_held_at_once_and_measured(run: Run) -> None:
    results, printed = run(concurrency, "--streams", "3", "--turns", "2", "--seconds", "0.5", "--workers", "1")
    figures = results["figures"]
    assert (figures["turns"], figures["failed"], figures["at_once"]) == (6, 0, 3)
    assert figures["ideal_per_second"] == 6.0
    assert 0 < figures["share_percent"] <= 100
    assert 0 < figures["first_text_beyond_ms"]["p50"] <= figures["first_text_beyond_ms"]["p95"]
    assert "streams at once" in printed and "3 of 3" in printed and "Measured on" in printed


# -- make bench-fairness


@pytest.mark.faults
def test_others_are_measured_beside_a_crowd(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "CASES", fairness.CASES[:2])
    results, printed = run(fairness, "--seconds", "1")
    cases = results["figures"]["this code"]
    assert list(cases) == [case.name for case in fairness.CASES]
    for figures in cases.values():
        for name in fairness.ASKED:
            assert 0 < figures[name]["p50"] <= figures[name]["p99"] <= figures[name]["max"]
    assert cases["nobody"]["crowd"] == {} and set(cases[fairness.CASES[1].name]["crowd"]) == {"429"}
    assert "reads of another tenant" in printed and "Measured on" in printed


# -- make bench-replay


@pytest.mark.slow
def test_the_benchmark_runs_on_a_server_of_its_own(run: Run) -> None:
    results, printed = run(replay, str(OURS), "--turns", "30")
    figures = results["conversations"]["conversation"]
    assert results["model"]["builtin"] is True
    assert results["machine"]["cores"] >= 1
    assert 60 < figures["recall"]["5"] <= figures["recall"]["10"] <= figures["recall"]["20"] <= 100
    assert figures["import_per_second"]["one_session"] > 0
    assert 0 < figures["took_ms"]["p50"] <= figures["search_ms"]["p50"] <= figures["search_ms"]["p95"]
    chat = figures["chat"]
    assert chat["turns"] == 30
    assert chat["full_history_tokens"] - chat["prompt_tokens"] == chat["saved_tokens"]
    for said in ("recall@10, %", f"{figures['recall']['10']:.1f}", "search p95, ms", "full history"):
        assert said in printed


# -- make bench-recall


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    (conversation,) = Conversation.load(OURS)
    return Corpus.of(conversation.with_evidence(unanswerable=True))


def test_what_is_found_is_judged_by_share_order_and_tokens(corpus: Corpus) -> None:
    said = corpus.documents
    first, last = said[0], said[-1]
    ids = frozenset(corpus.conversation.said[one.message_id - 1].external_id for one in (first, last))
    question = Question("both?", ids, 1)
    assert corpus.evidence(question) == {first.message_id, last.message_id}
    scorer = Scorer(corpus)
    good = scorer.scores(question, [last.message_id, first.message_id])
    assert {good[name] for name in ("recall@5", "recall@20", "in 500", "in 2000")} == {100.0}
    assert (good["hit@1"], good["ndcg@5"]) == (1.0, 1.0)
    other = next(one.message_id for one in said if one.session_id not in (first.session_id, last.session_id))
    late = scorer.scores(question, [other] * 5 + [last.message_id])
    assert (late["recall@5"], late["recall@10"], late["hit@1"]) == (0.0, 50.0, 0.0)
    assert 0 < late["ndcg@5"] < 1
    everything = scorer.scores(question, [one.message_id for one in said])
    assert everything["in 500"] == 50.0  # the last message of them all is not reached
    assert scorer.scores(question, [])["ndcg@5"] == 0.0


@pytest.mark.slow
def test_all_rankings_stand_in_one_table_and_in_json(run: Run, tmp_path: Path) -> None:
    talks = tmp_path / "talks"
    talks.mkdir()
    for name in ("one", "two"):
        shutil.copy(OURS, talks / f"{name}.json")
    results, printed = run(recall, str(talks), "--leave-one-out")
    figures = results["rankings"]
    assert set(COMPARED) < set(figures) and all(name in printed for name in figures)
    for one in figures.values():
        assert 0 <= one["recall@5"] <= one["recall@10"] <= one["recall@20"] <= 100
        assert 0 <= one["in 500"] <= one["in 1000"] <= one["in 2000"] <= 100
        assert 0 < one["hit@1"] <= 1 and 0 < one["ndcg@5"] <= 1 and 0 < one["p50"] <= one["p95"]
    assert figures["default"]["recall@10"] > figures["BM25"]["recall@10"] > 50
    assert results["index"]["bytes_per_message"] > results["index"]["bytes_per_message_without_vectors"] > 0
    tuned = results["leave_one_out"]
    assert set(tuned["chosen"]) == {"one", "two"}
    assert tuned["defaults"]["recall@10"] == pytest.approx(figures["default"]["recall@10"], abs=0.01)
    assert "left out" in printed
    assert results["first person"]["default"]["recall@10"] > 50 and "first person" in printed


def test_a_question_about_a_speaker_becomes_one_in_the_first_person() -> None:
    said = (Said("1", "s", "user", "Ana", "Hi", "2024-05-01"), Said("2", "s", "assistant", "Ben", "Ho", "2024-05-01"))
    texts = ("What did Ana buy?", "What is Ben's dog called?", "What did Ben tell Ana?", "Who barks?")
    talk = Conversation("talk", said, tuple(Question(text, frozenset("1"), 1) for text in texts))
    ana, ben = talk.in_first_person()
    assert [one.role for one in ben.said] == ["assistant", "user"]
    assert [one.text for one in ana.questions] == ["What did I buy?", "Who barks?"]
    assert [one.text for one in ben.questions] == ["What is my dog called?", "What did I tell you?"]
    assert {one.name for one in Corpus.of(ana).documents} == {None}


# -- make bench-references


def test_references_and_types_stand_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "corpus.json").write_text(json.dumps({"messages": [f"Remark {number}." for number in range(11)]}))
    (tmp_path / "references.json").write_text(json.dumps(["Where did we leave off?", "Good morning!"]))
    references.main(["--sets", str(tmp_path), "--results", str(tmp_path)])
    printed = capsys.readouterr().out
    for said in ("references: 1 of 2 right", "latest     Where did we leave off?", "types by cue words: 1 of 30 right"):
        assert said in printed


# -- make bench-prefix


@pytest.mark.slow
def test_most_of_each_prompt_has_just_been_seen_by_the_model_server(run: Run) -> None:
    results, printed = run(prefix, str(OURS), "--limit", "20")
    assert results["machine"]["cores"] >= 1
    for client in ("newest", "history"):
        measured = results["conversations"]["conversation"][client]
        assert measured == results["all"][client]
        recap, history = measured["recap"], measured["history"]
        assert recap["prompts"] == history["prompts"] == 20
        assert recap["median"] >= 0.75 and recap["new_tokens"] < recap["prompt_tokens"] < history["prompt_tokens"]
        assert history["median"] > 0.99
        assert f"{recap['prompt_tokens']:,}" in printed
    for said in ("prefix, median", "full history, no memory", "newest message only: prompts", "Measured on"):
        assert said in printed
