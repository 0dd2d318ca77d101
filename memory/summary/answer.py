"""The mini model's answer: its JSON schema, how it is read, and when it is refused.

Models wrap JSON in fences, think aloud before it, chat around it, forget a bracket or write prose.  Reading is
tolerant of the wrapping and strict about the content.  All functions here are pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory import tokens
from memory.domain import FACT_CATEGORIES, FactDraft
from memory.rendering import one_line
from memory.sections import ITEM_CHARS_MAX, ITEMS_MAX, SECTIONS, Excluded, Kind, Sections

FACTS_MAX = 40
STARTS_MAX = 64  # opening brackets at which the reader tries to decode a JSON object
SUMMARY_TOKENS_MAX = 1200  # more than the prompt asks for; a longer summary loses its oldest and least important items
SHRUNKEN_FROM = 80  # tokens; a smaller summary may lose anything
SHRUNKEN_TO = 0.5  # an update that keeps a smaller share of the summary is taken for a mistake

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.I)
_INNER = re.compile(r'"summary"\s*:?\s*$')


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string"}
_SCHEMAS: Mapping[Kind, Any] = {
    "line": _TEXT,
    "items": _list(_TEXT),
    "options": _list(_object({"option": _TEXT, "reason": _TEXT})),
}

SCHEMA: Mapping[str, Any] = _object(
    {
        "summary": _object({section.name: _SCHEMAS[section.kind] for section in SECTIONS}),
        "facts": _list(
            _object(
                {
                    "text": _TEXT,
                    "category": {"type": "string", "enum": list(FACT_CATEGORIES)},
                    "importance": {"type": "integer", "minimum": 1, "maximum": 5},
                    "scope": {"type": "string", "enum": ["session", "user"]},
                    "source": {"type": "integer"},
                    "quote": _TEXT,
                    "supersedes": _list({"type": "integer"}),
                }
            )
        ),
    }
)


def _example(schema: Mapping[str, Any]) -> Any:
    """The smallest value of a schema's shape."""
    if schema["type"] == "object":
        return {name: _example(inner) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [_example(schema["items"])]
    return 0 if schema["type"] == "integer" else "|".join(schema.get("enum", ()))


INSTRUCTION = f"Answer with one JSON object and nothing else, of this shape: {json.dumps(_example(SCHEMA))}"


@dataclass(frozen=True)
class Digest:
    """What an answer says: the whole summary as it stands now, and facts that are not yet checked.

    `model` is the name of the model that wrote it.
    """

    sections: Sections
    facts: tuple[FactDraft, ...] = ()
    model: str = ""


class UnusableDigest(ValueError):
    """The answer can't be used.  The message is a sentence for the model, which is asked to repair its answer."""


def read(answer: str, previous: Sections) -> Digest:
    """The digest in a model's answer, fit to replace `previous`.  Prose becomes the last section, without facts.

    Raises UnusableDigest.
    """
    text = _without_thinking(answer)
    data = next((found for found in _objects(text) if _looks_right(found)), None)
    if data is not None:
        digest = Digest(_bounded(_sections(data)), _facts(data.get("facts")))
    elif text.strip() and "{" not in text:
        digest = Digest(_bounded(replace(previous, discussed=_paragraphs(text))))
    elif text.strip():
        raise UnusableDigest("It holds no complete JSON object with a `summary`.")
    else:
        raise UnusableDigest("It is empty.")
    if digest.sections.empty:
        raise UnusableDigest("Its summary is empty.")
    before, after = tokens.estimate(str(previous)), tokens.estimate(str(digest.sections))
    if before >= SHRUNKEN_FROM and after < before * SHRUNKEN_TO:
        raise UnusableDigest(
            f"Its summary keeps only {after} of {before} tokens of the one before; what still holds must stay in it."
        )
    return digest


def _without_thinking(answer: str) -> str:
    """The answer without the model's thoughts.

    Nothing follows an unclosed thought.  A tag inside a JSON object is part of the conversation, not a thought.
    """
    kept: list[str] = []
    start, thinking = 0, False
    whole = _whole_objects(answer)
    for tag in _THINK.finditer(answer):
        if not thinking and any(begin < tag.start() < end for begin, end, _ in whole if begin >= start):
            continue
        if tag[1]:
            if not thinking:
                kept.clear()  # some servers remove the opening tag
            thinking, start = False, tag.end()
        elif not thinking:
            kept.append(answer[start : tag.start()])
            thinking = True
    return "".join(kept) if thinking else "".join(kept) + answer[start:]


def _whole_objects(text: str) -> list[tuple[int, int, Any]]:
    """Complete outermost JSON objects, each with where it begins and ends; at most STARTS_MAX brackets are tried."""
    decoder = json.JSONDecoder(strict=False)
    whole = list[tuple[int, int, Any]]()
    start = text.find("{")
    for _ in range(STARTS_MAX):
        if start < 0:
            break
        try:
            found, end = decoder.raw_decode(text, start)
            whole.append((start, end, found))
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)
    return whole


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The complete JSON objects of `text`, but for the summary of an answer that is broken elsewhere."""
    for start, _, found in _whole_objects(text):
        if isinstance(found, dict) and not _INNER.search(text, max(0, start - 20), start):
            yield found


def _looks_right(data: dict[str, Any]) -> bool:
    summary = data.get("summary", data)
    return isinstance(summary, dict) and any(section.name in summary for section in SECTIONS)


def _sections(data: Mapping[str, Any]) -> Sections:
    summary = data.get("summary", data)
    return Sections(**{section.name: _READERS[section.kind](summary.get(section.name)) for section in SECTIONS})


def _texts(value: Any) -> tuple[str, ...]:
    items = dict.fromkeys(filter(None, map(_clean, _listed(value))))  # without repetitions
    return tuple(items)[-ITEMS_MAX:]


def _options(value: Any) -> tuple[Excluded, ...]:
    items = (item if isinstance(item, Mapping) else {"option": item} for item in _listed(value))
    options = (Excluded(_clean(item.get("option")), _clean(item.get("reason"))) for item in items)
    return tuple(option for option in options if option.option)[-ITEMS_MAX:]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value in (None, "", {}) else [value]


def _clean(value: Any) -> str:
    """A text on one line.  The values of a JSON object are joined; a number becomes its text."""
    if isinstance(value, Mapping):
        value = ": ".join(str(part) for part in value.values() if isinstance(part, str | int | float))
    if value is None or isinstance(value, bool | list):
        return ""
    line = one_line(str(value))
    return line if len(line) <= ITEM_CHARS_MAX else line[: ITEM_CHARS_MAX - 1] + "…"


_READERS: Mapping[Kind, Callable[[Any], Any]] = {"line": _clean, "items": _texts, "options": _options}


def _paragraphs(text: str) -> tuple[str, ...]:
    lines = (re.sub(r"^\s*(?:[-*•#>]+|\d+[.)])\s*", "", line) for line in text.splitlines() if "```" not in line)
    return _texts([line for line in lines if line.strip()])


def _facts(value: Any) -> tuple[FactDraft, ...]:
    """Proposed facts.  What is no JSON object has neither source nor quote, so it can't be checked and is dropped."""
    return tuple(_fact(item) for item in _listed(value)[:FACTS_MAX] if isinstance(item, Mapping))


