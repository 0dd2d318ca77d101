"""What a text means, as a vector: near each other when two texts say similar things in other words.

Vectors stand beside the words in the index, so they come and go with them: an index made with another model counts
as no index at all, and is made again in the background while its messages are searched by what is known of them.
They are kept as 256 signed bytes a message; the cosine loses less than 0.01 by that and the disk two thirds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from search_index.caches import cached

DIMENSIONS = 256
PACKED_BYTES = DIMENSIONS
FEWEST_WORDS = 3
"""A text of fewer words ("ok", "yes please") means too little to be near anything, and is near everything."""

_BLOCK = 2048  # rows that are multiplied at once, of 1 KB each
_CHARACTERS = 2_000  # of a text that are read; a mean over more says less
_LONGEST_WORD = 64  # of which the tokens are remembered
_ENOUGH_WORDS = re.compile(rf"\b\w++(?:\W++\w++){{{FEWEST_WORDS - 1}}}")
_SPACE = "\u2581"  # as the tokenizer writes it


class EmbeddingUnavailable(Exception):
    """The service that makes the vectors can't be had now.  Searches go on by words; indexing waits for it."""


class Embedder(Protocol):
    """Makes vectors.  `name` tells models apart; `instant` that texts not indexed yet can be embedded in a search."""

    name: str
    instant: bool

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of DIMENSIONS numbers for each text.  Raises EmbeddingUnavailable."""
        ...


class WordLlamaEmbedder:
    """Static word vectors from the `wordllama` wheel: no network, 0.1 ms a text, some 60 MB in memory once used."""

    name = "wordllama-l2_supercat_256"
    instant = True

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The mean of each text's token vectors, as long as 1; zeros for a text without any.

        To the bit what `WordLlama.embed(norm=True)` makes, in a quarter of the time."""
        _, vectors = _wordllama()
        means = np.zeros((len(texts), DIMENSIONS), np.float32)
        for mean, text in zip(means, texts, strict=True):
            if tokens := _tokens(text):
                np.add.reduce(vectors.take(tokens, axis=0, mode="clip"), axis=0, out=mean)
                mean /= np.float32(len(tokens))
        lengths = np.sqrt(np.add.reduce(means * means, axis=1, keepdims=True))  # all that `norm` does with such rows
        lengths[lengths == 0] = 1
        means /= lengths
        return means


def _tokens(text: str) -> Sequence[int]:
    """The numbers of a text's tokens.  They are those of its words, one word after the other, since no token of this
    model's goes on after a space; but spaces in a row are tokens of their own, and so is its mark for a space."""
    words = text.split(" ")
    plain = "" not in words and _SPACE not in text and "<" not in text  # <s> and the like are more than their letters
    if not plain or max(map(len, words)) > _LONGEST_WORD:
        return _tokenized(text)
    tokens: list[int] = []
    for tokens_of_word in map(_tokens_of_word, words):
        tokens += tokens_of_word
    return tokens


def _tokenized(text: str) -> Sequence[int]:
    tokenizer, _ = _wordllama()
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


@cached(8192)
def _tokens_of_word(word: str) -> tuple[int, ...]:
    """The numbers of one word's tokens.  People repeat words, and the tokenizer takes longer for one than all else does
    for a text; of a plain word its model makes what it would, and is asked itself."""
    tokenizer, _ = _wordllama()
    return tuple([token.id for token in tokenizer.model.tokenize(_SPACE + word)])


@lru_cache(maxsize=1)
def _wordllama() -> tuple[Any, NDArray[np.float32]]:
    """The tokenizer, and a vector for each of its tokens."""
    import wordllama  # 0.2 s and most of a worker's memory: only where vectors are used

    # The plain load() looks for the model in the wrong folder and then on the network; the wheel has it.
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    model.tokenizer.no_padding()
    # Its own cache keeps 10,000 short texts for each thread, 2 to 8 kB each, and nothing empties it: ever more memory,
    # and words that were erased.
    model.tokenizer.model._resize_cache(0)
    return model.tokenizer, model.embedding


def packed(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """The texts' vectors as they are kept: PACKED_BYTES each, and b"" for a text too short to mean anything.

    A vector that is all zeros, or no numbers, as some servers make of odd texts, counts as none.
    """
    worth = [number for number, text in enumerate(texts) if _ENOUGH_WORDS.search(text[:200])]
    out = [b""] * len(texts)
    if worth:
        # Half a surrogate pair from a careless frontend has no bytes, and so no tokens.
        whole = [texts[number][:_CHARACTERS].encode("utf-8", "replace").decode() for number in worth]
        vectors = embedder.embed(whole)
        for number, row in zip(worth, vectors.astype(np.float64), strict=True):
            largest = np.abs(row).max()
            if 0 < largest < np.inf:
                out[number] = np.rint(127 * (row / largest)).astype(np.int8).tobytes()
    return out


def sizes_of(rows: NDArray[np.int8]) -> NDArray[np.float32]:
    """The length of each row."""
    return np.sqrt(_by_blocks(rows, lambda block: np.vecdot(block, block)))


def cosines(rows: NDArray[np.int8], query: bytes, sizes: NDArray[np.float32] | None = None) -> NDArray[np.float64]:
    """The cosine of each row with the packed `query`; 0 for rows, or a query, without a vector.

    `sizes` are the rows' lengths, if they are known.  Products of such small whole numbers are exact, however they are
    added up: a row's cosine does not depend on the rows around it.
    """
    if not query:
        return np.zeros(len(rows))
    vector = np.frombuffer(query, np.int8).astype(np.float32)
    # `@` would wake a thread for each core from some thousand rows on, which turn for longer than all of it takes.
    products = _by_blocks(rows, lambda block: np.vecdot(block, vector))
    sizes = (sizes_of(rows) if sizes is None else sizes) * np.sqrt(np.vecdot(vector, vector))
    return (products / np.where(sizes > 0, sizes, 1)).astype(float)


def _by_blocks(
    rows: NDArray[np.int8], work: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """What `work` makes of each row, as numbers four times as large that can be added up: so not of all at once."""
    made = np.empty(len(rows), np.float32)
    for at in range(0, len(rows), _BLOCK):
        made[at : at + _BLOCK] = work(rows[at : at + _BLOCK].astype(np.float32))
    return made
