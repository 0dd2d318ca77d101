"""Embeddings of an OpenAI-compatible server."""

import json
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, ModelError
from memory.llm import CancelToken
from memory.llm.openai import ProviderClient
from memory.ops.metrics import Metrics
from search_index import EmbeddingUnavailable

INDEX_SECONDS = 30.0
PAUSE_SECONDS = 10.0  # after a failure, in which no search waits for the server
TEXTS_MAX = 32  # in one request: some servers take no more
SHORT_CHARS = 500  # of a text that the server refused as a whole
_OF_THE_TEXT = (CONTEXT_EXCEEDED, CONTENT_REFUSED, "model_rejected_request")  # and of no other text


class OpenAIEmbedder:
    """`Embedder`: the embedding model called `model` at `provider`.  Threads may share it.

    The server decides the size of the vectors: some cannot shorten them, and some refuse the parameter.
    """

    instant = False

    def __init__(self, provider: ProviderClient, model: str, metrics: Metrics) -> None:
        self.name = f"openai:{model}"
        self.dimensions = 0
        self._provider = provider
        self._model = model
        self._metrics = metrics
        self._failed: dict[str, str] = {}  # why the last request of a use failed
        self._paused_until = 0.0  # of time.monotonic()

    @property
    def failure(self) -> str | None:
        """Why the server gives no embeddings now, and what that means; None: it gives some, or was not asked yet."""
        why = next(iter(self._failed.values()), None)
        return why and f"{why} Searches compare words alone, and new messages are indexed when it answers again."

    def embed(self, texts: Sequence[str], within: float | None = None) -> NDArray[np.float32]:
        """Return a row for each text: zeros for one that the server refuses.  See Embedder.

        After a failure no search asks for PAUSE_SECONDS.
        """
        use = "index" if within is None else "search"
        if within is not None and time.monotonic() < self._paused_until:
            self._metrics.count_embedding(use, "skipped")
            raise EmbeddingUnavailable("The embedding server failed a moment ago.")
        try:
            parts = [self._rows(texts[at : at + TEXTS_MAX], within) for at in range(0, len(texts), TEXTS_MAX)]
            vectors = np.concatenate(parts)
        except (ModelError, ValueError) as error:  # pieces of different sizes
            why = self._reason(error, INDEX_SECONDS if within is None else within)
            self._failed[use] = why
            self._paused_until = time.monotonic() + PAUSE_SECONDS
            self._metrics.count_embedding(use, "failed")
            raise EmbeddingUnavailable(why) from None
        self.dimensions = vectors.shape[1]
        self._paused_until = 0.0
        self._failed.pop(use, None)
        self._metrics.count_embedding(use, "answered")
        return vectors

    def _reason(self, error: ModelError | ValueError, seconds: float) -> str:
        if not isinstance(error, ModelError):
            return f"The embedding model {self._model} changed the size of its vectors between two requests."
        if error.code == "model_timeout":
            return f"The embedding model {self._model} did not answer within {seconds:g} seconds."
        return error.kept

    def _rows(self, texts: Sequence[str], within: float | None) -> NDArray[np.float32]:
        """Embed the texts with one request; one by one, and shortened, if the server refuses them.  Raises ModelError.

        A text that is refused even so must not keep all others out of the index.
        """
        try:
            return self._request(texts, within)
        except ModelError as error:
            if error.code not in _OF_THE_TEXT or within is not None:
                raise
            if len(texts) > 1 or len(texts[0]) > SHORT_CHARS:
                return np.concatenate([self._rows([text[:SHORT_CHARS]], within) for text in texts])
            if not self.dimensions:
                raise
            return np.zeros((1, self.dimensions), np.float32)

    def _request(self, texts: Sequence[str], within: float | None) -> NDArray[np.float32]:
        seconds = INDEX_SECONDS if within is None else within
        errors = self._provider.errors(self._model, "OPENAI_EMBEDDING_MODEL", seconds)
        body = {"model": self._model, "input": list(texts)}
        # Read in a thread of its own, so that neither a name server nor a slow connection holds a search.
        deadline = time.monotonic() + seconds
        chunks = self._provider.chunks_ahead("/embeddings", body, errors, deadline, CancelToken(), seconds)
        answer = b"".join(chunks)
        try:
            rows = sorted(json.loads(answer)["data"], key=lambda row: row.get("index") or 0)
            vectors = np.array([row["embedding"] for row in rows], np.float32)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise errors.bad_answer(f"no embeddings ({error})") from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise errors.bad_answer(f"vectors of shape {vectors.shape} for {len(texts)} texts")
        return vectors
