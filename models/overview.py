"""Values of overviews, which are documents of the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from models.store import MODEL, ItemVersion


@dataclass(frozen=True)
class Sentence:
    """Sentence of an overview.

    facts: their ids. summaries: their sessions' ids, each with a version. author: `model` or `person`.
    """

    text: str
    facts: tuple[int, ...] = ()
    summaries: tuple[tuple[str, int], ...] = ()
    author: str = MODEL

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        summaries = tuple((session_id, version) for session_id, version in value["summaries"])
        return cls(value["text"], tuple(value["facts"]), summaries, value["author"])

    @property
    def value(self) -> dict[str, Any]:
        return {**vars(self), "facts": list(self.facts), "summaries": list(map(list, self.summaries))}

    @property
    def sources(self) -> frozenset[Any]:
        return frozenset([*self.facts, *self.summaries])


@dataclass(frozen=True)
class Overview:
    """Version of an overview; version 0 is the empty one that nobody has written.

    removed: sentences that the person took out. read: a digest of what the model was shown.
    author: `model`, `person`, `rollback`, `correction` or `erasure`.
    """

    version: int = 0
    sentences: tuple[Sentence, ...] = ()
    removed: tuple[Sentence, ...] = ()
    read: str = ""
    author: str | None = None
    created_at: datetime | None = None

    @classmethod
    def of(cls, stored: ItemVersion) -> Self:
        sentences, removed = (tuple(map(Sentence.of, stored.value[name])) for name in ("sentences", "removed"))
        return cls(stored.version, sentences, removed, stored.value["read"], stored.author, stored.created_at)

    @property
    def value(self) -> dict[str, Any]:
        """Return the value that the store keeps."""
        sentences, removed = ([sentence.value for sentence in part] for part in (self.sentences, self.removed))
        return {"sentences": sentences, "removed": removed, "read": self.read}
