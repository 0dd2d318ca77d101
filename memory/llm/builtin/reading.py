"""Read what a person says of themselves: sentences, clauses, and the statement that a clause makes.

A row of the languages' tables is tried on a whole clause, and what it captures must be complete: nothing that only its
context explains ("him", "the feeling"), and no loose end ("to read, especially").  A row that would be wrong in one of
ten clauses is left out of the table: the words stay searchable, and no fact is better than a false one.

Invariants (tests/test_builtin_model.py): pure, linear in the text; sentences and clauses are verbatim parts of it, and
so is the value of a statement.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from itertools import pairwise

from memory.languages import SENTENCE_END, plain_apostrophes, split_question
from memory.llm.builtin.language import THIRD_PERSONS, patterns, rows, terms
from memory.llm.builtin.prompt import PromptLine
from memory.quoting import comparable, own_words
from models.facts import Relation

READ_CHARS_MAX, SENTENCE_CHARS_MAX, VALUE_WORDS_MAX = 20_000, 400, 14

NAME_OF = "'s name"  # in the label of a fact

Origin = IntEnum("Origin", "STATED OWN OTHERS SUMMARY")  # where words are from: what answers best comes first


@dataclass(frozen=True, eq=False)
class Statement:
    """Statement that a clause makes, a sentence as it stands, or an item of a summary.

    key: what it is about. mark: one value of the key is valid at a time ("!"), or the value is valid no longer ("-").
    section: its place in the summary. day, source: when it was said, and in which message. by: the name of who said it.
    known: the id of a known fact, or 0. supersedes: ids of known facts whose place it takes.
    """

    text: str
    quote: str
    category: str = "other"
    importance: int = 1
    key: str = ""
    value: str = ""
    mark: str = ""
    origin: Origin = Origin.STATED
    section: str = ""
    day: str = ""
    source: int = 0
    known: int = 0
    supersedes: frozenset[int] = frozenset()
    by: str = ""

    @property
    def about(self) -> str:
        """Return the kind of thing that it is about: "job" of the key "job:as"."""
        return self.key.partition(":")[0]

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words that it is found by."""
        return frozenset(terms(f"{self.text} {self.quote} {self.key} {self.by}"))

    def overlaps(self, other: "Statement") -> bool:
        """Return whether one rests on words of the other."""
        mine, theirs = self.quote.casefold(), other.quote.casefold()
        return bool(mine and theirs) and (mine in theirs or theirs in mine)

    @cached_property
    def _compared(self) -> str:
        return comparable(self.text)

    def says_same(self, other: "Statement") -> bool:
        """Return whether two say the same, but for case, spacing and the final stop."""
        return self._compared == other._compared


_ROWS, _LINKS = rows("statements", 4), rows("links", 5)
_VERBATIM = ("k", "limit", "han", "name", "place")
_READING, _CUTS, _MUST, _NEVER = map(patterns, ("reading", "cuts", "must", "never"))
_FIGURES = (kind.pattern for name, kind in patterns("kinds").items() if name != "name")
_MUST["figure"] = re.compile(f"^(?:{'|'.join(_FIGURES)})$", re.I)  # a whole value of its kind
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|#{1,6}|\d{1,3}[.)])[ \t]+", re.M)
_ITEM = re.compile(r"(?:,\s*(?:and\s+)?|\s+and\s+)(?:to\s+)?")
_LIST = re.compile(r"(?:[^,]+, )+(?:[^,]+,? )?(?:and|or) [^,]+")


def sentences(content: str) -> list[str]:
    """Return the writer's own sentences: no code, no quoted lines, no quotations, no text to work on."""
    own: list[str] = []
    is_quoting = False
    for part in SENTENCE_END.split(_BULLET.sub("", own_words(content[:READ_CHARS_MAX]))):
        sentence = part.strip()[:SENTENCE_CHARS_MAX]
        if _READING["task"].match(sentence):
            break
        if sentence and not is_quoting:
            own += split_question(sentence)
        if len(re.findall('["“”]', sentence)) % 2:
            is_quoting = not is_quoting
    return own


def settled(content: str) -> list[str]:
    """Return a message's sentences, but those that the next one takes back ("Well, I did until Easter")."""
    pairs = pairwise([*sentences(content), ""])
    turn = _READING["turn"]
    return [sentence for sentence, after in pairs if after[-1:] == "?" or not turn.match(plain_apostrophes(after))]


def is_doubtful(sentence: str) -> bool:
    """Return whether a sentence anywhere has a condition, a hedge, a time that is over, or words of somebody else."""
    return bool(_READING["doubt"].search(plain_apostrophes(sentence)))


def clauses(sentence: str) -> Iterator[tuple[str, str]]:
    """Yield each clause of a sentence: verbatim, and as the patterns read it; none of a doubtful one."""
    if is_doubtful(sentence):
        return
    joints = _READING["joint"].finditer(plain_apostrophes(sentence))
    bounds = [0, *(place for joint in joints for place in joint.span()), len(sentence)]
    subject = ""
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        verbatim = sentence[start:end].strip()
        read = _READING["lead"].sub("", plain_apostrophes(verbatim)).rstrip(" .!。,;:()*_")
        read = _READING["trail"].sub("", read)
        read = _READING["contracted"].sub(r"\1n't", read)
        if own := _READING["own"].match(read):
            subject = next(filter(None, own.groups()))
        elif not subject or not (subject[0] == "我" or _READING["carried"].match(read)):
            subject = ""
        else:
            read = f"{subject}{'' if subject[0] == '我' else ' '}{read}"
            verbatim = sentence[:end].strip()
        if read:
            yield verbatim, read


