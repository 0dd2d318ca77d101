"""First-person statements: what a clause says about the person who writes it.

A table of rules.  A rule reads a clause from its first word, so that a clause which does not begin with "I" or "my"
is never about the person.  What it finds has an `attribute`: of one attribute one value holds at a time, so a later
statement of the same attribute corrects the earlier one, and statements with different attributes (a second pet,
another hobby) stand side by side.

Guarantee: pure; the words of `Statement.text` are the clause's own, but for the labels in the table.  A text made by
this table reads back as the statement it came from (`reread`), which is how known facts are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.llm.builtin import chinese
from memory.llm.builtin.personal_rules import BY_SUBJECT, CASUAL_OK, Rule
from memory.llm.builtin.personal_values import value_of
from memory.llm.builtin.statements import Clause
from memory.llm.builtin.wording import is_unspaced, stems

_USER_CATEGORIES = frozenset({"identity", "preference", "relationship", "work"})
_I = re.IGNORECASE


@dataclass(frozen=True)
class Statement:
    """What was read.  `attribute` is empty where a later statement corrects nothing; `ended` for "no longer"."""

    text: str
    category: str
    importance: int
    attribute: str = ""
    value: str = ""
    ended: bool = False

    @property
    def scope(self) -> str:
        """Whether it holds across conversations."""
        return "user" if self.category in _USER_CATEGORIES else "session"

    def replaces(self, old: Statement) -> bool:
        """Whether `old` no longer holds now that this has been said."""
        if not self.attribute or self.attribute != old.attribute or self.text.lower() == old.text.lower():
            return False
        if self.ended and not old.ended:
            return not self.value or bool(set(stems(self.value)) & set(stems(old.value)))
        # "I live in Tallinn, Estonia" said again as "I live in Tallinn" takes nothing back.
        return self.ended != old.ended or not self.within(old)

    def within(self, old: Statement) -> bool:
        """Whether this says no more than `old` does."""
        words = value_words(self.value)
        return (
            self.attribute == old.attribute != ""
            and self.ended == old.ended
            and bool(words)
            and words <= value_words(old.value)
            and self.text.partition(" ")[0].lower() == old.text.partition(" ")[0].lower()
        )


def value_words(value: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", value.lower()))


def read(clause: Clause) -> Statement | None:
    """The statement a clause makes about its writer, if it makes one."""
    if is_unspaced(clause.read) and (made := _chinese(clause.read)) is not None:
        return made
    subject = _SUBJECT.match(clause.read)
    if subject is None:
        return None
    rest = clause.read[subject.end() :]
    # Only a person who writes "i" is one whose names may come without capitals.
    casual = subject.group()[:1] == "i"
    kind = "do" if subject.lastgroup == "perfect" else subject.lastgroup or "do"
    made = _first(BY_SUBJECT[kind], rest, casual)
    if made is None and kind == "have" and subject.group().lower().startswith("i got"):
        return _first(BY_SUBJECT["do"], f"got {rest}", casual)
    return made


def _first(rules: tuple[Rule, ...], rest: str, casual: bool) -> Statement | None:
    for rule in rules:
        match = rule.pattern.match(rest)
        if match:
            made = _made(rule, match, casual)
            if made is not None:
                return made
    return None


def reread(text: str) -> Statement | None:
    """The statement behind a fact's text, made by this table ("Lives in Lyon") or by a model ("User lives in Lyon")."""
    bare = re.sub(
        r"^(?:the\s+)?(?:user|person|he|she|they)(?:'s\s+|\s+(?:is\s+|has\s+)?|$)", "", text.strip()[:300], flags=_I
    )
    if is_unspaced(bare):
        return _chinese(bare) or _chinese("我" + bare)
    for clause in _first_person(bare):
        made = read(Clause(clause, clause))
        if made is not None:
            return made
    return None


