"""Find the facts that a new one supersedes, and those that hold now in place of what messages say.

A small model often writes the new fact and forgets the number of the old one. A rule finds the old one where it is
plain, in the words that the files of languages have for it: both state a thing of which a person has one at a time
(age, birthday); or the message corrects something, and both make one statement with different values, or state a name
or a home: else "lives in Germany" would end "lives in Berlin". Who "is a nurse" may be vegan as before: what something
is takes the place of what it was where the message says the old value, or both are names or times of what it speaks of.
"She lives in Leeds" may be of anybody, so it states no such thing of the person.
Nothing supersedes a fact of the same message, or one that was stated or edited later. A fact of an old message, which
is read after newer ones where conversations are imported, may itself be superseded already.

Invariants:
- A correction, or what it corrected, is shown only if its source is neither hidden, kept out nor refused
  [test_corrected].
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, not_, or_, select

from memory.engine import Engine
from memory.knowledge.fact_reads import CORRECTED, CORRECTED_FACTS, FACTS, NOW, corrected_facts, in_scope, valid_at
from memory.knowledge.grounding import DATE, numbers_in, stems, words_as_written
from memory.languages import CORRECTS, NEGATION, alternatives, content_terms, plain_apostrophes, vocabulary
from memory.sessions.memory_requests import REPEATED, MessageWords
from memory.sessions.messages import INDEXED, VISIBLE
from models import FactRow, MessageRow, Transaction
from models.facts import Fact, FactDraft
from models.messages import Message

CORRECTION_CHARS_MAX = 4000  # characters of a message in which a correction is looked for
_SOLE = {  # what a person has one of at a time
    thing: re.compile(rf"(?:{alternatives(lambda language: language.sole.get(thing, ''))})\W*(?P<value>.*)", re.I)  # noqa: B023
    for thing in ("home", "name", "age", "birthday")
}
_AMBIGUOUS = ("home", "name")  # of which others may be true as well: a country, what friends say
Sole = tuple[str, frozenset[str]] | None
_NUMBERED = vocabulary(lambda language: language.numbered)
_STATES = vocabulary(lambda language: language.copulas) | {":", "："}


def find_superseded(tx: Transaction, draft: FactDraft, source: Message, known: Iterable[Fact]) -> list[Fact]:
    """Return the known facts that a draft names as corrected, and those of its speaker that it plainly contradicts."""
    older = [fact for fact in known if fact.valid_from <= source.created_at and fact.source_message_id != source.id]
    said = source.content[:CORRECTION_CHARS_MAX]
    corrects = CORRECTS.search(said) is not None
    sole = sole_value(draft.text, draft.category)
    sole = sole if corrects or (sole and sole[0] not in _AMBIGUOUS) else None
    contradicted = [
        fact
        for fact in older
        if excludes(sole, sole_value(fact.text, fact.category))
        or (corrects and may_correct(draft.text, fact.text, said))
    ]
    if not contradicted and not draft.supersedes:
        return []
    corrected = _of_speaker(tx, contradicted, source).union(draft.supersedes)
    return [fact for fact in older if fact.id in corrected]


def find_successor(tx: Transaction, draft: FactDraft, source: Message, known: Iterable[Fact]) -> Fact | None:
    """Return the first known fact that was stated after a draft's source and supersedes the draft; None without any.

    The draft names it, or it is one of the same speaker that the draft plainly contradicts.
    """
    later = [fact for fact in known if fact.valid_from > source.created_at]
    sole = sole_value(draft.text, draft.category)
    contradicted = [fact for fact in later if excludes(sole_value(fact.text, fact.category), sole)]
    successors = _of_speaker(tx, contradicted, source).union(draft.supersedes)
    return min((fact for fact in later if fact.id in successors), key=lambda fact: fact.valid_from, default=None)


def _of_speaker(tx: Transaction, facts: Sequence[Fact], source: Message) -> set[int]:
    """Return the ids of the facts that the speaker of a message stated, or somebody through the API."""
    sources = {fact.source_message_id for fact in facts} - {None}
    by_speaker = (MessageRow.id.in_(sources), MessageRow.name.is_not_distinct_from(source.name))
    of_speaker = {None, *tx.scalars(select(MessageRow.id).where(*by_speaker))} if sources else {None}
    return {fact.id for fact in facts if fact.source_message_id in of_speaker}


def excludes(new: Sole, old: Sole) -> bool:
    """Return whether both state the same sole thing, with different values."""
    return bool(new and old and new[0] == old[0] and not (new[1] <= old[1] or old[1] <= new[1]))


def may_correct(text: str, other: str, said: str | None = None) -> bool:
    """Return whether two texts are one statement but for a value, or denied in one of them.

    said: the message that states the first; it tells whether what something is may be true beside what it was.
    """
    plain = [plain_apostrophes(part) for part in (text, other)]
    mine, theirs = (NEGATION.sub(" ", part) for part in plain)
    is_one_denied = len([part for part in plain if NEGATION.search(part)]) == 1
    if is_one_denied and content_terms(mine) == content_terms(theirs) and numbers_in(mine) == numbers_in(theirs):
        return bool(content_terms(mine))
    capitals = (word for part in (text, other) for word in words_as_written(part)[1:] if word[:1].isupper())
    return _another_value(_words(text), _words(other), said, set(map(str.casefold, capitals)))


def sole_value(text: str, category: str) -> Sole:
    """Return the thing that a text states and a person has one of at a time, and the words of its value.

    A home and a name begin with a proper name: who "lives in a shared flat" lives in Leeds as before, and so does who
    "moved to Acme", which is a fact about work.
    """
    for thing, stating in _SOLE.items():
        match = stating.match(plain_apostrophes(text).strip())
        if (
            match
            and (thing, category) != ("home", "work")
            and not (thing in _AMBIGUOUS and match["value"][:1].islower())
        ):
            return thing, frozenset(word.casefold() for word in words_as_written(match["value"] or match.group()))
    return None


def _another_value(mine: list[str], theirs: list[str], said: str | None, names: Collection[str]) -> bool:
    """Return whether two texts are one statement but for a figure, or for what it says that something is.

    said: see `may_correct`. names: the words of both that have capital letters.
    """
    before = _common(mine, theirs)
    after = _common(mine[before:][::-1], theirs[before:][::-1])
    of_mine, of_theirs = mine[before : len(mine) - after], theirs[before : len(theirs) - after]
    if not of_mine or not of_theirs or not stems(" ".join(mine[:before] + mine[len(mine) - after :])):
        return False
    figures = all(any(map(str.isdigit, word)) or DATE.fullmatch(word) for word in (*of_mine, *of_theirs))
    if figures and any(DATE.fullmatch(word) for word in of_mine) and not all(map(DATE.fullmatch, of_mine)):
        return False  # a figure of another day
    if figures and after and mine[len(mine) - after] in _STATES:
        return False  # another thing: "Room 3 is free"
    spoken, old = set(stems(said or "")), set(stems(" ".join(of_theirs)))
    is_old_said = bool(old) and old <= spoken
    if figures and before and mine[before - 1] in _NUMBERED:
        return said is None or is_old_said
    if figures or not (before > 1 and after == 0 and mine[before - 1] in _STATES):
        return figures
    is_named = all(any(word in names or DATE.fullmatch(word) for word in value) for value in (of_mine, of_theirs))
    return said is None or is_old_said or (is_named and not spoken.isdisjoint(stems(" ".join(mine[:before]))))


def _common(mine: Sequence[str], theirs: Sequence[str]) -> int:
    """Count the words that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))


