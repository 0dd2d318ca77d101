"""What a statement ties together, by the rows of the languages' tables (`links`)."""

from __future__ import annotations

from collections.abc import Iterator

from memory.domain import Link
from memory.llm.builtin.language import LINKS, compiled
from memory.llm.builtin.reading import checked

_ROWS = [(*ends, *kinds.split(), compiled(source)) for *ends, kinds, source in LINKS]


def links(text: str) -> Iterator[Link]:
    """The links that the text of a statement makes."""
    for subject, relation, object, subject_kind, object_kind, source in _ROWS:
        match = source.fullmatch(text)
        parts = {name: checked(name, part) for name, part in match.groupdict().items()} if match else {}
        if parts and all(parts.values()):
            parts["k"] = parts.get("k", "").lower()
            whose, what, whom = (text.format(**parts) for text in (subject, relation, object))
            yield Link(whose, what, whom, subject_kind, object_kind)
