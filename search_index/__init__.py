"""Search over messages by words, meaning and context, one index an owner.

Read in this order: `index` (SearchIndex, the only class that callers need), `query`, `ranking`, `arrays`, and one store
of `index_storage`.

Invariants:
- The index is derived data.  It may be missing, behind, damaged or deleted at any moment, and a search still finds
  every message, or of more than RANKED_WHOLE the newest: the caller passes in the messages that it lacks
  (test_search_index, test_search_waiting).
- A damaged index is deleted, and a new, empty generation replaces it (test_search_index).
"""

from search_index.arrays import SearchableText
from search_index.calibration import Nearness
from search_index.embeddings import Embedder, EmbeddingUnavailable, MiniLMEmbedder, WordLlamaEmbedder
from search_index.index import Hit, SearchIndex
from search_index.index_storage import NO_INDEX, IndexBusy, IndexLost, UnindexedMessages
from search_index.query import PreparedQuery, Query
from search_index.ranking import RANKING_PROFILES, SIGNS, RankingProfile
