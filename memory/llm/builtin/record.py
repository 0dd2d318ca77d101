"""The record: what holds of all that was said, as one list of statements, and the questions that are open.

Each sentence is kept as it stands, beside what the rules read in it.  The sentences that no rule reads are in the
summary too: those with a figure, and of the others of a message the one that says most.

Guarantee: nothing in the record was replaced or ruled out since.  Nothing takes the place of what the same words say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import filterfalse
from operator import attrgetter

from memory.llm.builtin.corrections import correction, refusal, reopening
from memory.llm.builtin.language import asks, is_question, is_small_talk, straight, terms
from memory.llm.builtin.reading import Origin, Statement, clauses, sentences, statements
from memory.quoting import one_line
from models.facts import Fact
from models.messages import Message
from models.sections import Sections

_ITEMS = ("requirements", "constraints", "excluded", "data", "discussed")
Noted = tuple[Statement, Sequence[Statement]]  # what a clause put on record, and what that replaced


class Record:
    """What holds, the newest last."""

    def __init__(self, previous: Sections) -> None:
        items = [(name, str(item), item) for name in _ITEMS for item in getattr(previous, name) if one_line(str(item))]
        self.held = [
            Statement(text, text, value=getattr(item, "option", text), origin=Origin.SUMMARY, section=name)
            for name, text, item in items
        ]
        self.questions = list(filter(None, map(one_line, previous.open_questions)))
        self._asked: list[str] = []  # by the last message

    def take_up(self, messages: Iterable[Message], facts: Iterable[Fact]) -> None:
        """Take up what was said and what is known, in the order of time: a fact counts from when it was edited."""
        known: Sequence[Fact | Message] = sorted(facts, key=attrgetter("valid_from", "id"))
        for one in merge(known, messages, key=lambda one: one.valid_from if isinstance(one, Fact) else one.created_at):
            if isinstance(one, Fact):
                self._learn(one)
            elif one.role == "user":
                self.read(one)
            elif one.role == "assistant":
                self._read_reply(one)

    def read(self, message: Message) -> list[Noted]:
        """Read a message of the person."""
        earlier = [one for one in self.held if not one.quote or one.quote not in message.content]
        told, self._asked = dict[Statement, list[Noted]](), []
        for one in _told(message):
            if is_question(one.value):
                self._asked.append(one_line(one.value))
            else:
                self._close_questions(one.value)
                told[one] = self._place(one.value, message, [old for old in earlier if old in self.held])
        read = {one: set(terms(" ".join(new.text for new, _ in noted))) for one, noted in told.items()}
        # What is read of a sentence may leave out a figure: "I live in Bristol, at 17 Marlow Road."
        unread = [one for one in told if not read[one] or any(map(str.isdigit, set(terms(one.value)) - read[one]))]
        self._keep(told, unread)
        self.questions += [one for one in self._asked if terms(one) and one not in self.questions]
        return [one for noted in told.values() for one in noted]

    def _read_reply(self, message: Message) -> None:
        """Read what was said to the person: by the assistant, or by a named person of an imported conversation."""
        if not asks("unknown", message.content[:300]):
            self.questions = [one for one in self.questions if one not in self._asked]
            self._close_questions(" ".join(sentences(message.content)))
        if message.name:
            told = [one for one in _told(message) if not is_question(one.value)]
            self._keep(told, told)

    def _keep(self, told: Iterable[Statement], unread: Sequence[Statement]) -> None:
        """Keep sentences as they stand; of those that no rule read, some have a place in the summary."""
        sections = {one: "data" for one in unread if asks("figure", one.text)}
        rest = [one for one in unread if one not in sections]
        if rest:
            sections[max(rest, key=lambda one: len(set(terms(one.text))))] = "discussed"
        self.held += [replace(one, section=sections.get(one, "")) for one in told]

    def _learn(self, fact: Fact) -> None:
        """Take up a known fact, in the place of what it replaces, corrects, or says in the words it has now."""
        one, said = _known(fact), [old for old in self.held if old.known is None]
        _, ended = correction(fact.quote, said) or (None, list[Statement]())
        ended += [old for old in self.held if _replaces(one, old)]
        if fact.valid_from > fact.created_at:  # the person edited it, so its quote does not say it
            ended += [old for old in said if old.overlaps(one)]
            one = replace(one, quote="")
        self._end(ended)
        self.held.append(one)

    def _place(self, sentence: str, message: Message, earlier: list[Statement]) -> list[Noted]:
        """Put what a sentence says on record; nothing when no rule reads it."""
        if any(one.known is not None and one.quote and one.quote in sentence for one in self.held):
            earlier = []  # what it takes back was taken back when it became a fact
        made = [(one, [old for old in earlier if _replaces(one, old)]) for one in statements(sentence)]
        if not any(ended for _, ended in made) and (change := correction(sentence, earlier)):
            made = [change]
        return [self._hold(one, message, ended) for one, ended in made or self._options(sentence)]

    def _options(self, sentence: str) -> list[tuple[Statement, list[Statement]]]:
        """The option that a sentence rules out or puts back."""
        out = [one for one in self.held if one.section == "excluded"]
        for clause in (straight(sentence).rstrip(" .!。"), *(clause for _, clause in clauses(sentence))):
            if option := reopening(clause):
                back = [one for one in out if set(terms(option)) & set(terms(one.value))]
                return [(Statement(option, sentence, "reopened"), back)]
            if item := refusal(clause):
                ruled_out = Statement(
                    one_line(str(item)), sentence, "excluded", value=one_line(item.option), section="excluded"
                )
                return [(ruled_out, [one for one in out if one.value.lower() == item.option.lower()])]
        return []

    def _hold(self, statement: Statement, message: Message, ended: Sequence[Statement]) -> Noted:
        gone = self._end(ended)
        known = frozenset(one.known for one in gone if one.known is not None)
        supersedes, instead = known.union(*(one.supersedes for one in gone)), " ".join(one.text for one in ended)
        made = replace(statement, known=None, supersedes=supersedes, instead=instead)
        made = replace(made, when=message.created_at, source=message.position)
        stated = [one for one in self.held if one.origin == Origin.STATED]
        if not any(one.says(made.text) or made.within(one) for one in stated):
            self.held.append(made)
        return made, ended

    def _end(self, ended: Sequence[Statement]) -> list[Statement]:
        """Let go of these, of what says the same, and of the sentences that say them."""
        gone = [one for one in self.held if any(one is old or one.says(old.text) or _tells(one, old) for old in ended)]
        self.held = [one for one in self.held if one not in gone]
        return gone

    def _close_questions(self, answer: str) -> None:
        said, asked = set(terms(answer)), {one: set(terms(one)) for one in self.questions}
        self.questions = [one for one in asked if len(said & asked[one]) < max(2, 0.6 * len(asked[one]))]


def _told(message: Message) -> Iterator[Statement]:
    """Each sentence that says something (`value`), with the one before it where it only refers to that."""
    before = ""
    origin = Origin.OWN if message.role == "user" else Origin.OTHERS
    for sentence in filterfalse(is_small_talk, sentences(message.content)):
        refers = asks("refers", sentence) and (not is_question(before) or len(terms(sentence)) < 3)
        before = f"{before} {sentence}".strip() if refers else sentence
        text = f"{message.name}: {before}" if message.name and origin == Origin.OTHERS else before
        made = Statement(one_line(text), before, value=sentence, origin=origin, by=message.name or "")
        yield replace(made, when=message.created_at, source=message.position)


def _known(fact: Fact) -> Statement:
    """The statement behind a known fact: as its quote reads, in the words that the fact has now."""
    read = list(statements(fact.quote or fact.text))
    about = read[0] if read else Statement("", "")
    said = Statement(
        fact.text, fact.quote, fact.category, key=about.key, mark=about.mark, value=fact.text.rpartition(": ")[2]
    )
    one = next((one for one in read if one.says(fact.text)), said)
    return replace(one, importance=max(2, fact.importance), section="", when=fact.valid_from, source=-1, known=fact.id)


def _tells(one: Statement, other: Statement) -> bool:
    """Whether a sentence is one in which the other was said."""
    return one.origin != Origin.STATED and bool(other.quote) and other.quote in one.quote


def _replaces(new: Statement, old: Statement) -> bool:
    """Whether `old` no longer holds once `new` is said."""
    if not new.key or new.says(old.text):
        return False
    if new.mark != old.mark and "-" in (new.mark, old.mark):  # no longer likes tea, or sold the Golf that they drive
        about = set(terms(new.value)) & set(terms(old.value))
        return bool(about) and (new.key == old.key or (new.mark == "-" and new.category == "event"))
    return new.mark == "!" and new.key == old.key and not new.within(old)
