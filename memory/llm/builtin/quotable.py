"""What may be quoted from a reply's material, which of it still holds, and how it is shown.

Guarantee: a quotation is a part of a fact's quote or of a message, on one line and clipped; no question, no message
equal to the one being answered, and no reply of the built-in model is among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.domain import Message
from memory.llm import ReplyMaterial
from memory.llm.builtin import phrases, sentences, statements
from memory.llm.builtin.corrections import correction
from memory.llm.builtin.digesting import Reader
from memory.llm.builtin.personal import Statement
from memory.llm.builtin.phrases import Phrases
from memory.llm.builtin.readings import readings
from memory.llm.builtin.sentences import one_line
from memory.llm.builtin.wording import sameness, stems

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
    gloss: str = ""  # what "make that 15" comes to

    @property
    def attribute(self) -> str:
        """What it says of the person that can be said anew; empty for anybody else's words."""
        return self.statement.attribute if self.statement is not None and not self.speaker else ""


def what_was_said(material: ReplyMaterial, reader: Reader) -> list[Said]:
    """Everything that may be quoted, once each: facts first, then excerpts, then the tail, newest first."""
    out: dict[tuple[str, ...], Said] = {}
    for said in _all_said(material, reader):
        key = (said.speaker, said.attribute, *sameness(said.text))
        if key not in out:
            out[key] = replace(said, order=len(out))
        if len(out) >= MAX_CANDIDATES:
            break
    return list(out.values())


def still_holding(found: Sequence[Said], everything: Sequence[Said], reader: Reader) -> list[Said]:
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
    holding = {one_line(held.quote) for held in reader.held}
    stale += [quote for held in reader.gone if (quote := one_line(held.quote)) not in holding]
    out: list[Said] = []
    for said in found[:_MAX_COMPARED]:
        if not said.speaker and any(text in said.text for text in stale) and said.text not in holding:
            continue
        if not any(said.text in other.text or other.text in said.text for other in out):
            out.append(said)
    return out


def _all_said(material: ReplyMaterial, reader: Reader) -> Iterator[Said]:
    for held in reversed(reader.held):
        quote = one_line(held.quote)
        if quote and not statements.is_question(quote):
            words = frozenset(stems(f"{quote} {held.statement.text}"))
            gloss = held.statement.text if correction(quote) is not None else ""
            yield Said(quote, "", held.when, words, held.statement, gloss=gloss)
    for excerpt in material.excerpts:
        for message in excerpt.messages:
            if message.content != material.question:
                yield from _sentences_of(message, None)
    for message in reversed(material.tail):
        if message.content != material.question:
            yield from _sentences_of(message, reader.told.get(message.position, []))


def _sentences_of(message: Message, told: list[tuple[Statement, str]] | None) -> Iterator[Said]:
    """The sentences of a message, and what they state: `told`, where it was read already in its context."""
    if message.role not in ("user", "assistant") or (message.role == "assistant" and phrases.is_own(message.content)):
        return
    speaker = "" if message.role == "user" else one_line(message.speaker)[:60] or "assistant"
    name = message.name or ""
    parts = statements.own_statements(sentences.split(message.content))
    if told is None or speaker:
        made = [(reading.statement, reading.quote) for part in parts for reading in readings(part)]
        told = [(statement, quote) for statement, quote in made if statement is not None]
    for statement, quote in told:
        words = frozenset(stems(f"{quote} {name}"))
        yield Said(one_line(quote), speaker, message.created_at, words, statement)
    for part in parts:
        text = one_line(part.text)
        if text and not statements.is_small_talk(text):
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
    quote = quoted(said.text, words) + (f" ({one_line(said.gloss)[:MAX_QUOTE]})" if said.gloss else "")
    return words.dated.format(date=phrases.day(said.when, words), quote=quote)


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
