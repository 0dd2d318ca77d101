"""Facts: ranked statements, each resting on words that somebody said.

Guarantee: a fact taken from a conversation is grounded in the person's own message (see `grounding`), which holds its
quote.  A correction closes the old fact's validity and never deletes it: reads show what holds now, with `as_of` what
held then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import aliased

from memory.access.owners import find_or_make_owner, get_session, owner_and_session, visible_to
from memory.errors import InvalidRequest, NotFound
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.fact_writes import (
    FACTS,
    add_fact,
    as_fact,
    as_relations,
    as_revision,
    count_recalls,
    edit_fact,
    in_scope,
    relations_within,
    supersession_chain,
    valid_at,
)
from memory.paging import Page, page_of, rows_of_page
from models import (
    Database,
    FactRevisionRow,
    FactRow,
    MessageRow,
    OwnerRow,
    SessionRow,
    Transaction,
    TurnRow,
    for_update,
)
from models.facts import Fact, FactRevision, FactScore
from models.owners import Caller

_QUESTION = aliased(MessageRow)
_REPORTS = (
    select(TurnRow.memory)
    .join(MessageRow, MessageRow.id == TurnRow.reply_message_id)
    .join(_QUESTION, _QUESTION.id == TurnRow.user_message_id)
    .where(TurnRow.reply_message_id.in_(bindparam("replies", expanding=True)), TurnRow.memory.is_not(None))
    .where(MessageRow.indexed_in.is_(None), _QUESTION.role == "user")  # once a message, not again after calls of tools
)


class Facts:
    """Reads and writes facts on behalf of callers."""

    def __init__(self, database: Database, ranking: Ranking, now: Callable[[], datetime]) -> None:
        self.ranking = ranking
        self._database = database
        self._now = now

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
        """Return what is valid now (or was at `as_of`), newest first, each with its score without a message.

        session_id: only that session's facts and those its person has everywhere.
        q: only facts whose text has all of its words, or parts of words.  Raises NotFound.
        """
        query = _of_caller(caller).where(*(FactRow.text.icontains(word, autoescape=True) for word in (q or "").split()))
        query = query.where(valid_at(as_of))
        if category is not None:
            query = query.where(FactRow.category == category)
        with self._database.read() as tx:
            if session_id is not None:
                session = get_session(tx, caller, session_id)
                query = query.where(in_scope(session.id, session.owner_id))
            rows = tx.execute(rows_of_page(query, FactRow.id, cursor, limit))
            facts = _with_merged(tx, [as_fact(row, public_id) for row, public_id in rows])
        page = page_of(facts, limit, lambda fact: (fact.id,))
        return Page(self.ranking.scored(page.items, "", as_of or self._now()), page.next_cursor)

    def add(self, caller: Caller, *, session_id: str | None = None, **columns: Any) -> Fact:
        """Store a fact that the person states, for one session or (without) for all of theirs.

        Raises NotFound, and InvalidRequest when neither a session nor a user is named.
        """
        now = self._now()
        with self._database.write() as tx:
            owner, session = owner_and_session(tx, caller, session_id)
            owner = owner or find_or_make_owner(tx, caller, now)
            columns |= {"scope": "user"} if session is None else {"scope": "session", "session_id": session.id}
            fact_id = add_fact(tx, owner.id, now, **columns)
            fact = Fact(*tx.execute(FACTS.where(FactRow.id == fact_id)).one())
        return self.ranking.scored([fact], "", now)[0]

    def history(self, caller: Caller, fact_id: int) -> list[FactRevision]:
        """Return every change of the fact and of those it superseded, oldest first.  Raises NotFound."""
        with self._database.read() as tx:
            _find(tx, caller, fact_id)
            chain = supersession_chain(tx, [fact_id])
            rows = select(FactRevisionRow).where(FactRevisionRow.fact_id.in_(chain)).order_by(FactRevisionRow.id)
            return list(map(as_revision, tx.scalars(rows)))

    def count_recalls(self, tx: Transaction, message_ids: Collection[int]) -> None:
        """Count the facts that were relevant in the turns that these messages answer, and that are not indexed yet."""
        for (report,) in tx.execute(_REPORTS, {"replies": list(message_ids)}).all():
            used = [fact_id for fact_id, *score in report["facts"] if self.ranking.is_used(FactScore(*score))]
            count_recalls(tx, used)

    def change(
        self, tx: Transaction, caller: Caller, fact_id: int, changes: Mapping[str, Any]
    ) -> tuple[FactRow, Fact, Fact]:
        """Set the text, category, importance, scope or pin, as the person does.

        Return the fact's row, and the fact as it was and is now.  Raises NotFound, InvalidRequest.
        """
        row, session_id = _find(tx, caller, fact_id)
        if changes.get("scope") == "session" and row.session_id is None:
            raise InvalidRequest(
                "fact_has_no_session",
                "This fact was stated outside any session, so it can't be narrowed to one. State it anew with a "
                "session_id, and forget this one.",
                param="scope",
            )
        old, columns, now = as_fact(row, session_id), dict(changes), self._now()
        new = replace(old, **changes)
        if new.text != old.text:
            new = replace(new, valid_from=now)  # the new words hold from now on: nothing said earlier takes them back
            relations = relations_within(as_relations(row.links), new.text)
            columns |= {"valid_from": now, "links": list(map(vars, relations)) or None}
        if changes:
            edit_fact(tx, row.owner_id, row.id, now, **columns)
        return row, old, self.ranking.scored(_with_merged(tx, [new]), "", now)[0]


def _with_merged(tx: Transaction, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts, each with all that were merged into it, the newest first."""
    merged: dict[int, list[Fact]] = {fact.id: [] for fact in facts}
    stands_for = {fact.id: fact.id for fact in facts}
    step = set(stands_for)
    while step:
        rows = [Fact(*row) for row in tx.execute(FACTS.where(FactRow.superseded_by.in_(step), FactRow.merged))]
        for fact in rows:
            stands_for[fact.id] = stands_for[fact.superseded_by or 0]
            merged[stands_for[fact.id]].append(fact)
        step = {fact.id for fact in rows}
    newest = {id: sorted(found, key=lambda fact: fact.valid_from, reverse=True) for id, found in merged.items()}
    return [replace(fact, merged_facts=tuple(newest[fact.id])) for fact in facts]


def _of_caller(caller: Caller) -> Select[Any]:
    """Return a query for the caller's facts, each with its session's public id."""
    query = visible_to(select(FactRow, SessionRow.public_id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
    return query.outerjoin(SessionRow, SessionRow.id == FactRow.session_id)


def _find(tx: Transaction, caller: Caller, fact_id: int) -> tuple[FactRow, str | None]:
    """Return a caller's fact and the public id of its session.  Raises NotFound."""
    found = tx.execute(for_update(tx, _of_caller(caller).where(FactRow.id == fact_id), OwnerRow, FactRow)).first()
    if found is None:
        raise NotFound("fact_not_found", f"There is no fact {fact_id}.")
    return found[0], found[1]
