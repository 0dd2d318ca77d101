"""A summary extended and facts found, by rules.

Messages are read in order.  Each clause goes to its section: ruled out, limit, need, statement about the person,
figure, or simply discussed.  A correction replaces what it corrects, in the facts and in the summary.

Guarantee: items and facts are the conversation's words or a fixed label; facts rest on the person's own messages and
quote them verbatim; nothing replaces what the same message said; sections are bounded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory.domain import Fact, Message
from memory.llm import DigestMaterial
from memory.llm.builtin import changes
from memory.llm.builtin.language import asks, is_own, is_question, is_small_talk, terms
from memory.llm.builtin.patterns import read
from memory.llm.builtin.statements import Statement, clauses, sentences
from memory.rendering import one_line
from memory.sections import Excluded, Sections

MAX_FACTS, MAX_QUOTE = 40, 300
MAX_ITEMS, MAX_ITEM = 12, 200  # of a section, unless a person or another model made it longer
_SECTIONS = ("requirements", "constraints", "data", "open_questions", "discussed")
_PLAN = re.compile(
    r"(?:planning|working on|building|organi[sz]ing|going|moving|visiting|plans|wants|打算)(?: to)?\s*(.+)", re.I
)


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
    facts = [
        {
            "text": one_line(held.statement.text),
            "category": held.statement.category,
            "importance": held.statement.importance,
            "scope": held.statement.scope,
            "source": held.source,
            "quote": held.statement.quote[:MAX_QUOTE],
            "supersedes": sorted(held.supersedes),
        }
        for held in found
    ]
    return {"summary": reader.sections().as_dict(), "facts": facts}


class Reader:
    """Carries what messages say into sections and statements: `held` holds now, oldest first, `gone` no longer."""

    def __init__(self, previous: Sections, known: Sequence[Fact]) -> None:
        self.held: list[Held] = []
        self.gone: list[Held] = []
        self.noted: list[Noted] = []
        self._previous = previous
        self._items = {name: list(filter(str.strip, getattr(previous, name))) for name in _SECTIONS}
        self._excluded = list(previous.excluded)
        self._last = ""
        for fact in sorted(known, key=lambda fact: (fact.valid_from, fact.id)):
            statement = known_statement(fact)
            self.held = [held for held in self.held if not replaces(statement, held.statement, correcting=False)]
            self.held.append(Held(statement, fact.valid_from, known=fact.id))

    def read_all(self, messages: Sequence[Message]) -> None:
        for place, message in enumerate(messages):
            reply = messages[place + 1] if place + 1 < len(messages) else None
            if message.role == "user":
                self.read(message, reply if reply and reply.role == "assistant" else None)
            elif message.name and not is_own(message.content):  # a person of an imported conversation
                self._discuss([f"{message.name}: {sentence}" for sentence in sentences(message.content)])

    def read(self, message: Message, reply: Message | None = None) -> None:
        """Read a message of the person; `reply` tells whether its questions were answered."""
        self.noted = []
        rest, asked, correcting = list[str](), list[str](), False
        for sentence in sentences(message.content):
            if is_small_talk(sentence):
                continue
            if is_question(sentence):
                asked.append(sentence)
                continue
            self._close_questions(sentence)
            said = len(self.noted)
            correcting = changes.corrects(sentence) or (correcting and len(self.noted) == said)
            self._sentence(sentence, message, correcting)
            if len(self.noted) == said:
                rest.append(sentence)
        if message.content.strip():
            self._last = one_line((rest + asked + [message.content])[0])
        for sentence in rest:
            if asks("figure", sentence):
                statement = Statement(one_line(sentence), sentence, "other", 1, value=sentence)
                self.held.append(Held(statement, message.created_at, message.position))
                self._add("data", sentence)
        self._discuss([sentence for sentence in rest if not asks("figure", sentence)])
        self._ask(asked, reply)

    def sections(self) -> Sections:
        """The summary as it is now; it says something once anything was said."""
        sections = Sections(
            topic=self._topic(),
            excluded=tuple(self._excluded[-max(MAX_ITEMS, len(self._previous.excluded)) :]),
            **{name: tuple(self._bounded(name)) for name in _SECTIONS},
        )
        return sections if not sections.empty else Sections(discussed=(_clip(self._last),) if self._last else ())

    # -- what a sentence does

    def _sentence(self, sentence: str, message: Message, correcting: bool) -> None:
        earlier = [held for held in self.held if held.source != message.position or held.known is not None]
        statements = list(read(sentence))
        direct = any(self._ended_by(statement, earlier, correcting) for statement in statements)
        if not direct and (change := changes.corrected(sentence, [held.statement for held in earlier])):
            self._hold(change[1], message, [earlier[change[0]]])
            return
        for statement in statements:
            self._hold(statement, message, self._ended_by(statement, earlier, correcting))
        for _, clause in clauses(sentence) if not statements else ():
            if option := changes.reopening(clause):
                self._excluded = [item for item in self._excluded if not set(terms(option)) & set(terms(item.option))]
                self.noted.append(Noted(reopened=option))
            elif excluded := changes.refusal(clause):
                item = Excluded(_clip(excluded.option), _clip(excluded.reason))
                self._excluded = [one for one in self._excluded if one.option.lower() != item.option.lower()] + [item]
                self.noted.append(Noted(excluded=item.option))

    def _ended_by(self, new: Statement, earlier: Sequence[Held], correcting: bool) -> list[Held]:
        return [held for held in earlier if replaces(new, held.statement, correcting)]

    def _hold(self, statement: Statement, message: Message, ended: Sequence[Held]) -> None:
        if any(held.when > message.created_at for held in ended):
            return  # what is known was said later
        self.noted.append(Noted(statement, tuple(ended)))
        for held in ended:
            self.held.remove(held)
            self.gone.append(held)
            self._drop(held.statement.text)
        if any(_same(held.statement.text, statement.text) or within(statement, held.statement) for held in self.held):
            return
        supersedes = {held.known for held in ended if held.known is not None}.union(
            *(held.supersedes for held in ended)
        )
        self.held.append(Held(statement, message.created_at, message.position, None, supersedes))
        limit = statement.category == "constraint" or statement.key in ("allergy", "diet", "health")
        section = "constraints" if limit else "requirements" if statement.category == "requirement" else "data"
        self._add(section, statement.text)

    # -- sections

    def _add(self, section: str, text: str) -> None:
        item = _clip(one_line(text))
        if item and not any(_same(item, other) for other in self._items[section]):
            self._items[section].append(item)

    def _drop(self, text: str) -> None:
        for items in self._items.values():
            items[:] = [item for item in items if not _same(item, text)]

    def _discuss(self, said: Sequence[str]) -> None:
        best = max(said, key=lambda sentence: len(set(terms(sentence))), default="")
        if len(set(terms(best))) > 2:
            self._add("discussed", best)

    def _ask(self, asked: Sequence[str], reply: Message | None) -> None:
        for question in asked:
            answered = reply is not None and not asks("unknown", reply.content[:300])
            if answered:
                self._drop(question)
            elif len(terms(question)) > 1 and (reply is None or not is_own(reply.content) or asks("self", question)):
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
        """What the person is up to, or else who they are, or else the words that come up most."""
        previous = self._previous.topic
        if previous and not previous.startswith(("About ", "关于")):
            return previous
        facts = [held.statement for held in self.held if held.is_fact]
        for statement in facts:
            if statement.category == "plan" and (match := _PLAN.match(statement.text)):
                what = re.sub(r"^(?:an? |the |my |our )", "", match[1])
                return _clip(what[:1].upper() + what[1:])
        for statement in facts:
            if statement.key == "name":
                return f"关于{statement.value}" if not statement.value.isascii() else f"About {statement.value}"
        words = Counter(
            word for name in _SECTIONS for item in self._items[name] for word in dict.fromkeys(_nouns(item))
        )
        return previous or ", ".join(word for word, _ in words.most_common(3))


def known_statement(fact: Fact) -> Statement:
    """The statement behind a known fact: as its quote reads, unless the fact was edited since."""
    for statement in read(fact.quote):
        if _same(statement.text, fact.text):
            return statement
    label, colon, value = fact.text.partition(": ")
    own = re.sub(r"^(?:the )?(?:user|person)(?:'s)? (?:is |has )?", "", fact.text, flags=re.I)
    for text in (
        f"my {label} is {value}" if colon else "",
        f"I {own}",
        f"I {_bare(own)}",
        f"I'm {own}",
        f"my {own}",
        fact.text,
    ):
        if found := next(iter(read(text)), None):
            return Statement(
                fact.text, fact.quote, fact.category, max(2, fact.importance), found.key, found.value, found.mark
            )
    return Statement(fact.text, fact.quote, fact.category, max(2, fact.importance), value=fact.text)


def _bare(text: str) -> str:
    """ "Lives in Lyon" as "live in Lyon"."""
    verb, space, rest = text.partition(" ")
    verb = {"has": "have", "studies": "study", "flies": "fly", "teaches": "teach"}.get(
        verb.lower(), verb.lower().removesuffix("s")
    )
    return f"{verb}{space}{rest}"


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


def within(one: Statement, other: Statement) -> bool:
    """Whether `one` says no more than `other` does."""
    mine = set(terms(one.value))
    return one.key == other.key != "" and one.mark == other.mark and bool(mine) and mine <= set(terms(other.value))


def _same(one: str, other: str) -> bool:
    return one_line(one).casefold().rstrip(" .!。") == one_line(other).casefold().rstrip(" .!。")


def _nouns(text: str) -> list[str]:
    return re.findall(r"(?:\b(?:the|a|an|my|our|for|of) |(?<=\w )(?=[A-Z]))([^\W\d_]{3,})", text)


def _clip(text: str) -> str:
    return text if len(text) <= MAX_ITEM else text[: MAX_ITEM - 1].rpartition(" ")[0] + "…"
