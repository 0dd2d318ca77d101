"""A language model that reports the usage of each answer, also of answers that turn out to be unusable."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memory.domain import Usage
from memory.llm.model import Chunk, Finish, LanguageModel, ModelRequest, Piece, ToolCall


class CountedModel:
    """The model `inner`, which calls `spent` with the usage of each answer."""

    def __init__(self, inner: LanguageModel, spent: Callable[[Usage], None]) -> None:
        self.inner = inner
        self.name = inner.name
        self._spent = spent

    @property
    def can_call_tools(self) -> bool:
        return self.inner.can_call_tools

    def answer(self, request: ModelRequest) -> Iterator[Piece | Chunk | ToolCall | Finish]:
        for part in self.inner.answer(request):
            if isinstance(part, Finish):
                self._spent(part.usage)
            yield part
