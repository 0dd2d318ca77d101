"""The benchmarks: a whole run of each, made small, and how they count."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from benchmarks import cluster, consolidation, meaning, recall, scale, store, turns
from benchmarks.serving import ROOT

OURS = str(ROOT / "benchmarks" / "conversation.json")
SOON = ["--set", "SUMMARY_DEBOUNCE=0.1"]


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Return a function that runs a benchmark and returns its results.  `prints`: what the table has to contain."""
    monkeypatch.setattr(cluster, "SEARCHES", 5)
    monkeypatch.setattr(cluster, "ALONE_TURNS", 3)

    def run(main: Callable[[list[str]], None], *options: str, prints: tuple[str, ...] = ()) -> Any:
        main([*options, "--results", str(tmp_path / "results")])
        (file,) = (tmp_path / "results").glob("*.json")
        printed = capsys.readouterr().out
        assert [text for text in (*prints, "Measured on", str(file)) if text not in printed] == []
        return {**json.loads(file.read_text("utf-8")), "printed": printed}

    return run


@pytest.mark.faults
def test_turns(run):
    small = ["--turns", "8", "--conversations", "2", "--each", "2", "--slow-turns", "2", "--latency", "0.1", *SOON]
    results = run(
        turns.main, *small, prints=("8 turns", "2 conversations", "a model of 100 ms", "SUMMARY_DEBOUNCE=0.1")
    )
    recap, alone = results["recap"], results["model_alone"]
    assert 0 < alone["overhead_ms"]["p50"] < recap["overhead_ms"]["p50"] <= recap["overhead_ms"]["p95"]
    assert 1 < recap["calls"] <= 2.5 and 0 < recap["prefix"]["median"] <= 1 and recap["at_once"]["failed"] == 0
    assert min(recap["cpu_ms"], recap["memory_mb"]["pss"], recap["prompt_tokens"]["8"]) > 0
    assert 100 <= recap["slow"]["first_text_ms"]["p50"] <= recap["slow"]["turn_ms"]["p95"]


def test_consolidation(run):
    results = run(consolidation.main, "--facts", "80", prints=("80 facts",))
    builtin, right, careless = results["models"].values()
    assert (results["facts"], results["duplicates"], results["near_misses"]) == (80, 24, 8)
    assert builtin["precision"] == right["precision"] == 1.0 and builtin["recall"] < right["recall"] <= 1
    assert careless["precision"] < 1 and careless["near_misses_merged"] == 0


@pytest.mark.slow
def test_recall(run, tmp_path):
    (tmp_path / "talks").mkdir()
    for name in ("one", "two"):
        shutil.copy(OURS, tmp_path / "talks" / f"{name}.json")
    results = run(recall.main, str(tmp_path / "talks"), "--leave-one-out", prints=(*recall.COMPARED, "left out"))
    default, tuned = results["rankings"]["default"], results["leave_one_out"]
    assert 100 >= default["recall@10"] > results["rankings"]["BM25"]["recall@10"] > 50 and set(tuned["chosen"])
    assert results["first person"]["default"]["recall@10"] > 50
    assert tuned["defaults"]["recall@10"] == pytest.approx(default["recall@10"], abs=0.01)


@pytest.mark.faults
def test_store(run):
    run(store.main, "--items", "200", "600", "--calls", "5", prints=("SqliteStore, 600",))


@pytest.mark.faults
def test_cluster_goes_on_where_a_filling_stopped(run):
    with TemporaryDirectory(prefix="recap-postgres-") as folder:  # the server's user must reach it
        small = ["--clients", "3", "--turns", "2", "--owners", "4", "--data", f"{folder}/data", *SOON]
        prints = "PostgreSQL, 2", "SQLite, 60", "`search_messages` | ix_search_messages_terms"
        results = run(cluster.main, "--nodes", "2", "--messages", "40", "60", *small, prints=prints)
        with cluster.PostgreSQL(Path(folder) / "data") as postgres:
            stored = sum(postgres.messages_of_people().values())
    assert all(figures["failed"] == 0 < figures["per_second"] for figures in results["turns"]["columns"].values())
    *on_sqlite, first, second = results["filled"].values()
    assert stored == second["messages"] == sum(person.messages for person in cluster.spread(4, 60))
    assert first["filled"]["each"]["wal_bytes"] > 0 and second["filled"] == {}, "most of it was there already"
    assert all(min(figures["search_ms"]["p50"], figures["index_bytes"]) > 0 for figures in on_sqlite)
    derived = scale.needs_table(scale.measured_in(results["printed"]), scale.Assumed())
    assert derived in results["printed"], "the page derives from what is printed"


def test_meaning_and_references(run, tmp_path, monkeypatch):
    monkeypatch.setattr(meaning, "REQUESTS", 3)
    asked = ("How do magnets work?", "Name a river in Asia.", "Is glass a liquid?")
    dialogues = [json.dumps({"chosen": f"\n\nHuman: {text}\n\nAssistant: Hm.\n\nHuman: Well?"}) for text in asked]
    (tmp_path / "dialogues.jsonl.gz").write_bytes(gzip.compress("\n".join(dialogues).encode()))
    corpus = {"messages": [f"Remark {number}." for number in range(11)], "replies": ["I see."], "sessions_of": 5}
    sets = {"corpus": corpus, "references": ["Where did we leave off?", "Good morning!"]}
    sets |= {"short": [{"q": "remark 3", "a": ["Remark 3."]}], "general": ["Who wrote Faust?"]}
    for name, content in sets.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    talk = json.loads(Path(OURS).read_text("utf-8"))
    (tmp_path / "talk.json").write_text(json.dumps(talk | {"messages": talk["messages"][:20], "questions": []}))
    more = ["--conversations", str(tmp_path / "talk.json"), "--requests", str(tmp_path / "dialogues.jsonl.gz")]
    figures = run(meaning.main, str(tmp_path), *more, prints=("The default settings", "general"))["sets"]
    assert (figures["requests"]["of"], figures["requests"]["junk"]) == (6, 0)
    assert figures["short"]["in 10"] == 1 and figures["general"]["junk"] == 0
    assert (figures["references"]["of"], figures["references"]["right"]) == (2, 1)
    assert figures["types"] == {"of": 30, "right": 1}