def readings(sentence: str) -> list[tuple[str, list[Statement]]]:
    """Return each clause of a sentence with its statements; of a contrast, where each clause makes one or none does."""
    read = [(quote, statements_of(quote, clause)) for quote, clause in clauses(sentence)]
    is_whole = all(stated for _, stated in read) or not _READING["contrast"].search(sentence)
    return [(quote, stated if is_whole else []) for quote, stated in read]


def statements(content: str) -> Iterator[Statement]:
    """Yield the statements that a message makes about its writer."""
    return (statement for sentence in settled(content) for _, stated in readings(sentence) for statement in stated)


def statements_of(quote: str, clause: str) -> list[Statement]:
    """Return the statements that a clause makes: one, or of a list of allergies one each, since one of them may end."""
    whole = statement(quote, clause)
    if whole is None or whole.key != "allergy":
        return [whole] if whole else []
    items = _ITEM.split(whole.value)
    return [replace(whole, value=item, text=whole.text.replace(whole.value, item)) for item in items]


def statement(quote: str, clause: str) -> Statement | None:
    """Return the statement that a clause makes. quote: the clause as it was written."""
    return next(filter(None, (_by_row(quote, clause, *row) for row in _ROWS)), None)


def _template(text: str) -> re.Pattern[str] | None:
    """Return the pattern of a row's texts, if it is known by words of its own."""
    parts = re.split(r"(\{\w+\})", text)
    groups = (rf"(?P<{part[1:-1]}>.+?)" if part.startswith("{") else re.escape(part) for part in parts)
    own_letters = re.sub(r"[\W\d_]", "", "".join(parts[::2]))
    return re.compile("".join(groups)) if len(own_letters) > 1 else None


_TEMPLATES = [(kind, key, template) for kind, key, text, _ in _ROWS if (template := _template(text)) is not None]


def statement_of(fact: PromptLine) -> Statement:
    """Return the statement that a known fact was made from."""
    text = fact.text
    label, colon, value = text.partition(": ")
    kind = "other 3"
    key, mark = (label.replace(NAME_OF, " name").lower(), "!") if colon else ("", "")
    for row_kind, row_key, template in _TEMPLATES:
        match = template.fullmatch(text)
        if match and all(checked(name, part) for name, part in match.groupdict().items()):
            kind = row_kind
            key, mark, value = _keyed(row_key, match.groupdict())
            break
    category, _, number = kind.partition(" ")
    read = Statement(text, "", category, max(2, int(number)), key, value or text, mark)
    return replace(read, day=fact.day, known=fact.number)


def _keyed(key: str, parts: dict[str, str]) -> tuple[str, str, str]:
    """Return the key of a row for what its groups captured, the mark of the key, and the value."""
    about = key.rstrip("!-")
    value = next((parts[name] for name in reversed(parts) if name != "k"), parts.get("k", ""))
    return about.format(**{"k": "", **parts}).lower(), key[len(about) :], value


def _by_row(quote: str, clause: str, kind: str, key: str, text: str, source: re.Pattern[str]) -> Statement | None:
    """Return the statement that a row of the table reads in a clause."""
    match = source.fullmatch(clause)
    if match is None:
        return None
    parts = {name: checked(name, part) for name, part in match.groupdict().items() if part}
    if not all(parts.values()):
        return None
    key, mark, value = _keyed(key, parts)
    parts = dict.fromkeys(match.groupdict(), "") | parts
    verb, space, rest = parts.get("k", "").lower().partition(" ")
    text = text.format(**parts, K=f"{THIRD_PERSONS.get(verb, f'{verb}s')}{space}{rest}").strip()
    category, _, importance = kind.partition(" ")
    limit = category == "constraint" or key in ("allergy", "diet", "health")
    section = "constraints" if limit else "requirements" if category == "requirement" else "data"
    return Statement(text[:1].upper() + text[1:], quote, category, int(importance), key, value, mark, section=section)


def checked(name: str, part: str) -> str:
    """Return the complete part of what a group captured; "" if there is none, or none of the group's kind."""
    part = part if name in _VERBATIM else _complete(part, _CUTS.get(name))
    must, never = _MUST.get(name), _NEVER.get(name)
    return part if (must is None or must.search(part)) and (never is None or not never.search(part)) else ""


def _complete(part: str, cut: re.Pattern[str] | None) -> str:
    """Return the object without a harmless end; "" where more hangs on it, or where only its context explains it."""
    has_more = not cut and _READING["more"].search(part)
    part = (cut.split(part, maxsplit=1)[0] if cut else part).strip(" ,.;:!*_'-")
    part = part if cut or _LIST.fullmatch(part) else part.partition(", ")[0]
    return "" if has_more or len(part.split()) > VALUE_WORDS_MAX or _READING["vague"].search(part) else part


def links(text: str) -> Iterator[Relation]:
    """Yield the relations in the text of a statement."""
    for subject, relation, target, kinds, source in _LINKS:
        match = source.fullmatch(text)
        parts = {name: checked(name, part) for name, part in match.groupdict().items()} if match else {}
        if parts and all(parts.values()):
            parts["k"] = parts.get("k", "").lower()
            names = (template.format(**parts) for template in (subject, relation, target))
            yield Relation(*names, *kinds.split())
