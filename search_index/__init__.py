"""Search over messages by words, meaning and context, one index an owner.

Guarantee: the index is derived data.  It may be missing, behind, damaged or deleted at any moment, and a search
still finds every message: whatever the index does not hold is handed in by the caller as `pending` and searched
with the same analysis.  An index that turns out damaged is put away and a new, empty generation takes its place.
"""

from search_index.index import Hit, Query, SearchIndex
from search_index.pending import Document, Told
from search_index.ranking import Recipe
from search_index.vectors import DIMENSIONS, Embedder, EmbeddingUnavailable, WordLlamaEmbedder
from search_index.whoosh_index import NO_INDEX, IndexBusy

__all__ = [
    "DIMENSIONS",
    "NO_INDEX",
    "Document",
    "Embedder",
    "EmbeddingUnavailable",
    "Hit",
    "IndexBusy",
    "Query",
    "Recipe",
    "SearchIndex",
    "Told",
    "WordLlamaEmbedder",
]
