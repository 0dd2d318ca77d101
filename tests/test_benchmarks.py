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
    needs,
    prefix,
    recall,
    references,
    replay,
    scale,
    store,
    turns,
)
from benchmarks.conversation import Conversation, Question, RecordedMessage
from benchmarks.serving import ROOT

OURS = ROOT / "benchmarks" / "conversation.json"
SOON = ["--set", "SUMMARY_DEBOUNCE=0.1"]

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a benchmark with these options and returns the stored results.

    prints: what the printed table has to contain.
    """

    def run(benchmark: ModuleType, *options: str, prints: tuple[str, ...] = ()) -> Any:
        benchmark.main([*options, "--results", str(tmp_path / "results")])
        (file,) = (tmp_path / "results").glob("*.json")
        printed = capsys.readouterr().out
        for text in (*prints, "Measured on", str(file)):
            assert text in printed
        return {**json.loads(file.read_text("utf-8")), "printed": printed}

    return run


@pytest.mark.slow
def test_turns(run: Run) -> None:
    small = ["--turns", "8", "--conversations", "2", "--each", "2", "--slow-turns", "2", "--latency", "0.1"]
    prints = "8 turns", "2 at once, 2 turns each", "a model of 100 ms", "SUMMARY_DEBOUNCE=0.1, WEB_THREADS=8"
    results = run(turns, *small, *SOON, "--set", "WEB_THREADS=8", prints=prints)
    recap, alone = results["recap"], results["model_alone"]
    assert 0 < alone["overhead_ms"]["p50"] < recap["overhead_ms"]["p50"] <= recap["overhead_ms"]["p95"]
    assert 1 < recap["calls"] <= 2.5 and recap["prompt_tokens"]["8"] > 100 and recap["found_percent"] == 100
    assert recap["disk_kb"] > 0 and recap["cpu_ms"] > 0 and 0 < recap["memory_mb"]["pss"] <= recap["memory_mb"]["rss"]
    for figures in (recap, alone):
        assert (figures["at_once"]["failed"], figures["at_once"]["first_failure"]) == (0, None)
        assert 100 <= figures["slow"]["first_text_ms"]["p50"] <= figures["slow"]["turn_ms"]["p95"]


@pytest.mark.faults
def test_store(run: Run) -> None:
    results = run(store, "--items", "200", "600", "--calls", "5", prints=("SqliteStore",))
    for name, missing in (("recap", set[str]()), ("sqlite_store", {"query"})):
        assert [figures["items"] for figures in results[name]] == [200, 600]
        for figures in results[name]:
            assert set(store.KINDS) - set(figures) == missing
            assert all(figures[kind]["per_second"] > 0 for kind in {*store.KINDS} - missing)


def test_consolidation(run: Run) -> None:
    results = run(consolidation, "--facts", "80", prints=("80 facts",))
    builtin, right, careless = results["models"].values()
    assert (results["facts"], results["duplicates"], results["near_misses"]) == (80, 24, 8)
    assert builtin["precision"] == right["precision"] == 1.0 and builtin["recall"] < right["recall"] <= 1
    assert careless["precision"] < 1 and careless["near_misses_merged"] == 0


@pytest.fixture
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "SEARCHES", 5)
    monkeypatch.setattr(scale, "TURNS", 3)


@pytest.mark.faults
@pytest.mark.usefixtures("few_calls")
def test_scale(run: Run) -> None:
    prints = "4 people", "one person", "rebuild, s", "Whoosh", "2 workers, SUMMARY_DEBOUNCE=0.1."
    results = run(scale, "--messages", "20", "40", "--owners", "4", "--single", "30", *SOON, prints=prints)
    assert [figures["messages"] for figures in results["many"] + results["single"]] == [20, 40, 30]
    for figures in (*results["many"], *results["single"]):
        assert min(figures["filled_per_second"], figures["index_bytes"], figures["database_bytes"]) > 0
        assert figures["memory_mb"]["rss"] >= figures["memory_mb"]["pss"] > 0
        assert all(0 < figures[name]["p50"] <= figures[name]["p95"] for name in ("search_ms", "overhead_ms"))


@pytest.mark.faults
@pytest.mark.usefixtures("few_calls")
def test_cluster_goes_on_where_a_filling_stopped(run: Run) -> None:
    with TemporaryDirectory(prefix="recap-postgres-") as folder:  # the server's user must reach it
        small = ["--clients", "3", "--turns", "2", "--owners", "4", "--data", f"{folder}/data", *SOON]
        prints = "PostgreSQL, 2", "`search_messages` | ix_search_messages_terms"
        results = run(cluster, "--nodes", "2", "--messages", "40", "60", *small, prints=prints)
        with cluster.PostgreSQL(Path(folder) / "data") as postgres:
            stored = sum(postgres.messages_of_people().values())
    assert list(results["turns"]["columns"]) == ["SQLite, 1 node", "PostgreSQL, 2"]
    for name, figures in results["turns"]["columns"].items():
        assert figures["failed"] == 0 and figures["per_second"] > 0 and figures["each"]["nodes_cpu_ms"] > 0
        assert 0 < figures["alone_ms"]["p50"] <= figures["alone_ms"]["p95"]
        assert (name == "SQLite, 1 node") == ("wal_bytes" not in figures["each"])
    first, second = results["filled"]
    assert stored == second["messages"] == sum(person.messages for person in scale.spread(4, 60))
    assert first["filled"]["each"]["wal_bytes"] > 0 and second["filled"] == {}, "most of it was there already"
    for figures in (first, second):
        entries = {size["of"]: size["entries"] for size in figures["sizes"] if size["part"] == "rows"}
        assert entries["messages"] == entries["search_messages"] >= figures["messages"]
        assert figures["cold"]["each"]["read"] > 0
    (rows,) = re.findall(r"^\| derived from .*?\n\n(.*?)\n\n", results["printed"], re.M | re.S)
    derived = needs.table(needs.measured_in(results["printed"]), needs.Assumed())
    assert rows == derived, "the page derives from what is printed"


@pytest.mark.faults
def test_concurrency(run: Run) -> None:
    small = "--streams", "3", "--turns", "2", "--seconds", "0.5", "--workers", "1"
    figures = run(concurrency, *small, prints=("3 of 3",))["figures"]
    assert (figures["turns"], figures["failed"], figures["at_once"], figures["ideal_per_second"]) == (6, 0, 3, 6.0)
    assert 0 < figures["share_percent"] <= 100
    assert 0 < figures["first_text_beyond_ms"]["p50"] <= figures["first_text_beyond_ms"]["p95"]


@pytest.mark.faults
def test_fairness(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "CASES", fairness.CASES[:2])
    nobody, crowd = run(fairness, "--seconds", "1", prints=("reads of another tenant",))["figures"][
        "this code"
    ].values()
    assert nobody["crowd"] == {} and set(crowd["crowd"]) == {"429"}
    for figures in (nobody, crowd):
        assert all(0 < figures[name]["p50"] <= figures[name]["p99"] <= figures[name]["max"] for name in fairness.PATHS)


@pytest.mark.slow
def test_replay(run: Run) -> None:
    prints = "recall@10, %", "search p95, ms", "full history"
    results = run(replay, str(OURS), "--turns", "30", prints=prints)
    figures = results["conversations"]["conversation"]
    assert results["model"]["builtin"] is True
    assert 60 < figures["recall"]["5"] <= figures["recall"]["10"] <= figures["recall"]["20"] <= 100
    assert figures["import_per_second"]["one_session"] > 0
    assert 0 < figures["took_ms"]["p50"] <= figures["search_ms"]["p50"] <= figures["search_ms"]["p95"]
    chat = figures["chat"]
    assert (chat["turns"], chat["full_history_tokens"] - chat["prompt_tokens"]) == (30, chat["saved_tokens"])


@pytest.mark.slow
def test_prefix(run: Run) -> None:
    prints = "prefix, median", "full history, no memory", "newest message only: prompts"
    results = run(prefix, str(OURS), "--limit", "20", prints=prints)
    for client in ("newest", "history"):
        assert results["conversations"]["conversation"][client] == results["all"][client]
        recap, history = results["all"][client]["recap"], results["all"][client]["history"]
        assert recap["prompts"] == history["prompts"] == 20
        assert recap["median"] >= 0.75 and recap["new_tokens"] < recap["prompt_tokens"] < history["prompt_tokens"]
        assert history["median"] > 0.99


def test_references(run: Run, tmp_path: Path) -> None:
    (tmp_path / "corpus.json").write_text(json.dumps({"messages": [f"Remark {number}." for number in range(11)]}))
    (tmp_path / "references.json").write_text(json.dumps(["Where did we leave off?", "Good morning!"]))
    prints = "references: 1 of 2 right", "latest     Where did we leave off?", "types by cue words: 1 of 30 right"
    run(references, "--sets", str(tmp_path), prints=prints)


@pytest.mark.slow
def test_recall(run: Run, tmp_path: Path) -> None:
    (tmp_path / "talks").mkdir()
    for name in ("one", "two"):
        shutil.copy(OURS, tmp_path / "talks" / f"{name}.json")
    results = run(recall, str(tmp_path / "talks"), "--leave-one-out", prints=(*recall.COMPARED, "left out"))
    for figures in results["rankings"].values():
        assert 0 <= figures["recall@5"] <= figures["recall@10"] <= figures["recall@20"] <= 100
        assert 0 <= figures["in 500"] <= figures["in 1000"] <= figures["in 2000"] <= 100
        assert 0 < figures["hit@1"] <= 1 and 0 < figures["ndcg@5"] <= 1 and 0 < figures["p50"] <= figures["p95"]
    default, tuned = results["rankings"]["default"], results["leave_one_out"]
    assert default["recall@10"] > results["rankings"]["BM25"]["recall@10"] > 50
    assert results["first person"]["default"]["recall@10"] > 50
    assert results["index"]["bytes_per_message"] > results["index"]["bytes_per_message_without_vectors"] > 0
    assert set(tuned["chosen"]) == {"one", "two"}
    assert tuned["defaults"]["recall@10"] == pytest.approx(default["recall@10"], abs=0.01)


def test_results_of_a_ranking_are_scored_by_share_order_and_tokens() -> None:
    (conversation,) = Conversation.load(OURS)
    corpus = recall.Corpus.of(conversation.with_evidence(unanswerable=True))
    first, *_, last = corpus.documents
    ids = frozenset(corpus.conversation.messages[it.message_id - 1].external_id for it in (first, last))
    question = Question("both?", ids, 1)
    assert corpus.evidence(question) == {first.message_id, last.message_id}
    scorer = recall.Scorer(corpus)
    good = scorer.scores(question, [last.message_id, first.message_id])
    assert {good[name] for name in ("recall@5", "recall@20", "in 500", "in 2000")} == {100.0}
    assert (good["hit@1"], good["ndcg@5"]) == (1.0, 1.0)
    sessions = {first.session_id, last.session_id}
    other = next(document.message_id for document in corpus.documents if document.session_id not in sessions)
    late = scorer.scores(question, [other] * 5 + [last.message_id])
    assert (late["recall@5"], late["recall@10"], late["hit@1"]) == (0.0, 50.0, 0.0) and 0 < late["ndcg@5"] < 1
    everything = scorer.scores(question, [document.message_id for document in corpus.documents])
    assert everything["in 500"] == 50.0, "the last message of them all is not reached"
    assert scorer.scores(question, [])["ndcg@5"] == 0.0


def test_a_question_about_a_speaker_becomes_one_in_the_first_person() -> None:
    messages = tuple(
        RecordedMessage(str(number), "s", role, name, "Hi", "2024-05-01")
        for number, (role, name) in enumerate([("user", "Ana"), ("assistant", "Ben")], 1)
    )
    texts = ("What did Ana buy?", "What is Ben's dog called?", "What did Ben tell Ana?", "Who barks?")
    talk = Conversation("talk", messages, tuple(Question(text, frozenset("1"), 1) for text in texts))
    ana, ben = talk.in_first_person()
    assert [message.role for message in ben.messages] == ["assistant", "user"]
    assert [question.text for question in ana.questions] == ["What did I buy?", "Who barks?"]
    assert [question.text for question in ben.questions] == ["What is my dog called?", "What did I tell you?"]
    assert {document.name for document in recall.Corpus.of(ana).documents} == {None}