_ADVERBS = (
    r"(?:\s+(?:also|just|still|now|currently|actually|really|already|recently|only|usually|always|both|definitely"
    r"|absolutely|totally|originally|officially|finally|truly|personally|honestly|so|very|quite|all))*\s+"
)
_PERFECT = (
    r"(?:moved|relocated|lived|worked|joined|started|decided|stopped|quit|left|got|given|gave|adopted"
    r"|bought|sold|finished|signed)"
)
_SUBJECT = re.compile(
    r"(?P<choose>(?:let's|let us|(?:I|we)(?:'ll| will|'re going to| are going to|'m going to| am going to))\s+(?=(?:use"
    r"|go with|switch to|upgrade to|stick with|pick|choose|move to|migrate to)\b)|(?:we're|we are|I'm|I"
    r" am)\s+(?=(?:using|switching to|going with)\b.* for\b)|(?:I|we)(?: now| currently)?\s+(?=use\b.* for\b))"
    rf"|(?P<am>(?:I'm|im|I am|we're|we are|I've been|I have been){_ADVERBS})|(?P<perfect>(?:I've|I have|we've|we"
    rf" have)(?=(?:\s+\w+ly|\s+just|\s+also)*\s+{_PERFECT}\b){_ADVERBS})|(?P<have>(?:I've got|I have got|I have|I've|we"
    rf" have|we've got|we've|I got|(?:I|we)\s+(?:also|still)\s+have){_ADVERBS})"
    r"|(?P<would>(?:I'd|we'd|I would|we would)\s+)"
    rf"|(?P<will>(?:I'll|I will|we'll|we will)\s+)|(?P<do>(?:I|we){_ADVERBS})"
    r"|(?P<my>(?:my|our)\s+|(?=call me\b)|(?:people|friends|everyone|everybody) (?=calls? me\b))"
    r"|(?P<the>the\s+|(?=(?:budget|deadline|stack|tech stack|database|hosting|launch|release|wedding)\b))",
    _I,
)


def _made(rule: Rule, match: re.Match[str], casual: bool) -> Statement | None:
    parts = {name: found or "" for name, found in match.groupdict().items()}
    if "v" in parts:
        parts["v"] = value_of(parts["v"], rule.value, casual and rule.attribute in CASUAL_OK)
        if not parts["v"]:
            return None
    key = " ".join(stems(parts.get("v", "")) or sorted(value_words(parts.get("v", ""))))[:80]
    text = rule.text.format(**parts)
    named = {name: part.lower().strip() for name, part in parts.items()}
    attribute = rule.attribute.format(**{**named, "key": key})
    return Statement(
        text=text[:1].upper() + text[1:],
        category=rule.category,
        importance=rule.importance,
        attribute=attribute,
        value=parts.get("v", "") or parts.get("k", ""),
        ended=rule.ended,
    )


def _chinese(text: str) -> Statement | None:
    for rule in chinese.RULES:
        match = rule.pattern.match(text)
        if match:
            value = match.groupdict().get("v") or ""
            said = re.sub(r"^我们?的?", "", match.group()).strip()
            attribute = rule.attribute.format(key=value, k=match.groupdict().get("k") or "")
            return Statement(said, rule.category, rule.importance, attribute, value, rule.ended)
    return None


_BASE_FORM = {"is": "am", "has": "have", "does": "do", "was": "was", "goes": "go", "studies": "study", "hates": "hate"}


def _first_person(text: str) -> Iterator[str]:
    """The clauses in the first person that `text` may have been made from, likeliest first."""
    label, colon, value = text.partition(":")
    if colon and len(label) < 60:
        yield f"my {label} is {value.strip()}"
    word, _, rest = text.partition(" ")
    lowered = word.lower()
    if lowered == "use":
        yield f"let's {text}"
    if lowered in _BASE_FORM:
        base = _BASE_FORM[lowered]
    elif lowered in ("doesn't", "does not"):
        base = "don't"
    elif lowered.endswith("ies") and len(lowered) > 4:
        base = lowered[:-3] + "y"
    elif lowered.endswith(("ches", "shes", "sses", "xes")):
        base = lowered[:-2]
    elif lowered.endswith("s") and not lowered.endswith("ss"):
        base = lowered[:-1]
    else:
        base = lowered
    yield f"I {base} {rest}"
    yield f"I'm {text}"
    if lowered == "no":
        base_rest = re.sub(r"^longer\s+(\w+?)s\b", r"longer \1", rest, flags=_I)
        yield f"I no {base_rest}"
        yield f"I'm no {rest}"
    yield f"my {text}"
