"""Let another model answer when one fails before its first word.

Invariants:
- Nothing is asked twice once a word, a call of a tool, or a part of a client's answer went out [test_fallback].
- A refusal of the words or of a client's parameters is nobody else's to answer [test_fallback].
"""

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace

from memory.errors import CONTENT_REFUSED, ModelError
from memory.json_values import dict_in, dicts_in
from memory.llm import Fallback, LanguageModel, ModelEvent, ModelRequest, RawChunk, Thought, Waiting
from memory.ops import logs

log = logging.getLogger(__name__)

NOT_FOUND = "model_not_found"
OF_THE_REQUEST = (CONTENT_REFUSED, "model_rejected_request")
"""Codes of failures that are the request's own: no other model is asked."""


class WithFallback:
    """`LanguageModel`: `model`, or the first of `fallbacks` that answers when it fails before its first word.

    if_unknown: the model that answers when the server says that `model` does not exist.
    on_fallback: is called with the fallback model's name and the code of the failure.
    """

    def __init__(
        self,
        model: LanguageModel,
        fallbacks: Sequence[LanguageModel],
        on_fallback: Callable[[str, str], None],
        if_unknown: LanguageModel | None = None,
    ) -> None:
        self.name = model.name
        self._model = model
        self._fallbacks = tuple(fallbacks)
        self._if_unknown = if_unknown
        self._on_fallback = on_fallback

    @property
    def supports_tools(self) -> bool:
        return self._model.supports_tools

    @property
    def down(self) -> str | None:
        return self._model.down

    @property
    def window(self) -> int | None:
        return self._model.window

    def answer(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See `LanguageModel`.  When all models fail, raises the error of `model`."""
        errors: dict[LanguageModel, ModelError] = {}
        why = self._model.down
        unknown = self._if_unknown
        candidates = [self._model, *self._fallbacks]
        if unknown is not None and why == NOT_FOUND:
            candidates.insert(1, unknown)
        waiting = deque(sorted(dict.fromkeys(candidates), key=lambda model: model.down is not None))
        while waiting:
            model = waiting.popleft()
            events = model.answer(request if model is self._model else _for_fallback(request))
            try:
                first = yield from self._before_words(model, why, events)
            except ModelError as error:
                if request.cancel.cancelled or (model is self._model and error.code in OF_THE_REQUEST):
                    raise
                errors[model] = error
            else:
                yield from first
                yield from events
                return
            if model is self._model:
                why = errors[model].code
                if why == NOT_FOUND and unknown is not None and unknown not in (*errors, *waiting):
                    waiting.appendleft(unknown)
        raise self._all_failed(errors)

    def _before_words(
        self, model: LanguageModel, why: str | None, events: Iterator[ModelEvent]
    ) -> Generator[ModelEvent, None, list[ModelEvent]]:
        """Yield what comes before a model's first word; return that, with the chunks before it that say nothing yet.

        why: the code for which this model answers, if it is not the one that was asked.
        """
        silent: list[ModelEvent] = []
        announced = model is self._model
        for event in events:
            if isinstance(event, RawChunk) and _is_silent(event):
                silent.append(event)
                continue
            if not announced and not isinstance(event, Waiting):
                announced = True
                logged = logs.fields(model=model.name, instead_of=self.name, code=why)
                log.warning("another model answers", extra=logged)
                self._on_fallback(model.name, why or "")
                yield Fallback(model.name)
            if not isinstance(event, Waiting | Thought):
                return [*silent, event]
            yield event
        return silent

    def _all_failed(self, errors: Mapping[LanguageModel, ModelError]) -> ModelError:
        """Return the error of the model, or of the one that answers where it is unknown, with the others' codes."""
        named = self._model if self._if_unknown is None or self._if_unknown not in errors else self._if_unknown
        first = errors[named]
        others = ", ".join(
            f"{model.name} ({error.code})" for model, error in errors.items() if model not in (named, self._model)
        )
        if others:
            text = f" The models that answer instead failed as well: {others}."
            first.message += text
            first.kept += text
        return first


def _for_fallback(request: ModelRequest) -> ModelRequest:
    """Return the request without the name of a model that a client asks for."""
    if request.client is None:
        return request
    return replace(request, client={name: value for name, value in request.client.items() if name != "model"})


def _is_silent(chunk: RawChunk) -> bool:
    """Return whether a chunk has no part of an answer: the first one often names the role alone."""
    choices = dicts_in(chunk.data.get("choices"))
    deltas = [dict_in(choice.get("delta") or choice.get("message")) for choice in choices]
    content = [value for delta in deltas for name, value in delta.items() if name != "role"]
    return not any(content) and not any(choice.get("finish_reason") for choice in choices)
