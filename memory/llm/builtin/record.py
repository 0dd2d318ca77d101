"""Keep what holds of all that was said, as one list of statements, and the questions that are open.

Invariants (tests/test_builtin_model.py):
- No statement mixes the words of two sentences. A correction that is no sentence of its own replaces a whole value by
  a whole value of its kind ("Budget: 4000 euro" and "I meant 4500 euro"), or the person is asked what it corrects.
- An ending ("I don't work there any more") closes one statement, or the person is asked which.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from memory.llm.builtin.language import (
    TIME_WORDS,
    asks,
    correct_spelling,
    is_question,
    is_small_talk,
    patterns,
    remembered,
    terms,
)
from memory.llm.builtin.prompt import Prompt, PromptFact, PromptMessage
from memory.llm.builtin.reading import Origin, Statement, is_doubtful, known, readings, sentences, settled, statements
from memory.quoting import one_line, plain_apostrophes
from models.sections import Excluded, Sections

_ITEMS = ("requirements", "constraints", "excluded", "data", "discussed")
_CHANGES, _KINDS, _LEAD = patterns("changes"), patterns("kinds"), patterns("reading")["lead"]


@dataclass(frozen=True)
class Noted:
    """Statement of a clause, with the statements that it ended.

    statement: None if the clause changes something that cannot be told; `ended` then has what it may mean.
    """

    statement: Statement | None
    ended: Sequence[Statement] = ()


class Record:
    """Valid statements, the newest last."""

    def __init__(self, summary: Sections) -> None:
        items = [(name, str(item), item) for name in _ITEMS for item in getattr(summary, name) if one_line(str(item))]
        self.held = [
            Statement(text, text, value=getattr(item, "option", text), origin=Origin.SUMMARY, section=name)
            for name, text, item in items
        ]
        self.questions = list(filter(None, map(one_line, summary.open_questions)))
        self._asked: list[str] = []  # by the last message
        self.has_recalled = False  # messages of earlier conversations
        self.unsettled: list[Statement] = []  # what changes something, and cannot be told what

    def take_up(self, entries: Sequence[PromptFact | PromptMessage]) -> None:
        """Read facts and messages in the order of their days."""
        for one in sorted(entries, key=lambda one: one.day):
            if isinstance(one, PromptMessage):
                self.read(one)
            else:
                fact = known(one.text, one.id, one.day)
                self._end([old for old in self.held if _replaces(fact, old)])
                self.held.append(fact)

    def read(self, message: PromptMessage) -> list[Noted]:
        """Read a message; return what the person's message put on record."""
        if message.role == "assistant":
            if not asks("unknown", message.text[:300]):
                self.questions = [one for one in self.questions if one not in self._asked]
                self._close_questions(" ".join(sentences(message.text)))
            if not message.name:
                return []
        noted, told = list[Noted](), list(_told(message))
        is_own = message.role == "user"
        silent = is_own and bool(asks("keep out", message.text) or asks("forget", message.text))
        self._asked = [one_line(one.value) for one in told if is_own and is_question(one.value) and terms(one.value)]
        self.questions += [one for one in self._asked if one not in self.questions]
        plain = settled(message.text) if is_own and not silent else ()
        for one in told:
            if one.value in plain and not is_question(one.value):
                self._close_questions(one.value)
                placed = self._place(one.value, message)
                if placed:
                    self.unsettled = [one] if placed[0].statement is None else []
                noted += placed
        if not silent:
            self._keep([one for one in told if not is_question(one.value)], noted)
        return noted

    def _keep(self, told: Sequence[Statement], noted: Sequence[Noted]) -> None:
        """Keep sentences as they stand; of those that no rule read, some have a place in the summary."""
        made = {one.statement.quote for one in noted if one.statement is not None}
        unread = [one for one in told if not any(quote in one.value or one.value in quote for quote in made)]
        sections = {one: "data" for one in unread if asks("figure", one.text)}
        rest = [one for one in unread if one not in sections]
        if rest:
            sections[max(rest, key=lambda one: len(set(terms(one.text))))] = "discussed"
        self.held += [replace(one, section=sections.get(one, "")) for one in told]

    def _place(self, sentence: str, message: PromptMessage) -> list[Noted]:
        """Put what a sentence says on record: statements, endings, options, a correction, or what to remember."""
        noted = list[Noted]()
        for quote, made in readings(sentence):
            if made:
                noted += [self._hold(one, message, [old for old in self.held if _replaces(one, old)]) for one in made]
            elif ended := self._ending(quote):
                noted.append(self._close(quote, message, ended))
        is_plain = not noted and not is_doubtful(sentence)
        noted += [self._hold(one, message, ended) for one, ended in (self._options(sentence) if is_plain else ())]
        if is_plain and not noted and _CHANGES["corrects"].search(plain_apostrophes(sentence)):
            noted = [self._correct(sentence, message)]
        if not noted and (asked := remembered(sentence)):
            text = _clean(asked)
            kept_fact = Statement(text, sentence, "other", 3, section="data")
            noted = [self._hold(kept_fact, message, [])] if terms(text) else []
        return noted

    def _close(self, quote: str, message: PromptMessage, ended: Sequence[Statement]) -> Noted:
        """Put an ending on record, or ask what it ends."""
        if len({old.text for old in ended}) > 1 and not asks("gone", quote):
            return Noted(None, ended)
        one = replace(ended[0], text=_clean(_LEAD.sub("", quote)), quote=quote, mark="-", origin=Origin.STATED)
        return self._hold(one, message, ended)

    def _ending(self, sentence: str) -> list[Statement]:
        """Return what a clause may end; nothing where it is no ending."""
        kind = next((name for name in ("gone", "parted", "stopped", "finished") if asks(name, sentence)), None)
        if kind is None:
            return []
        stated = [one for one in self.held if one.origin == Origin.STATED and one.mark != "-" and one.importance > 1]
        if kind == "parted":
            return [one for one in stated if asks("partner", one.text)]
        words = set(terms(_CHANGES["ending"].sub(" ", correct_spelling(sentence)))) - TIME_WORDS
        shared = {one: len(words & one.words) for one in stated}
        if kind == "gone":
            return [one for one in stated if words & (_names(one) if one.category == "relationship" else _illness(one))]
        if kind == "finished":  # what somebody was doing, not what they like or where they work
            stated = [one for one in stated if one.category == "plan" or one.key == "reading"]
        most = max((shared[one] for one in stated), default=0)
        return [one for one in stated if most and shared[one] == most >= len(words) / 2]

    def _correct(self, sentence: str, message: PromptMessage) -> Noted:
        """Replace the whole value of one statement by another of its kind, or ask which one is meant."""
        pair = _CHANGES["swap"].fullmatch(_bare(sentence)) or _CHANGES["value"].fullmatch(_bare(sentence))
        parts = {name.rstrip("_"): part for name, part in pair.groupdict().items() if part} if pair else {}
        new, old = parts.get("new", ""), parts.get("old", "")
        kind = next((name for name, pattern in _KINDS.items() if new and pattern.fullmatch(new)), None)
        stated = [one for one in self.held if one.origin == Origin.STATED and ": " in one.text and one.mark != "-"]
        kinds = [kind, "moment"] if kind == "date" and old else [kind] if kind else []
        of_kind = [one for one in stated if any(_KINDS[name].fullmatch(one.value) for name in kinds)]
        fitting = [one for one in of_kind if one.value.lower().startswith(old.lower())]
        newest = sorted(stated, key=lambda one: (bool(one.quote), one.known))[-1:]
        meant = [one for one in newest if one in fitting and (one.quote or one.known)] or fitting
        if len(meant) != 1:
            return Noted(None, fitting)
        (one,) = meant
        text = f"{one.text.partition(': ')[0]}: {new}"
        section = one.section or ("constraints" if one.category == "constraint" else "data")
        return self._hold(replace(one, text=text, quote=sentence, value=new, section=section), message, [one])

    def meant(self, text: str) -> Statement | None:
        """Return the statement that a request to forget means, if any."""
        wanted = set(terms(text))
        stated = [one for one in self.held if one.origin == Origin.STATED and one.importance > 1]
        best = max(stated, key=lambda one: len(wanted & one.words), default=None)
        return best if best is not None and wanted & best.words else None

    def changes_after(self, found: Sequence[Statement]) -> list[Statement]:
        """Return what may change a statement that was found, and cannot be told what it changes."""
        kinds = [kind for kind in _KINDS.values() if any(kind.search(one.text) for one in found)]
        words = frozenset[str]().union(*(one.words for one in found))
        return [one for one in self.unsettled if words & one.words or any(kind.search(one.text) for kind in kinds)]

    def _options(self, sentence: str) -> list[tuple[Statement, list[Statement]]]:
        """Return the option that a sentence rules out or puts back, with what that ends."""
        out = [one for one in self.held if one.section == "excluded"]
        if match := _CHANGES["reopens"].fullmatch(_bare(sentence)):
            option = next(filter(None, match.groups()), "")
            back = [one for one in out if set(terms(option)) & set(terms(one.value))]
            return [(Statement(option, sentence, "reopened"), back)] if back else []
        if match := _CHANGES["refuses"].fullmatch(_bare(sentence)):
            option, reason = [*(part.strip(" .!。") for part in match.groups() if part), ""][:2]
            same = [one for one in out if one.value.lower() == option.lower()]
            text = one_line(str(Excluded(option, reason)))
            return [(Statement(text, sentence, "excluded", value=one_line(option), section="excluded"), same)]
        return []

    def _hold(self, statement: Statement, message: PromptMessage, ended: Sequence[Statement]) -> Noted:
        gone = self._end(ended)
        supersedes = frozenset(one.known for one in gone if one.known).union(*(one.supersedes for one in gone))
        made = replace(statement, known=0, supersedes=supersedes, day=message.day, source=message.position)
        if not any(one.says(made.text) or made.within(one) for one in self.held if one.origin == Origin.STATED):
            self.held.append(made)
        return Noted(made, ended)

    def _end(self, ended: Sequence[Statement]) -> list[Statement]:
        """Remove statements, those that say the same, and the sentences that they are from; return all removed ones."""
        gone = [one for one in self.held if any(one is old or one.says(old.text) or _tells(one, old) for old in ended)]
        self.held = [one for one in self.held if one not in gone]
        return gone

    def _close_questions(self, answer: str) -> None:
        words, asked = set(terms(answer)), {one: set(terms(one)) for one in self.questions}
        self.questions = [one for one in asked if len(words & asked[one]) < max(2, 0.6 * len(asked[one]))]


