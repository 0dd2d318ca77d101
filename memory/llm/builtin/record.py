"""Keep the valid statements of a conversation in one list, and its open questions.

Invariants (tests/test_builtin_model.py):
- No statement mixes the words of two sentences. A correction that is no sentence of its own replaces a whole value by
  a whole value of its kind ("Budget: 4000 euro" and "I meant 4500 euro"), or the person is asked what it corrects.
- An ending ("I don't work there any more") closes one statement, or the person is asked which.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from memory.languages import plain_apostrophes
from memory.llm.builtin.language import TIME_TERMS, asks, is_question, is_small_talk, patterns, remembered, terms
from memory.llm.builtin.prompt import ParsedPrompt, PromptLine
from memory.llm.builtin.reading import Origin, Statement, is_doubtful, readings, sentences, settled, statement_of
from memory.quoting import one_line
from models.sections import SECTIONS, Excluded, Sections

_STATED = [section.name for section in SECTIONS if section.kind != "line" and section.name != "open_questions"]
_ENDINGS = ("gone", "parted", "stopped", "finished")
_CHANGES = patterns("changes")
_KINDS = patterns("kinds")
_LEAD = patterns("reading")["lead"]


class Noted(NamedTuple):
    """Statement of a clause, with the statements that it ended.

    statement: None if the clause changes something, but does not tell what; `ended` then has what it may mean.
    """

    statement: Statement | None
    ended: Sequence[Statement] = ()


class Record:
    """Valid statements, the newest last."""

    def __init__(self, summary: Sections) -> None:
        items = [(name, str(item), item) for name in _STATED for item in getattr(summary, name) if one_line(str(item))]
        self.valid = [
            Statement(text, text, value=getattr(item, "option", text), origin=Origin.SUMMARY, section=name)
            for name, text, item in items
        ]
        self.questions = list(filter(None, map(one_line, summary.open_questions)))
        self._last_questions: list[str] = []  # of the last message
        self.has_recalled = False  # messages of earlier conversations
        self.unsettled: list[Statement] = []  # the last sentence, if it changes something and does not tell what

    def take_up(self, lines: Sequence[PromptLine]) -> None:
        """Read facts and messages in the order of their days."""
        for line in sorted(lines, key=lambda line: line.day):
            if line.role != "fact":
                self.read(line)
                continue
            fact = statement_of(line)
            self._end([old for old in self.valid if _replaces(fact, old)])
            self.valid.append(fact)

    def read(self, message: PromptLine) -> list[Noted]:
        """Read a message; return what the person's message put on record."""
        if message.role == "assistant":
            if not asks("unknown", message.text[:300]):
                self.questions = [question for question in self.questions if question not in self._last_questions]
            return []
        noted: list[Noted] = []
        read = list(_sentences_of(message))
        is_own = message.role == "user"
        is_silent = is_own and bool(asks("keep out", message.text) or asks("forget", message.text))
        questions = [sentence.value for sentence in read if is_own and is_question(sentence.value)]
        self._last_questions = [one_line(question) for question in questions if terms(question)]
        self.questions += [question for question in self._last_questions if question not in self.questions]
        plain = settled(message.text) if is_own and not is_silent else ()
        for sentence in read:
            if sentence.value in plain and not is_question(sentence.value):
                placed = self._place(sentence.value, message)
                if placed:
                    self.unsettled = [sentence] if placed[0].statement is None else []
                noted += placed
        if not is_silent:
            self._keep([sentence for sentence in read if not is_question(sentence.value)], noted)
        return noted

    def _keep(self, read: Sequence[Statement], noted: Sequence[Noted]) -> None:
        """Keep sentences as they stand. Some that no rule read get a place in the summary."""
        quotes = {statement.quote for statement, _ in noted if statement is not None}
        unread = [new for new in read if not any(quote in new.value or new.value in quote for quote in quotes)]
        sections = {new: "data" for new in unread if asks("figure", new.text)}
        if rest := [new for new in unread if new not in sections]:
            sections[max(rest, key=lambda new: len(set(terms(new.text))))] = "discussed"
        self.valid += [replace(new, section=sections.get(new, "")) for new in read]

    def _place(self, sentence: str, message: PromptLine) -> list[Noted]:
        """Put what a sentence says on record: statements, endings, options, a correction, or what to remember."""
        noted: list[Noted] = []
        for quote, stated in readings(sentence):
            for statement in stated:
                noted.append(self._add(statement, message, [old for old in self.valid if _replaces(statement, old)]))
            if not stated and (ended := self._ending(quote)):
                noted.append(self._close(quote, message, ended))
        is_plain = not noted and not is_doubtful(sentence)
        if is_plain and (option := self._option(sentence)):
            noted = [self._add(option[0], message, option[1])]
        if is_plain and not noted and _CHANGES["corrects"].search(plain_apostrophes(sentence)):
            noted = [self._correct(sentence, message)]
        if not noted and terms(text := _clean(remembered(sentence))):
            noted = [self._add(Statement(text, sentence, "other", 3, section="data"), message, [])]
        return noted

    def _close(self, quote: str, message: PromptLine, ended: Sequence[Statement]) -> Noted:
        """Put an ending on record, or ask what it ends."""
        if len({old.text for old in ended}) > 1:
            return Noted(None, ended)
        text = _clean(_LEAD.sub("", quote))
        return self._add(replace(ended[0], text=text, quote=quote, mark="-", origin=Origin.STATED), message, ended)

    def _stated(self) -> list[Statement]:
        return [statement for statement in self.valid if statement.origin == Origin.STATED]

    def _ending(self, sentence: str) -> list[Statement]:
        """Return the statements that a clause may end; none where it is no ending."""
        if not any(asks(name, sentence) for name in _ENDINGS):
            return []
        stated = [old for old in self._stated() if old.mark != "-" and old.importance > 1]
        words = set(terms(_CHANGES["ending"].sub(" ", plain_apostrophes(sentence)))) - TIME_TERMS
        most = max((len(words & old.words) for old in stated), default=0)
        return [old for old in stated if most and len(words & old.words) == most >= len(words) / 2]

    def _correct(self, sentence: str, message: PromptLine) -> Noted:
        """Replace the whole value of one statement by another of its kind, or ask which one is meant."""
        pair = _CHANGES["swap"].fullmatch(_bare(sentence)) or _CHANGES["value"].fullmatch(_bare(sentence))
        parts = {name.rstrip("_"): part for name, part in pair.groupdict().items() if part} if pair else {}
        new = parts.get("new", "")
        kind = next((pattern for pattern in _KINDS.values() if new and pattern.fullmatch(new)), None)
        labelled = [old for old in self._stated() if ": " in old.text and old.mark != "-"]
        fitting = [old for old in labelled if kind and kind.fullmatch(old.value)]
        if len({old.text for old in fitting}) != 1:
            return Noted(None, fitting)
        old = fitting[-1]
        text = f"{old.text.partition(': ')[0]}: {new}"
        section = old.section or ("constraints" if old.category == "constraint" else "data")
        return self._add(replace(old, text=text, quote=sentence, value=new, section=section), message, [old])

    def meant(self, text: str) -> Statement | None:
        """Return the statement that a request to forget means, if any."""
        words = set(terms(text))
        stated = [statement for statement in self._stated() if statement.importance > 1]
        best = max(stated, key=lambda statement: len(words & statement.words), default=None)
        return best if best is not None and words & best.words else None

    def changes_after(self, answers: Sequence[Statement]) -> list[Statement]:
        """Return the unsettled sentences that may change one of these statements."""
        kinds = [kind for kind in _KINDS.values() if any(kind.search(answer.text) for answer in answers)]
        words = frozenset[str]().union(*(answer.words for answer in answers))
        return [new for new in self.unsettled if words & new.words or any(kind.search(new.text) for kind in kinds)]

    def _option(self, sentence: str) -> tuple[Statement, Sequence[Statement]] | None:
        """Return the option that a sentence rules out or puts back, with what that ends."""
        excluded = [statement for statement in self.valid if statement.section == "excluded"]
        if match := _CHANGES["reopens"].fullmatch(_bare(sentence)):
            option = next(filter(None, match.groups()), "")
            back = [old for old in excluded if set(terms(option)) & set(terms(old.value))]
            return (Statement(option, sentence, "reopened"), back) if back else None
        if match := _CHANGES["refuses"].fullmatch(_bare(sentence)):
            option, *reasons = [part.strip(" .!。") for part in match.groups() if part]
            text = one_line(str(Excluded(option, reasons[0] if reasons else "")))
            return Statement(text, sentence, "excluded", value=one_line(option), section="excluded"), ()
        return None

    def _add(self, statement: Statement, message: PromptLine, ended: Sequence[Statement]) -> Noted:
        """Put a statement of a message on record, in the place of the ones that it ends."""
        gone = self._end(ended)
        supersedes = frozenset(old.known for old in gone if old.known).union(*(old.supersedes for old in gone))
        new = replace(statement, known=0, supersedes=supersedes, day=message.day, source=message.number)
        if not any(old.says_same(new) for old in self._stated()):
            self.valid.append(new)
        return Noted(new, ended)

    def _end(self, ended: Sequence[Statement]) -> list[Statement]:
        """Remove statements, those that say the same, and the sentences that they are from; return all removed ones."""
        if not ended:
            return []
        gone = [old for old in self.valid if any(_goes_with(old, statement) for statement in ended)]
        self.valid = [old for old in self.valid if old not in gone]
        return gone


