"""How a later statement meets what is known: the statement behind a fact, and "Ida, not Ada".

Guarantee: pure; a correction changes only a statement that says the word it takes back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from memory.domain import Fact
from memory.llm.extractive import sentences
from memory.llm.extractive.personal import Statement, read, reread
from memory.llm.extractive.statements import clauses
from memory.llm.extractive.wording import straight

_THING = r"[^\s,;:.!?()\"]+(?: [^\s,;:.!?()\"]+){0,3}"
_LEAD = (
    r"(?:(?:no|sorry|actually|wait|correction|oops|i meant?|it's|it is|it was|that's|make (?:it|that)"
    r"|rather)\b[\s,:.-]*)*"
)
_NEW_NOT_OLD = re.compile(rf"\s*{_LEAD}(?P<new>{_THING}),? (?:and )?not (?P<old>{_THING})[\s.!]*$", re.IGNORECASE)
_NOT_OLD_NEW = re.compile(
    rf"\s*{_LEAD}not (?P<old>{_THING})(?:,| but|, but|;| -| –|\.) (?:it's |it is )?(?P<new>{_THING})[\s.!]*$",
    re.IGNORECASE,
)


_NO_THING = re.compile(
    r"\b(?:am|is|are|was|were|do|does|did|can|could|will|would|should|may|might|must|have|has|why|if|or|but|and|probably"
    r"|maybe|perhaps|certainly|definitely|course)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Correction:
    """Take `old` back and say `new` in its place."""

    old: str
    new: str

    def applied_to(self, statement: Statement) -> Statement | None:
        """The corrected statement, or None where it doesn't say what is taken back."""
        pattern = re.compile(rf"(?<!\w){re.escape(self.old)}(?!\w)", re.IGNORECASE)
        exact = statement.value.lower() == self.old.lower()
        telling = any(character.isupper() or character.isdigit() for character in self.old)
        if not (exact or telling) or not pattern.search(statement.text):
            return None
        text = pattern.sub(lambda _: self.new, statement.text, count=1)
        value = pattern.sub(lambda _: self.new, statement.value, count=1)
        return replace(statement, text=text, value=value)


def correction(sentence: str) -> Correction | None:
    """ "Ida, not Ada" and "not Ada, Ida", as one thing put in another's place."""
    if len(sentence) > 120 or "not" not in sentence.lower():
        return None
    bare = straight(sentence)
    match = _NOT_OLD_NEW.match(bare) or _NEW_NOT_OLD.match(bare)
    if match is None:
        return None
    new = re.sub(
        r"^(?:my name is|my name's|i'm|i am|i live in|the \w+ is|my \w+ is|it's|in|at|on)\s+",
        "",
        match.group("new"),
        flags=re.IGNORECASE,
    )
    old = re.sub(r"^(?:in|at|on|for|the)\s+", "", match.group("old"), flags=re.IGNORECASE)
    if not new or not old or new.lower() == old.lower() or _NO_THING.search(new):
        return None
    return Correction(old, new)


@lru_cache(maxsize=4096)
def reread_text(text: str) -> Statement | None:
    """`reread`, remembered: a summary's items are asked about again and again."""
    return reread(text)


@lru_cache(maxsize=4096)
def _of(text: str, quote: str) -> Statement | None:
    for sentence in sentences.split(quote[:600]):
        for clause in clauses(sentence.text):
            statement = read(clause)
            if statement is not None and same_text(statement.text, text):
                return statement
    return reread(text)


def statement_of(fact: Fact) -> Statement | None:
    """The statement behind a known fact: read again from its quote, or else from its text."""
    return _of(fact.text, fact.quote)


def same_text(a: str, b: str) -> bool:
    return a.strip(" .").casefold() == b.strip(" .").casefold()
