"""Facts: ranked statements, each resting on words somebody said.

Guarantee: a fact taken from a conversation is grounded in the person's own message (see `grounding`), where its quote
stands.  A correction closes the old fact's validity and never deletes it: reads show what holds now,
`as_of` what held then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import ColumnElement, String, and_, bindparam, cast, insert, or_, select, update

from config import Settings
from memory.access.owners import find_session, find_user, owned
from memory.domain import FACT_CATEGORIES, Caller, Fact, FactDraft, FactRevision, Message
from memory.errors import InvalidRequest, NotFound
from memory.facts.corrections import line_up_to
from memory.facts.grounding import Shown, problem_with, repeats, words_of
from memory.facts.ranking import Ranking, relevant
from memory.facts.superseding import superseded
from memory.paging import Page, decode_cursor, page_of
from models import Database, FactRevisionRow, FactRow, MessageRow, OwnerRow, SessionRow, Transaction
from search_index.remembered import remembered

log = logging.getLogger(__name__)

CONSIDERED_MAX = 500  # facts of one owner looked at for a prompt, the most important first
STANDING_MAX = 2048  # values of facts kept for the next turn, of whomever: 1 kB each
KNOWN_ALREADY = "known already"


@dataclass(frozen=True)
class Accepted:
    """What became of a digest's facts: ids of new ones, what the ones they superseded were and the words that took
    their place, and why others were refused."""

    added: tuple[int, ...]
    corrected: Mapping[Fact, str]
    refused: tuple[str, ...]

    @property
    def superseded(self) -> tuple[int, ...]:
        return tuple(fact.id for fact in self.corrected)

    @property
    def counts(self) -> dict[str, int]:
        """As a version of the summary keeps them; what was known already is no refusal."""
        repeated = self.refused.count(KNOWN_ALREADY)
        return {
            "added": len(self.added),
            "superseded": len(self.corrected),
            "repeated": repeated,
            "refused": len(self.refused) - repeated,
        }


class Facts:
    """Reads and writes facts on behalf of callers."""

    def __init__(self, settings: Settings, database: Database, now: Callable[[], datetime]) -> None:
        self.ranking = Ranking(settings)
        self._database = database
        self._now = now

    # -- for callers

    def page(
        self,
        caller: Caller,
        *,
        session_id: str | None = None,
        q: str | None = None,
        category: str | None = None,
        as_of: datetime | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Fact]:
        """What holds now (or held at `as_of`), newest first, each with its standing score (no message in view).

        With `session_id`: that session's facts and those its person has everywhere.  With `q`: those whose text has all
        of its words, or parts of words.  Raises NotFound.
        """
        moment = as_of or self._now()
        # What holds now is what nothing took the place of, also when the clock has been set back since it was said.
        holds = or_(FactRow.valid_to.is_(None), FactRow.valid_to > moment), FactRow.valid_from <= moment
        with self._database.read() as tx:
            query = owned(select(FactRow, SessionRow.public_id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
            query = query.outerjoin(SessionRow, SessionRow.id == FactRow.session_id)
            query = query.where(*holds if as_of is not None else (FactRow.valid_to.is_(None),))
            if session_id is not None:
                session = find_session(tx, caller, session_id)
                query = query.where(_in_scope(session.id, session.owner_id))
            for word in (q or "").split():
                query = query.where(FactRow.text.icontains(word, autoescape=True))
            if category is not None:
                query = query.where(FactRow.category == category)
            if cursor is not None:
                query = query.where(FactRow.id < decode_cursor(cursor, int)[0])
            query = query.order_by(FactRow.id.desc()).limit(limit + 1)
            found = [as_fact(row, public_id) for row, public_id in tx.execute(query)]
        page = page_of(found, limit, lambda fact: (fact.id,))
        return Page(self.ranking.scored(page.items, "", moment), page.next_cursor)

    def add(
        self,
        caller: Caller,
        *,
        text: str,
        session_id: str | None = None,
        category: str = "other",
        importance: int = 3,
        pinned: bool = False,
    ) -> Fact:
        """A fact the person states themselves, for one session or (without) for all of theirs.

        Raises NotFound, and InvalidRequest when neither a session nor a user is named.
        """
        now = self._now()
        with self._database.write() as tx:
            session = find_session(tx, caller, session_id) if session_id is not None else None
            owner = session.owner if session is not None else find_user(tx, caller)
            if owner is None and caller.user_id is None:
                raise InvalidRequest("owner_needed", "Say whose fact this is: a session_id or a user_id.")
            if owner is None:
                owner = OwnerRow(tenant=caller.tenant, kind="user", name=caller.user_id, created_at=now)
                tx.add(owner)
                tx.flush()
            row = FactRow(
                owner_id=owner.id,
                session_id=session.id if session else None,
                text=text,
                category=category,
                importance=importance,
                scope="session" if session is not None else "user",
                quote="",
                pinned=pinned,
                recalled_count=0,
                valid_from=now,
                created_at=now,
            )
            self._keep(tx, row, "made", "person")
            return self.ranking.scored([as_fact(row, session_id)], "", now)[0]

    def change(self, caller: Caller, fact_id: int, changes: dict[str, Any]) -> Fact:
        """Set `text`, `category`, `importance`, `scope` or `pinned`.  Raises NotFound, InvalidRequest."""
        with self._database.write() as tx:
            row, public_id = self._find(tx, caller, fact_id)
            if changes.get("scope") == "session" and row.session_id is None:
                raise InvalidRequest(
                    "fact_has_no_session",
                    "This fact was stated outside any session, so it can't be narrowed to one. State it anew with a "
                    "session_id, and forget this one.",
                    param="scope",
                )
            for name in ("text", "category", "importance", "scope", "pinned"):
                if name in changes:
                    setattr(row, name, changes[name])
            if changes:
                self._keep(tx, row, "edited", "person")
            return self.ranking.scored([as_fact(row, public_id)], "", self._now())[0]

    def history(self, caller: Caller, fact_id: int) -> list[FactRevision]:
        """Every change to the fact and to those it superseded, oldest first.  Raises NotFound."""
        with self._database.read() as tx:
            self._find(tx, caller, fact_id)
            line = line_up_to(tx, [fact_id])
            rows = tx.scalars(
                select(FactRevisionRow).where(FactRevisionRow.fact_id.in_(line)).order_by(FactRevisionRow.id)
            )
            return [as_revision(row) for row in rows]

    # -- for the engine's own transactions

    def current(self, tx: Transaction, session: SessionRow) -> list[Fact]:
        """What holds now for a session: its own facts and its person's."""
        rows = tx.execute(_CURRENT, {"session": session.id, "owner": session.owner_id})
        return [_as_it_stands(tuple(row)) for row in rows]

    def accept(self, tx: Transaction, session: SessionRow, drafts: Sequence[FactDraft], shown: Shown) -> Accepted:
        """Store the drafts that are grounded in what the mini model was `shown`, and close the facts they correct.

        Each message is taken from only once, and what only repeats a known fact adds none.
        """
        known = {fact.id: fact for fact in self.current(tx, session)}
        held = set[str]().union(*map(words_of, known.values()))
        added: list[int] = []
        corrected: dict[Fact, str] = {}
        refused: list[str] = []
        for draft in drafts:
            source = shown.source(draft)
            problem = problem_with(draft, shown, session.facts_through)
            if problem is None and repeats(draft.text, held):
                problem = KNOWN_ALREADY
            if problem is not None or source is None:
                refused.append(str(problem))
                continue
            replaced = self._corrected(tx, draft, source, known)
            pinned = any(old.pinned for old in replaced)  # what the person pinned stays pinned in its new words
            new = self._made(tx, session, draft, source, pinned)
            added.append(new.id)
            for old in replaced:
                self._supersede(tx, old.id, new.id, source.created_at)
                corrected[known.pop(old.id)] = draft.text
                held -= words_of(old)
            known[new.id] = new
            held |= words_of(new)
        through = max((message.position for message in shown.messages), default=0)
        session.facts_through = max(session.facts_through, through)
        if refused:
            log.info("%d facts refused: %s", len(refused), "; ".join(refused))
        return Accepted(tuple(added), corrected, tuple(refused))

    def count_use(self, tx: Transaction, facts: Iterable[Fact]) -> None:
        """Note which of the facts a prompt showed were relevant to its message."""
        used = [fact.id for fact in facts if relevant(fact)]
        if used:
            tx.execute(_USED, {"used": used})

    # -- rows

    def _find(self, tx: Transaction, caller: Caller, fact_id: int) -> tuple[FactRow, str | None]:
        query = owned(select(FactRow, SessionRow.public_id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
        query = query.outerjoin(SessionRow, SessionRow.id == FactRow.session_id).where(FactRow.id == fact_id)
        found = tx.execute(query).first()
        if found is None:
            raise NotFound("fact_not_found", f"There is no fact {fact_id}.")
        return found[0], found[1]

    def _corrected(self, tx: Transaction, draft: FactDraft, source: Message, known: Mapping[int, Fact]) -> list[Fact]:
        """The known facts that a draft takes the place of: those it names, and those it plainly contradicts."""
        older = [
            fact
            for fact in known.values()
            if fact.valid_from <= source.created_at and fact.source_message_id != source.id
        ]
        contradicted = superseded(draft.text, source.content, older)
        sources = [fact.source_message_id for fact in contradicted if fact.source_message_id is not None]
        speakers: dict[int | None, str | None] = {None: source.name}
        if sources:
            found = tx.execute(select(MessageRow.id, MessageRow.name).where(MessageRow.id.in_(sources)))
            speakers.update((message_id, name) for message_id, name in found)
        theirs = {fact.id for fact in contradicted if speakers.get(fact.source_message_id) == source.name}
        named = {fact.id for fact in known.values() if fact.valid_from <= source.created_at} & set(draft.supersedes)
        return [fact for fact in known.values() if fact.id in named | theirs]

    def _made(self, tx: Transaction, session: SessionRow, draft: FactDraft, source: Message, pinned: bool) -> Fact:
        """A draft, stored."""
        told: dict[str, Any] = {
            "text": draft.text,
            "category": draft.category,
            "importance": draft.importance,
            "scope": draft.scope,
            "source_message_id": source.id,
            "quote": draft.quote,
            "pinned": pinned,
            "recalled_count": 0,
            "valid_from": source.created_at,
            "created_at": self._now(),
        }
        of = {"owner_id": session.owner_id, "session_id": session.id}
        fact = Fact(
            id=tx.scalars(_NEW, {**told, **of}).one(),
            session_id=session.public_id,
            valid_to=None,
            superseded_by=None,
            **told,
        )
        self._revised(tx, fact, "made", "model")
        return fact

    def _supersede(self, tx: Transaction, old_id: int, new_id: int, at: datetime) -> None:
        old = tx.get(FactRow, old_id)
        assert old is not None, "a known fact vanished within one write transaction"
        old.valid_to = at
        old.superseded_by = new_id
        self._keep(tx, old, "superseded", "model")

    def _keep(self, tx: Transaction, row: FactRow, action: str, author: str) -> None:
        """Add `row` if it is new, and a revision that says how it is now."""
        tx.add(row)
        tx.flush()
        self._revised(tx, row, action, author)

    def _revised(self, tx: Transaction, fact: Fact | FactRow, action: str, author: str) -> None:
        now = {"text": fact.text, "category": fact.category, "importance": fact.importance, "pinned": fact.pinned}
        done = {"fact_id": fact.id, "action": action, "author": author, "at": self._now()}
        tx.execute(_REVISED, {**done, **now})


def _in_scope(session: Any, owner: Any) -> ColumnElement[bool]:
    """Of a session (its row's id, or a parameter for it) and its owner: the session's own facts and its person's."""
    return or_(FactRow.session_id == session, and_(FactRow.owner_id == owner, FactRow.scope == "user"))


_FACTS = FactRow.__table__
_NEW, _REVISED = insert(_FACTS).returning(_FACTS.c.id), insert(FactRevisionRow.__table__)
_USED = (
    update(_FACTS)
    .where(_FACTS.c.id.in_(bindparam("used", expanding=True)))
    .values(recalled_count=_FACTS.c.recalled_count + 1)
)
_COLUMNS = tuple(field.name for field in fields(Fact) if field.name not in ("session_id", "score"))
_TIMES = ("valid_from", "valid_to", "created_at")
_CURRENT = (
    select(
        *(cast(_FACTS.c[name], String).label(name) if name in _TIMES else _FACTS.c[name] for name in _COLUMNS),
        SessionRow.public_id,
    )
    .outerjoin(SessionRow, SessionRow.id == FactRow.session_id)
    .where(FactRow.valid_to.is_(None), _in_scope(bindparam("session"), bindparam("owner")))
    .order_by(FactRow.pinned.desc(), FactRow.importance.desc(), FactRow.id.desc())
    .limit(CONSIDERED_MAX)
)


@remembered(STANDING_MAX)
def _as_it_stands(row: tuple[Any, ...]) -> Fact:
    """A row of `_CURRENT`, with its times as the database writes them, as a value.

    Remembered by all that it says: turn after turn reads the same ones, and making hundreds of values out of rows
    costs more than to read them.
    """
    *columns, session_id = row
    told = dict(zip(_COLUMNS, columns, strict=True))
    for name in _TIMES:
        told[name] = datetime.fromisoformat(told[name]).replace(tzinfo=UTC) if told[name] is not None else None
    return as_fact(SimpleNamespace(**told), session_id)


def as_revision(row: FactRevisionRow) -> FactRevision:
    return FactRevision(row.fact_id, row.action, row.author, row.text, row.category, row.importance, row.pinned, row.at)


def as_fact(row: Any, session_id: str | None) -> Fact:
    """A row as a value; `session_id` is its session's public id."""
    return Fact(
        id=row.id,
        text=row.text,
        category=row.category if row.category in FACT_CATEGORIES else "other",
        importance=row.importance,
        scope=row.scope,
        session_id=session_id,
        source_message_id=row.source_message_id,
        quote=row.quote,
        pinned=row.pinned,
        recalled_count=row.recalled_count,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        superseded_by=row.superseded_by,
        created_at=row.created_at,
    )
