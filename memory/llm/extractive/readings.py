"""What a clause states, by the first rule that reads it: about the person, a need, a limit, or told to be kept.

Guarantee: pure; the words of a statement are the clause's, but for the labels of `personal_rules`.
"""

from __future__ import annotations

from memory.llm.extractive import sentences, statements
from memory.llm.extractive.personal import Statement, read
from memory.llm.extractive.statements import Clause
from memory.llm.extractive.wording import stems


def statement_in(clause: Clause, sentence: str) -> Statement | None:
    """The statement that `clause`, a part of `sentence`, makes; None when no rule reads it."""
    statement = read(clause) or _need(clause) or _limit(clause) or _asked_to_keep(clause, sentence)
    return statement if statement is not None and sentences.one_line(statement.text) else None


def quote_of(clause: Clause, sentence: str) -> str:
    """The part of the sentence to quote for what `clause` says: the clause itself where it stands on its own."""
    return clause.text if clause.standing else sentence


def _need(clause: Clause) -> Statement | None:
    if not statements.is_need(clause) or statements.is_limit(clause):
        return None
    return Statement(_restated(clause), "requirement", 3)


def _limit(clause: Clause) -> Statement | None:
    return Statement(_restated(clause), "constraint", 4) if statements.is_limit(clause) else None


def _asked_to_keep(clause: Clause, sentence: str) -> Statement | None:
    if statements.asks_to_remember(sentence) and len(stems(clause.read)) > 1:
        return Statement(clause.read[:1].upper() + clause.read[1:], "other", 4)
    return None


def _restated(clause: Clause) -> str:
    text = sentences.one_line(clause.read)
    for verb in ("need", "want", "require"):
        for subject in ("I", "i", "We", "we"):
            if text.startswith(f"{subject} {verb} "):
                return f"{verb.capitalize()}s {text[len(subject) + len(verb) + 2 :]}"
    return text[:1].upper() + text[1:]
