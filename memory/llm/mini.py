"""Asking the mini model for JSON: one call, and another if the answer has to be repaired.

Models wrap JSON in fences, think aloud before it, chat around it, or forget a bracket.  Reading is tolerant of the
wrapping; what an answer says is for its reader to judge, who raises Unusable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from memory.domain import Usage
from memory.llm import ChatMessage, LanguageModel, ModelRequest, complete
from memory.prompts.prompts import Prompt
from memory.rendering import escape

T = TypeVar("T")

STARTS_MAX = 64  # opening brackets at which the reader tries to decode a JSON object
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.I)


class Unusable(ValueError):
    """The answer can't be used.  The message is a sentence for the model, which is asked to repair its answer."""


def ask(
    model: LanguageModel, request: ModelRequest, repair: Prompt, read: Callable[[str], T], spent: list[Usage]
) -> tuple[T, str]:
    """What `read` makes of the answer, and the name of the model that wrote it; `spent` gets what each call cost.

    Raises ModelError when the model fails, and Unusable when its answer can't be used, even repaired.
    """
    text, finish = complete(model, request)
    spent.append(finish.usage)
    try:
        return read(text), finish.model
    except Unusable as error:
        problem = str(error)
    again = ChatMessage("assistant", escape(text)), ChatMessage("user", repair.render(problem=problem))
    text, finish = complete(model, replace(request, messages=(*request.messages, *again)))
    spent.append(finish.usage)
    return read(text), finish.model


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
