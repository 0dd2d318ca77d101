"""Answer what a mini model is asked, by rules: summary and facts, profile's patch, instruction, overview, pairs.

Invariant: items and facts are the conversation's words or a fixed label; facts rest on the person's own messages and
quote them verbatim (tests/test_builtin_model.py).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from memory.llm.builtin.language import asks, is_small_talk, patterns, terms
from memory.llm.builtin.prompt import items, known_in, messages_in
from memory.llm.builtin.reading import Statement, links, sentences, statements
from memory.llm.builtin.record import Record
from memory.quoting import one_line
from models.facts import FactDraft
from models.sections import Excluded, Sections

QUESTIONS_MAX, FACTS_MAX = 2, 4  # of an overview
_LASTING = ("identity", "preference", "relationship", "work")
_UNDERTAKING = patterns("reading")["undertaking"]
_PLACES = {"name": "names", "home": "home", "job": "work", "taste": "likes"}  # by what a statement is about


def answer(schema: Mapping[str, Any], system: str, content: str) -> dict[str, Any]:
    """Return an answer that follows the schema. system: the instruction; content: what it is about."""
    asked = set(schema.get("properties", ()))
    if "facts" in asked:
        return {name: value for name, value in update_summary(content).items() if name in asked}
    if "patch" in asked:
        return {"patch": patch(json.loads(next(iter(items(content, "profile")), "{}")), system, content)}
    if "quote" in asked:  # what the person says becomes the last line of the instruction
        said = one_line(" ".join(one for one in items(content, "feedback") if not one.startswith("thumbs ")))
        text = "\n".join(filter(None, ["\n".join(items(content, "instruction")), said]))
        return {"text": text, "reason": "The person said so.", "quote": said}
    if "sentences" in asked:
        return {"sentences": overview(content)}
    if "best" in asked:
        return {"best": list(range(1, len(items(content, "messages")) + 1))}
    return dict.fromkeys(asked, ()) | {"same": [], "contradicts": []}  # rules can't tell


def overview(content: str) -> list[dict[str, Any]]:
    """Return the latest open questions and the first facts, word for word: each is its own source."""
    questions = [line for line in known_in(items(content, "summaries")) if ", open questions: " in line.text]
    lines = [*questions[:QUESTIONS_MAX], *islice(known_in(items(content, "facts")), FACTS_MAX)]
    return [{"text": line.text, "sources": [line.id]} for line in lines]


def update_summary(content: str) -> dict[str, Any]:
    """Return the summary and the facts of the messages since, and the ids of the facts to forget."""
    before = next(iter(items(content, "summary_so_far")), "")
    previous = Sections.from_dict(json.loads(before)) if before else Sections()
    record, messages = Record(previous), list(messages_in(items(content, "messages")))
    record.take_up([*known_in(items(content, "known_facts")), *messages])
    meant = [record.meant(one.text) for one in messages if one.role == "user" and asks("forget", one.text)]
    forgotten = [one for one in meant if one is not None]
    record.held = [one for one in record.held if not any(one is old or one.says(old.text) for old in forgotten)]
    if any(one.says(previous.topic) for one in forgotten):
        previous = replace(previous, topic="")
    found = [one for one in record.held if not one.known and one.importance > 1]
    sections = summary(record, previous)
    first = next((one_line(message.text) for message in messages if message.role == "user"), "")
    sections = replace(sections, topic=sections.topic or first)  # it says something once anything was said
    facts = [asdict(_draft(one)) for one in found]
    instructions = [
        {"text": one_line(sentence), "quote": sentence, "source": one.position}
        for one in messages
        for sentence in (sentences(one.text) if one.role == "user" else ())
        if asks("standing", sentence)
    ]
    forget = [one.known for one in forgotten if one.known]
    return {"summary": sections.as_dict(), "facts": facts, "forget": forget, "instructions": instructions}


def _draft(one: Statement) -> FactDraft:
    # What replaces a fact counts in every chat, since what it replaces can be recalled in every chat.
    scope = "user" if one.category in _LASTING or one.supersedes else "session"
    supersedes, tied = tuple(sorted(one.supersedes)), tuple(links(one.text))
    return FactDraft(one_line(one.text), one.source, one.quote, one.category, one.importance, scope, supersedes, tied)


def summary(record: Record, previous: Sections) -> Sections:
    """Return the sections as they are now."""
    lists = {name: list[str]() for name in ("requirements", "constraints", "data", "discussed")}
    excluded = []
    for one in record.held:
        if one.section == "excluded":
            reason = one.text.removeprefix(one.value).removeprefix(": ")
            excluded.append(Excluded(one_line(one.value), one_line(reason)))
        elif one.section:
            lists[one.section].append(one_line(one.text))
    texts = {name: tuple(dict.fromkeys(texts)) for name, texts in lists.items()}
    first = next((text for either in (*texts.values(), record.questions) for text in either), "")
    topic = _topic(record, one_line(previous.topic)) or first
    questions = tuple(dict.fromkeys(record.questions))
    return Sections(topic=topic, excluded=tuple(excluded), open_questions=questions, **texts)


def _topic(record: Record, before: str) -> str:
    """Return what the topic was; unless it says little, what the person is up to, or who they are."""
    if not is_small_talk(before) and not before.startswith(("About ", "关于")):
        return before
    stated = [one for one in record.held if one.importance > 1 and not one.known]  # what is known is of other chats
    for one in stated:
        if one.category == "plan" and (match := _UNDERTAKING.match(one.text)):
            what = one_line(next(filter(None, match.groups())))
            return what[:1].upper() + what[1:]
    if name := next((one_line(one.value) for one in stated if one.key == "name"), ""):
        return f"About {name}" if name.isascii() else f"关于{name}"
    return "" if is_small_talk(before) else before


def patch(document: Mapping[str, Any], system: str, content: str) -> Sequence[dict[str, Any]]:
    """Return operations for names, home, work, likes and dislikes, as the person states them."""
    schema = json.loads(system.partition("The JSON Schema of the profile: ")[2].partition("\n")[0] or "{}")
    kinds = {name: place.get("type") for name, place in schema.get("properties", {}).items()}
    lists = {name: list(value) for name, value in document.items() if isinstance(value, list)}
    operations = []
    for message in messages_in(items(content, "messages")):
        for one in statements(message.text):
            about = {"quote": one.quote, "source": message.position}
            name, ended = _PLACES.get(one.about, ""), one.mark == "-"
            if name == "likes":
                name, other = ("dislikes", "likes") if ended else ("likes", "dislikes")
                taken = [place for place, old in enumerate(lists.get(other, ())) if terms(str(old)) == terms(one.value)]
                for place in reversed(taken):
                    del lists[other][place]
                    operations.append({"op": "remove", "path": f"/{other}/{place}", "value": "", **about})
                ended = ended and bool(taken)
            path = {"array": f"/{name}/-", "string": f"/{name}"}.get(str(kinds.get(name)))
            if path and not ended:
                value = one.text if name == "work" else one.value
                operations.append({"op": "add", "path": path, "value": value, **about})
    return operations
