"""A summary extended and facts found, by rules.

Messages are read in order.  Each clause goes to its section: ruled out, limit, need, statement about the person,
figure, or simply discussed.  A correction replaces what it corrects, in the facts and in the summary.

Guarantee: items and facts are the conversation's words or a fixed label; facts rest on the person's own messages and
quote them verbatim; nothing replaces what the same message said; sections are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import filterfalse
from typing import Any

from memory.domain import Fact, FactDraft, Message
from memory.llm import DigestMaterial
from memory.llm.builtin import reading
from memory.llm.builtin.language import asks, is_question, is_small_talk, patterns, straight, terms
from memory.llm.builtin.links import links
from memory.llm.builtin.reading import Statement
from memory.rendering import one_line
from memory.sections import Excluded, Sections

MAX_FACTS = 40
MAX_ITEMS, MAX_ITEM = 12, 200  # of a section, unless a person or another model made it longer
_SECTIONS = ("requirements", "constraints", "data", "discussed", "open_questions")
_UNDERTAKING = patterns("reading")["undertaking"]


Noted = tuple[Statement, Sequence[Statement]]  # what a clause put on record, and what that replaced


def digest(material: DigestMaterial) -> dict[str, Any]:
    """The summary and the facts, in the shape a mini model answers."""
    reader = Reader(material.previous, material.known_facts)
    for message, following in zip(material.messages, [*material.messages[1:], None], strict=False):
        if message.role == "user":
            reader.read(message, following if following and following.role == "assistant" else None)
        elif message.role == "assistant":
            reader.read_reply(message)
    reader.learn()
    found = [one for one in reader.held if one.known is None and one.importance > 1]
    found = sorted(sorted(found, key=lambda one: -one.importance)[:MAX_FACTS], key=lambda one: one.source)
    return {"summary": reader.sections().as_dict(), "facts": [asdict(_draft(one)) for one in found]}


def _draft(one: Statement) -> FactDraft:
    # A correction counts in every chat, since what it corrects can be recalled in every chat.
    lasting = one.category in ("identity", "preference", "relationship", "work") or reading.corrects(one.quote)
    about = (one.category, one.importance, "user" if lasting else "session")
    supersedes, tied = tuple(sorted(one.supersedes)), tuple(links(one.text))
    return FactDraft(one_line(one.text), one.source, one.quote, *about, supersedes, tied)


class Reader:
    """Carries what messages say into sections, and into what holds now (`held`): statements, sentences as they stand
    and items of the summary, which have no source (importance 1), and what others said (0)."""

    def __init__(self, previous: Sections, known: Sequence[Fact]) -> None:
        self._previous = previous
        self._items = {name: list(filter(None, map(one_line, getattr(previous, name)))) for name in _SECTIONS}
        self._excluded = [Excluded(one_line(item.option), one_line(item.reason)) for item in previous.excluded]
        stated = [item for name in _SECTIONS[:-1] for item in self._items[name]] + list(map(str, self._excluded))
        self.held = [Statement(item, item, value=item) for item in stated]
        self._known = sorted(known, key=lambda fact: (fact.valid_from, fact.id))

    def learn(self, until: datetime | None = None) -> None:
        """Take up what is known by a moment, or all of it: each fact when it was said or edited."""
        while self._known and (until is None or self._known[0].valid_from <= until):
            fact = self._known.pop(0)
            one, said = _known(fact), [old for old in self.held if old.known is None]
            taken = reading.correction(fact.quote, said, reading.corrects(fact.quote))
            ended = [old for old in self.held if _replaces(one, old, correcting=False)] + (taken[0] if taken else [])
            if fact.valid_from > fact.created_at:  # the person edited it, so its quote does not say it
                ended += [old for old in said if old.overlaps(one)]
                one = replace(one, quote="")
            self._end(ended)
            self.held.append(one)

    def read(self, message: Message, reply: Message | None = None) -> list[Noted]:
        """Read a message of the person; `reply` tells whether its questions were answered."""
        self.learn(message.created_at)
        noted, rest, asked, correcting = list[Noted](), list[str](), list[str](), False
        earlier = [one for one in self.held if one.known is None or not one.quote or one.quote not in message.content]
        for plain in _told(message):
            sentence = plain.value
            if is_question(sentence):
                asked.append(sentence)
                continue
            self._close_questions(sentence)
            if not any(one.known is not None and one.quote and one.quote[:-1] in sentence for one in self.held):
                correcting = reading.corrects(sentence) or correcting
                made = self._place(sentence, message, [one for one in earlier if one in self.held], correcting)
                on_record = " ".join(one.text for one, _ in made or ())
                if made is None or any(figure not in on_record for figure in re.findall(r"\d+", sentence)):
                    rest.append(plain.text)
                noted, correcting = noted + (made or []), correcting and made is None
            self.held.append(plain)
        self._carry(rest)
        for question in asked:
            if reply is not None and not asks("unknown", reply.content[:300]):
                self._drop(question)
            elif (reply is None or asks("self", question)) and terms(question):
                self._add("open_questions", question)
        if not any(self._items.values()):
            self._add("discussed", (asked or [message.content])[0])
        return noted

    def read_reply(self, message: Message) -> None:
        """Read what was said to the person: by the assistant, or by a named person of an imported conversation."""
        if message.name:
            self.held += [plain for plain in _told(message) if not is_question(plain.value)]
        if asks("unknown", message.content[:300]):
            return
        sentences = reading.sentences(message.content)
        self._close_questions(" ".join(sentences))
        if message.name:
            self._carry([f"{message.name}: {sentence}" for sentence in sentences if not is_question(sentence)])

    def sections(self) -> Sections:
        """The summary as it is now; it says something once anything was said."""
        if sum(map(len, self._items.values())) > 1:
            idle = self._items["discussed"]
            idle[:] = [item for item in idle if not is_small_talk(item) and not is_question(item)]
        return Sections(
            topic=self._topic(),
            excluded=tuple(self._excluded[-max(MAX_ITEMS, len(self._previous.excluded)) :]),
            **{name: tuple(self._bounded(name)) for name in _SECTIONS},
        )

    # -- what a sentence does

    def _place(self, sentence: str, message: Message, earlier: list[Statement], corrects: bool) -> list[Noted] | None:
        """Carry a sentence to where it belongs; None when no rule reads it."""
        read = reading.statements(sentence)
        made = [(one, [old for old in earlier if _replaces(one, old, corrects)]) for one in read]
        change = reading.correction(sentence, earlier, corrects and not any(ended for _, ended in made))
        if change is not None:
            made = [(change[1], change[0])]
        if made:
            return [self._hold(one, message, ended) for one, ended in made]
        for clause in (straight(sentence).rstrip(" .!。"), *(clause for _, clause in reading.clauses(sentence))):
            if option := reading.reopening(clause):
                self._excluded = [item for item in self._excluded if not set(terms(option)) & set(terms(item.option))]
                return [(Statement(option, "", "reopened"), ())]
            if excluded := reading.refusal(clause):
                item = Excluded(clip(excluded.option), clip(excluded.reason))
                self._excluded = [one for one in self._excluded if one.option.lower() != item.option.lower()] + [item]
                return [(Statement(item.option, "", "excluded"), ())]
        return None

    def _hold(self, statement: Statement, message: Message, ended: Sequence[Statement]) -> Noted:
        known = frozenset(old.known for old in ended if old.known is not None)
        supersedes = known.union(*(old.supersedes for old in ended))
        made = replace(statement, when=message.created_at, source=message.position, known=None, supersedes=supersedes)
        self._end(ended)
        if not any(one.importance > 1 and (_same(one.text, made.text) or _within(made, one)) for one in self.held):
            self.held.append(made)
            limit = made.category == "constraint" or made.key in ("allergy", "diet", "health")
            section = "constraints" if limit else "requirements" if made.category == "requirement" else "data"
            self._add(section, made.text)
        return made, ended

    def _end(self, ended: Sequence[Statement]) -> None:
        """Let go of these, and of the sentences that say them."""
        for old in ended:
            self._drop(old.text)
            plain = [one for one in self.held if one.importance == 1 and old.quote and old.quote in one.quote]
            self.held = [one for one in self.held if one is not old and one not in plain]

    # -- sections

    def _add(self, section: str, text: str) -> None:
        item = clip(one_line(text))
        if item and not any(_same(item, other) for other in self._items[section]):
            self._items[section].append(item)

    def _drop(self, text: str) -> None:
        for items in self._items.values():
            items[:] = [item for item in items if not _same(item, text)]

    def _carry(self, said: Sequence[str]) -> None:
        """Add the sentences with a figure to the data, and of the others the one that says most."""
        figures = [sentence for sentence in said if asks("figure", sentence)]
        best = max((one for one in said if one not in figures), key=lambda one: len(set(terms(one))), default="")
        if len(set(terms(best))) > 1:
            self._add("discussed", best)
        for sentence in figures:
            self._add("data", sentence)

    def _close_questions(self, answer: str) -> None:
        said = set(terms(answer))
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
        of_chat = [one for one in self.held if one.source >= 0]  # what is known from other chats is not its topic
        for one in of_chat:
            if one.category == "plan" and one.importance > 1 and (match := _UNDERTAKING.match(one.text)):
                what = next(filter(None, match.groups()))
                return clip(what[:1].upper() + what[1:])
        if name := next((one.value for one in of_chat if one.key == "name"), ""):
            return f"About {name}" if name.isascii() else f"关于{name}"
        return previous or clip(next((item for name in _SECTIONS for item in self._items[name]), ""))


def _told(message: Message) -> Iterator[Statement]:
    """Each sentence that says something (`value`), with the one before it where it only refers to that."""
    before = ""
    for sentence in filterfalse(is_small_talk, reading.sentences(message.content)):
        refers = asks("refers", sentence) and (not is_question(before) or len(terms(sentence)) < 3)
        before = f"{before} {sentence}".strip() if refers else sentence
        made = Statement(one_line(before), before, importance=int(message.role == "user"), value=sentence)
        yield replace(made, when=message.created_at, source=message.position, by=message.name or "")


def _known(fact: Fact) -> Statement:
    """The statement behind a known fact: as its quote reads, in the words that the fact has now."""
    read = list(reading.statements(fact.quote or fact.text))
    value = fact.text.rpartition(": ")[2]
    made = Statement(fact.text, fact.quote, fact.category, fact.importance, value=value)
    made = replace(made, key=read[0].key, mark=read[0].mark) if read else made
    made = next((one for one in read if _same(one.text, fact.text)), made)
    return replace(made, importance=max(2, made.importance), when=fact.valid_from, source=-1, known=fact.id)


def _replaces(new: Statement, old: Statement, correcting: bool) -> bool:
    """Whether `old` no longer holds once `new` is said."""
    if not new.key or _same(new.text, old.text):
        return False
    if "-" in (new.mark, old.mark) and new.mark != old.mark:
        about = set(terms(new.value)) & set(terms(old.value))
        return bool(about) and (new.key == old.key or (new.mark == "-" and new.category == "event"))
    if new.key != old.key or _within(new, old) or _within(old, new):
        return _within(old, new) and new.mark == "!"
    return "!" in (new.mark, old.mark) or (correcting and "~" in (new.mark, old.mark))


def _within(one: Statement, other: Statement) -> bool:
    """Whether `one` says no more than `other` does."""
    mine = set(terms(one.value))
    return one.key == other.key != "" and one.mark == other.mark and bool(mine) and mine <= set(terms(other.value))


def _same(one: str, other: str) -> bool:
    return one_line(one).casefold().rstrip(" .!。") == one_line(other).casefold().rstrip(" .!。")


def clip(text: str, limit: int = MAX_ITEM) -> str:
    return text if len(text) <= limit else text[: limit - 1].rpartition(" ")[0] + "…"
