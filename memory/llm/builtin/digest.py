"""A summary extended and facts found, by rules, out of the record of a conversation.

Guarantee: items and facts are the conversation's words or a fixed label; facts rest on the person's own messages and
quote them verbatim.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from memory.llm import DigestMaterial
from memory.llm.builtin.corrections import corrects
from memory.llm.builtin.language import is_small_talk, patterns
from memory.llm.builtin.reading import Statement, links
from memory.llm.builtin.record import Record
from memory.quoting import one_line
from models.facts import FactDraft
from models.sections import Excluded, Sections

_LASTING = ("identity", "preference", "relationship", "work")
_UNDERTAKING = patterns("reading")["undertaking"]


def digest(material: DigestMaterial) -> dict[str, Any]:
    """The summary and the facts, in the shape a mini model answers."""
    record = Record(material.previous)
    record.take_up(material.messages, material.known_facts)
    found = [one for one in record.held if one.known is None and one.importance > 1]
    sections = summary(record, material.previous)
    first = next((one_line(message.content) for message in material.messages if message.role == "user"), "")
    sections = replace(sections, topic=sections.topic or first)  # it says something once anything was said
    return {"summary": sections.as_dict(), "facts": [asdict(_draft(one)) for one in found]}


def _draft(one: Statement) -> FactDraft:
    # A correction counts in every chat, since what it corrects can be recalled in every chat.
    scope = "user" if one.category in _LASTING or corrects(one.quote) else "session"
    supersedes, tied = tuple(sorted(one.supersedes)), tuple(links(one.text))
    return FactDraft(one_line(one.text), one.source, one.quote, one.category, one.importance, scope, supersedes, tied)


def summary(record: Record, previous: Sections) -> Sections:
    """The sections as they are now."""
    items = {name: list[str]() for name in ("requirements", "constraints", "data", "discussed")}
    excluded = []
    for one in record.held:
        if one.section == "excluded":
            reason = one.text.removeprefix(one.value).removeprefix(": ")
            excluded.append(Excluded(one_line(one.value), one_line(reason)))
        elif one.section:
            items[one.section].append(one_line(one.text))
    told = {name: tuple(dict.fromkeys(texts)) for name, texts in items.items()}
    first = next((text for texts in (*told.values(), record.questions) for text in texts), "")
    topic = _topic(record, one_line(previous.topic)) or first
    return Sections(topic=topic, excluded=tuple(excluded), open_questions=tuple(record.questions), **told)


def _topic(record: Record, before: str) -> str:
    """What the topic was; unless it says little, what the person is up to, or who they are."""
    if not is_small_talk(before) and not before.startswith(("About ", "关于")):
        return before
    stated = [one for one in record.held if one.importance > 1 and one.known is None]  # what is known is of other chats
    for one in stated:
        if one.category == "plan" and (match := _UNDERTAKING.match(one.text)):
            what = one_line(next(filter(None, match.groups())))
            return what[:1].upper() + what[1:]
    if name := next((one_line(one.value) for one in stated if one.key == "name"), ""):
        return f"About {name}" if name.isascii() else f"关于{name}"
    return "" if is_small_talk(before) else before
