"""Items by words and meaning: their texts, ranked as messages are, without an index of their own.

Of what a search may look at, the CANDIDATES that were changed last are ranked, each by the first TEXT_CHARS of the
texts in its fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from memory.errors import InvalidRequest
from memory.store.values import Item
from search_index import NO_INDEX, Document, Prepared, SearchIndex

CANDIDATES = 1_000
TEXT_CHARS = 4_000
_STEPS = re.compile(r"([^.\[\]]+)((?:\[(?:\*|\d{1,9})\])*)(?:\.(?=.)|$)")
_EACH = "*"

Path = tuple[str | int, ...]


def path_of(field: str) -> Path:
    """The keys and places that `a[*].b[0]` goes through.  Raises InvalidRequest."""
    path: list[str | int] = []
    at = 0
    while at < len(field) and (step := _STEPS.match(field, at)):
        places = re.findall(r"\*|\d+", step[2])
        path += [step[1], *(-1 if place == _EACH else int(place) for place in places)]
        at = step.end()
    if at < len(field) or not field:
        raise InvalidRequest(
            "invalid_path",
            f"The field {field[:100]!r} is not a path such as `title` or `notes[*].text`. Nothing was searched.",
            param="fields",
        )
    return tuple(path)


def found(index: SearchIndex, prepared: Prepared, items: Sequence[Item], paths: Sequence[Path]) -> list[Item]:
    """The best of these items, best first, each with its score."""
    by_id = {item.id: item for item in items}
    documents = [
        Document(-item.id, -item.id, "", item.updated_at, text)  # below zero, where no message's id is
        for item in items
        if (text := " ".join(_texts(item.value, paths))[:TEXT_CHARS])
    ]
    hits = index.search("", prepared, NO_INDEX, documents)
    return [replace(by_id[-hit.message_id], score=hit.score) for hit in hits]


def _texts(value: Any, paths: Sequence[Path]) -> Iterator[str]:
    for path in paths or [()]:
        for there in _at(value, path):
            yield from _all_texts(there)


def _at(value: Any, path: Path) -> Iterator[Any]:
    """What a path leads to; nothing where the value is made otherwise."""
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        inner = [value[step]] if isinstance(value, dict) and step in value else []
    elif not isinstance(value, list):
        inner = []
    else:
        inner = value if step < 0 else value[step : step + 1]
    for one in inner:
        yield from _at(one, rest)


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _all_texts(one)
