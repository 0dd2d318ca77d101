"""Vectors: how they are kept, what becomes of the index when they change or can't be had, and where they come from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
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
from config import Settings
from memory.llm.client import Endpoint
from memory.llm.embeddings import OpenAIEmbedder
from search_index import DIMENSIONS, EmbeddingUnavailable, WordLlamaEmbedder
from search_index.vectors import NO_VECTOR, PACKED_BYTES, lengths_of, packed
from search_index.vectors import cosines as cosines_of
from tests.model_replies import Json
from tests.model_server import HangUp, ModelServer, Status
from tests.openai_calls import KEY
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
    rows = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, PACKED_BYTES)
    return cosines_of(rows, query, lengths_of(rows))


# How they are kept


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1.0, 1e6]))
def test_packing_keeps_cosines(seed: int, scale: float) -> None:
    vectors = np.random.default_rng(seed).normal(size=(8, DIMENSIONS)) * scale
    vectors += vectors.mean(axis=0)  # some likeness
    kept = packed(Given(vectors), ["a text of words"] * len(vectors))
    assert {len(vector) for vector in kept} == {PACKED_BYTES}
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


@pytest.fixture(scope="module")
def shared() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(shared: ModelServer) -> ModelServer:
    shared.reset()
    return shared


def embed(url: str, *texts: str) -> NDArray[np.float32]:
    """The texts' vectors from the server at `url`."""
    with closing(Endpoint(Settings(openai_base_url=url, openai_api_key=KEY))) as endpoint:
        return OpenAIEmbedder(endpoint, "text-embedding-3-small").embed(texts)


def test_many_texts_are_one_call_and_keep_their_order(server: ModelServer) -> None:
    vectors = embed(server.url, "kettle kettle", "tea", "kettle")
    assert vectors.shape == (3, DIMENSIONS) and vectors.dtype == np.float32
    assert vectors.max(axis=1).tolist() == [2.0, 1.0, 1.0]  # the server sends the last first
    assert (vectors[0].argmax() == vectors[2].argmax()) and (vectors[0].argmax() != vectors[1].argmax())
    (request,) = server.requests
    assert (request.model, request.path) == ("embeddings", "/v1/embeddings")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "text-embedding-3-small",
        "input": ["kettle kettle", "tea", "kettle"],
        "dimensions": DIMENSIONS,
        "encoding_format": "float",
    }


def row(size: int = DIMENSIONS, index: Any = 0, value: Any = 0.5) -> dict[str, Any]:
    return {"index": index, "embedding": [value] * size}


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (Json({"data": [row(1536), row(1536, 1)]}), "(2, 1536)"),
        (Json({"data": [row()]}), "(1, 256)"),
        (Json({"data": None}), "no embeddings"),
        (Status(200, "{"), "no embeddings"),
        (Status(401), "OPENAI_API_KEY"),
        (Status(404), "OPENAI_EMBEDDING_MODEL"),
        (Status(429), ""),
        (HangUp(), "127.0.0.1"),
    ],
)
def test_what_is_no_answer_is_said_to_be_none(server: ModelServer, reply: Any, complaint: str) -> None:
    server.embeddings.queue(reply)
    with pytest.raises(EmbeddingUnavailable) as failed:
        embed(server.url, "one text", "another text")
    assert complaint in str(failed.value)
    assert str(failed.value).endswith(".") and KEY not in str(failed.value)


# As settings


def search(app: Flask, q: str) -> list[dict[str, Any]]:
    return find(app.test_client(), q, user_id="ada")


MOVED = [said("We moved to Tallinn in the spring."), said("The kettle is broken again, I fear.")]


def test_openais_vectors_are_asked_for_and_kept(make_app: Any, server: ModelServer) -> None:
    app = make_app(**at(server, embeddings="openai", embedding_model="small"))
    append(app.test_client(), "s", MOVED, user_id="ada")
    services_of(app).outbox.run_due(["index"])
    (hit, *_) = search(app, "a broken kettle again")
    assert hit["content"] == MOVED[1]["content"]
    assert hit["why"]["meaning"] > 0
    append(app.test_client(), "s", [said("Fine.")], user_id="ada")
    assert search(app, "a broken  kettle again")[0]["content"] == hit["content"]  # the vector is known by now
    asked = [request.body for request in server.requests if request.model == "embeddings"]
    assert [body["input"] for body in asked] == [[one["content"] for one in MOVED], ["a broken kettle again"]]
    assert {body["model"] for body in asked} == {"small"}
    (kept,) = services_of(app).indexing.verify()
    assert (kept.indexed, kept.waiting, kept.missing) == (2, 1, 0)


def test_an_embedding_server_that_fails_delays_the_index_and_loses_nothing(
    make_app: Any, server: ModelServer, caplog: Any
) -> None:
    app = make_app(**at(server, embeddings="openai"))
    server.embeddings.default = lambda _: Status(500)
    append(app.test_client(), "s", MOVED, user_id="ada")
    services_of(app).outbox.run_due(["index"])
    assert [hit["content"] for hit in search(app, "kettle")] == [MOVED[1]["content"]]
    (job,) = jobs(app.test_client(), "index")
    assert "500" in job["error"]
    assert KEY not in caplog.text
    server.reset()
    again = make_app(**at(server, embeddings="openai"))
    good(again.test_client().post(f"/api/jobs/{job['id']}/retry"))
    services_of(again).outbox.run_due(["index"])
    (one,) = services_of(again).indexing.verify()
    assert (one.indexed, one.waiting) == (2, 0)
