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
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from memory.domain import Fact, FactDraft, Message
from memory.llm import DigestMaterial
from memory.llm.builtin import phrases, sentences, statements
from memory.llm.builtin.corrections import Correction, correction
from memory.llm.builtin.personal import Statement
from memory.llm.builtin.readings import Reading, as_statement, readings, reread_text, same_text
from memory.llm.builtin.sections import MAX_ITEM, Draft
from memory.llm.builtin.topic import topic_of
from memory.llm.builtin.wording import stems
from memory.sections import Excluded, Sections

MAX_FACTS = 40
MAX_QUOTE = 300
MAX_TOPIC = 200


@dataclass
class Held:
    """A statement that holds: known before as a fact, or said in these messages.  `supersedes` are facts it ends."""

    statement: Statement
    quote: str
    when: datetime
    source: int = 0
    known: int | None = None
    supersedes: set[int] = field(default_factory=set)

    def draft(self) -> FactDraft:
        made = self.statement
        return FactDraft(
            text=made.text,
            source=self.source,
            quote=sentences.head_of(self.quote, MAX_QUOTE),
            category=made.category,
            importance=made.importance,
            scope=made.scope,
            supersedes=tuple(sorted(self.supersedes)),
        )


@dataclass(frozen=True)
class Noted:
    """What became of a clause: a statement and what it took back, an option ruled out or put back."""

    statement: Statement | None = None
    replaced: tuple[Held, ...] = ()
    excluded: Excluded | None = None
    reopened: str = ""


def digest(material: DigestMaterial) -> dict[str, Any]:
    """The summary extended by the messages, and their facts, in the shape a mini model answers."""
    reader = Reader(material.previous, material.known_facts)
    reader.read(material.messages)
    summary = reader.sections()
    if summary.empty:
        summary = Sections(discussed=_last_words(material.messages))
    drafts = [held.draft() for held in reader.held if held.known is None]
    drafts = sorted(sorted(drafts, key=lambda draft: -draft.importance)[:MAX_FACTS], key=lambda draft: draft.source)
    facts = [{**asdict(draft), "supersedes": list(draft.supersedes)} for draft in drafts]
    return {"summary": summary.as_dict(), "facts": facts}


def _last_words(messages: Sequence[Message]) -> tuple[str, ...]:
    """What the person said last, for a summary that would be empty: even small talk was said."""
    said = [sentences.one_line(message.content[:1000]) for message in messages if message.role == "user"]
    return tuple(sentences.clip(text, MAX_ITEM) for text in [text for text in said if text][-1:])


