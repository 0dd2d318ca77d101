"""Search over messages by words, meaning and context, one index an owner.

Guarantee: the index is derived data.  It may be missing, behind, damaged or deleted at any moment, and a search still
finds every message: the caller passes in what the index does not hold, and it is searched with the same analysis.
A damaged index is deleted and a new, empty generation takes its place.
"""

from search_index.arrays import Document
from search_index.calibration import Nearness
from search_index.embeddings import Embedder, EmbeddingUnavailable, WordLlamaEmbedder
from search_index.index import Hit, SearchIndex
from search_index.index_storage import NO_INDEX, IndexBusy, IndexLost, UnindexedMessages
from search_index.minilm import MiniLMEmbedder
from search_index.query import PreparedQuery, Query
from search_index.ranking import RANKING_PROFILES, RankingProfile

__all__ = [
    "NO_INDEX",
    "RANKING_PROFILES",
    "Document",
    "Embedder",
    "EmbeddingUnavailable",
    "Hit",
    "IndexBusy",
    "IndexLost",
    "MiniLMEmbedder",
    "Nearness",
    "PreparedQuery",
    "Query",
    "RankingProfile",
    "SearchIndex",
    "UnindexedMessages",
    "WordLlamaEmbedder",
]
