"""Embeddings of an OpenAI-compatible server, for EMBEDDINGS=openai."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.errors import ModelError
from memory.llm.client import Endpoint
from search_index import DIMENSIONS, EmbeddingUnavailable

EMBEDDING_SECONDS = 8.0  # a search waits for it


class OpenAIEmbedder:
    """An `Embedder`: the embedding model called `name` at `endpoint`.  One request embeds many texts."""

    instant = False

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        self.name = f"openai:{name}:{DIMENSIONS}"
        self._endpoint = endpoint
        self._model = name
        self._failures = endpoint.failures(name, "OPENAI_EMBEDDING_MODEL", EMBEDDING_SECONDS)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of DIMENSIONS numbers for each text.  Raises EmbeddingUnavailable, also for other shapes."""
        body = {"model": self._model, "input": list(texts), "dimensions": DIMENSIONS, "encoding_format": "float"}
        try:
            answer = json.loads(self._endpoint.fetch("/embeddings", body, self._failures))
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], np.float32)
        except ModelError as error:
            raise EmbeddingUnavailable(error.kept) from None
        except (ValueError, LookupError, TypeError) as error:
            raise EmbeddingUnavailable(self._failures.bad_answer(f"no embeddings ({error})").kept) from None
        if vectors.shape != (len(texts), DIMENSIONS):
            raise EmbeddingUnavailable(
                f"The model {self._model} made vectors of shape {vectors.shape} for {len(texts)} texts, "
                f"not {DIMENSIONS} numbers each: it can't shorten them. Choose another with OPENAI_EMBEDDING_MODEL."
            )
        return vectors
