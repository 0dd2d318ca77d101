"""What may be quoted from a reply's material, which of it still holds, and how it is shown.

Guarantee: a quotation is a part of a fact's quote or of a message, on one line and clipped; no question, no message
equal to the one being answered, and no reply of the built-in model is among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.domain import Message
from memory.llm import ReplyMaterial
from memory.llm.extractive import phrases, sentences, statements
from memory.llm.extractive.corrections import reread_text, statement_of
from memory.llm.extractive.personal import Statement
from memory.llm.extractive.phrases import Phrases
from memory.llm.extractive.readings import quote_of, statement_in
from memory.llm.extractive.sentences import one_line
from memory.llm.extractive.wording import sameness, stems

MAX_QUOTE = 200
MAX_CANDIDATES = 600
_MAX_COMPARED = 60


@dataclass(frozen=True)
class Said:
    """A sentence that may be quoted: who said it (\"\" is the person) and when, its words, what it states."""

    text: str
    speaker: str
    when: datetime
    words: frozenset[str]
    statement: Statement | None
    order: int = 0

    @property
    def attribute(self) -> str:
        """What it says of the person that can be said anew; empty for anybody else's words."""
        return self.statement.attribute if self.statement is not None and not self.speaker else ""


def what_was_said(material: ReplyMaterial) -> list[Said]:
    """Everything that may be quoted, once each: facts first, then excerpts, then the tail, newest first."""
    out: dict[tuple[str, ...], Said] = {}
    for said in _all_said(material):
        key = (said.speaker, said.attribute, *sameness(said.text))
        if key not in out:
            out[key] = Said(said.text, said.speaker, said.when, said.words, said.statement, len(out))
        if len(out) >= MAX_CANDIDATES:
            break
    return list(out.values())


def still_holding(found: Sequence[Said], everything: Sequence[Said]) -> list[Said]:
    """`found` without what a later statement took back, and without saying anything twice."""
    latest: dict[str, Said] = {}
    for said in everything:
        if said.attribute:
            rival = latest.get(said.attribute)
            if rival is None or (said.when, -said.order) > (rival.when, -rival.order):
                latest[said.attribute] = said
    stale = [
        said.text
        for said in everything
        if said.attribute and latest[said.attribute].statement.replaces(said.statement)  # type: ignore[union-attr, arg-type]
    ]
    out: list[Said] = []
    for said in found[:_MAX_COMPARED]:
        if not said.speaker and any(text in said.text for text in stale):
            continue
        if not any(said.text in other.text or other.text in said.text for other in out):
            out.append(said)
    return out


def _all_said(material: ReplyMaterial) -> Iterator[Said]:
    for fact in material.facts:
        quote = one_line(fact.quote or fact.text)
        if quote and not statements.is_question(quote):
            yield Said(
                quote,
                "",
                fact.valid_from,
                frozenset(stems(f"{quote} {fact.text}")),
                statement_of(fact) or reread_text(fact.text),
            )
    messages = [message for excerpt in material.excerpts for message in excerpt.messages]
    for message in [*messages, *reversed(material.tail)]:
        if message.role in ("user", "assistant") and message.content != material.question:
            yield from _sentences_of(message)


def _sentences_of(message: Message) -> Iterator[Said]:
    if message.role == "assistant" and phrases.is_own(message.content):
        return
    speaker = "" if message.role == "user" else one_line(message.speaker)[:60] or "assistant"
    for part in statements.own_statements(sentences.split(message.content)):
        text = one_line(part.text)
        if statements.is_small_talk(text) or not text:
            continue
        name = message.name or ""
        for clause in statements.clauses(part.text):
            statement = statement_in(clause, part.text)
            if statement is not None:
                quote = one_line(quote_of(clause, part.text))
                yield Said(quote, speaker, message.created_at, frozenset(stems(f"{clause.text} {name}")), statement)
        yield Said(text, speaker, message.created_at, frozenset(stems(f"{text} {name}")), None)


def quote_lines(found: list[Said], words: Phrases) -> list[str]:
    if not found:
        return []
    if len(found) == 1:
        return [_line(found[0], words)]
    if any(said.speaker for said in found):
        return [words.said_many, *("- " + _line(said, words) for said in found)]
    return [words.told_many, *("- " + _dated(said, words) for said in found)]


def _dated(said: Said, words: Phrases) -> str:
    return words.dated.format(date=phrases.day(said.when, words), quote=quoted(said.text, words))


def _line(said: Said, words: Phrases) -> str:
    if said.speaker:
        return words.said_one.format(speaker=said.speaker, quote=_dated(said, words))
    return words.told_one.format(quote=_dated(said, words))


def quoted(text: str, words: Phrases) -> str:
    """A quotation on one line; marks inside it are made single so that it cannot seem to end early."""
    opening, closing = words.quotes[0], words.quotes[1]
    inner = sentences.clip(one_line(text).strip(), MAX_QUOTE).replace('"', "'")
    if opening != closing:
        inner = inner.replace(closing, "’").replace(opening, "‘")
    return f"{opening}{inner}{closing}"
