"""A summary extended and facts found, by rules.

Messages are read in order.  Each clause goes to its section: ruled out, limit, need, statement about the person,
figure, or simply discussed.  A correction replaces what it corrects, in the facts and in the summary.

Guarantee: items and facts are the conversation's words or a fixed label; facts rest on the person's own messages and
quote them verbatim; nothing replaces what the same message said; sections are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from memory.domain import Fact, FactDraft, Message
from memory.llm import DigestMaterial
from memory.llm.builtin import changes
from memory.llm.builtin.language import asks, either, is_own, is_question, is_small_talk, straight, terms
from memory.llm.builtin.patterns import read
from memory.llm.builtin.statements import Statement, clauses, sentences
from memory.rendering import one_line
from memory.sections import Excluded, Sections

MAX_FACTS = 40
MAX_ITEMS, MAX_ITEM = 12, 200  # of a section, unless a person or another model made it longer
_SECTIONS = ("requirements", "constraints", "data", "open_questions", "discussed")
_BARE = {"has": "have", "studies": "study", "flies": "fly", "teaches": "teach"}
_UNDERTAKING = either("reading", "undertaking")


@dataclass(eq=False)
class Held:
    """A statement that holds, who said it where, and the known facts that it ends.  `known` is the fact's id."""

    statement: Statement
    when: datetime
    source: int = 0
    known: int | None = None
    supersedes: set[int] = field(default_factory=set)

    @property
    def is_fact(self) -> bool:
        return self.statement.importance > 1

    def draft(self) -> FactDraft:
        made = self.statement
        return FactDraft(one_line(made.text), self.source, made.quote, made.category, made.importance, made.scope)


@dataclass(frozen=True)
class Noted:
    """What a clause did: a statement and what it replaced, or an option that was ruled out or put back."""

    statement: Statement | None = None
    replaced: tuple[Held, ...] = ()
    excluded: str = ""
    reopened: str = ""


def digest(material: DigestMaterial) -> dict[str, Any]:
    """The summary and the facts, in the shape a mini model answers."""
    reader = Reader(material.previous, material.known_facts)
    reader.read_all(material.messages)
    found = [held for held in reader.held if held.known is None and held.is_fact]
    found = sorted(sorted(found, key=lambda held: -held.statement.importance)[:MAX_FACTS], key=lambda held: held.source)
    facts = [asdict(held.draft()) | {"supersedes": sorted(held.supersedes)} for held in found]
    return {"summary": reader.sections().as_dict(), "facts": facts}


