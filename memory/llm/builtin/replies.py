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
from memory.llm.builtin.changes import FIGURES
from memory.llm.builtin.digest import Noted, Reader
from memory.llm.builtin.language import (
    CHINESE_PHRASES,
    ENGLISH_PHRASES,
    SOUGHT,
    asks,
    day,
    found,
    is_chinese,
    is_own,
    is_question,
    is_small_talk,
    straight,
    terms,
)
from memory.llm.builtin.statements import Statement, sentences
from memory.rendering import one_line
from memory.sections import Sections

MAX_QUOTES, MAX_QUOTE, MAX_LISTED = 3, 200, 15
ENOUGH, ENOUGH_IMPERSONAL = 0.5, 0.55  # of a question's words, weighed by rarity


@dataclass(frozen=True)
class Said:
    """Words that may be quoted, of the person ("") or another speaker; `statement` is what a pattern read in them."""

    text: str
    speaker: str
    when: datetime
    words: frozenset[str]
    statement: Statement | None = None


def reply(material: ReplyMaterial) -> str:
    """The reply to the question of `material`, never empty."""
    text = material.question
    words = CHINESE_PHRASES if is_chinese(text) else ENGLISH_PHRASES
    parts = [part for part in sentences(text) if not is_small_talk(part)]
    reader = Reader(material.summary, material.facts)
    earlier = [message for message in material.tail if message.content != text]
    recalled = [message for excerpt in material.excerpts for message in excerpt.messages if message.content != text]
    for message in sorted(
        {message.id: message for message in [*recalled, *earlier]}.values(), key=lambda one: one.created_at
    ):
        if message.role == "user":
            reader.read(message)
    if not parts:
        return words["task"] if asks("order", text) else _small_talk(text, reader, words)
    if all(asks("order", part) for part in parts) and not any(
        is_question(part) and asks("self", part) for part in parts
    ):
        return words["task"]
    asked = [part for part in parts if is_question(part) or asks("who", part)]
    paragraphs = []
    noted: list[Noted] = []
    if len(asked) < len(parts):
        position = 1 + max((message.position for message in [*recalled, *earlier]), default=0)
        reader.read(Message(0, "", position, "user", text, material.now, 0))
        noted = reader.noted
        paragraphs.append(_acknowledged(noted, words) or ("" if asked else words["noted plain"]))
    if asked:
        paragraphs.append(_Answer(material, reader, [*earlier, *recalled], words).to(asked, noted))
    return "\n\n".join(filter(None, paragraphs)) or words["fine"]


def _small_talk(text: str, reader: Reader, words: dict[str, str]) -> str:
    if not re.search(r"\w", text) and not text.strip():
        return words["empty"]
    for kind in ("thanks", "bye"):
        if asks(kind, text):
            return words[kind]
    if asks("hello", text):
        name = next((held.statement.value for held in reversed(reader.held) if held.statement.key == "name"), "")
        return words["hello name"].format(name=_clip(name, 40)) if name else words["hello"]
    return words["fine"]


def _acknowledged(noted: Sequence[Noted], words: dict[str, str]) -> str:
    items, replaced = list[str](), list[str]()
    for one in noted:
        if one.statement is not None:
            items.append(_in_mid_sentence(one_line(one.statement.text)))
        else:
            items.append(
                words["excluded"].format(option=one.excluded)
                if one.excluded
                else words["reopened"].format(option=one.reopened)
            )
        for held in one.replaced:
            quote = _quotable(held.statement.quote or held.statement.text)
            replaced.append(words["replaces"].format(date=day(held.when, words), quote=quote))
    joint = "；" if words is CHINESE_PHRASES else "; "
    said = (
        words["noted"].format(items=joint.join(_clip(item, MAX_QUOTE) for item in dict.fromkeys(items)))
        if items
        else ""
    )
    return "\n".join(filter(None, [said, *dict.fromkeys(replaced)]))


