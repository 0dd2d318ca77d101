"""A reply by quotation: statements are acknowledged, questions answered with what the person said, and when.

It reads the tail on top of the summary and the facts first, as a digest does, so that what was just said counts
whether or not a summary has it yet, and acknowledges what a digest will make of the new message.

Guarantee: what stands between quotation marks is a part of the material (see `quotable`); the person's words come
before anyone else's; where there is nothing to quote, the reply says so.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from memory.domain import Message
from memory.llm import ReplyMaterial
from memory.llm.builtin import phrases, sentences, statements
from memory.llm.builtin.corrections import correction
from memory.llm.builtin.digesting import Held, Noted, Reader
from memory.llm.builtin.phrases import CHINESE, ENGLISH, Phrases
from memory.llm.builtin.questions import Question, question_of
from memory.llm.builtin.quotable import MAX_QUOTE, Said, quote_lines, quoted, still_holding, what_was_said
from memory.llm.builtin.sentences import one_line
from memory.llm.builtin.wording import is_chinese, stems
from memory.sections import Sections

MAX_QUOTES = 3
MAX_NOTED = 8
MAX_KNOWN = 15
MAX_SECTION = 6  # of a section's items, in an overview
ENOUGH = 0.5  # of a question's words, weighed by rarity
SOMETHING = 0.25


def reply(material: ReplyMaterial) -> str:
    """The reply to the question of `material`, never empty."""
    text = material.question
    words = CHINESE if is_chinese(text) else ENGLISH
    parts = sentences.split(text)
    if not parts:
        return words.empty
    reader = Reader(material.summary, material.facts)
    reader.read([message for message in material.tail if message.content != text])
    if all(statements.is_small_talk(part.text) for part in parts):
        return _small_talk(reader, text, words)
    own = statements.own_statements(parts)
    told = [part.text for part in own if not statements.is_small_talk(part.text)]
    asked = [
        part.text
        for part in parts
        if not part.quoted and (statements.is_question(part.text) or statements.is_request(part.text))
    ]
    asked = [question for question in asked if not statements.is_small_talk(question)]
    orders = [
        part.text
        for part in parts
        if (statements.is_order(part.text) or statements.is_task(part.text)) and not correction(part.text)
    ]
    if orders and not [text for text in told if text not in orders]:
        return words.task
    answer = _Answer(material, reader, words) if asked else None
    paragraphs = []
    if told:
        reader.read([Message(0, "", _next(material), "user", text, material.now, 0)])
        paragraphs.append(_acknowledgement(reader.noted, words, plain=not asked))
    if answer is not None:
        paragraphs.append(answer.to(asked, reader.noted if told else []))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) or words.fine


def _next(material: ReplyMaterial) -> int:
    return 1 + max((message.position for message in material.tail), default=0)


def _small_talk(reader: Reader, text: str, words: Phrases) -> str:
    said = set(one_line(text[:400]).lower().replace(",", " ").replace("!", " ").replace(".", " ").split())
    if said & {"thanks", "thank", "cheers", "thx", "ty"} or "谢" in text:
        return words.thanks
    if (
        said & {"bye", "goodbye", "later", "see", "cya", "ciao"}
        or "night" in said
        or any(word in text for word in ("再见", "晚安", "拜拜", "明天见", "回头见", "下次见"))
    ):
        return words.bye
    if said & {
        "hi",
        "hello",
        "hey",
        "hiya",
        "yo",
        "morning",
        "afternoon",
        "evening",
        "greetings",
    } or text.strip().startswith(("你好", "您好", "大家好", "嗨", "早", "下午好", "晚上好")):
        for held in reader.held:
            if held.statement.attribute == "name" and held.statement.value:
                return words.hello_name.format(name=one_line(held.statement.value)[:40])
        return words.hello
    return words.fine


# ---------------------------------------------------------------- what the person tells


def _acknowledgement(noted: list[Noted], words: Phrases, plain: bool) -> str:
    items = list(dict.fromkeys(sentences.clip(one_line(_in_words(one, words)), MAX_QUOTE) for one in noted))
    if not items:
        return words.noted_plain if plain else ""
    replaced = dict.fromkeys(_replaces(held, words) for one in noted for held in one.replaced)
    return "\n".join([words.noted.format(items=words.join.join(items[:MAX_NOTED])), *list(replaced)[:MAX_QUOTES]])


def _in_words(noted: Noted, words: Phrases) -> str:
    if noted.excluded is not None:
        return words.excluded.format(option=_in_mid_sentence(noted.excluded.option))
    if noted.statement is None:
        return words.reopened.format(option=_in_mid_sentence(noted.reopened))
    text = noted.statement.text
    label, colon, value = text.partition(": ")
    text = f"{label} {value}" if colon and len(label.split()) < 3 and label.lower() != "planning a project" else text
    return text[:1].lower() + text[1:] if text[1:2].islower() and not text.startswith("I ") else text


def _replaces(held: Held, words: Phrases) -> str:
    return words.replaces.format(date=phrases.day(held.when, words), quote=quoted(held.quote, words))


def _in_mid_sentence(option: str) -> str:
    first, space, rest = option.partition(" ")
    return first.lower() + space + rest if first in ("The", "A", "An", "My", "Our", "Any") else option


# ---------------------------------------------------------------- what the person asks


class _Answer:
    """Answers the questions of one message from what is held, was said, and stands in the summary."""

    def __init__(self, material: ReplyMaterial, reader: Reader, words: Phrases) -> None:
        self._material = material
        self._reader = reader
        self._words = words
        self._candidates = what_was_said(material, reader)
        counts = Counter(word for said in self._candidates for word in said.words)
        size = len(self._candidates) + 1
        self._rarity = {word: 1 + math.log(size / (count + 1)) for word, count in counts.items()}

    def to(self, asked: list[str], noted: list[Noted]) -> str:
        # What the same message says already is answered by its acknowledgement.
        made = [one.statement for one in noted if one.statement is not None]
        read = [question_of(text) for text in asked[:5]]
        questions = [question for question in read if not any(question.seeks(statement) for statement in made)]
        if any(question.about_model for question in questions):
            return self._words.who
        lines: list[str] = []
        for question in questions:
            lines.extend(line for line in self._one(question) if line not in lines)
        if lines or not questions:
            return "\n".join(lines)
        return self._words.nothing if self._candidates else self._words.no_statement

    def _one(self, question: Question) -> list[str]:
        if question.about_person:
            return self._known() or self._overview()
        if question.overview:
            return self._overview()
        return self._section(question) or self._found(question) or self._from_summary(question)

    def _known(self) -> list[str]:
        """What is known of the person, the important first, and what they ruled out."""
        held = sorted(self._reader.held, key=lambda held: -held.statement.importance)
        now = self._reader.draft.finish()
        items = dict.fromkeys(
            [*(one_line(one.statement.text) for one in held), *now.data, *now.constraints, *now.requirements]
        )
        lines = [f"- {item}" for item in items][:MAX_KNOWN]
        if not held:
            return []
        out = Sections(excluded=now.excluded[-MAX_SECTION:])
        return [self._words.known, *self._shown([*lines, *out.lines()])]

    def _overview(self) -> list[str]:
        sections = self._reader.sections()
        if replace(sections, topic="", open_questions=(), discussed=()).empty and len(sections.discussed) < 2:
            return self._known() or quote_lines(self._of_the_person()[:5], self._words)
        parts = {name: value[-MAX_SECTION:] for name, value in vars(sections).items() if name != "topic"}
        lines = replace(sections, **parts).lines()
        return [
            self._words.summary,
            *(f"{'' if line.startswith('- ') else chr(10)}{line}" for line in self._shown(lines)),
        ]

    def _of_the_person(self) -> list[Said]:
        own = [said for said in self._candidates if not said.speaker]
        return still_holding(own, self._candidates, self._reader)

    def _shown(self, lines: list[str]) -> list[str]:
        out = []
        for line in lines:
            title, colon, rest = line.partition(":")
            if not line.startswith("- ") and colon:
                line = f"{self._words.titles[title]}：{rest}" if self._words.titles else line
            out.append(sentences.clip(one_line(line), MAX_QUOTE))
        return out

    def _section(self, question: Question) -> list[str]:
        """The sections of the summary that a question asks for by their names."""
        if not question.sections:
            return []
        now = self._reader.draft.finish()
        asked = replace(Sections(), **{name: getattr(now, name) for name in question.sections})
        return [self._words.summary, *self._shown(asked.lines())] if not asked.empty else []

    def _found(self, question: Question) -> list[str]:
        if not question.words and not question.sought:
            # "What did I say yesterday?": nothing but a time, which recall has already turned into the excerpts.
            shown = self._of_the_person() if question.of_the_past and self._material.excerpts else []
            return quote_lines(shown[:MAX_QUOTES], self._words)
        sought = [
            said
            for said in self._candidates
            if said.statement is not None and not said.speaker
            if question.seeks(said.statement)
        ]
        if sought and not question.people:
            sought.sort(key=lambda said: (-question.specific(said.words), -said.when.timestamp(), said.order))
            best = still_holding(sought, self._candidates, self._reader)
            most = max((question.specific(said.words) for said in best), default=0)
            best = [said for said in best if question.specific(said.words) == most]
            exact = [said for said in best if said.statement and question.seeks(said.statement, exactly=True)]
            if best:
                return quote_lines((exact or best)[:MAX_QUOTES], self._words)
        fits = {said: question.fit(said.text, said.words, said.speaker, self._rarity) for said in self._candidates}
        for own in (True, False):
            ranked = sorted(
                (said for said in self._candidates if fits[said] >= ENOUGH and (not said.speaker) == own),
                key=lambda said: (-round(fits[said], 2), -said.when.timestamp(), said.order),
            )
            # What fits far less well than the best is noise beside it.
            close = [said for said in ranked if fits[said] >= 0.7 * fits[ranked[0]]]
            current = still_holding(close, self._candidates, self._reader)
            if current:
                return quote_lines(current[:MAX_QUOTES], self._words)
        some = [said for said in self._candidates if fits[said] >= SOMETHING]
        some.sort(key=lambda said: (bool(said.speaker), -fits[said], said.order))
        near = still_holding(some, self._candidates, self._reader)
        return [self._words.closest, *quote_lines(near[:1], self._words)] if near else []

    def _from_summary(self, question: Question) -> list[str]:
        """The summary's items that speak of what is asked, when no quotation does: they have no date."""
        lines = [line for line in self._reader.draft.finish().lines() if line.startswith("- ")]
        lines = [line for line in lines if not statements.is_question(line)]
        fits = {line: question.fit(line, frozenset(stems(line)), "", {}) for line in lines}
        best = sorted((line for line in fits if fits[line] >= ENOUGH), key=lambda line: -fits[line])[:MAX_QUOTES]
        return [self._words.summary, *self._shown(best)] if best else []
