"""Search over messages by words, meaning and context, one index an owner.

Guarantee: the index is derived data.  It may be missing, behind, damaged or deleted at any moment, and a search still
finds every message: the caller passes in what the index does not hold, and it is searched with the same analysis.
A damaged index is deleted and a new, empty generation takes its place.
"""

from search_index.arrays import Document
from search_index.index import Hit, SearchIndex
from search_index.likeness import Nearness
from search_index.minilm import MiniLMEmbedder
from search_index.query import Prepared, Query
from search_index.ranking import RECIPES, Recipe
from search_index.store import NO_INDEX, IndexBusy, IndexLost
from search_index.vectors import Embedder, EmbeddingUnavailable, WordLlamaEmbedder

__all__ = [
    "NO_INDEX",
    "RECIPES",
    "Document",
    "Embedder",
    "EmbeddingUnavailable",
    "Hit",
    "IndexBusy",
    "IndexLost",
    "MiniLMEmbedder",
    "Nearness",
    "Prepared",
    "Query",
    "Recipe",
    "SearchIndex",
    "WordLlamaEmbedder",
]
