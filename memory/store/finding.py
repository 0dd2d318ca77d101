"""Items by words and meaning: their texts, ranked as messages are, without an index of their own.

Of what a search may look at, the CANDIDATES that were changed last are ranked, each by the first TEXT_CHARS of the
texts at its paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from models.store import Item
from search_index import NO_INDEX, Document, Prepared, SearchIndex

CANDIDATES = 1_000
TEXT_CHARS = 4_000
_STEP = re.compile(r"[^.\[\]]+")  # of a path such as `notes[*].text`


def found(index: SearchIndex, prepared: Prepared, items: Sequence[Item], paths: Sequence[str]) -> list[Item]:
    """The best of these items, best first, each with its score; without `paths` by all of their texts.

    Items without such a text come last, without a score.
    """
    by_id = {item.id: item for item in items}
    steps = [_STEP.findall(path) for path in paths] or [[]]
    texts = {item.id: " ".join(text for path in steps for text in _texts(item.value, path)) for item in items}
    documents = [
        Document(-id, -id, "", by_id[id].updated_at, text[:TEXT_CHARS])  # below zero, where no message's id is
        for id, text in texts.items()
        if text
    ]
    hits = index.search("", prepared, NO_INDEX, documents)
    scored = [replace(by_id[-hit.message_id], score=hit.score) for hit in hits]
    return [*scored, *(by_id[id] for id, text in texts.items() if not text)][: prepared.query.limit]


def _texts(value: Any, path: Sequence[str]) -> Iterator[str]:
    """All texts where a path leads to; none where the value is made otherwise."""
    if isinstance(value, str) and not path:
        yield value
    elif isinstance(value, dict | list):
        for step, one in value.items() if isinstance(value, dict) else enumerate(value):
            if not path or path[0] in ("*", str(step)):
                yield from _texts(one, path[1:])