def _in_mid_sentence(text: str) -> str:
    label, colon, value = text.partition(": ")
    text = f"{label} {value}" if colon else text
    return text[:1].lower() + text[1:] if text[1:2].islower() and not text.startswith("I ") else text


class _Answer:
    """Answers the questions of one message from the facts, what was said, and the summary."""

    def __init__(
        self, material: ReplyMaterial, reader: Reader, messages: Sequence[Message], words: dict[str, str]
    ) -> None:
        self._material, self._reader, self._words = material, reader, words
        self._stale = [held.statement.quote for held in reader.gone if held.statement.quote]
        self._said = list(self._all_said(messages))
        counts = Counter(word for said in self._said for word in said.words)
        self._rarity = {word: 1 + math.log((len(self._said) + 1) / (count + 1)) for word, count in counts.items()}
        self._unseen = 1 + math.log(len(self._said) + 1)

    def to(self, asked: Sequence[str], noted: Sequence[Noted]) -> str:
        if any(asks("who", question) for question in asked):
            return self._words["who"]
        made = [one.statement for one in noted if one.statement is not None]
        lines, left = list[str](), [text for text in asked[:5] if not any(one.key in _sought(text) for one in made)]
        for question in left:
            lines += [line for line in self._one(question) if line not in lines]
        if lines or not left:
            return "\n".join(lines)
        return self._words["nothing" if self._said else "no statement"]

    def _one(self, question: str) -> list[str]:
        bare = straight(question)
        if asks("person", bare) and (known := self._known()):
            return known
        if asks("overview", bare) or asks("person", bare):
            return self._section(list(vars(Sections()))) or self._quotes(self._said[:MAX_QUOTES])
        names = [key.removeprefix("section ") for key in _sought(bare) if key.startswith("section ")]
        return (self._section(names) if names else []) or self._quotes(self._found(bare)) or self._of_summary(bare)

    def _known(self) -> list[str]:
        facts = sorted(
            (held for held in self._reader.held if held.is_fact), key=lambda held: -held.statement.importance
        )
        lines = [
            f"- {item}" for item in dict.fromkeys(_clip(one_line(held.statement.text), MAX_QUOTE) for held in facts)
        ]
        out = Sections(excluded=self._reader.sections().excluded).lines()
        return [self._words["known"], *lines[:MAX_LISTED], *out] if lines else []

    def _section(self, names: Sequence[str]) -> list[str]:
        sections = self._reader.sections()
        shown = replace(Sections(), **{name: getattr(sections, name) for name in names})
        return [self._words["summary"], *map(one_line, shown.lines())] if not shown.empty else []

    def _of_summary(self, question: str) -> list[str]:
        lines = [line for line in self._material.summary.lines() if line.startswith("- ") and not is_question(line)]
        fits = [
            line
            for line in lines
            if self._fit(question, Said(line, "", self._material.now, frozenset(terms(line)))) >= ENOUGH
        ]
        fits = [line for line in fits if not any(held.statement.text in line for held in self._reader.gone)]
        return [self._words["summary"], *map(one_line, fits[:MAX_QUOTES])] if fits else []

    def _found(self, question: str) -> list[Said]:
        if not terms(question) and not _sought(question):  # "What did I say yesterday?": recall has found the time
            return [said for said in self._said if not said.speaker][:MAX_QUOTES] if self._material.excerpts else []
        fits = {place: self._fit(question, said) for place, said in enumerate(self._said)}
        enough = ENOUGH if asks("self", question) else ENOUGH_IMPERSONAL
        best = max(fits.values(), default=0.0)
        close = [self._said[place] for place, fit in fits.items() if fit >= max(enough, 0.8 * best)]
        known = [said for said in close if said.statement is not None]
        close = known or [said for said in close if not said.speaker] or close
        close.sort(key=lambda said: said.when, reverse=True)
        out = list[Said]()
        for said in close:
            if not any(said.text in other.text or other.text in said.text for other in out):
                out.append(said)
        return out[: 1 if asks("when", question) or asks("amount", question) else MAX_QUOTES]

    def _fit(self, question: str, said: Said) -> float:
        """How well words answer, 0 to 1 and a little more for a date or a figure that is asked for."""
        statement, sought = said.statement, _sought(question)
        kin = found("kin", question)
        about = found("kin", " ".join(said.text.split()[:4]))
        names = {term for word in re.findall(r"(?<=[\w,] )[A-Z]\w+", question) if word != "I" for term in terms(word)}
        if not names <= said.words | set(terms(said.speaker)) or not set(terms(" ".join(kin))) <= said.words | names:
            return 0.0
        if statement is not None and statement.key in sought and not kin - about and not about - kin:
            return 2.0
        if asks("amount", question) and not asks("figure", said.text):
            return 0.0
        wanted = set(terms(question)) - set(terms(said.speaker))
        if about - kin and asks("self", question) and not wanted <= said.words:
            return 0.0
        total = sum(self._rarity.get(word, self._unseen) for word in wanted)
        fit = sum(self._rarity.get(word, self._unseen) for word in wanted & said.words) / total if total else 0.0
        dated = asks("when", question) and (FIGURES["date"].search(said.text) or asks("figure", said.text))
        return (
            fit + 0.3 if fit and (dated or (asks("amount", question) and FIGURES["money"].search(said.text))) else fit
        )

    def _all_said(self, messages: Sequence[Message]) -> Iterator[Said]:
        for held in reversed(self._reader.held):
            statement = held.statement
            text = _quotable(statement.quote if _rests_on_quote(statement) else statement.text)
            yield Said(text, "", held.when, frozenset(terms(f"{text} {statement.text} {statement.key}")), statement)
        for message in sorted(messages, key=lambda message: message.created_at, reverse=True):
            speaker = "" if message.role == "user" else one_line(message.name or "")[:60]
            if message.role not in ("user", "assistant") or (
                message.role == "assistant" and (not speaker or is_own(message.content))
            ):
                continue
            before = ""
            for sentence in sentences(message.content):
                if is_question(sentence) or is_small_talk(sentence):
                    continue
                text = f"{before} {sentence}" if before and asks("refers", sentence) else sentence
                before = text
                if speaker or not any(quote in text for quote in self._stale):
                    yield Said(
                        _quotable(text), speaker, message.created_at, frozenset(terms(f"{text} {message.name or ''}"))
                    )

    def _quotes(self, found: Sequence[Said]) -> list[str]:
        many = len(found) > 1 and not any(said.speaker for said in found)
        lines = []
        for said in found:
            if said.statement is not None and not _rests_on_quote(said.statement):  # corrected, or edited by the person
                lines.append(said.text if many else f"{self._words['known']} {said.text}")
                continue
            words = self._words["said" if said.speaker else "dated" if many else "told"]
            lines.append(words.format(speaker=said.speaker, date=day(said.when, self._words), quote=said.text))
        return [self._words["told many"], *(f"- {line}" for line in lines)] if many else lines


def _sought(question: str) -> list[str]:
    return [key for key, pattern in SOUGHT.items() if pattern.search(straight(question))]


def _rests_on_quote(statement: Statement) -> bool:
    """Whether a statement says no more than its quote: not one that a person edited, or a figure that was corrected."""
    figures = set(re.findall(r"\w*\d\w*", statement.text))
    capitals = set(re.findall(r"\b[A-Z]\w+", statement.value))
    return bool(statement.quote) and figures | capitals <= set(re.findall(r"\w+", statement.quote))


def _quotable(text: str) -> str:
    return _clip(one_line(text), MAX_QUOTE).replace('"', "'").replace("“", "‘").replace("”", "’")


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rpartition(" ")[0] + "…"
