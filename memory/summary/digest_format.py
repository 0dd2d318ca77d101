"""The mini model's answer: its JSON schema, how it is read, and when it is refused.  Pure functions.

Models wrap JSON in fences, think aloud before it, chat around it, forget a bracket or write prose.  Reading is
tolerant of the wrapping and strict about the content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory import tokens
from memory.domain import FACT_CATEGORIES, TEXT_SECTIONS, Excluded, FactDraft, Sections
from memory.rendering import one_line

ITEM_CHARS_MAX = 400
ITEMS_MAX = 40
FACTS_MAX = 40
STARTS_MAX = 64  # brackets at which a JSON object is tried to be read
SUMMARY_TOKENS_MAX = 1200  # above what the prompt asks for; what is over is dropped from the oldest talk
SHRUNKEN_FROM = 80  # tokens below which a summary may lose anything: it is small talk still
SHRUNKEN_TO = 0.5  # keeping less than this share of the last summary is taken for a slip, not for tidiness

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.I)
_INNER = re.compile(r'"summary"\s*:?\s*$')
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMA: Mapping[str, Any] = _object(
    {
        "summary": _object(
            {
                "topic": _TEXT,
                "requirements": _TEXTS,
                "constraints": _TEXTS,
                "excluded": {"type": "array", "items": _object({"option": _TEXT, "reason": _TEXT})},
                "data": _TEXTS,
                "open_questions": _TEXTS,
                "discussed": _TEXTS,
            }
        ),
        "facts": {
            "type": "array",
            "items": _object(
                {
                    "text": _TEXT,
                    "category": {"type": "string", "enum": list(FACT_CATEGORIES)},
                    "importance": {"type": "integer", "minimum": 1, "maximum": 5},
                    "scope": {"type": "string", "enum": ["session", "user"]},
                    "source": {"type": "integer"},
                    "quote": _TEXT,
                    "supersedes": {"type": "array", "items": {"type": "integer"}},
                }
            ),
        },
    }
)

INSTRUCTION = (
    "Answer with one JSON object and nothing else, of this shape: "
    '{"summary": {"topic": "", "requirements": [""], "constraints": [""], '
    '"excluded": [{"option": "", "reason": ""}], "data": [""], "open_questions": [""], "discussed": [""]}, '
    '"facts": [{"text": "", "category": "' + "|".join(FACT_CATEGORIES) + '", "importance": 3, '
    '"scope": "session|user", "source": 1, "quote": "", "supersedes": []}]}'
)


@dataclass(frozen=True)
class Digest:
    """A read answer.  `prose` when the model wrote no JSON and its text became the `discussed` section."""

    sections: Sections
    facts: tuple[FactDraft, ...] = ()
    prose: bool = False


class UnusableDigest(ValueError):
    """The answer can't be used.  Its message is a sentence that goes back to the model."""


def read(answer: str, previous: Sections) -> Digest:
    """The digest in a model's answer, fit to replace `previous`.  Raises UnusableDigest."""
    text = _without_thinking(answer)
    data = next((found for found in _objects(text) if _looks_right(found)), None)
    if data is not None:
        digest = Digest(_bounded(_sections(data)), _facts(data.get("facts")))
    elif text.strip() and "{" not in text:
        digest = Digest(_bounded(replace(previous, discussed=_paragraphs(text))), prose=True)
    elif text.strip():
        raise UnusableDigest("It holds no complete JSON object with a `summary`.")
    else:
        raise UnusableDigest("It is empty.")
    _refuse_losses(previous, digest.sections)
    return digest


def _refuse_losses(previous: Sections, new: Sections) -> None:
    before, after = tokens.estimate(str(previous)), tokens.estimate(str(new))
    if new.empty:
        raise UnusableDigest("Its summary is empty.")
    if before >= SHRUNKEN_FROM and after < before * SHRUNKEN_TO:
        raise UnusableDigest(
            f"Its summary keeps only {after} of {before} tokens of the one before; what still holds must stay in it."
        )