class Reader:
    """Carries what messages say into sections and statements: `held` holds now, oldest first, `gone` no longer."""

    def __init__(self, previous: Sections, known: Sequence[Fact]) -> None:
        self.held: list[Held] = []
        self.gone: list[Held] = []
        self.noted: list[Noted] = []
        self._previous = previous
        self._items = {name: list(filter(None, map(one_line, getattr(previous, name)))) for name in _SECTIONS}
        self._excluded = [Excluded(one_line(item.option), one_line(item.reason)) for item in previous.excluded]
        self._last = ""
        for fact in sorted(known, key=lambda fact: (fact.valid_from, fact.id)):
            statement = known_statement(fact)
            self._end(_ended_by(statement, self.held, correcting=False))
            self.held.append(Held(statement, fact.valid_from, known=fact.id))

    def read_all(self, messages: Sequence[Message]) -> None:
        for place, message in enumerate(messages):
            reply = messages[place + 1] if place + 1 < len(messages) else None
            if message.role == "user":
                self.read(message, reply if reply and reply.role == "assistant" else None)
            elif message.role == "assistant" and not asks("unknown", message.content[:300]):
                said = sentences(message.content)
                self._close_questions(" ".join(said))
                if message.name:  # a person of an imported conversation
                    self._carry([f"{message.name}: {sentence}" for sentence in said if not is_question(sentence)])

    def read(self, message: Message, reply: Message | None = None) -> None:
        """Read a message of the person; `reply` tells whether its questions were answered."""
        self.noted = []
        rest, asked, correcting, before = list[str](), list[str](), False, ""
        for sentence in sentences(message.content):
            if is_small_talk(sentence):
                continue
            if is_question(sentence):
                asked.append(sentence)
                continue
            self._close_questions(sentence)
            correcting = changes.corrects(sentence) or correcting
            if self._place(sentence, message, correcting):
                correcting = False
                placed = " ".join(one.statement.text for one in self.noted if one.statement is not None)
                figures = set(re.findall(r"\d+", sentence)) - set(re.findall(r"\d+", placed))
                if figures and placed and not any(one.replaced for one in self.noted):
                    self._add("data", sentence)  # a figure that no statement holds, as in an address
            else:
                rest.append(f"{before} {sentence}" if before and asks("refers", sentence) else sentence)
            before = sentence
        if message.content.strip():
            self._last = one_line((rest + asked + [message.content])[0])
        for sentence in self._carry(rest):
            statement = Statement(one_line(sentence), sentence, "other", 1, value=sentence)
            self.held.append(Held(statement, message.created_at, message.position))
        self._ask(asked, reply)

    def sections(self) -> Sections:
        """The summary as it is now; it says something once anything was said."""
        if sum(map(len, self._items.values())) > 1:
            idle = self._items["discussed"]
            idle[:] = [item for item in idle if not is_small_talk(item) and not is_question(item)]
        sections = Sections(
            topic=self._topic(),
            excluded=tuple(self._excluded[-max(MAX_ITEMS, len(self._previous.excluded)) :]),
            **{name: tuple(self._bounded(name)) for name in _SECTIONS},
        )
        return sections if not sections.empty else Sections(discussed=(_clip(self._last),) if self._last else ())

    # -- what a sentence does

    def _place(self, sentence: str, message: Message, correcting: bool) -> bool:
        """Carry a sentence to where it belongs; False when no rule reads it."""
        if any(
            held.known is not None and held.statement.quote[:-1] in sentence
            for held in self.held
            if held.statement.quote
        ):
            return True  # a fact says it, maybe in words that the person gave it since
        earlier = [held for held in self.held if held.source != message.position or held.known is not None]
        statements = list(read(sentence))
        known = [held.statement for held in earlier]
        change = changes.swapped(sentence, known)
        direct = any(_ended_by(statement, earlier, correcting) for statement in statements)
        if change is None and correcting and not direct:
            change = changes.refigured(sentence, known)
        if change is not None:
            self._hold(change[1], message, [earlier[change[0]]])
            return True
        for statement in statements:
            self._hold(statement, message, _ended_by(statement, earlier, correcting))
        whole = straight(sentence).rstrip(" .!。")
        for clause in [whole, *(clause for _, clause in clauses(sentence))] if not statements else ():
            if option := changes.reopening(clause):
                self._excluded = [item for item in self._excluded if not set(terms(option)) & set(terms(item.option))]
                self.noted.append(Noted(reopened=option))
                return True
            if excluded := changes.refusal(clause):
                item = Excluded(_clip(excluded.option), _clip(excluded.reason))
                self._excluded = [one for one in self._excluded if one.option.lower() != item.option.lower()] + [item]
                self.noted.append(Noted(excluded=item.option))
                return True
        return bool(statements)

    def _hold(self, statement: Statement, message: Message, ended: Sequence[Held]) -> None:
        if any(held.when > message.created_at for held in ended):
            self.gone.append(Held(statement, message.created_at))
            return  # what is known was said later
        self.noted.append(Noted(statement, tuple(ended)))
        self._end(ended)
        if any(_same(held.statement.text, statement.text) or within(statement, held.statement) for held in self.held):
            return
        supersedes = set[int]().union(*(held.supersedes | {held.known or 0} for held in ended)) - {0}
        self.held.append(Held(statement, message.created_at, message.position, None, supersedes))
        limit = statement.category == "constraint" or statement.key in ("allergy", "diet", "health")
        section = "constraints" if limit else "requirements" if statement.category == "requirement" else "data"
        self._add(section, statement.text)

    def _end(self, ended: Sequence[Held]) -> None:
        for held in ended:
            self.held.remove(held)
            self.gone.append(held)
            self._drop(held.statement.text)

    # -- sections

    def _add(self, section: str, text: str) -> None:
        item = _clip(one_line(text))
        if item and not any(_same(item, other) for other in self._items[section]):
            self._items[section].append(item)

    def _drop(self, text: str) -> None:
        for items in self._items.values():
            items[:] = [item for item in items if not _same(item, text)]

    def _carry(self, said: Sequence[str]) -> list[str]:
        """Add the sentences with a figure to the data, and of the others the one that says most; return the former."""
        figures = [sentence for sentence in said if asks("figure", sentence)]
        best = max((one for one in said if one not in figures), key=lambda one: len(set(terms(one))), default="")
        if len(set(terms(best))) > 1:
            self._add("discussed", best)
        for sentence in figures:
            self._add("data", sentence)
        return figures

    def _ask(self, asked: Sequence[str], reply: Message | None) -> None:
        for question in asked:
            answered = reply is not None and not asks("unknown", reply.content[:300])
            if answered:
                self._drop(question)
            elif (reply is None or not is_own(reply.content) or asks("self", question)) and terms(question):
                self._add("open_questions", question)

    def _close_questions(self, sentence: str) -> None:
        said = set(terms(sentence))
        for item in list(self._items["open_questions"]):
            asked = set(terms(item))
            if asked and len(asked & said) >= max(2, 0.6 * len(asked)):
                self._items["open_questions"].remove(item)

    def _bounded(self, name: str) -> list[str]:
        """The newest items, and as many of the older as keep the section from shrinking much."""
        items, before = self._items[name], getattr(self._previous, name)
        kept = items[-max(MAX_ITEMS, min(len(before), 40)) :]
        while len(kept) < min(len(items), 40) and sum(map(len, kept)) < 0.8 * sum(map(len, before)):
            kept = items[-len(kept) - 1 :]
        return kept

    def _topic(self) -> str:
        """What the person is up to, or else who they are, or else the first thing said."""
        previous = one_line(self._previous.topic)
        if previous and not previous.startswith(("About ", "关于")):
            return previous
        facts = [held.statement for held in self.held if held.is_fact]
        for statement in facts:
            if statement.category == "plan" and (match := _UNDERTAKING.match(statement.text)):
                what = next(filter(None, match.groups()))
                return _clip(what[:1].upper() + what[1:])
        for statement in facts:
            if statement.key == "name":
                return f"关于{statement.value}" if not statement.value.isascii() else f"About {statement.value}"
        return previous or _clip(next((item for name in _SECTIONS for item in self._items[name]), ""))


