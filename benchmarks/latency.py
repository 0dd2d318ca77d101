"""The latency of a search with many messages of one owner, and with many other owners."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.command import progress
from benchmarks.rankings import ENGLISH, Corpus, feed, search
from benchmarks.results import percentiles
from search_index import Document, Recipe, SearchIndex, WordLlamaEmbedder

SCALES = (1_000, 10_000)
OTHERS = 200
OTHERS_MESSAGES = 200  # of each other owner
SEARCHES = 300
LIMIT = 10


def latencies(corpora: Sequence[Corpus], sizes: Sequence[int], recipe: Recipe) -> list[dict[str, Any]]:
    """Latencies for each number of messages in `sizes`, without and with OTHERS other owners."""
    queries = [corpus.query(question, LIMIT) for corpus in corpora for question in corpus.conversation.questions]
    queries = random.Random(1).sample(queries, min(SEARCHES, len(queries)))  # nosec B311 # the same at each run
    measured = []
    total = sum(sizes) + OTHERS * OTHERS_MESSAGES + 2 * len(sizes) * len(queries)
    with (
        tempfile.TemporaryDirectory(prefix="recap-bench-") as folder,
        progress(total, "step", "latency") as bar,
    ):
        for others in (0, OTHERS):
            # A new one each time, which has not seen the queries.
            index = SearchIndex(Path(folder), recipe=recipe, embedder=WordLlamaEmbedder(), analysis=ENGLISH)
            for number in range(others):
                feed(index, f"other {number}", _repeated(corpora, OTHERS_MESSAGES, seed=number))
                bar.update(OTHERS_MESSAGES)
            for size in sizes:
                if not others:
                    feed(index, f"{size} messages", _repeated(corpora, size))
                    bar.update(size)
                took = []
                for query in queries:
                    begun = perf_counter()
                    search(index, f"{size} messages", query)
                    took.append((perf_counter() - begun) * 1000)
                    bar.update()
                measured.append({"messages": size, "others": others, **percentiles(took)})
    return measured


def _repeated(corpora: Sequence[Corpus], count: int, seed: int = 0) -> list[Document]:
    """`count` messages: the conversations are repeated in new sessions, with the words of each message shuffled."""
    shuffled = random.Random(seed)  # nosec B311 # the same at each run
    said = [(number, document) for number, corpus in enumerate(corpora) for document in corpus.documents]
    sessions: dict[tuple[int, int, int], int] = {}

    def repeat() -> Any:
        for around in range(count):  # more rounds than needed; `islice` stops them
            for number, document in said:
                words = (document.content or "").split()
                shuffled.shuffle(words)
                session = sessions.setdefault((around, number, document.session_id), len(sessions) + 1)
                yield document._replace(session_id=session, content=" ".join(words))

    return [document._replace(message_id=at) for at, document in enumerate(islice(repeat(), count), 1)]
