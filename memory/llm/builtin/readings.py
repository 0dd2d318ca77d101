"""What a sentence states, clause by clause, and the statement behind a fact that is known.

A clause is read by the first rule that knows it: ruled out or put back, about the person, a need, a limit, or told to
be kept.

Guarantee: pure, so that readings are remembered; the words of a statement are the clause's, but for the labels of
`personal_rules`, and its quote is a part of the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.domain import Fact
from memory.llm.builtin import sentences, statements
from memory.llm.builtin.personal import Statement, read, reread
from memory.llm.builtin.refusals import refusal, reopening
from memory.llm.builtin.sentences import Sentence
from memory.llm.builtin.statements import Clause
from memory.llm.builtin.wording import stems
from memory.sections import Excluded
from search_index.caches import cached


@dataclass(frozen=True)
class Reading:
    """A clause and what it does; where nothing is set, no rule reads it."""

    clause: Clause
    quote: str
    statement: Statement | None = None
    excluded: Excluded | None = None
    reopened: str | None = None


@cached(4096)
def readings(sentence: Sentence) -> tuple[Reading, ...]:
    """The clauses of a sentence, read."""
    out = []
    for clause in statements.clauses(sentence.text, sentence.heading):
        quote = clause.text if clause.standing else sentence.text
        reopened = reopening(clause)
        excluded = refusal(clause) if reopened is None and not clause.heading else None
        statement = statement_in(clause, sentence.text) if excluded is None else None
        out.append(Reading(clause, quote, statement, excluded, reopened))
    return tuple(out)


def statement_in(clause: Clause, sentence: str) -> Statement | None:
    """The statement that `clause`, a part of `sentence`, makes; None when no rule reads it."""
    statement = read(clause) or _need_or_limit(clause) or _asked_to_keep(clause, sentence)
    return statement if statement is not None and sentences.one_line(statement.text) else None


@cached(4096, longest=500)
def reread_text(text: str) -> Statement | None:
    """`reread`, remembered: a summary's items are asked about again and again."""
    return reread(text)


def as_statement(fact: Fact) -> Statement:
    """A known fact as a statement, its bare text where no rule reads it."""
    made = _statement_behind(fact.text, fact.quote[:600])
    return made or Statement(fact.text, fact.category, fact.importance, value=fact.text)


@cached(4096, longest=500)
def _statement_behind(text: str, quote: str) -> Statement | None:
    """The statement of which a known fact was made: read again from its quote, or else from its text."""
    for sentence in sentences.split(quote):
        for reading in readings(sentence):
            if reading.statement is not None and same_text(reading.statement.text, text):
                return reading.statement
    return reread_text(text)


def same_text(a: str, b: str) -> bool:
    return a.strip(" .").casefold() == b.strip(" .").casefold()


def _need_or_limit(clause: Clause) -> Statement | None:
    if clause.heading == "constraint" or (statements.is_limit(clause) and not clause.heading):
        return Statement(_restated(clause), "constraint", 4)
    if clause.heading or statements.is_need(clause):
        return Statement(_restated(clause), "requirement", 3)
    return None


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