def _words(text: str) -> list[str]:
    return [
        word.casefold()
        for part in re.sub(r"((?<!\d)[:：]|[:：](?!\d))", r" \1 ", text).split()
        for word in words_as_written(part) or [part]
    ]


# -- what holds in place of what was said

_SOURCE_IS_VISIBLE = or_(FactRow.source_message_id.is_(None), and_(*VISIBLE, *INDEXED))
_SUPERSEDED = (
    select(
        FactRow.id,
        FactRow.source_message_id,
        FactRow.session_id,
        FactRow.superseded_by,
        not_(FactRow.merged).label("is_corrected"),
    )
    .where(
        or_(
            FactRow.source_message_id.in_(bindparam("messages", expanding=True)),
            FactRow.session_id.in_(bindparam("sessions", expanding=True)),
            and_(FactRow.id.in_(bindparam("repeated", expanding=True)), _SOURCE_IS_VISIBLE),
        ),
        *CORRECTED,
    )
    .outerjoin(MessageRow, MessageRow.id == FactRow.source_message_id)
    .cte("superseded", recursive=True)
)
_S = _SUPERSEDED.c
_CHAIN = _SUPERSEDED.union(
    select(_S.id, _S.source_message_id, _S.session_id, FactRow.superseded_by, _S.is_corrected | not_(FactRow.merged))
    .join(_SUPERSEDED, FactRow.id == _S.superseded_by)
    .where(*CORRECTED)
)
_CORRECTIONS = (
    FACTS.add_columns(
        _CHAIN.c.id.label("corrected"),
        _CHAIN.c.source_message_id,
        _CHAIN.c.session_id.label("of_session"),
        FactRow.session_id.is_distinct_from(_CHAIN.c.session_id).label("is_elsewhere"),
    )
    .join(_CHAIN, FactRow.id == _CHAIN.c.superseded_by)
    .outerjoin(MessageRow, MessageRow.id == FactRow.source_message_id)
    .where(_CHAIN.c.is_corrected, valid_at(None), FactRow.owner_id == bindparam("owner"))
    .where(_SOURCE_IS_VISIBLE)
    .order_by(FactRow.id)
)
_FORMER = CORRECTED_FACTS.outerjoin(MessageRow, MessageRow.id == FactRow.source_message_id).where(
    _SOURCE_IS_VISIBLE, in_scope(bindparam("session"), bindparam("owner"))
)