def known_statement(fact: Fact) -> Statement:
    """The statement behind a known fact: as its quote reads, unless the fact was edited since."""
    for statement in read(fact.quote):
        if _same(statement.text, fact.text):
            return statement
    label, _, value = fact.text.partition(": ")
    own = re.sub(r"^(?:the )?(?:user|person)(?:'s)? (?:is |has )?", "", fact.text, flags=re.I)
    made = Statement(fact.text, fact.quote, fact.category, max(2, fact.importance), value=fact.text)
    for text in (f"my {label} is {value}", f"I {own}", f"I {_bare(own)}", f"I'm {own}", f"my {own}", fact.text):
        for found in read(text):
            return replace(made, key=found.key, value=found.value, mark=found.mark)
    return made


def _bare(text: str) -> str:
    """ "Lives in Lyon" as "live in Lyon"."""
    verb, space, rest = text.partition(" ")
    return f"{_BARE.get(verb.lower(), verb.lower().removesuffix('s'))}{space}{rest}"


def replaces(new: Statement, old: Statement, correcting: bool) -> bool:
    """Whether `old` no longer holds once `new` is said."""
    if not new.key or _same(new.text, old.text):
        return False
    if "-" in (new.mark, old.mark) and new.mark != old.mark:
        about = set(terms(new.value)) & set(terms(old.value))
        return bool(about) and (new.key == old.key or (new.mark == "-" and new.category == "event"))
    if new.key != old.key or within(new, old) or within(old, new):
        return within(old, new) and new.key == old.key and new.mark == "!"
    return "!" in (new.mark, old.mark) or (correcting and "~" in (new.mark, old.mark))


def _ended_by(new: Statement, held: Sequence[Held], correcting: bool) -> list[Held]:
    return [old for old in held if replaces(new, old.statement, correcting)]


def within(one: Statement, other: Statement) -> bool:
    """Whether `one` says no more than `other` does."""
    mine = set(terms(one.value))
    return one.key == other.key != "" and one.mark == other.mark and bool(mine) and mine <= set(terms(other.value))


def _same(one: str, other: str) -> bool:
    return one_line(one).casefold().rstrip(" .!。") == one_line(other).casefold().rstrip(" .!。")


def _clip(text: str) -> str:
    return text if len(text) <= MAX_ITEM else text[: MAX_ITEM - 1].rpartition(" ")[0] + "…"