def _without_thinking(answer: str) -> str:
    """The answer after its thoughts.  An unclosed thought has no answer after it; a tag that an item of the answer's
    JSON holds, since somebody spoke of it, is no thought."""
    kept: list[str] = []
    start, thinking = 0, False
    whole = _whole_objects(answer)
    for tag in _THINK.finditer(answer):  # one pass: an answer may be all tags
        if not thinking and any(begin < tag.start() < end for begin, end, _ in whole if begin >= start):
            continue
        if tag[1]:
            if not thinking:
                kept.clear()  # some servers cut the opening tag off
            thinking, start = False, tag.end()
        elif not thinking:
            kept.append(answer[start : tag.start()])
            thinking = True
    return "".join(kept) if thinking else "".join(kept) + answer[start:]


def _whole_objects(text: str) -> list[tuple[int, int, Any]]:
    """Complete JSON objects with where they begin and end, as far as STARTS_MAX tries find them."""
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
    """Every outermost JSON object in `text`, in order; not the good half of an answer that is broken elsewhere."""
    for start, _, found in _whole_objects(text):
        if isinstance(found, dict) and not _INNER.search(text, max(0, start - 20), start):
            yield found


def _looks_right(data: dict[str, Any]) -> bool:
    summary = data.get("summary", data)
    return isinstance(summary, dict) and any(name in summary for name in ("topic", "excluded", *TEXT_SECTIONS))


def _sections(data: Mapping[str, Any]) -> Sections:
    summary = data.get("summary", data)
    excluded = []
    for item in _listed(summary.get("excluded")):
        if isinstance(item, Mapping):
            option, reason = _clean(item.get("option")), _clean(item.get("reason"))
        else:
            option, reason = _clean(item), ""
        if option:
            excluded.append(Excluded(option, reason))
    return Sections(
        topic=_clean(summary.get("topic")),
        excluded=tuple(excluded[-ITEMS_MAX:]),
        **{name: _texts(summary.get(name)) for name in TEXT_SECTIONS},
    )


def _texts(value: Any) -> tuple[str, ...]:
    items = dict.fromkeys(filter(None, (_clean(item) for item in _listed(value))))  # the same item twice counts once
    return tuple(items)[-ITEMS_MAX:]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value in (None, "", {}) else [value]


def _clean(value: Any) -> str:
    """A text item as one line; a mapping's values are joined, other JSON becomes its text."""
    if isinstance(value, Mapping):
        value = ": ".join(str(part) for part in value.values() if isinstance(part, str | int | float))
    if value is None or isinstance(value, bool | list):
        return ""
    line = one_line(str(value))
    return line if len(line) <= ITEM_CHARS_MAX else line[: ITEM_CHARS_MAX - 1] + "…"


def _paragraphs(text: str) -> tuple[str, ...]:
    lines = (re.sub(r"^\s*(?:[-*•#>]+|\d+[.)])\s*", "", line) for line in text.splitlines() if "```" not in line)
    return _texts([line for line in lines if line.strip()])


def _facts(value: Any) -> tuple[FactDraft, ...]:
    drafts = []
    for item in _listed(value)[:FACTS_MAX]:
        if not isinstance(item, Mapping):
            continue  # without a source and a quote it could not be checked
        category = _clean(item.get("category")).lower()
        drafts.append(
            FactDraft(
                text=_clean(item.get("text")),
                source=_integer(item.get("source"), 0),
                quote=item["quote"] if isinstance(item.get("quote"), str) else "",
                category=category if category in FACT_CATEGORIES else "other",
                importance=min(5, max(1, _integer(item.get("importance"), 3))),
                scope="user" if item.get("scope") == "user" else "session",
                supersedes=tuple(_integer(old, 0) for old in _listed(item.get("supersedes"))),
            )
        )
    return tuple(drafts)


def _integer(value: Any, otherwise: int) -> int:
    """A whole number as models write them: 3, 3.0, "3", "[3]", [3]; bounded to 64 bits."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    found = re.search(r"-?\d{1,18}", str(value)) if isinstance(value, int | float | str) else None
    return int(found.group()) if found else otherwise


def _bounded(sections: Sections) -> Sections:
    """`sections` within SUMMARY_TOKENS_MAX: the oldest talk goes first, then the oldest data, what is needed last."""
    for name in ("discussed", "data", "open_questions", "excluded", "constraints", "requirements"):
        items = list(getattr(sections, name))
        while items and tokens.estimate(str(sections)) > SUMMARY_TOKENS_MAX:
            items.pop(0)
            fewer: dict[str, Any] = {name: tuple(items)}
            sections = replace(sections, **fewer)
    return sections
