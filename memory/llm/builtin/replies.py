"""A reply by quotation: statements are acknowledged, questions answered with what the person said, and when.

Facts and what was said of late come before older text, and nothing is quoted that later words replaced.

Guarantee: what stands between quotation marks is a part of the material, and never the assistant's words; where there
is nothing to quote, the reply says so.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.domain import Message
from memory.llm import ReplyMaterial
from memory.llm.builtin.changes import FIGURES, corrects
from memory.llm.builtin.digest import Noted, Reader
from memory.llm.builtin.language import (
    SOUGHT,
    asks,
    day,
    found,
    is_question,
    is_small_talk,
    phrases_for,
    straight,
    terms,
)
from memory.llm.builtin.statements import Statement, sentences
from memory.rendering import one_line
from memory.sections import Sections

MAX_QUOTES, MAX_QUOTE, MAX_LISTED = 3, 200, 15
ENOUGH, ENOUGH_IMPERSONAL = 0.4, 0.55  # of a question's words, weighed by rarity


@dataclass(frozen=True)
class Said:
    """Words that may be quoted; `speaker` is "" for the person, `held` for what a pattern read or a fact says."""

    text: str
    speaker: str
    when: datetime
    words: frozenset[str]
    statement: Statement | None = None
    gloss: str = ""  # what "make that 15" comes to


def reply(material: ReplyMaterial) -> str:
    """The reply to the question of `material`, never empty."""
    text = material.question
    words = phrases_for(text)
    parts = [part for part in sentences(text) if not is_small_talk(part)]
    reader = Reader(material.summary, material.facts)
    recalled = [message for excerpt in material.excerpts for message in excerpt.messages]
    messages = {one.id: one for one in [*recalled, *material.tail] if one.content != text}
    earlier = sorted(messages.values(), key=lambda message: (message.created_at, message.position))
    for message in earlier:
        if message.role == "user":
            reader.read(message)
    if not parts:
        return _small_talk(text[:300], reader, words)
    if all(asks("order", part) for part in parts):
        return words["task"]
    asked = [part for part in parts if is_question(part) or asks("who", part)]
    noted: list[Noted] = []
    paragraphs = []
    if len(asked) < len(parts):
        reader.read(Message(0, "", -1, "user", text, material.now, 0))
        noted = reader.noted
        paragraphs.append(_acknowledged(noted, words) or ("" if asked else words["noted plain"]))
    if asked:
        paragraphs.append(_Answer(material, reader, earlier).to(asked, noted))
    return "\n\n".join(filter(None, paragraphs)) or words["fine"]


def _small_talk(text: str, reader: Reader, words: dict[str, str]) -> str:
    if not text.strip():
        return words["empty"]
    if not is_small_talk(text):
        return words["task"]
    if not asks("hello", text):
        return words[next((name for name in ("thanks", "bye") if asks(name, text)), "fine")]
    name = next((held.statement.value for held in reversed(reader.held) if held.statement.key == "name"), "")
    return words["hello name"].format(name=_clip(name, 40)) if name else words["hello"]


def _acknowledged(noted: Sequence[Noted], words: dict[str, str]) -> str:
    items, replaced = list[str](), list[str]()
    for one in noted:
        if one.statement is not None:
            items.append(_in_mid_sentence(one_line(one.statement.text)))
        else:
            change = "excluded" if one.excluded else "reopened"
            items.append(words[change].format(option=one.excluded or one.reopened))
        for held in one.replaced:
            quote = _quotable(held.statement.quote or held.statement.text)
            replaced.append(words["replaces"].format(date=day(held.when, words), quote=quote))
    joint = words["joint"]
    said = joint.join(_clip(item, MAX_QUOTE) for item in dict.fromkeys(items))
    return "\n".join([words["noted"].format(items=said), *dict.fromkeys(replaced)]) if items else ""


def _in_mid_sentence(text: str) -> str:
    label, colon, value = text.partition(": ")
    text = f"{label} {value}" if colon else text
    return text[:1].lower() + text[1:] if text[1:2].islower() and not text.startswith("I ") else text


class _Answer:
    """Answers the questions of one message from the facts, what was said, and the summary."""

    def __init__(self, material: ReplyMaterial, reader: Reader, messages: Sequence[Message]) -> None:
        self._material, self._reader, self._words = material, reader, phrases_for(material.question)
        self._said = list(self._all_said(messages))
        counts = Counter(word for said in self._said for word in said.words)
        self._rarity = {word: 1 + math.log((len(self._said) + 1) / (count + 1)) for word, count in counts.items()}
        self._unseen = 1 + math.log(len(self._said) + 1)

    def to(self, asked: Sequence[str], noted: Sequence[Noted]) -> str:
        if any(asks("who", question) for question in asked):
            return self._words["who"]
        told = {one.statement.key for one in noted if one.statement is not None}  # its acknowledgement answers
        left = [question for question in asked[:5] if told.isdisjoint(_sought(question))]
        lines = dict.fromkeys(line for question in left for line in self._one(question))
        if lines or not left:
            return "\n".join(lines)
        return self._words["nothing" if self._said else "no statement"]

    def _one(self, question: str) -> list[str]:
        if asks("person", question) and (known := self._known()):
            return known
        if asks("overview", question) or asks("person", question):
            return self._section(list(vars(Sections()))) or self._quotes(self._said[:MAX_QUOTES])
        names = [name.removeprefix("section ") for name in _sought(question) if name.startswith("section ")]
        return self._section(names) or self._quotes(self._found(question)) or self._of_summary(question)

    def _known(self) -> list[str]:
        facts = [held.statement for held in self._reader.held if held.is_fact]
        facts.sort(key=lambda statement: -statement.importance)
        lines = list(dict.fromkeys(f"- {_clip(one_line(statement.text), MAX_QUOTE)}" for statement in facts))
        out = self._shown_lines(Sections(excluded=self._reader.sections().excluded))
        return [self._words["known"], *lines[:MAX_LISTED], *out] if lines else []

    def _section(self, names: Sequence[str]) -> list[str]:
        sections = self._reader.sections()
        lines = self._shown_lines(replace(Sections(), **{name: getattr(sections, name) for name in names}))
        return [self._words["summary"], *lines] if lines else []

    def _shown_lines(self, sections: Sections) -> list[str]:
        titles = {line[:-1] for line in sections.lines() if line.endswith(":")}
        return [
            f"{self._words.get(line[:-1], line[:-1])}{self._words['colon']}" if line[:-1] in titles else one_line(line)
            for line in sections.lines()
        ]

    def _of_summary(self, question: str) -> list[str]:
        gone = [held.statement.text for held in self._reader.gone]
        lines = [line for line in self._material.summary.lines() if line.startswith("- ") and not is_question(line)]
        said = [Said(line, "", self._material.now, frozenset(terms(line))) for line in lines]
        fits = [one.text for one in said if self._fit(question, one) >= ENOUGH and not any(map(one.text.count, gone))]
        return [self._words["summary"], *map(one_line, fits[:MAX_QUOTES])] if fits else []

    def _found(self, question: str) -> list[Said]:
        own = [said for said in self._said if not said.speaker]
        if not terms(question) and not _sought(question):  # "What did I say yesterday?": recall has found the time
            return own[:MAX_QUOTES] if self._material.excerpts else []
        fits = [(self._fit(question, said), said) for said in self._said]
        least = ENOUGH if asks("self", question) else ENOUGH_IMPERSONAL
        enough = max(least, 0.8 * max((fit for fit, _ in fits), default=0.0))
        close = [said for fit, said in fits if fit >= enough]
        close = [said for said in close if said.statement] or [said for said in close if said in own] or close
        out = list[Said]()
        for said in sorted(close, key=lambda said: said.when, reverse=True):
            if not any(said.text in other.text or other.text in said.text for other in out):
                out.append(said)
        return out[: 1 if asks("when", question) or asks("amount", question) else MAX_QUOTES]

    def _fit(self, question: str, said: Said) -> float:
        """How well words answer: up to 1 for their words, more for what is just of the kind that is asked for."""
        kin, theirs = found("kin", question), found("kin", " ".join(said.text.split()[:4]))
        names = {term for name in re.findall(r"(?<=[\w,] )[A-Z]\w+", question) for term in terms(name)}
        there = said.words | set(terms(said.speaker))
        if not names <= there or not set(terms(" ".join(kin))) <= there:
            return 0.0
        sought, statement = _sought(question), said.statement
        if statement is not None and not kin and not theirs and _answers(statement, sought):
            return 2.0
        wanted = set(terms(question)) - set(terms(said.speaker))
        if (asks("amount", question) and not asks("figure", said.text)) or (theirs - kin and not wanted <= there):
            return 0.0
        weights = {word: self._rarity.get(word, self._unseen) for word in wanted}
        fit = sum(weights[word] for word in wanted & said.words) / (sum(weights.values()) or 1.0)
        dated = asks("when", question) or asks("amount", question)
        return fit + 0.3 if fit and dated and asks("figure", said.text) else fit

    def _all_said(self, messages: Sequence[Message]) -> Iterator[Said]:
        """What may be quoted: what holds first, then sentences, the newest first, without what was replaced."""
        for held in reversed(self._reader.held):
            statement, (text, gloss) = held.statement, _shown(held.statement)
            words = frozenset(terms(f"{text} {statement.text} {statement.key}"))
            yield Said(text, "", held.when, words, statement, gloss)
        stale = [held.statement.quote for held in self._reader.gone if held.statement.quote]
        for message in reversed(messages):
            speaker = "" if message.role == "user" else one_line(message.name or "")[:60]
            if message.role not in ("user", "assistant") or (message.role == "assistant" and not speaker):
                continue
            before = ""
            for sentence in sentences(message.content):
                if is_question(sentence) or is_small_talk(sentence):
                    continue
                text = f"{before} {sentence}" if before and asks("refers", sentence) else sentence
                before = text
                if speaker or not any(quote in text for quote in stale):
                    words = frozenset(terms(f"{text} {message.name or ''}"))
                    yield Said(_quotable(text), speaker, message.created_at, words)

    def _quotes(self, found: Sequence[Said]) -> list[str]:
        many = len(found) > 1 and not any(said.speaker for said in found)
        lines = []
        for said in found:
            words = self._words["said" if said.speaker else "dated" if many else "told"]
            line = words.format(speaker=said.speaker, date=day(said.when, self._words), quote=said.text)
            lines.append(f"{line} ({said.gloss})" if said.gloss else line)
        return [self._words["told many"], *(f"- {line}" for line in lines)] if many else lines


def _sought(question: str) -> list[str]:
    return [name for name, pattern in SOUGHT.items() if pattern.search(straight(question))]


def _answers(statement: Statement, sought: Sequence[str]) -> bool:
    """Whether a statement is of a kind that is asked for."""
    limit = statement.category in ("constraint", "requirement")
    return (
        statement.key.split(":")[0] in sought
        or ("budget" in sought and limit and FIGURES["money"].search(statement.text) is not None)
        or ("deadline" in sought and limit and FIGURES["date"].search(statement.text) is not None)
        or ("plan" in sought and statement.category == "plan")
    )


def _shown(statement: Statement) -> tuple[str, str]:
    """The words for a statement, and what they come to: its quote, or its text where a person edited it."""
    quote, text = _quotable(statement.quote), _quotable(statement.text)
    if quote and corrects(quote) and not set(terms(text)) <= set(terms(quote)):
        return quote, text
    telling = re.findall(r"\d+|(?<= )[A-Z]\w+", text.rpartition(": ")[2])
    return (quote if quote and all(word in quote for word in telling) else text), ""


def _quotable(text: str) -> str:
    return _clip(one_line(text), MAX_QUOTE).replace('"', "'").replace("“", "‘").replace("”", "’")


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rpartition(" ")[0] + "…"