def _bare(sentence: str) -> str:
    return plain_apostrophes(sentence).strip(" .!。,")


def _clean(sentence: str) -> str:
    text = one_line(sentence).strip(" .!,:;。")
    return text[:1].upper() + text[1:]


def _names(one: Statement) -> set[str]:
    """Return the names in a statement, as terms."""
    names = re.findall(r"(?<![.!?] )(?<!^)\b[A-Z]\w+", one.text)
    return {term for name in names for term in terms(name)}


def _illness(one: Statement) -> set[str]:
    """Return the words of an allergy or an illness, as terms."""
    return set(terms(one.value)) if one.key in ("allergy", "health") else set()


def _told(message: PromptMessage) -> Iterator[Statement]:
    """Yield each sentence that says something (`value`), with the one before it where it only refers to that."""
    before, is_own = "", message.role == "user"
    for sentence in (one for one in sentences(message.text) if not is_small_talk(one)):
        refers = asks("refers", sentence) and (not is_question(before) or len(terms(sentence)) < 3)
        before = f"{before} {sentence}".strip() if refers else sentence
        text = f"{message.name}: {before}" if message.name and not is_own else before
        origin = Origin.OWN if is_own else Origin.OTHERS
        made = Statement(one_line(text), before, value=sentence, origin=origin, by=message.name)
        yield replace(made, day=message.day, source=message.position)


