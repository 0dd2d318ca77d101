"""A reply by quotation: statements are acknowledged, questions answered with what the person said, and when.

Guarantee: what stands between quotation marks is a part of the material (see `quotable`); the person's words come
before anyone else's; where there is nothing to quote, the reply says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from memory.domain import Fact, Sections
from memory.llm import ReplyMaterial
from memory.llm.extractive import phrases, sentences, statements
from memory.llm.extractive.corrections import correction, statement_of
from memory.llm.extractive.personal import Statement
from memory.llm.extractive.phrases import CHINESE, ENGLISH, Phrases
from memory.llm.extractive.questions import Question, question_of
from memory.llm.extractive.quotable import MAX_QUOTE, Said, quote_lines, quoted, still_holding, what_was_said
from memory.llm.extractive.readings import statement_in
from memory.llm.extractive.refusals import refusal, reopening
from memory.llm.extractive.sentences import one_line
from memory.llm.extractive.wording import is_chinese, stems

MAX_QUOTES = 3
MAX_NOTED = 8
ENOUGH = 0.5  # of a question's words, weighed by rarity
SOMETHING = 0.25


def reply(material: ReplyMaterial) -> str:
    """The reply to the question of `material`, never empty."""
    text = material.question
    words = CHINESE if is_chinese(text) else ENGLISH
    parts = sentences.split(text)
    if not parts:
        return words.empty
    if all(statements.is_small_talk(part.text) for part in parts):
        return _small_talk(material, text, words)
    asked = [
        part.text
        for part in parts
        if not part.quoted and (statements.is_question(part.text) or statements.is_request(part.text))
    ]
    asked = [question for question in asked if not statements.is_small_talk(question)]
    told = [part.text for part in statements.own_statements(parts) if not statements.is_small_talk(part.text)]
    paragraphs = []
    orders = [part.text for part in parts if statements.is_order(part.text) or statements.is_task(part.text)]
    if orders and not [text for text in told if text not in orders]:
        return words.task
    if told:
        paragraphs.append(_acknowledge(material, told, words, plain=not asked))
    if asked:
        paragraphs.append(_answer(material, asked, told, words))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) or words.fine


# ---------------------------------------------------------------- what the person tells


def _small_talk(material: ReplyMaterial, text: str, words: Phrases) -> str:
    said = set(one_line(text[:400]).lower().replace(",", " ").replace("!", " ").replace(".", " ").split())
    if said & {"thanks", "thank", "cheers", "thx"} or "谢" in text:
        return words.thanks
    if said & {"bye", "goodbye", "later"} or "再见" in text or "晚安" in text:
        return words.bye
    if (
        said & {"hi", "hello", "hey", "hiya", "yo", "morning", "afternoon", "evening", "greetings"}
        or "好" in text[:3]
        or "嗨" in text
    ):
        for fact in material.facts:
            known = statement_of(fact)
            if known is not None and known.attribute == "name" and known.value:
                return words.hello_name.format(name=one_line(known.value)[:40])
        return words.hello
    return words.fine


def _acknowledge(material: ReplyMaterial, told: list[str], words: Phrases, plain: bool) -> str:
    noted: dict[str, None] = {}
    replaced: dict[str, None] = {}
    for sentence in told:
        for text, gone in _noted(material, sentence, words):
            noted.setdefault(sentences.clip(one_line(text), MAX_QUOTE))
            for fact in gone:
                quote = quoted(fact.quote or fact.text, words)
                replaced.setdefault(words.replaces.format(date=phrases.day(fact.valid_from, words), quote=quote))
    if not noted:
        return words.noted_plain if plain else ""
    return "\n".join([words.noted.format(items=words.join.join(list(noted)[:MAX_NOTED])), *list(replaced)[:MAX_QUOTES]])


def _noted(material: ReplyMaterial, sentence: str, words: Phrases) -> Iterator[tuple[str, list[Fact]]]:
    """What a digest will make of a sentence, and the facts it puts an end to."""
    swap = correction(sentence)
    for fact in material.facts if swap is not None else ():
        old = statement_of(fact) or Statement(fact.text, fact.category, fact.importance, value=fact.text)
        changed = swap.applied_to(old) if swap is not None else None
        if changed is not None:
            yield _uncapitalised(changed.text), [fact]
            return
    for clause in statements.clauses(sentence):
        excluded, reopened = refusal(clause), reopening(clause)
        statement = statement_in(clause, sentence)
        if excluded is not None:
            yield words.excluded.format(option=_in_mid_sentence(excluded.option)), []
        elif reopened is not None:
            yield words.reopened.format(option=_in_mid_sentence(reopened)), []
        elif statement is not None:
            known = [(fact, statement_of(fact)) for fact in material.facts]
            yield _uncapitalised(statement.text), [fact for fact, old in known if old and statement.replaces(old)]


def _in_mid_sentence(option: str) -> str:
    first, space, rest = option.partition(" ")
    return first.lower() + space + rest if first in ("The", "A", "An", "My", "Our", "Any") else option


def _uncapitalised(text: str) -> str:
    if not text.startswith("Has "):
        text = text.replace(": ", " ", 1)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


# ---------------------------------------------------------------- what the person asks


def _answer(material: ReplyMaterial, asked: list[str], told: list[str], words: Phrases) -> str:
    questions = [question for text in asked[:5] if not _just_told(question := question_of(text), told)]
    if any(question.about_model for question in questions):
        return words.who
    candidates = what_was_said(material)
    lines: list[str] = []
    for question in questions:
        if question.overview:
            found = _overview(material, candidates, words)
        else:
            found = _section(material, question, words) or _found(question, candidates, words)
        lines.extend(line for line in (found or _from_summary(material, question, words)) if line not in lines)
    if lines or not questions:
        return "\n".join(lines)
    return words.nothing if candidates else words.no_statement


def _just_told(question: Question, told: list[str]) -> bool:
    """Whether the same message already says what it asks for: to acknowledge that is answer enough."""
    made = [statement_in(clause, sentence) for sentence in told for clause in statements.clauses(sentence)]
    return any(statement is not None and question.seeks(statement.attribute) for statement in made)


def _found(question: Question, candidates: list[Said], words: Phrases) -> list[str]:
    if not question.words and not question.sought:
        # "What did I say yesterday?": nothing but a time, which recall has already turned into the excerpts.
        return quote_lines([said for said in candidates if not said.speaker][:MAX_QUOTES], words)
    sought = [
        said
        for said in candidates
        if said.statement is not None and not said.speaker and question.seeks(said.statement.attribute)
    ]
    if sought and not question.people:
        sought.sort(key=lambda said: (-_specific(question, said), -said.when.timestamp(), said.order))
        best = still_holding(sought, candidates) or sought[:1]
        return quote_lines(_relevant(question, best)[:MAX_QUOTES], words)
    rarity = _rarity(candidates)
    fits = {said: question.fit(said.text, said.words, said.speaker, rarity) for said in candidates}
    for own in (True, False):
        ranked = sorted(
            (said for said in candidates if fits[said] >= ENOUGH and (not said.speaker) == own),
            key=lambda said: (-round(fits[said], 2), -said.when.timestamp(), said.order),
        )
        if ranked:
            # What fits far less well than the best is noise beside it.
            close = [said for said in ranked if fits[said] >= 0.7 * fits[ranked[0]]]
            current = still_holding(close, candidates)
            if current:
                return quote_lines(current[:MAX_QUOTES], words)
    some = (said for said in candidates if fits[said] >= SOMETHING)
    near = still_holding(sorted(some, key=lambda said: (bool(said.speaker), -fits[said], said.order)), candidates)
    return [words.closest, *quote_lines(near[:1], words)] if near else []


def _relevant(question: Question, best: list[Said]) -> list[Said]:
    """Of statements of the kind sought those with most of the question's words ("What fruit do I like?")."""
    most = max(_specific(question, said) for said in best)
    return [said for said in best if _specific(question, said) == most] if most > 1 else best


