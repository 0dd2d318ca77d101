"""A summary extended, and facts found, by rules.

Reads the messages since the last summary in order, and carries each clause to the section where it belongs: ruled out,
limit, need, statement about the person, figure or conclusion, or simply discussed.  A later statement takes the place
of the one it corrects, in the facts, within the same batch and in the summary.

Guarantee: every word of an item is the conversation's or a fixed label; facts come from the user's messages only
and quote them verbatim; sections are bounded, and the summary never gets much shorter than it was but by what
was taken back or answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory.domain import Fact, FactDraft, Message, Sections
from memory.llm import DigestMaterial
from memory.llm.extractive import phrases, sentences, statements
from memory.llm.extractive.corrections import Correction, correction, same_text, statement_of
from memory.llm.extractive.personal import Statement
from memory.llm.extractive.readings import quote_of, statement_in
from memory.llm.extractive.refusals import refusal, reopening
from memory.llm.extractive.sections import MAX_ITEM, Draft
from memory.llm.extractive.statements import Clause
from memory.llm.extractive.topic import topic_of

MAX_FACTS = 40
MAX_QUOTE = 300
MAX_TOPIC = 200


@dataclass
class _Found:
    """A fact of this batch: it may still be taken back by a later message of the batch."""

    statement: Statement
    source: int
    quote: str
    supersedes: set[int] = field(default_factory=set)

    def draft(self) -> FactDraft:
        return FactDraft(
            text=self.statement.text,
            source=self.source,
            quote=self.quote,
            category=self.statement.category,
            importance=self.statement.importance,
            scope=self.statement.scope,
            supersedes=tuple(sorted(self.supersedes)),
        )


def digest(material: DigestMaterial) -> dict[str, Any]:
    """The summary extended by the messages, and their facts, in the shape a mini model answers."""
    reader = _Reader(material)
    for number, message in enumerate(material.messages):
        if message.role == "user":
            reader.user(message, _reply_to(material.messages, number))
        elif message.role == "assistant":
            reader.other(message)
    drafts = sorted((found.draft() for found in reader.found), key=lambda draft: -draft.importance)[:MAX_FACTS]
    facts = sorted(drafts, key=lambda draft: draft.source)
    said = [message.content for message in material.messages if message.role == "user" or message.name]
    people = [message.name for message in material.messages if message.name] + reader.names()
    sections = reader.draft.finish()
    earlier = [
        item
        for name in ("requirements", "constraints", "data", "discussed")
        for item in getattr(material.previous, name)
    ]
    topic = topic_of(sentences.one_line(material.previous.topic), earlier, map(sentences.one_line, said), people)
    summary = replace(sections, topic=sentences.clip(topic, MAX_TOPIC))
    if summary.empty:
        summary = Sections(discussed=_last_words(material.messages))
    return {"summary": summary.as_dict(), "facts": [_as_dict(fact) for fact in facts]}


def _last_words(messages: Sequence[Message]) -> tuple[str, ...]:
    """What the person said last, for a summary that would be empty: even small talk was said."""
    said = [sentences.one_line(message.content[:1000]) for message in messages if message.role == "user"]
    return tuple(sentences.clip(text, MAX_ITEM) for text in [text for text in said if text][-1:])


def _as_dict(fact: FactDraft) -> dict[str, Any]:
    return {
        "text": fact.text,
        "category": fact.category,
        "importance": fact.importance,
        "scope": fact.scope,
        "source": fact.source,
        "quote": fact.quote,
        "supersedes": list(fact.supersedes),
    }


def _reply_to(messages: Sequence[Message], number: int) -> Message | None:
    for message in messages[number + 1 :]:
        if message.role == "assistant":
            return message
        if message.role == "user":
            return None
    return None


class _Reader:
    """Carries what the messages say to a summary's draft and to the facts found."""

    def __init__(self, material: DigestMaterial) -> None:
        self.draft = Draft(material.previous)
        self.found: list[_Found] = []
        self._known = [(fact, statement_of(fact)) for fact in material.known_facts]

    def names(self) -> list[str]:
        """What the person is called: their own name is no topic."""
        told = [statement for _, statement in self._known if statement] + [found.statement for found in self.found]
        return [statement.value for statement in told if statement.attribute == "name"]

    def user(self, message: Message, reply: Message | None) -> None:
        parts = sentences.split(message.content)
        loose: list[str] = []
        for sentence in statements.own_statements(parts):
            if statements.is_small_talk(sentence.text):
                continue
            swap = correction(sentence.text)
            if swap is not None and self._swap(swap, message, sentence.text):
                continue
            rest = [
                clause
                for clause in statements.clauses(sentence.text)
                if not self._place(clause, message, sentence.text)
            ]
            if any(statements.has_figure(clause.text) or statements.concludes(clause.text) for clause in rest):
                loose.append(sentence.text)
            elif rest:
                self.draft.touch(sentence.text, message)
        for text in loose:
            self.draft.add("data", text)
        self.draft.settle(message.content)
        questions = [part.text for part in parts if not part.quoted and statements.is_question(part.text)]
        self.draft.ask(questions, reply)

    def other(self, message: Message) -> None:
        """What the other side says may answer a question; a named person's figures are data as well."""
        if phrases.is_own(message.content):
            return
        self.draft.settle(message.content)
        for sentence in statements.own_statements(sentences.split(message.content)):
            if statements.is_small_talk(sentence.text):
                continue
            label = f"{message.name or 'Assistant'}: {sentence.text}"
            if message.name and (statements.has_figure(sentence.text) or statements.concludes(sentence.text)):
                self.draft.add("data", label)
            else:
                self.draft.touch(label, message)

    def _place(self, clause: Clause, message: Message, sentence: str) -> bool:
        """Carry one clause to its section; False when no rule reads it."""
        reopened = reopening(clause)
        if reopened is not None and self.draft.reopen(reopened):
            return True
        excluded = refusal(clause)
        if excluded is not None:
            self.draft.exclude(excluded)
            return True
        statement = statement_in(clause, sentence)
        if statement is None:
            return False
        self._state(statement, message, quote_of(clause, sentence))
        return True

    def _state(self, statement: Statement, message: Message, quote: str) -> None:
        if not self.draft.correct(statement):
            self.draft.add(_section(statement), statement.text, statement.importance)
        dropped = [found for found in self.found if statement.replaces(found.statement)]
        self.found = [found for found in self.found if found not in dropped]
        known = [
            fact for fact, old in self._known if same_text(fact.text, statement.text) or (old and statement.within(old))
        ]
        supersedes = {fact.id for fact, old in self._known if old and statement.replaces(old)}
        supersedes.update(number for found in dropped for number in found.supersedes)
        if known or any(same_text(found.statement.text, statement.text) for found in self.found):
            return
        text = sentences.one_line(statement.text)
        statement = replace(statement, text=text)
        self.found.append(_Found(statement, message.position, sentences.head_of(quote, MAX_QUOTE), supersedes))

    def _swap(self, swap: Correction, message: Message, sentence: str) -> bool:
        """Carry out "Ida, not Ada" on the latest statement that says Ada."""
        for found in reversed(self.found):
            changed = swap.applied_to(found.statement)
            if changed is not None:
                self.found.remove(found)
                self._state(changed, message, sentence)
                self.found[-1].supersedes.update(found.supersedes)
                self.draft.replace(found.statement.text, changed.text)
                return True
        for fact, old in sorted(self._known, key=lambda pair: pair[0].id, reverse=True):
            changed = swap.applied_to(old or _bare(fact))
            if changed is not None:
                changed = replace(changed, category=fact.category, importance=fact.importance)
                self._state(changed, message, sentence)
                self.found[-1].supersedes.add(fact.id)
                self.draft.replace(fact.text, changed.text)
                return True
        return False


def _bare(fact: Fact) -> Statement:
    return Statement(fact.text, fact.category, fact.importance, value=fact.text)


def _section(statement: Statement) -> str:
    if statement.category == "requirement":
        return "requirements"
    if statement.category == "constraint" or statement.attribute.startswith(("allergy:", "diet:", "health:")):
        return "constraints"
    return "data"
