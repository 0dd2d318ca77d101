"""A reply by quotation: statements are acknowledged, questions answered with what the person said, and when.

Facts and what was said of late come before older text, and nothing is quoted that later words replaced.

Guarantee: what stands between quotation marks is a part of the material, and never the assistant's words; where there
is nothing to quote, the reply says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace

from memory.domain import Message
from memory.llm import ReplyMaterial
from memory.llm.builtin.digest import Noted, Reader, clip
from memory.llm.builtin.language import asks, day, found, is_question, is_small_talk, phrases_for, sought, terms
from memory.llm.builtin.reading import FIGURES, Statement, corrects, sentences
from memory.rendering import one_line
from memory.sections import Sections

MAX_QUOTES, MAX_LISTED = 3, 15
ENOUGH, ENOUGH_IMPERSONAL = 0.4, 0.55  # of a question's words
FACT, OWN, OTHERS, SUMMED_UP = range(4)  # where words are from, the best first


def reply(material: ReplyMaterial) -> str:
    """The reply to the question of `material`, never empty."""
    text = material.question
    words = phrases_for(text)
    parts = [part for part in sentences(text) if asks("who", part) or sought(part) or not is_small_talk(part)]
    reader = Reader(material.summary, material.facts)
    recalled = [message for excerpt in material.excerpts for message in excerpt.messages]
    messages = {one.id: one for one in [*recalled, *material.tail] if one.content != text}
    earlier = sorted(messages.values(), key=lambda message: (message.created_at, message.position))
    for message in earlier:
        reader.read(message) if message.role == "user" else reader.read_reply(message)
    reader.learn()
    if not parts:
        return _small_talk(text[:300], reader, words)
    if all(asks("order", part) for part in parts):
        return words["task"]
    asked = [part for part in parts if asks("who", part) or is_question(part)]
    noted, paragraphs = list[Noted](), list[str]()
    if len(asked) < len(parts):
        noted = reader.read(Message(0, "", -1, "user", text, material.now, 0))
        paragraphs.append(_acknowledged(noted, words) or ("" if asked else words["noted plain"]))
    if any(asks("who", part) for part in asked):
        paragraphs.append(words["who"])
    elif asked:
        told = {one.key for one, _ in noted}  # its acknowledgement answers
        left = [question for question in asked[:5] if told.isdisjoint(sought(question))]
        paragraphs.append(_Answer(material, reader).to(left))
    return "\n\n".join(filter(None, paragraphs)) or words["fine"]


def _small_talk(text: str, reader: Reader, words: dict[str, str]) -> str:
    if not text.strip():
        return words["empty"]
    if not is_small_talk(text):
        return words["task"]
    if not asks("hello", text):
        return words[next((name for name in ("thanks", "bye") if asks(name, text)), "fine")]
    name = next((one.value for one in reversed(reader.held) if one.key == "name"), "")
    return words["hello name"].format(name=clip(name, 40)) if name else words["hello"]


def _acknowledged(noted: Sequence[Noted], words: dict[str, str]) -> str:
    items = dict.fromkeys(clip(_in_mid_sentence(one, words)) for one, _ in noted)
    gone = [old for _, ended in noted for old in ended if old.source]
    quotes = [(day(old.when, words), _quotable(old.quote or old.text)) for old in gone]
    replaced = dict.fromkeys(words["replaces"].format(date=date, quote=quote) for date, quote in quotes)
    return "\n".join([words["noted"].format(items=words["joint"].join(items)), *replaced]) if items else ""


def _in_mid_sentence(one: Statement, words: dict[str, str]) -> str:
    if one.category in words:
        return words[one.category].format(option=one.text)
    text = one_line(one.text).rstrip(".").replace(": ", " ", 1)
    return text[:1].lower() + text[1:] if text[1:2].islower() and not text.startswith("I ") else text


class _Answer:
    """Answers the questions of one message from the facts, what was said, and the summary."""

    def __init__(self, material: ReplyMaterial, reader: Reader) -> None:
        self._material, self._reader, self._words = material, reader, phrases_for(material.question)

    def to(self, asked: Sequence[str]) -> str:
        lines = dict.fromkeys(line for question in asked for line in self._one(question))
        if lines or not asked:
            return "\n".join(lines)
        return self._words["nothing" if self._reader.held else "no statement"]

    def _one(self, question: str) -> list[str]:
        if asks("person", question) and (known := self._known()):
            return known
        names = [name.removeprefix("section ") for name in sought(question) if name.startswith("section ")]
        if asks("overview", question) or asks("person", question):
            names = list(asdict(Sections()))
        return self._section(names) or self._quotes(self._found(question))

    def _known(self) -> list[str]:
        facts = sorted((one for one in self._reader.held if one.importance > 1), key=lambda one: -one.importance)
        lines = list(dict.fromkeys(f"- {clip(one_line(one.text))}" for one in facts))
        excluded = Sections(excluded=self._reader.sections().excluded).lines()
        return [self._words["known"], *lines[:MAX_LISTED], *map(one_line, excluded)] if lines else []

    def _section(self, names: Sequence[str]) -> list[str]:
        sections = self._reader.sections()
        lines = replace(Sections(), **{name: getattr(sections, name) for name in names}).lines()
        return [self._words["summary"], *map(one_line, lines)] if lines else []

    def _found(self, question: str) -> list[Statement]:
        newest = sorted(self._reader.held, key=lambda one: one.when)[::-1]
        if not terms(question) and not sought(question):  # "What did I say yesterday?": recall has found the time
            return [one for one in newest if _origin(one) <= OWN][:MAX_QUOTES] if self._material.excerpts else []
        fits = {one: self._fit(question, one) for one in newest}
        least = ENOUGH if asks("self", question) else ENOUGH_IMPERSONAL
        close = [one for one in newest if fits[one] >= max(least, 0.8 * max(fits.values()))]
        best, out = min(map(_origin, close), default=FACT), list[Statement]()
        for one in close:
            if _origin(one) == best and not any(one.overlaps(other) or one.text == other.text for other in out):
                out.append(one)
        return out[: 1 if asks("when", question) or asks("amount", question) else MAX_QUOTES]

    def _fit(self, question: str, one: Statement) -> float:
        """How well words answer: up to 1 for their words, more for what is just of the kind that is asked for."""
        kin, theirs = found("kin", question), found("kin", " ".join(one.text.split()[:4]))
        names = {term for name in re.findall(r"(?<=[\w,] )[A-Z]\w+", question) for term in terms(name)}
        if not names | set(terms(" ".join(kin))) <= one.words:
            return 0.0
        if not kin and not theirs and _answers(one, sought(question)):
            return 2.0
        wanted, figure = set(terms(question)), asks("figure", one.text)
        wanted -= set(terms(one.by)) if _origin(one) == OTHERS else set()
        if (asks("amount", question) and not figure) or (theirs - kin and not wanted <= one.words):
            return 0.0
        fit = len(wanted & one.words) / (len(wanted) or 1)
        return fit + 0.3 if fit and figure and (asks("when", question) or asks("amount", question)) else fit

    def _quotes(self, found: Sequence[Statement]) -> list[str]:
        """What was found, all of one origin, as lines."""
        origin, many, lines = _origin(found[0]) if found else OWN, len(found) > 1, list[str]()
        if origin == SUMMED_UP:
            return [self._words["summary"], *(f"- {_quotable(one.text)}" for one in found)]
        for one in found:
            quote, gloss = _shown(one)
            words = self._words["said" if origin == OTHERS else "dated" if many else "told"]
            line = words.format(speaker=one_line(one.by)[:60], date=day(one.when, self._words), quote=quote)
            lines.append(f"{line} ({gloss})" if gloss else line)
        return [self._words["told many"], *(f"- {line}" for line in lines)] if many and origin != OTHERS else lines


def _origin(one: Statement) -> int:
    return FACT if one.importance > 1 else OTHERS if not one.importance else OWN if one.source else SUMMED_UP


def _answers(one: Statement, asked_for: Sequence[str]) -> bool:
    """Whether a statement is of a kind that is asked for."""
    kinds = {one.key.split(":")[0], one.category}
    if one.category in ("constraint", "requirement"):
        kinds |= {
            kind for kind, figure in (("budget", "money"), ("deadline", "date")) if FIGURES[figure].search(one.text)
        }
    return not kinds.isdisjoint(asked_for)


def _shown(statement: Statement) -> tuple[str, str]:
    """The words for a statement, and what they come to: its quote, or its text where a person edited it."""
    quote, text = _quotable(statement.quote), _quotable(statement.text)
    apart = text[:20].casefold() not in quote.casefold() and not set(terms(text)) <= set(terms(quote))
    if quote and apart and corrects(quote):
        return quote, text
    telling = re.findall(r"\d+|(?<= )[A-Z]\w+", text.rpartition(": ")[2])
    return (quote if quote and all(word in quote for word in telling) else text), ""


def _quotable(text: str) -> str:
    return clip(one_line(text)).replace('"', "'").replace("“", "‘").replace("”", "’")