def _specific(question: Question, said: Said) -> int:
    return len(question.words & said.words)


def _rarity(candidates: list[Said]) -> dict[str, float]:
    counts = Counter(word for said in candidates for word in said.words)
    return {word: 1 + math.log((len(candidates) + 1) / (count + 1)) for word, count in counts.items()}


def _overview(material: ReplyMaterial, candidates: list[Said], words: Phrases) -> list[str]:
    lines = [sentences.clip(one_line(line), MAX_QUOTE) for line in material.summary.lines()[:14]]
    if lines:
        return [words.summary, *(line if line.startswith("- ") else f"\n{line}" for line in lines)]
    return quote_lines(still_holding([said for said in candidates if not said.speaker], candidates)[:5], words)


def _section(material: ReplyMaterial, question: Question, words: Phrases) -> list[str]:
    """The section of the summary that a question asks for by its name."""
    if not question.section:
        return []
    asked = replace(Sections(), **{question.section: getattr(material.summary, question.section)})
    return (
        [words.summary, *(sentences.clip(one_line(line), MAX_QUOTE) for line in asked.lines())]
        if not asked.empty
        else []
    )


def _from_summary(material: ReplyMaterial, question: Question, words: Phrases) -> list[str]:
    """The summary's items that speak of what is asked, when no quotation does: they have no date."""
    lines = [line for line in material.summary.lines() if line.startswith("- ") and not statements.is_question(line)]
    fits = {line: question.fit(line, frozenset(stems(line)), "", {}) for line in lines}
    best = sorted((line for line in fits if fits[line] >= ENOUGH), key=lambda line: -fits[line])[:MAX_QUOTES]
    return [words.summary, *(sentences.clip(one_line(line), MAX_QUOTE) for line in best)] if best else []
