"""Answer what a mini model is asked, by rules: summary and facts, profile's patch, instruction, overview, pairs.

Invariant: items and facts are the conversation's words or a fixed label; facts rest on the person's own messages and
quote them verbatim (tests/test_builtin_model.py).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from memory.llm.builtin.language import asks, is_small_talk, terms
from memory.llm.builtin.prompt import facts_in, items, messages_in
from memory.llm.builtin.reading import Statement, links, sentences, statements
from memory.llm.builtin.record import Record
from memory.quoting import one_line
from models.facts import FactDraft
from models.sections import SECTIONS, Excluded, Sections

QUESTIONS_MAX, FACTS_MAX = 2, 4  # of an overview
_LASTING = ("identity", "preference", "relationship", "work")
_PLACES = {"name": "names", "home": "home", "job": "work", "taste": "likes"}  # by what a statement is about


def answer(schema: Mapping[str, Any], system: str, content: str) -> dict[str, Any]:
    """Return an answer that follows the schema. system: the instruction; content: what it is about."""
    fields = set(schema.get("properties", ()))
    if "facts" in fields:
        return {name: value for name, value in update_summary(content).items() if name in fields}
    if "patch" in fields:
        return {"patch": patch(json.loads(next(iter(items(content, "profile")), "{}")), system, content)}
    if "quote" in fields:  # what the person says becomes the last line of the instruction
        words = one_line(" ".join(item for item in items(content, "feedback") if not item.startswith("thumbs ")))
        text = "\n".join(filter(None, ["\n".join(items(content, "instruction")), words]))
        return {"text": text, "reason": "The person said so.", "quote": words}
    if "sentences" in fields:
        return {"sentences": overview(content)}
    if "best" in fields:
        return {"best": list(range(1, len(items(content, "messages")) + 1))}
    return dict.fromkeys(fields, ()) | {"same": [], "contradicts": []}  # rules can't tell


def overview(content: str) -> list[dict[str, Any]]:
    """Return the latest open questions and the first facts, word for word: each is its own source."""
    questions = [line for line in facts_in(items(content, "summaries")) if ", open questions: " in line.text]
    lines = [*questions[:QUESTIONS_MAX], *islice(facts_in(items(content, "facts")), FACTS_MAX)]
    return [{"text": line.text, "sources": [line.number]} for line in lines]


def update_summary(content: str) -> dict[str, Any]:
    """Return the summary and the facts of the messages since, and the ids of the facts to forget."""
    before = next(iter(items(content, "summary_so_far")), "")
    previous = Sections.from_dict(json.loads(before)) if before else Sections()
    record = Record(previous)
    messages = list(messages_in(items(content, "messages")))
    record.take_up([*facts_in(items(content, "known_facts")), *messages])
    own = [message for message in messages if message.role == "user"]
    meant = (record.meant(message.text) for message in own if asks("forget", message.text))
    forgotten = [old for old in meant if old is not None]
    record.valid = [old for old in record.valid if not any(old is fact or old.says_same(fact) for fact in forgotten)]
    topics = [topic for topic in map(one_line, (previous.topic, *(message.text for message in own))) if topic]
    topic = next((topic for topic in topics if not is_small_talk(topic)), "".join(topics[:1]))
    sections = replace(summary(record, previous), topic=topic)
    stated = [new for new in record.valid if not new.known and new.importance > 1]
    facts = [asdict(_draft(new)) | {"supersedes": _marks(new.supersedes)} for new in stated]
    instructions = [
        {"text": one_line(sentence), "quote": sentence, "source": message.number}
        for message in own
        for sentence in sentences(message.text)
        if asks("standing", sentence)
    ]
    forget = [{"fact": mark, "rest": ""} for mark in _marks(old.known for old in forgotten if old.known)]
    return {"summary": sections.as_dict(), "facts": facts, "forget": forget, "instructions": instructions}


def _draft(new: Statement) -> FactDraft:
    # What replaces a fact counts in every chat, since what it replaces can be recalled in every chat.
    scope = "user" if new.category in _LASTING or new.supersedes else "session"
    ties = tuple(links(new.text))
    return FactDraft(one_line(new.text), new.source, new.quote, new.category, new.importance, scope, links=ties)


def _marks(fact_ids: Iterable[int]) -> list[str]:
    """Return the marks of known facts, as the prompt shows them."""
    return [f"F{fact_id}" for fact_id in sorted(fact_ids)]


def summary(record: Record, previous: Sections) -> Sections:
    """Return the sections as they are now."""
    items: dict[str, list[Any]] = {section.name: [] for section in SECTIONS if section.kind != "line"}
    for statement in record.valid:
        if statement.section == "excluded":
            reason = statement.text.removeprefix(statement.value).removeprefix(": ")
            items["excluded"].append(Excluded(one_line(statement.value), one_line(reason)))
        elif statement.section:
            items[statement.section].append(one_line(statement.text))
    items["open_questions"] = record.questions
    changed: dict[str, Any] = {name: tuple(dict.fromkeys(values)) for name, values in items.items()}
    return replace(previous, **changed)


def patch(document: Mapping[str, Any], system: str, content: str) -> Sequence[dict[str, Any]]:
    """Return operations for names, home, work, likes and dislikes, as the person states them."""
    schema = json.loads(system.partition("The JSON Schema of the profile: ")[2].partition("\n")[0] or "{}")
    kinds = {name: place.get("type") for name, place in schema.get("properties", {}).items()}
    lists = {name: list(value) for name, value in document.items() if isinstance(value, list)}
    operations = []
    for message in messages_in(items(content, "messages")):
        for statement in statements(message.text):
            source = {"quote": statement.quote, "source": message.number}
            name = _PLACES.get(statement.about, "")
            is_ended = statement.mark == "-"
            if name == "likes":
                name, other = ("dislikes", "likes") if is_ended else ("likes", "dislikes")
                words = terms(statement.value)
                before = lists.get(other, [])
                opposite = [place for place, old in enumerate(before) if terms(str(old)) == words]
                for place in reversed(opposite):
                    del before[place]
                    operations.append({"op": "remove", "path": f"/{other}/{place}", "value": "", **source})
                is_ended = is_ended and bool(opposite)
            path = {"array": f"/{name}/-", "string": f"/{name}"}.get(str(kinds.get(name)))
            if path and not is_ended:
                value = statement.text if name == "work" else statement.value
                operations.append({"op": "add", "path": path, "value": value, **source})
    return operations