def _tells(one: Statement, other: Statement) -> bool:
    """Return whether a sentence is one in which the other was said."""
    return one.origin != Origin.STATED and bool(other.quote) and other.quote in one.quote


def _replaces(new: Statement, old: Statement) -> bool:
    """Return whether `old` no longer holds once `new` is said."""
    if new.says(old.text) or old.origin != Origin.STATED:
        return False
    if new.mark == "-" or old.mark == "-":  # no longer likes tea, or sold the Golf that they drive
        about = set(terms(new.value)) & set(terms(old.value or old.text))
        return bool(about and new.key) and (old.key in (new.key, "") or (new.mark == "-" and new.category == "event"))
    if old.value and re.search(rf"\b(?:instead of|rather than) (?:the )?{re.escape(old.value)}$", new.text, re.I):
        return True
    return bool(new.mark == "!" and new.key and new.key in (old.key, old.about) and not new.within(old))


def record_of(prompt: Prompt) -> Record:
    """Return the record of a prompt: facts and earlier conversations by day, then this conversation.

    Facts of today that no message states come last: they were said elsewhere, or edited.
    """
    record, own = Record(prompt.summary), [one for one in (*prompt.recalled, *prompt.said) if one.role == "user"]
    made = [one for message in own for one in statements(message.text)]
    stated = {(one.key, one.value) for one in made if one.key} | {one.text for one in made}
    record.has_recalled = bool(prompt.recalled)
    last = [fact for fact in prompt.facts if fact.day == prompt.today and not _said_by(fact, stated)]
    record.take_up([*(fact for fact in prompt.facts if fact not in last), *prompt.recalled])
    record.take_up(prompt.said)
    record.take_up(last)
    return record


def _said_by(fact: PromptFact, stated: Container[tuple[str, str] | str]) -> bool:
    """Return whether messages state a fact, in its words or, as a line of the profile, in its key and value."""
    one = known(fact.text, fact.id, fact.day)
    return fact.text in stated or (one.key, one.value) in stated
