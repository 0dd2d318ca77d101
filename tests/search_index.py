"""What the tests of the search index share: messages, the caller's side of a search, and what it finds."""

import random
from datetime import UTC, datetime, timedelta

from search_index import NO_INDEX, IndexLost, Query, SearchableText, UnindexedMessages

T0 = datetime(2026, 5, 1, tzinfo=UTC)
WORDS = "apple river stone cloud tiger violin harbor lantern pepper window silver garden".split()  # noqa: SIM905


def message(message_id, content, session_id=1, role="user", created_at=None, name=None):
    return SearchableText(
        message_id, session_id, role, created_at or T0 + timedelta(seconds=message_id % 100_000), content, name
    )


class Rows:
    """The caller's side of the bargain: rows, and which generation was reported to hold each."""

    def __init__(self, *documents):
        self.documents = {document.message_id: document for document in documents}
        self.held_by = {}
        self.asked = []

    def waiting(self, generation):
        self.asked.append(generation)
        return [d for d in self.documents.values() if self.held_by.get(d.message_id) != generation]

    def index(self, index, owner="ana", ids=None):
        documents = [self.documents[i] for i in (self.documents if ids is None else ids)]
        generation = index.add(owner, documents)
        self.held_by.update({document.message_id: generation for document in documents})
        return generation


def search(index, rows, query, owner="ana"):
    """A search as `memory.recall` does it."""
    query, generation = index.prepare(query), index.generation(owner)
    try:
        return index.search(owner, query, generation, unindexed(rows.waiting(generation)))
    except IndexLost:
        return index.search(owner, query, NO_INDEX, unindexed(rows.waiting(NO_INDEX)))


def unindexed(texts):
    by_id = {text.message_id: text for text in texts}
    return UnindexedMessages(list(by_id), (), lambda ids: [by_id[message_id] for message_id in ids])


def found(index, rows, text, owner="ana", **narrowed):
    return [hit.message_id for hit in search(index, rows, Query(text, **narrowed), owner)]


def folders(root):
    """The directories of all owners' indexes."""
    return list(root.glob("[!.]*"))


def seeded(count, seed=1):
    """Messages of a small vocabulary with a heavy head, as speech has."""
    pick = random.Random(seed)
    weights = [1 / rank for rank in range(1, len(WORDS) + 1)]
    return [
        message(i, " ".join(pick.choices(WORDS, weights, k=pick.randint(1, 60))), session_id=pick.randint(1, 3))
        for i in range(1, count + 1)
    ]
