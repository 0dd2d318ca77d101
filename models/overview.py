"""Values of overviews, which are documents of the store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from models.store import MODEL


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
    """Sentences of an overview.

    removed: sentences that the person took out. read: a digest of what the model was shown.
    """

    sentences: tuple[Sentence, ...] = ()
    removed: tuple[Sentence, ...] = ()
    read: str = ""

    @classmethod
    def of(cls, value: Mapping[str, Any] | None) -> Self:
        """Return an overview as it was stored; an empty one where nothing was."""
        if value is None:
            return cls()
        sentences, removed = (tuple(map(Sentence.of, value[name])) for name in ("sentences", "removed"))
        return cls(sentences, removed, value["read"])

    def changed(self, change: Callable[[Sentence], Sentence | None]) -> Self:
        """Return the overview with changed sentences, without those that `change` returns none for."""
        sentences, removed = (tuple(filter(None, map(change, part))) for part in (self.sentences, self.removed))
        return replace(self, sentences=sentences, removed=removed)

    @property
    def value(self) -> dict[str, Any]:
        """Return the value that the store keeps."""
        sentences, removed = ([sentence.value for sentence in part] for part in (self.sentences, self.removed))
        return {"sentences": sentences, "removed": removed, "read": self.read}