def _fact(item: Mapping[str, Any]) -> FactDraft:
    category = _clean(item.get("category")).lower()
    return FactDraft(
        text=_clean(item.get("text")),
        source=_integer(item.get("source"), 0),
        quote=item["quote"] if isinstance(item.get("quote"), str) else "",
        category=category if category in FACT_CATEGORIES else "other",
        importance=min(5, max(1, _integer(item.get("importance"), 3))),
        scope="user" if item.get("scope") == "user" else "session",
        supersedes=tuple(_integer(old, 0) for old in _listed(item.get("supersedes"))),
    )


def _integer(value: Any, otherwise: int) -> int:
    """A whole number as models write it: 3, 3.0, "3", "[3]" or [3].  At most 18 digits, so that it fits 64 bits."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    found = re.search(r"-?\d{1,18}", str(value)) if isinstance(value, int | float | str) else None
    return int(found.group()) if found else otherwise


def _bounded(sections: Sections) -> Sections:
    """`sections` within SUMMARY_TOKENS_MAX.  The last sections lose items first, each its oldest first."""
    for section in reversed(SECTIONS):
        items = getattr(sections, section.name)
        while items and section.kind != "line" and tokens.estimate(str(sections)) > SUMMARY_TOKENS_MAX:
            items = items[1:]
            fewer: dict[str, Any] = {section.name: items}
            sections = replace(sections, **fewer)
    return sections
