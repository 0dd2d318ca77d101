"""Digest: one call of the mini model that brings a summary up to date and proposes facts from the messages since.

Guarantee: the result fits to replace the previous summary, or SummaryRefused is raised.  The model may repair its
answer once.  Nothing is stored here.

Models may write prose instead of JSON.  Reading is tolerant of the wrapping and strict about the content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory import tokens
from memory.domain import ENTITY_KINDS, FACT_CATEGORIES, FactDraft, Link
from memory.errors import SummaryRefused
from memory.llm import DigestMaterial, ModelRequest
from memory.llm.mini import INTEGER, TEXT, Answer, Unusable, list_of, object_of, objects, request_for, without_thinking
from memory.prompts.prompts import Prompt
from memory.rendering import block, fact_line, message_lines, one_line, summary_json
from memory.sections import ITEM_CHARS_MAX, ITEMS_MAX, SECTIONS, Excluded, Kind, Sections

MAX_WORDS = 400
FACTS_MAX = 40
LINKS_MAX = 8  # of one fact
SUMMARY_TOKENS_MAX = 1200  # more than the prompt asks for; a longer summary loses its oldest and least important items
SHRUNKEN_FROM = 80  # tokens; a smaller summary may lose anything
SHRUNKEN_TO = 0.5  # an update that keeps a smaller share of the summary is taken for a mistake

_INNER = re.compile(r'"summary"\s*:?\s*$')


_SCHEMAS: Mapping[Kind, Any] = {
    "line": TEXT,
    "items": list_of(TEXT),
    "options": list_of(object_of(option=TEXT, reason=TEXT)),
}
_ENTITY = {"type": "string", "enum": list(ENTITY_KINDS)}
_LINK = object_of(subject=TEXT, relation=TEXT, object=TEXT, subject_kind=_ENTITY, object_kind=_ENTITY)


def schema(links: bool) -> Mapping[str, Any]:
    """What the mini model answers, with the `links` of facts or without."""
    more = {"links": list_of(_LINK)} if links else {}
    return object_of(
        summary=object_of(**{section.name: _SCHEMAS[section.kind] for section in SECTIONS}),
        facts=list_of(
            object_of(
                text=TEXT,
                category={"type": "string", "enum": list(FACT_CATEGORIES)},
                importance={"type": "integer", "minimum": 1, "maximum": 5},
                scope={"type": "string", "enum": ["session", "user"]},
                source=INTEGER,
                quote=TEXT,
                supersedes=list_of(INTEGER),
                **more,
            )
        ),
    )


@dataclass(frozen=True)
class Digest:
    """What an answer says: the whole summary as it stands now, and facts that are not yet checked."""

    sections: Sections
    facts: tuple[FactDraft, ...] = ()


Ask = Callable[[ModelRequest, Prompt, Callable[[str], Digest]], Answer[Digest]]


def prompt_variables(first: bool, links: bool = True) -> dict[str, Any]:
    """What a summary prompt is given; `first` for a conversation without a summary yet."""
    sections = [{"name": section.name, "about": section.instruction} for section in SECTIONS]
    return {"first": first, "sections": sections, "max_words": MAX_WORDS, "links": links}


def digest(ask: Ask, prompt: Prompt, repair: Prompt, material: DigestMaterial) -> Answer[Digest]:
    """Bring the previous summary up to date with the messages since; `ask` asks the mini model (see `mini`).

    Raises ModelError when the model fails, SummaryRefused when its answer can't be used, even repaired.
    """
    previous = material.previous
    said = any(message.role == "user" and any(map(str.isalnum, message.content)) for message in material.messages)
    told = prompt.render(**prompt_variables(previous.empty, material.links))
    blocks = (
        block("summary_so_far", filter(None, [summary_json(previous)])),
        block("known_facts", (fact_line(fact, number=True) for fact in material.known_facts)),
        block("messages", message_lines(material.messages, numbered=True)),
    )

    def usable(text: str) -> Digest:
        return read(text, previous, may_be_empty=previous.empty and not said)

    try:
        return ask(request_for(told, blocks, material, schema(material.links)), repair, usable)
    except Unusable as problem:
        raise SummaryRefused(
            "summary_refused",
            f"The mini model's summary was refused, and its repair too: {problem} "
            "The last good summary stays in use and no message is lost.",
        ) from None


def read(answer: str, previous: Sections, *, may_be_empty: bool = False) -> Digest:
    """The digest in a model's answer, fit to replace `previous`.  Prose becomes the last section, without facts.

    A summary `may_be_empty` where the person has said nothing yet.  Raises Unusable.
    """
    text = without_thinking(answer).strip()
    if not text:
        raise Unusable("It is empty.")
    found = _in_json(text)
    if found is None and "{" in text:
        raise Unusable("It holds no complete JSON object with a `summary`.")
    made = found or Digest(_bounded(replace(previous, discussed=_paragraphs(text))))
    if made.sections.empty and not may_be_empty:
        raise Unusable("Its summary is empty.")
    before, after = tokens.estimate(str(previous)), tokens.estimate(str(made.sections))
    if before >= SHRUNKEN_FROM and after < before * SHRUNKEN_TO:
        raise Unusable(
            f"Its summary keeps only {after} of {before} tokens of the one before; what still holds must stay in it."
        )
    return made


def _in_json(text: str) -> Digest | None:
    """The first JSON object that is a digest, but for the summary of an answer that is broken elsewhere."""
    for start, _, data in objects(text):
        summary = data.get("summary", data)
        known = isinstance(summary, dict) and any(section.name in summary for section in SECTIONS)
        if known and not _INNER.search(text, max(0, start - 20), start):
            sections = {section.name: _READERS[section.kind](summary.get(section.name)) for section in SECTIONS}
            return Digest(_bounded(Sections(**sections)), _facts(data.get("facts")))
    return None


def _texts(value: Any) -> tuple[str, ...]:
    items = dict.fromkeys(filter(None, map(item_text, _listed(value))))  # without repetitions
    return tuple(items)[-ITEMS_MAX:]


def _options(value: Any) -> tuple[Excluded, ...]:
    items = (item if isinstance(item, Mapping) else {"option": item} for item in _listed(value))
    options = (Excluded(item_text(item.get("option")), item_text(item.get("reason"))) for item in items)
    return tuple(option for option in options if option.option)[-ITEMS_MAX:]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value in (None, "", {}) else [value]


def item_text(value: Any) -> str:
    """A text on one line, not too long.  The values of a JSON object are joined; a number becomes its text."""
    if isinstance(value, Mapping):
        value = ": ".join(str(part) for part in value.values() if isinstance(part, str | int | float))
    if value is None or isinstance(value, bool | list):
        return ""
    line = one_line(str(value))
    return line if len(line) <= ITEM_CHARS_MAX else line[: ITEM_CHARS_MAX - 1] + "…"


_READERS: Mapping[Kind, Callable[[Any], Any]] = {"line": item_text, "items": _texts, "options": _options}


def _paragraphs(text: str) -> tuple[str, ...]:
    lines = (re.sub(r"^\s*(?:[-*•#>]+|\d+[.)])\s*", "", line) for line in text.splitlines() if "```" not in line)
    return _texts([line for line in lines if line.strip()])


def _facts(value: Any) -> tuple[FactDraft, ...]:
    """Proposed facts.  What is no JSON object has neither source nor quote, so it can't be checked and is dropped."""
    return tuple(_fact(item) for item in _listed(value)[:FACTS_MAX] if isinstance(item, Mapping))


def _fact(item: Mapping[str, Any]) -> FactDraft:
    category = item_text(item.get("category")).lower()
    return FactDraft(
        text=item_text(item.get("text")),
        source=_integer(item.get("source"), 0),
        quote=item["quote"] if isinstance(item.get("quote"), str) else "",
        category=category if category in FACT_CATEGORIES else "other",
        importance=min(5, max(1, _integer(item.get("importance"), 3))),
        scope="user" if item.get("scope") == "user" else "session",
        supersedes=tuple(_integer(old, 0) for old in _listed(item.get("supersedes"))),
        links=tuple(_link(one) for one in _listed(item.get("links"))[:LINKS_MAX] if isinstance(one, Mapping)),
    )


def _link(item: Mapping[str, Any]) -> Link:
    kinds = (item_text(item.get(name)).lower() for name in ("subject_kind", "object_kind"))
    ends = (item_text(item.get(name)) for name in ("subject", "relation", "object"))
    return Link(*ends, *(kind if kind in ENTITY_KINDS else "thing" for kind in kinds))


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
