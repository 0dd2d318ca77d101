"""Asking the mini model for JSON: one call, and another if the answer has to be repaired.

Guarantee: the owner's budget is charged for each call, whatever becomes of its answer.

Models wrap JSON in fences, think aloud before it, chat around it, or forget a bracket.  Reading is tolerant of the
wrapping; what an answer says is for its reader to judge, who raises Unusable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from jsonschema import Draft202012Validator

from memory.access.budgets import Budgets
from memory.domain import Usage
from memory.llm import ChatMessage, LanguageModel, Material, ModelRequest, complete
from memory.llm.model_server import ModelServer
from memory.ops.metrics import Metrics
from memory.prompts.prompts import Prompt
from memory.rendering import escape

T = TypeVar("T")

STARTS_MAX = 64  # opening brackets at which the reader tries to decode a JSON object
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.I)


class Unusable(ValueError):
    """The answer can't be used.  The message is a sentence for the model, which is asked to repair its answer."""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What was made of an answer, the name of the model that wrote it, and what each call took."""

    made: T
    model: str
    spent: tuple[Usage, ...]


@dataclass(frozen=True)
class Mini:
    """The mini model in use, on behalf of owners."""

    model_server: ModelServer
    budgets: Budgets
    metrics: Metrics

    def ask(self, owner_id: int, request: ModelRequest, repair: Prompt | None, read: Callable[[str], T]) -> Answer[T]:
        """What `read` makes of the answer, which is not repaired without `repair`.

        Raises ModelError when the model fails, and Unusable when its answer can't be used, even repaired.
        """
        return ask(self.model_server.models.mini, request, repair, read, lambda usage: self.spend(owner_id, usage))

    def spend(self, owner_id: int, usage: Usage) -> None:
        """Charge what a call took."""
        self.budgets.charge(owner_id, [usage])
        self.metrics.spent("mini", usage)


def ask(
    model: LanguageModel,
    request: ModelRequest,
    repair: Prompt | None,
    read: Callable[[str], T],
    spend: Callable[[Usage], None],
) -> Answer[T]:
    """Like `Mini.ask`, of any model; `spend` is told what each call took."""
    text, finish = complete(model, request)
    spend(finish.usage)
    try:
        return Answer(read(text), finish.model, (finish.usage,))
    except Unusable as error:
        if repair is None:
            raise
        problem = str(error)
    again = ChatMessage("assistant", escape(text)), ChatMessage("user", repair.render(problem=problem))
    text, repaired = complete(model, replace(request, messages=(*request.messages, *again)))
    spend(repaired.usage)
    return Answer(read(text), repaired.model, (finish.usage, repaired.usage))


def request_for(told: str, blocks: Iterable[str], material: Material, schema: Mapping[str, Any]) -> ModelRequest:
    """A request for JSON of a schema: what the model is told, and the blocks of what it reads."""
    system = ChatMessage("system", f"{told}\n\n{instruction(schema)}")
    return ModelRequest((system, ChatMessage("user", "\n\n".join(filter(None, blocks)))), material, schema)


def first_object(answer: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The first JSON object in an answer that follows the schema.  Raises Unusable."""
    problem = "It holds no complete JSON object."
    for *_, found in objects(without_thinking(answer)):
        wrong = next(Draft202012Validator(schema).iter_errors(found), None)
        if wrong is None:
            return dict(found)
        problem = f"It does not have the shape that was asked for: {wrong.json_path} breaks `{wrong.validator}`."
    raise Unusable(problem)


def without_thinking(answer: str) -> str:
    """What follows the model's last thought.  A tag inside a JSON object is part of the conversation, not a thought."""
    found = list(objects(answer))
    tags = [tag for tag in _THINK.finditer(answer) if not any(start < tag.start() < end for start, end, _ in found)]
    start = max((tag.end() for tag in tags if tag[1]), default=0)
    end = next((tag.start() for tag in tags if tag.start() >= start), len(answer))  # a thought without an end
    return answer[start:end]


def objects(text: str) -> Iterator[tuple[int, int, Any]]:
    """Complete outermost JSON objects, each with where it begins and ends; at most STARTS_MAX brackets are tried."""
    decoder = json.JSONDecoder(strict=False)
    end = 0
    for _ in range(STARTS_MAX):
        start = text.find("{", end)
        if start < 0:
            return
        try:
            found, end = decoder.raw_decode(text, start)
            yield start, end, found
        except (ValueError, RecursionError):
            end = start + 1


# -- schemas of answers, as strict servers take them

TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def instruction(schema: Any) -> str:
    """What asks for an answer of a schema's shape, for servers that take no schema."""
    return f"Answer with one JSON object and nothing else, of this shape: {json.dumps(_example(schema))}"


def _example(schema: Any) -> Any:
    """The smallest value of a schema's shape."""
    if schema["type"] == "object":
        return {name: _example(inner) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [_example(schema["items"])]
    return 0 if schema["type"] == "integer" else "|".join(schema.get("enum", ()))
