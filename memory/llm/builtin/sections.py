"""A summary's sections while they are being extended.

Guarantee: nothing is said twice (by `wording.sameness`), nothing grows without bound, and what must give way is
the oldest and least informative of `discussed` and `data` before anything the person asked for or ruled out.
"""

from __future__ import annotations

from memory.domain import Message
from memory.llm.builtin import phrases, sentences, statements
from memory.llm.builtin.personal import Statement
from memory.llm.builtin.questions import Question, question_of
from memory.llm.builtin.readings import reread_text
from memory.llm.builtin.wording import sameness, stems
from memory.sections import Excluded, Sections

MAX_ITEMS = 12
MAX_ITEM = 160
MAX_KEPT_ITEMS = 40  # a section that a person or a model made longer than MAX_ITEMS keeps its length up to this
MAX_KEPT_ITEM = 600
_CORRECTABLE = ("data", "constraints", "requirements")


class Draft:
    """The sections, mutable: what was there before, then what each message adds or takes back."""

    def __init__(self, previous: Sections) -> None:
        self.previous = previous
        self._items: dict[str, list[str]] = {}
        for name in ("requirements", "constraints", "data", "open_questions", "discussed"):
            kept = [sentences.clip(sentences.one_line(item), MAX_KEPT_ITEM) for item in getattr(previous, name)]
            self._items[name] = [item for item in kept if item]
        self._limits = {name: max(MAX_ITEMS, min(len(items), MAX_KEPT_ITEMS)) for name, items in self._items.items()}
        self._excluded = [
            Excluded(
                sentences.clip(option, MAX_KEPT_ITEM), sentences.clip(sentences.one_line(item.reason), MAX_KEPT_ITEM)
            )
            for item in previous.excluded[-MAX_KEPT_ITEMS:]
            if (option := sentences.one_line(item.option))
        ]
        self._excluded_limit = max(MAX_ITEMS, len(self._excluded))
        self._touched: dict[int, str] = {}
        self._weights: dict[str, int] = {}
        self._keys = {name: {sameness(item) for item in items} for name, items in self._items.items()}

    def add(self, section: str, text: str, importance: int = 3) -> None:
        """Add an item, unless the section says it already."""
        item = sentences.clip(sentences.one_line(text).strip(" -*_#>"), MAX_ITEM)
        key = sameness(item)
        if key and key not in self._keys[section]:
            self._keys[section].add(key)
            self._items[section].append(item)
            self._weights[item] = importance

    def touch(self, text: str, message: Message) -> None:
        """Remember the most telling sentence of a message, for `discussed`."""
        best = self._touched.get(message.position, "")
        if len(stems(text)) > max(2, len(stems(best))):
            self._touched[message.position] = text

    def correct(self, statement: Statement) -> bool:
        """Take out what a new statement puts an end to; True when what stays says all of it already."""
        said = False
        if not statement.attribute:
            return said
        for name in _CORRECTABLE:
            for item in list(self._items[name]):
                old = reread_text(item)
                if old is not None and statement.replaces(old):
                    self._remove(name, item)
                said = said or (old is not None and statement.within(old))
        return said

    def replace(self, old: str, new: str) -> None:
        """Put `new` where `old` stands."""
        for name in _CORRECTABLE:
            for item in list(self._items[name]):
                if sameness(item) == sameness(old) != sameness(new):
                    self._remove(name, item)

    def exclude(self, excluded: Excluded) -> None:
        option = sentences.clip(sentences.one_line(excluded.option), MAX_ITEM)
        reason = sentences.clip(sentences.one_line(excluded.reason), MAX_ITEM)
        if not option:
            return
        for number, item in enumerate(self._excluded):
            if sameness(item.option) == sameness(option):
                self._excluded[number] = Excluded(item.option, reason or item.reason)
                return
        self._excluded.append(Excluded(option, reason))

    def reopen(self, option: str) -> bool:
        """Put an option back: the one named, or the last one for "it"; False when none is meant."""
        wanted = set(stems(option))
        if not wanted:
            return bool(self._excluded and self._excluded.pop())
        kept = [item for item in self._excluded if not _meets(wanted, set(stems(item.option)))]
        if len(kept) == len(self._excluded):
            return False
        self._excluded = kept
        return True

    def ask(self, questions: list[str], reply: Message | None) -> None:
        """Questions of one message: open unless the reply deals with them."""
        for question in questions:
            asked = question_of(question)
            of_memory = asked.overview or asked.about_person or asked.about_model or asked.sections
            if (
                of_memory
                or statements.is_order(question)
                or statements.is_small_talk(question)
                or not _asks_something(question)
            ):
                continue
            same = [
                item
                for item in self._items["open_questions"]
                if sameness(item) == sameness(sentences.one_line(question))
            ]
            own = reply is not None and phrases.is_own(reply.content)
            if own and not self._concerns(asked):
                continue
            if (
                reply is not None
                and not phrases.is_empty_handed(reply.content)
                and (own or _says_something(reply.content))
            ):
                for item in same:
                    self._remove("open_questions", item)
            else:
                self.add("open_questions", question)

    def _concerns(self, question: Question) -> bool:
        """Whether a question is about the person or what they spoke of, and no question of general knowledge."""
        if statements.is_about_self(question.text):
            return True
        spoken = " ".join([*(item for items in self._items.values() for item in items), *self._touched.values()])
        said = set(stems(spoken))
        return (not question.focus or question.focus in said) and 2 * len(question.words & said) >= len(question.words)

    def settle(self, content: str) -> None:
        """Close the open questions that `content` speaks to without asking again."""
        if not self._items["open_questions"]:
            return
        told = " ".join(s.text for s in statements.own_statements(sentences.split(content)))
        said = set(stems(told))
        if phrases.is_empty_handed(told):
            return
        for item in list(self._items["open_questions"]):
            asked = set(stems(item))
            if asked and len(asked & said) >= min(len(asked), max(2, 0.6 * len(asked))):
                self._remove("open_questions", item)

    def finish(self) -> Sections:
        for position in sorted(self._touched):
            text = self._touched[position]
            if sameness(text) not in self._keys["data"]:
                self.add("discussed", text, 1)
        more = bool(self._excluded) or sum(map(len, self._items.values())) > 1
        for item in self._items["discussed"][:1] if more else ():
            # What stood in for an empty summary, a greeting or a question, has had its time.
            if statements.is_small_talk(item) or statements.is_question(item):
                self._remove("discussed", item)
        return Sections(
            topic=self.previous.topic,
            excluded=tuple(self._excluded[-self._excluded_limit :]),
            **{name: tuple(self._bounded(name)) for name in self._items},
        )

    def _bounded(self, name: str) -> list[str]:
        items, limit = self._items[name], self._limits[name]
        surplus = len(items) - limit
        if surplus <= 0:
            return items
        if name in ("data", "discussed"):
            worth = {item: self._worth(item, number / len(items)) for number, item in enumerate(items)}
            out = set(sorted(items, key=lambda item: worth[item])[:surplus])
        else:
            out = set(items[:surplus])
        kept = [item for item in items if item not in out]
        # Many short items must not push out long ones so that the summary shrinks.
        floor = 0.8 * sum(map(len, getattr(self.previous, name)))
        for item in reversed(items):
            if sum(map(len, kept)) >= floor or len(kept) >= MAX_KEPT_ITEMS:
                break
            if item in out:
                out.discard(item)
                kept = [entry for entry in items if entry not in out]
        return kept

    def _worth(self, item: str, recency: float) -> float:
        return (
            min(len(set(stems(item))), 8) / 8
            + recency
            + self._weights.get(item, 3) / 5
            + 0.3 * statements.has_figure(item)
        )

    def _remove(self, section: str, item: str) -> None:
        self._items[section].remove(item)
        self._keys[section].discard(sameness(item))


def _meets(wanted: set[str], option: set[str]) -> bool:
    return bool(option) and (option <= wanted or wanted <= option)


def _asks_something(question: str) -> bool:
    return bool(stems(question)) and (len(question) > 7 or not question.isascii())


def _says_something(reply: str) -> bool:
    return any(not statements.is_question(part.text) for part in sentences.split(reply[:2000]))
