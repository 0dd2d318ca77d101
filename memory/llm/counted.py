"""A language model whose calls are counted, whoever makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memory.domain import Usage
from memory.llm import Chunk, Finish, LanguageModel, ModelRequest, Piece, ToolCall


class CountedModel:
    """The model `inner`; what each of its answers took is told to `spent`, also of those that turn out unusable."""

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