def _bare(sentence: str) -> str:
    return plain_apostrophes(sentence).strip(" .!。,")


def _clean(sentence: str) -> str:
    text = one_line(sentence).strip(" .!,:;。")
    return text[:1].upper() + text[1:]


def _sentences_of(message: PromptLine) -> Iterator[Statement]:
    """Yield each sentence that says something (`value`), with the one before it where it only refers to that."""
    text = ""
    is_own = message.role == "user"
    for sentence in sentences(message.text):
        if is_small_talk(sentence):
            continue
        refers = asks("refers", sentence) and (not is_question(text) or len(terms(sentence)) < 3)
        text = f"{text} {sentence}".strip() if refers else sentence
        line = f"{message.name}: {text}" if message.name and not is_own else text
        origin = Origin.OWN if is_own else Origin.OTHERS
        read = Statement(one_line(line), text, value=sentence, origin=origin, by=message.name)
        yield replace(read, day=message.day, source=message.number)


def _goes_with(old: Statement, ended: Statement) -> bool:
    """Return whether `old` is a statement that ended, says the same, or is the sentence that this one is from."""
    is_source = old.origin != Origin.STATED and bool(ended.quote) and ended.quote in old.quote
    return old is ended or old.says_same(ended) or is_source


def _replaces(new: Statement, old: Statement) -> bool:
    """Return whether `old` is valid no longer once `new` is said."""
    if old.origin != Origin.STATED or new.says_same(old):
        return False
    if new.mark == "-" or old.mark == "-":  # no longer likes tea, or sold the Golf that they drive
        about = set(terms(new.value)) & set(terms(old.value or old.text))
        return bool(about and new.key) and (old.key in (new.key, "") or (new.mark == "-" and new.category == "event"))
    return bool(new.mark == "!" and new.key and new.key in (old.key, old.about))


def record_of(prompt: ParsedPrompt) -> Record:
    """Return the record of a prompt: facts and earlier conversations by day, then this conversation.

    Facts of today come last: they were said in it, or elsewhere, or edited.
    """
    record = Record(prompt.summary)
    record.has_recalled = bool(prompt.recalled)
    edited = [line for line in prompt.facts if line.day == prompt.today]
    record.take_up([*(line for line in prompt.facts if line not in edited), *prompt.recalled])
    record.take_up(prompt.messages)
    record.take_up(edited)
    return record
