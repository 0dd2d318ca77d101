"""A reply by quotation: statements are acknowledged, questions answered with what the person said, and when.

Facts and what was said of late come before older text, and nothing is quoted that later words replaced.

Guarantee: what stands between quotation marks is a part of the material, and never the assistant's words; where there
is nothing to quote, the reply says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from memory.domain import Message
from memory.llm import ReplyMaterial
from memory.llm.builtin.digest import Noted, Reader
from memory.llm.builtin.language import asks, day, found, is_question, is_small_talk, phrases_for, sought, terms
from memory.llm.builtin.reading import FIGURES, Statement, corrects, sentences
from memory.rendering import one_line
from memory.sections import Sections

MAX_QUOTES, MAX_QUOTE, MAX_LISTED = 3, 200, 15
ENOUGH, ENOUGH_IMPERSONAL = 0.4, 0.55  # of a question's words
HELD, OWN, OTHERS, SUMMED_UP = range(4)  # where words are from, the best first


@dataclass(frozen=True)
class Said:
    """Words that may be quoted; `speaker` is "" for the person."""

    text: str
    words: frozenset[str]
    when: datetime
    origin: int
    speaker: str = ""
    statement: Statement | None = None
    gloss: str = ""  # what "make that 15" comes to


def reply(material: ReplyMaterial) -> str:
    """The reply to the question of `material`, never empty."""
    text = material.question
    words = phrases_for(text)
    parts = [part for part in sentences(text) if asks("who", part) or not is_small_talk(part)]
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
    asked = [part for part in parts if asks("who", part) or is_question(part)]
    noted = list[Noted]()
    paragraphs = list[str]()
    if len(asked) < len(parts):
        noted = reader.read(Message(0, "", -1, "user", text, material.now, 0))
        paragraphs.append(_acknowledged(noted, words) or ("" if asked else words["noted plain"]))
    if any(asks("who", part) for part in asked):
        paragraphs.append(words["who"])
    elif asked:
        told = {one.key for one in noted}  # its acknowledgement answers
        left = [question for question in asked[:5] if told.isdisjoint(sought(question))]
        paragraphs.append(_Answer(material, reader, earlier).to(left))
    return "\n\n".join(filter(None, paragraphs)) or words["fine"]


def _small_talk(text: str, reader: Reader, words: dict[str, str]) -> str:
    if not text.strip():
        return words["empty"]
    if not is_small_talk(text):
        return words["task"]
    if not asks("hello", text):
        return words[next((name for name in ("thanks", "bye") if asks(name, text)), "fine")]
    name = next((one.value for one in reversed(reader.held) if one.key == "name"), "")
    return words["hello name"].format(name=_clip(name, 40)) if name else words["hello"]


def _acknowledged(noted: Sequence[Noted], words: dict[str, str]) -> str:
    items = [words[one.kind].format(option=one.text) if one.kind else _in_mid_sentence(one.text) for one in noted]
    replaced = [
        words["replaces"].format(date=day(old.when, words), quote=_quotable(old.quote or old.text))
        for one in noted
        for old in one.replaced
    ]
    said = words["joint"].join(_clip(item, MAX_QUOTE) for item in dict.fromkeys(items))
    return "\n".join([words["noted"].format(items=said), *dict.fromkeys(replaced)]) if items else ""


def _in_mid_sentence(text: str) -> str:
    label, colon, value = one_line(text).partition(": ")
    text = f"{label} {value}" if colon else label
    return text[:1].lower() + text[1:] if text[1:2].islower() and not text.startswith("I ") else text


class _Answer:
    """Answers the questions of one message from the facts, what was said, and the summary."""

    def __init__(self, material: ReplyMaterial, reader: Reader, messages: Sequence[Message]) -> None:
        self._material, self._reader, self._words = material, reader, phrases_for(material.question)
        self._said = list(self._all_said(messages))

    def to(self, asked: Sequence[str]) -> str:
        lines = dict.fromkeys(line for question in asked for line in self._one(question))
        if lines or not asked:
            return "\n".join(lines)
        return self._words["nothing" if self._said else "no statement"]

    def _one(self, question: str) -> list[str]:
        if asks("person", question) and (known := self._known()):
            return known
        names = [name.removeprefix("section ") for name in sought(question) if name.startswith("section ")]
        if asks("overview", question) or asks("person", question):
            names = list(asdict(Sections()))
        return self._section(names) or self._quotes(self._found(question))

    def _known(self) -> list[str]:
        facts = sorted((one for one in self._reader.held if one.importance > 1), key=lambda one: -one.importance)
        lines = list(dict.fromkeys(f"- {_clip(one_line(one.text), MAX_QUOTE)}" for one in facts))
        excluded = Sections(excluded=self._reader.sections().excluded).lines()
        return [self._words["known"], *lines[:MAX_LISTED], *map(one_line, excluded)] if lines else []

    def _section(self, names: Sequence[str]) -> list[str]:
        sections = self._reader.sections()
        lines = replace(Sections(), **{name: getattr(sections, name) for name in names}).lines()
        return [self._words["summary"], *map(one_line, lines)] if lines else []

    def _found(self, question: str) -> list[Said]:
        if not terms(question) and not sought(question):  # "What did I say yesterday?": recall has found the time
            own = [said for said in self._said if said.origin <= OWN]
            return own[:MAX_QUOTES] if self._material.excerpts else []
        fits = [(self._fit(question, said), said) for said in self._said]
        least = ENOUGH if asks("self", question) else ENOUGH_IMPERSONAL
        enough = max(least, 0.8 * max((fit for fit, _ in fits), default=0.0))
        close = [said for fit, said in fits if fit >= enough]
        best = min((said.origin for said in close), default=HELD)
        out = list[Said]()
        for said in sorted((said for said in close if said.origin == best), key=lambda said: said.when, reverse=True):
            if not any(said.text in other.text or other.text in said.text for other in out):
                out.append(said)
        return out[: 1 if asks("when", question) or asks("amount", question) else MAX_QUOTES]

    def _fit(self, question: str, said: Said) -> float:
        """How well words answer: up to 1 for their words, more for what is just of the kind that is asked for."""
        kin, theirs = found("kin", question), found("kin", " ".join(said.text.split()[:4]))
        names = {term for name in re.findall(r"(?<=[\w,] )[A-Z]\w+", question) for term in terms(name)}
        there = said.words | set(terms(said.speaker))
        if not names | set(terms(" ".join(kin))) <= there:
            return 0.0
        if said.statement is not None and not kin and not theirs and _answers(said.statement, sought(question)):
            return 2.0
        wanted = set(terms(question)) - set(terms(said.speaker))
        if (asks("amount", question) and not asks("figure", said.text)) or (theirs - kin and not wanted <= there):
            return 0.0
        fit = len(wanted & said.words) / (len(wanted) or 1)
        dated = asks("when", question) or asks("amount", question)
        return fit + 0.3 if fit and dated and asks("figure", said.text) else fit

    def _all_said(self, messages: Sequence[Message]) -> Iterator[Said]:
        """What may be quoted: what holds first, then sentences, the newest first, without what was replaced."""
        for one in reversed(self._reader.held):
            text, gloss = _shown(one)
            words = frozenset(terms(f"{text} {one.text} {one.key}"))
            yield Said(text, words, one.when, HELD, statement=one, gloss=gloss)
        stale = [old.quote for old in self._reader.gone if old.quote]
        for message in reversed(messages):
            speaker = "" if message.role == "user" else one_line(message.name or "")[:60]
            if message.role not in ("user", "assistant") or (message.role == "assistant" and not speaker):
                continue
            before = ""
            for sentence in sentences(message.content):
                if is_question(sentence) or is_small_talk(sentence):
                    continue
                text = before = f"{before} {sentence}" if before and asks("refers", sentence) else sentence
                if speaker or not any(quote in text for quote in stale):
                    words = frozenset(terms(f"{text} {message.name or ''}"))
                    yield Said(_quotable(text), words, message.created_at, OTHERS if speaker else OWN, speaker)
        gone = [old.text for old in self._reader.gone]
        for line in self._material.summary.lines():
            if line.startswith("- ") and not is_question(line) and not any(map(line.count, gone)):
                yield Said(one_line(line), frozenset(terms(line)), self._material.now, SUMMED_UP)

    def _quotes(self, found: Sequence[Said]) -> list[str]:
        if found and found[0].origin == SUMMED_UP:
            return [self._words["summary"], *(said.text for said in found)]
        many = len(found) > 1 and not found[0].speaker
        lines = []
        for said in found:
            words = self._words["said" if said.speaker else "dated" if many else "told"]
            line = words.format(speaker=said.speaker, date=day(said.when, self._words), quote=said.text)
            lines.append(f"{line} ({said.gloss})" if said.gloss else line)
        return [self._words["told many"], *(f"- {line}" for line in lines)] if many else lines


def _answers(statement: Statement, asked_for: Sequence[str]) -> bool:
    """Whether a statement is of a kind that is asked for."""
    limit = statement.category in ("constraint", "requirement")
    return (
        statement.key.split(":")[0] in asked_for
        or ("budget" in asked_for and limit and FIGURES["money"].search(statement.text) is not None)
        or ("deadline" in asked_for and limit and FIGURES["date"].search(statement.text) is not None)
        or ("plan" in asked_for and statement.category == "plan")
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
