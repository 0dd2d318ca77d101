"""Vectors: how they are kept, what becomes of the index when they change or can't be had, and where they come from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from app import services_of
from benchmarks.serving import ROOT
from search_index import DIMENSIONS, WordLlamaEmbedder
from search_index.vectors import NO_VECTOR, lengths_of, packed
from search_index.vectors import cosines as cosines_of
from tests.conftest import MakeApp
from tests.model_server import HangUp, Json, ModelServer, Status
from tests.resources import append, find, good, said
from tests.talking import at, jobs


class Given:
    """An embedder that answers with these very rows."""

    name, instant = "given", True

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows = rows

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.rows[: len(texts)].astype(np.float32)


def cosines(vectors: Sequence[bytes], query: bytes) -> NDArray[np.float64]:
    rows = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, DIMENSIONS)
    return cosines_of(rows, query, lengths_of(rows))


# How they are kept


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1.0, 1e6]))
def test_packing_keeps_cosines(seed: int, scale: float) -> None:
    vectors = np.random.default_rng(seed).normal(size=(8, DIMENSIONS)) * scale
    vectors += vectors.mean(axis=0)  # some likeness
    kept = packed(Given(vectors), ["a text of words"] * len(vectors))
    assert {len(vector) for vector in kept} == {DIMENSIONS}
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(cosines(kept, kept[0]) - units @ units[0]).max() < 0.02


@pytest.mark.parametrize("text", ["", "ok", "yes please", "👍 👍 👍", "...", "\x00"])
def test_a_text_too_short_to_mean_anything_has_none(text: str) -> None:
    short, long = packed(WordLlamaEmbedder(), [text, "we moved to Tallinn"])
    assert short == NO_VECTOR != long
    assert cosines([short, long], long)[0] == 0.0
    assert cosines([short, long], short).tolist() == [0.0, 0.0]


THREE_THOUSAND_TEXTS = """
import re
from pathlib import Path
from search_index.vectors import WordLlamaEmbedder, packed
def megabytes():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
embedder = WordLlamaEmbedder()
packed(embedder, ["a text of words"])
before = megabytes()
for number in range(3_000):
    packed(embedder, [f"note {number} of a boat that came to the harbour at noon" * 2])
print(megabytes() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what a process takes up")
def test_no_text_stays_with_what_made_its_vector() -> None:
    """The tokenizer would keep 10,000 texts for each thread: 10 MB of these."""
    program = [sys.executable, "-c", THREE_THOUSAND_TEXTS]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert float(done.stdout) < 3.0


# From an OpenAI-compatible server


def search(app: Flask, q: str) -> list[dict[str, Any]]:
    return find(app.test_client(), q, user_id="ada")


MOVED = [said("We moved to Tallinn in the spring."), said("The kettle is broken again, I fear.")]


FAILURES = [  # for two texts, and what is told of it
    (Json({"data": [{"index": index, "embedding": [0.5] * 1536} for index in (0, 1)]}), "(2, 1536)"),
    (Json({"data": [{"index": 0, "embedding": [0.5] * DIMENSIONS}]}), f"(1, {DIMENSIONS})"),
    (Json({"data": None}), "no embeddings"),
    (Status(200, "{"), "no embeddings"),
    (Status(401), "OPENAI_API_KEY"),
    (Status(404), "OPENAI_EMBEDDING_MODEL"),
    (Status(429), ""),
    (Status(500), "500"),
    (HangUp(), "127.0.0.1"),
]


def test_openais_vectors_are_asked_for_and_kept(make_app: MakeApp, model_server: ModelServer) -> None:
    app = make_app(**at(model_server, embeddings="openai", embedding_model="small"))
    append(app.test_client(), "s", MOVED, user_id="ada")
    services_of(app).outbox.run_due(["index"])
    (hit, *_) = search(app, "a broken kettle again")
    assert hit["content"] == MOVED[1]["content"]
    assert hit["why"]["meaning"] > 0  # the server sends the last text's vector first
    append(app.test_client(), "s", [said("Fine.")], user_id="ada")
    assert search(app, "a broken  kettle again")[0]["content"] == hit["content"]  # the vector is known by now
    asked = [request for request in model_server.requests if request.model == "embeddings"]
    shape = {"model": "small", "dimensions": DIMENSIONS, "encoding_format": "float"}
    inputs = [one["content"] for one in MOVED], ["a broken kettle again"]
    assert [request.body for request in asked] == [{**shape, "input": texts} for texts in inputs]
    assert {(one.path, one.headers["authorization"]) for one in asked} == {("/v1/embeddings", "Bearer test-key")}
    (kept,) = services_of(app).indexing.verify()
    assert (kept.indexed, kept.waiting, kept.missing) == (2, 1, 0)


def test_an_embedding_server_that_fails_delays_the_index_and_loses_nothing(
    make_app: MakeApp, model_server: ModelServer, caplog: Any
) -> None:
    app = make_app(**at(model_server, embeddings="openai"))
    client, outbox = app.test_client(), services_of(app).outbox
    append(client, "s", MOVED, user_id="ada")
    for reply, complaint in FAILURES:
        model_server.embeddings.default = lambda _, reply=reply: reply
        outbox.run_due(["index"])
        (job,) = jobs(client, "index")
        assert complaint in job["error"] and job["error"].endswith(".")
        good(client.post(f"/api/jobs/{job['id']}/retry"))
    assert [hit["content"] for hit in search(app, "kettle")] == [MOVED[1]["content"]]
    assert "test-key" not in caplog.text
    model_server.reset()
    again = make_app(**at(model_server, embeddings="openai"))
    services_of(again).outbox.run_due(["index"])
    (one,) = services_of(again).indexing.verify()
    assert (one.indexed, one.waiting) == (2, 0)