class Corrections(NamedTuple):
    """Facts that hold now in place of others: by the messages that say those, and by the row ids of their sessions.

    of_sessions: only facts of other sessions. A session's own summary has those of its own.
    """

    of_messages: Mapping[int, list[Fact]] = {}
    of_sessions: Mapping[int, list[Fact]] = {}

    def of(self, message_ids: Iterable[int], session_row_id: int | None = None) -> tuple[Fact, ...]:
        """Return the facts that hold in place of what these messages say and, if given, the summary of a session."""
        of_session = self.of_sessions.get(session_row_id, ()) if session_row_id is not None else ()
        found = (fact for message_id in message_ids for fact in self.of_messages.get(message_id, ()))
        return tuple({fact.id: fact for fact in (*found, *of_session)}.values())


def find_corrections(
    engine: Engine, tx: Connection, owner_id: int, messages: Collection[Message], *, sessions: Collection[int] = ()
) -> Corrections:
    """Return the owner's facts that hold now in place of what these messages say, and of facts of these sessions.

    A message says a fact that was made of it, or that it repeats. A fact that was only merged with others that say the
    same is not corrected. sessions: row ids.
    """
    found = Corrections(defaultdict(list), defaultdict(list))
    said = [(message, MessageWords(message.role, message.content)) for message in messages if message.role in REPEATED]
    former = corrected_facts(engine, tx, owner_id) if said else ()
    saying = {fact.id: repeating for fact in former if (repeating := _repeating(fact, said))}
    shown = {"owner": owner_id, "messages": [message.id for message in messages], "sessions": list(sessions)}
    for row in tx.execute(_CORRECTIONS, {**shown, "repeated": list(saying), NOW.key: engine.now()}):
        *values, corrected_id, message_id, session_row_id, is_elsewhere = row
        fact = Fact(*values)
        for said_in in {message_id, *saying.get(corrected_id, ())}:
            found.of_messages[said_in].append(fact)
        if is_elsewhere:
            found.of_sessions[session_row_id].append(fact)
    return found


def _repeating(fact: Fact, said: Iterable[tuple[Message, MessageWords]]) -> list[int]:
    """Return the ids of the messages that repeat a former fact: the person's until it ended, replies also since."""
    until = fact.valid_to or fact.valid_from
    return [
        message.id
        for message, words in said
        if fact.valid_from <= message.created_at
        and (message.role != "user" or message.created_at < until)
        and words.has_figures(fact.text)
        and words.repeats(fact.text, fact.quote)
    ]


def superseded_facts(tx: Connection, owner_id: int, session_row_id: int) -> list[Fact]:
    """Return the facts of a person and of a session in whose place others were put, the last ones ended first."""
    of_session = {"owner": owner_id, "session": session_row_id}
    return [Fact(*row) for row in tx.execute(_FORMER, of_session)]
