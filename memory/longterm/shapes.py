"""What documents of long-term memory look like: an import may bring anything under their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jsonschema import Draft202012Validator

from memory.llm.mini import INTEGER, TEXT, list_of, object_of
from memory.longterm import conversation_types, examples, feedback, instructions, unhelpful
from models.sections import SECTIONS
from models.store import Item, ItemVersion
from models.turns import RECALL_MODES

_TEXT = {"type": "string", "maxLength": instructions.TEXT_CHARS}
_BUDGET = {"type": ["integer", "null"], "minimum": 0}
_WITH_HISTORY = (instructions.NAMESPACE, conversation_types.NAMESPACE)
_PLACES = list_of({"type": "array", "prefixItems": [TEXT, INTEGER], "minItems": 2, "maxItems": 2})
_TYPE = object_of(
    cues=list_of({"type": "string", "maxLength": conversation_types.CUE_CHARS}),
    prompt={"type": "string", "maxLength": conversation_types.PROMPT_CHARS},
    recall={"enum": [*RECALL_MODES, None]},
    recall_tokens=_BUDGET,
    fact_tokens=_BUDGET,
    example_tokens=_BUDGET,
)
_TYPE["properties"]["emphasis"] = list_of({"enum": [section.name for section in SECTIONS]})  # types of before have none
_SHAPES: dict[tuple[str, ...], Any] = {
    examples.NAMESPACE: object_of(input=TEXT, output=TEXT, tags=list_of(TEXT), rating=INTEGER),
    conversation_types.NAMESPACE: _TYPE,
    instructions.NAMESPACE: object_of(text=_TEXT, sources=_PLACES),
    instructions.PROPOSALS: object_of(text=_TEXT, reason=TEXT, quote=TEXT),
    feedback.NAMESPACE: object_of(
        thumbs={"enum": ["up", "down", None]},
        text=TEXT,
        instruction=TEXT,
        state={**TEXT, "not": {"const": feedback.WAITING}},  # nothing is derived from what was said elsewhere
        reason=TEXT,
    ),
    unhelpful.NAMESPACE: object_of(),
}


def well_made(item: Item, history: Sequence[ItemVersion]) -> bool:
    """Whether an item and its earlier values are what its kind stores there."""
    shape = _SHAPES.get(item.namespace)
    if shape is None:
        return True
    kept = bool(history) or item.namespace not in _WITH_HISTORY
    return kept and all(map(Draft202012Validator(shape).is_valid, [item.value, *(one.value for one in history)]))