class Reader:
    """Carries what messages say to a summary's draft and to the statements that hold.

    `held` is what holds now, oldest first; `gone` the quotes of what no longer does; `told` what each message stated
    (by its position), with the words that did; `noted` what became of the last message.
    """

    def __init__(self, previous: Sections, known: Sequence[Fact]) -> None:
        self.previous = previous
        self.draft = Draft(previous)
        self.held: list[Held] = []
        self.gone: list[Held] = []
        for fact in sorted(known, key=lambda fact: (fact.valid_from, fact.id)):
            held = Held(as_statement(fact), fact.quote or fact.text, fact.valid_from, known=fact.id)
            self._end([old for old in self.held if held.statement.replaces(old.statement)])
            self.held.append(held)
        self.told: dict[int, list[tuple[Statement, str]]] = {}
        self.noted: list[Noted] = []
        self._messages: list[Message] = []

    def read(self, messages: Sequence[Message]) -> None:
        """Read messages, in the order in which they were said."""
        for number, message in enumerate(messages):
            self._messages.append(message)
            if message.role == "user":
                following = messages[number + 1] if number + 1 < len(messages) else None
                self._user(message, following if following and following.role == "assistant" else None)
            elif message.role == "assistant":
                self._other(message)

    def sections(self) -> Sections:
        """The summary as it is now."""
        said = [
            sentences.one_line(message.content)
            for message in self._messages
            if message.role == "user" or message.name
            if not statements.is_small_talk(message.content)
        ]
        people = [message.name for message in self._messages if message.name]
        sections = self.draft.finish()
        earlier = [
            item
            for name in ("requirements", "constraints", "data", "discussed")
            for item in getattr(self.previous, name)
        ]
        # The summary's own items tell what is personal and what is planned, whether or not the facts are at hand.
        held = [old for item in earlier if (old := reread_text(item)) is not None]
        held += [held.statement for held in self.held]
        gone = {word for held in self.gone for word in stems(held.statement.value)}
        topic = topic_of(sentences.one_line(self.previous.topic), earlier, said, people, held, gone)
        return replace(sections, topic=sentences.clip(topic, MAX_TOPIC))

    def _user(self, message: Message, reply: Message | None) -> None:
        self.noted = []
        parts = sentences.split(message.content)
        loose: list[str] = []
        for sentence in statements.own_statements(parts):
            if statements.is_small_talk(sentence.text):
                continue
            swap = correction(sentence.text)
            if swap is not None and self._swap(swap, message, sentence.text):
                continue
            rest = [reading.clause.text for reading in readings(sentence) if not self._place(reading, message)]
            if any(statements.has_figure(text) or statements.concludes(text) for text in rest):
                loose.append(sentence.text)
            elif len(stems(" ".join(rest))) > 2:
                self.draft.touch(sentence.text, message)
        for text in loose:
            self.draft.add("data", text)
        self.draft.settle(message.content)
        questions = [part.text for part in parts if not part.quoted and statements.is_question(part.text)]
        self.draft.ask(questions, reply)

    def _other(self, message: Message) -> None:
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

    def _place(self, reading: Reading, message: Message) -> bool:
        """Carry one clause to its section; False when no rule reads it."""
        if reading.reopened is not None and self.draft.reopen(reading.reopened):
            self.noted.append(Noted(reopened=reading.reopened))
        elif reading.excluded is not None:
            self.draft.exclude(reading.excluded)
            self.noted.append(Noted(excluded=reading.excluded))
        elif reading.statement is not None:
            self._state(reading.statement, message, reading.quote)
        else:
            return False
        return True

    def _state(self, statement: Statement, message: Message, quote: str, instead: Held | None = None) -> None:
        """Let a statement hold, in the place of those it replaces and of `instead`."""
        self.told.setdefault(message.position, []).append((statement, quote))
        ended = [held for held in self.held if held is instead or statement.replaces(held.statement)]
        if any(held.known is not None and held.when > message.created_at for held in ended):
            return  # these words are older than what is known
        if not self.draft.correct(statement):
            self.draft.add(_section(statement), statement.text, statement.importance)
        self._end(ended)
        self.noted.append(Noted(statement, tuple(ended)))
        for held in self.held:
            within = held.known is not None and statement.within(held.statement)
            if within or same_text(held.statement.text, statement.text):
                return
        supersedes = {held.known for held in ended if held.known is not None}
        supersedes.update(number for held in ended for number in held.supersedes)
        statement = replace(statement, text=sentences.one_line(statement.text))
        self.held.append(Held(statement, quote, message.created_at, message.position, supersedes=supersedes))

    def _end(self, ended: list[Held]) -> None:
        self.held = [held for held in self.held if held not in ended]
        self.gone.extend(ended)

    def _swap(self, swap: Correction, message: Message, sentence: str) -> bool:
        """Carry out "Ida, not Ada" on the latest statement that says Ada."""
        fits = [(swap.fit(held.statement), number) for number, held in enumerate(self.held)]
        best, number = max(fits, default=(0, 0))
        changed = swap.applied_to(self.held[number].statement) if best else None
        if changed is None:
            # It may be carried out already, in a fact made from these very words.
            return any(held.quote in (sentence, message.content) for held in self.held)
        old = self.held[number]
        self._state(changed, message, sentence, instead=old)
        self.draft.replace(old.statement.text, changed.text)
        return True


def _section(statement: Statement) -> str:
    if statement.category == "requirement":
        return "requirements"
    if statement.category == "constraint" or statement.attribute.startswith(("allergy:", "diet:", "health:", "eat:")):
        return "constraints"
    return "data"
