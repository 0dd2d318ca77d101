"""Facts on behalf of callers: ranked statements about a person, each with the quote that it rests on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import aliased

from config import Settings
from memory.access.owners import find_or_make_owner, get_row, get_session, owner_and_session, visible_to
from memory.errors import InvalidRequest, NotFound
from memory.knowledge.current_facts import CURRENT_FACTS_MAX
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.fact_writes import (
    FACTS,
    NOW,
    add_fact,
    add_proposed,
    as_links,
    as_relations,
    change_fact,
    count_recalls,
    decide_on_draft,
    delete_with_history,
    in_scope,
    relations_within,
    supersession_chain,
    valid_at,
    waits,
)
from memory.knowledge.grounding import Grounding, Ungrounded, is_duplicate, words_of
from memory.knowledge.profile import remove_values
from memory.knowledge.rules import Rules
from memory.knowledge.summaries import replace_texts, rewrite_newest, undo_correction
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
    as_value,
    for_update,
    retry_on_conflict,
)
from models.facts import Fact, FactDraft, FactRevision, FactScore
from models.messages import Message
from models.owners import Caller

_QUESTION = aliased(MessageRow)
_REPORTS = (
    select(TurnRow.memory)
    .join(MessageRow, MessageRow.id == TurnRow.reply_message_id)
    .join(_QUESTION, _QUESTION.id == TurnRow.user_message_id)
    .where(TurnRow.reply_message_id.in_(bindparam("replies", expanding=True)), TurnRow.memory.is_not(None))
    .where(MessageRow.indexed_in.is_(None), _QUESTION.role == "user")  # once a message, not again after calls of tools
)


@dataclass(frozen=True)
class Facts:
    """Reads and writes facts on behalf of callers."""

    settings: Settings
    database: Database
    ranking: Ranking
    rules: Rules
    now: Callable[[], datetime]

    def page(  # noqa: PLR0913 - by keyword, as a query has them
        self,
        caller: Caller,
        *,
        session_id: str | None = None,
        q: str | None = None,
        category: str | None = None,
        as_of: datetime | None = None,
        state: str = "valid",
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Fact]:
        """Return what is valid now (or was at `as_of`), newest first, each with its score without a message.

        session_id: only that session's facts and those its person has everywhere.
        state: "waiting" for what waits for review instead.
        q: only facts whose text has all of its words, or parts of words.  Raises NotFound.
        """
        query = facts_of(caller).where(*(FactRow.text.icontains(word, autoescape=True) for word in (q or "").split()))
        query = query.where(FactRow.waiting if state == "waiting" else valid_at(as_of))
        if category is not None:
            query = query.where(FactRow.category == category)
        with self.database.read() as tx:
            if session_id is not None:
                session = get_session(tx, caller, session_id)
                query = query.where(in_scope(session.id, session.owner_id))
            rows = tx.execute(rows_of_page(query, FactRow.id, cursor, limit), {NOW.key: self.now()})
            facts = _with_merged(tx, [as_value(Fact, row, session_id=public_id) for row, public_id in rows])
        page = page_of(facts, limit, lambda fact: (fact.id,))
        return Page(self.ranking.scored(page.items, "", as_of or self.now()), page.next_cursor)

    def add(self, caller: Caller, *, session_id: str | None = None, by_model: bool = False, **columns: Any) -> Fact:
        """Store a fact that the person states, for one session or (without) for all of theirs.

        by_model: a model found it; it waits for review where the rules say so.
        Raises NotFound, and InvalidRequest for what the rules keep out and when neither a session nor a user is named.
        """
        now = self.now()
        with self.database.write() as tx:
            owner, session = owner_and_session(tx, caller, session_id)
            owner = owner or find_or_make_owner(tx, caller, now)
            decision = self.rules.decide_on_stated(tx, owner.id, owner.tenant, columns, since=now, by_model=by_model)
            replaces = columns.pop("replaces", ())
            columns |= {"expires_at": decision.expires_at, **(waits(now, replaces) if decision.waits else {})}
            columns |= {"scope": "user"} if session is None else {"scope": "session", "session_id": session.id}
            fact_id = add_fact(tx, owner.id, now, **columns)
            self.rules.schedule_end(tx, owner.id, owner.tenant, decision.expires_at)
            fact = Fact(*tx.execute(FACTS.where(FactRow.id == fact_id)).one())
        return self.ranking.scored([fact], "", now)[0]

    def history(self, caller: Caller, fact_id: int) -> list[FactRevision]:
        """Return every change of the fact and of those it superseded, oldest first.  Raises NotFound."""
        with self.database.read() as tx:
            _find(tx, caller, fact_id)
            chain = supersession_chain(tx, [fact_id])
            rows = select(FactRevisionRow).where(FactRevisionRow.fact_id.in_(chain)).order_by(FactRevisionRow.id)
            return [as_value(FactRevision, row) for row in tx.scalars(rows)]

    def count_recalls(self, tx: Transaction, message_ids: Collection[int]) -> None:
        """Count the facts that were relevant in the turns that these messages answer, and that are not indexed yet."""
        reports = tx.execute(_REPORTS, {"replies": list(message_ids)}).scalars()
        shown = [fact for report in reports for fact in report["facts"]]
        count_recalls(tx, Counter(fact_id for fact_id, *score in shown if self.ranking.is_used(FactScore(*score))))

    def search(self, caller: Caller, query: str) -> list[Fact]:
        """Return the valid facts of a person, those nearest to the query in words and meaning first."""
        facts = self.page(caller, limit=CURRENT_FACTS_MAX).items
        return self.ranking.by_relevance(self.ranking.scored(facts, query, self.now()))

    def add_quoted(self, caller: Caller, *, text: str, quote: str, **columns: Any) -> Fact:
        """Store what a quote of the person says for all of their sessions; return the fact that says it already.

        Raises InvalidRequest for a text that does not rest on its quote, and when no user is named.
        """
        known = self._check_quote(caller, text, quote)
        same = next((fact for fact in known if is_duplicate(text, words_of(fact))), None)
        return same or self.add(caller, text=text, quote=quote, by_model=True, **columns)

    def add_said(
        self, tx: Transaction, session: SessionRow, draft: FactDraft, messages: Sequence[Message], known: Sequence[Fact]
    ) -> tuple[Fact | None, Collection[Fact]]:
        """Store what the person said in one of these messages of a session, as a summary does.

        It may wait for review. The newest summaries and the profile say it instead of the facts that it corrects.
        Return the fact, None where it is known, and the corrected ones. Raises Ungrounded.
        """
        grounding = Grounding(messages, [fact.text for fact in known])
        rules = self.rules.of(tx, session.owner_id, session.tenant)
        decide_on_draft(draft, grounding.check(draft), rules)
        _, corrected, added = add_proposed(tx, session, [draft], grounding, known, rules, self.now())
        self.rules.schedule_end(tx, session.owner_id, session.tenant, *(fact.expires_at for fact in added))
        if corrected:
            self._say_instead(tx, session.owner_id, corrected, "correction")
        return next(iter(added), None), corrected

    @retry_on_conflict
    def change(self, caller: Caller, fact_id: int, changes: Mapping[str, Any]) -> Fact:
        """Set the text, category, importance, scope, pin or end, as the person does.

        Where the fact is valid, the newest summaries say its new words instead of the old, and the profile says the
        old ones no longer. Raises NotFound, InvalidRequest.
        """
        with self.database.write() as tx:
            row, session_id = _find(tx, caller, fact_id)
            if changes.get("scope") == "session" and row.session_id is None:
                raise InvalidRequest(
                    "fact_has_no_session",
                    "This fact was stated outside any session, so it can't be narrowed to one. State it anew with a "
                    "session_id, and forget this one.",
                    param="scope",
                )
            old, columns, now = as_value(Fact, row, session_id=session_id), dict(changes), self.now()
            if changes.keys() & {"text", "category", "expires_at"}:
                since, now_says = now if "text" in changes else old.valid_from, {**vars(old), **changes}
                place, is_new = (tx, row.owner_id, caller.tenant), "category" in changes
                decision = self.rules.decide_on_stated(*place, now_says, since=since, has_new_category=is_new)
                columns["expires_at"] = decision.expires_at
            new = replace(old, **columns)
            if new.text != old.text:
                new = replace(new, valid_from=now)  # nothing that was said earlier takes the new words back
                relations = relations_within(as_relations(row.links), new.text)
                columns |= {"valid_from": now, "links": as_links(relations)}
            if changes:
                change_fact(tx, row.id, now, **columns)
            self.rules.schedule_end(tx, row.owner_id, caller.tenant, columns.get("expires_at"))
            if new.text != old.text:
                session_row_id = row.session_id if new.scope == "session" else None
                self._say_instead(tx, row.owner_id, {old: new.text}, "correction", session_row_id)
            return self.ranking.scored(_with_merged(tx, [new]), "", now)[0]

    def change_quoted(self, caller: Caller, fact_id: int, *, text: str, quote: str, **changes: Any) -> Fact:
        """Change a fact as `change` does, to what a quote of the person says. Raises InvalidRequest as `add_quoted`.

        Where facts wait for review, the new words are a fact that waits to take the place of this one.
        """
        self._check_quote(caller, text, quote)
        with self.database.read() as tx:
            row, session_id = _find(tx, caller, fact_id)
            is_reviewed = not row.waiting and self.rules.of(tx, row.owner_id, caller.tenant).review
            same = {"category": row.category, "importance": row.importance, "replaces": [row.id]} | changes
            place = session_id if row.scope == "session" else None
        if is_reviewed:
            return self.add(caller, session_id=place, text=text, quote=quote, by_model=True, **same)
        return self.change(caller, fact_id, {"text": text, "quote": quote, **changes})

    def forget(
        self, tx: Transaction, caller: Caller, fact_ids: Collection[int], *, restore: bool = False
    ) -> tuple[Sequence[int], int, dict[str, int]]:
        """Delete facts with their histories and the facts that they superseded.

        The newest summaries and the profile lose what says the same. restore: superseded facts are valid again, and
        summaries say these instead.
        Return the ids of their owners, how many of the facts there were, and counts of the rows that were deleted.
        """
        query = visible_to(select(FactRow.id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
        ids = tx.scalars(for_update(tx, query.where(FactRow.id.in_(fact_ids)), OwnerRow)).all()
        chain = supersession_chain(tx, ids, *([FactRow.merged.is_(True)] if restore else []))
        revisions = tx.scalar(select(func.count()).where(FactRevisionRow.fact_id.in_(chain))) or 0
        corrected = select(FactRow).where(FactRow.superseded_by.in_(ids), FactRow.merged.is_(False))
        valid_again = {row.superseded_by: row for row in tx.scalars(corrected)} if restore else {}
        rows = tx.scalars(select(FactRow).where(FactRow.id.in_(chain))).all()
        by_owner: dict[int, list[Fact]] = defaultdict(list)
        for row in rows:
            by_owner[row.owner_id].append(as_value(Fact, row, session_id=None))
        for owner_id, facts in by_owner.items():
            instead = {fact: valid_again[fact.id].text if fact.id in valid_again else "" for fact in facts}
            self._say_instead(tx, owner_id, instead, "erasure")
        for row in rows:
            if row.id in valid_again:
                undo_correction(tx, row, valid_again[row.id], self.settings, self.now())
        delete_with_history(tx, chain, self.now(), "superseded" if valid_again else "forgotten")
        return list(by_owner), len(ids), {"facts": len(chain), "fact_revisions": revisions}

    def _say_instead(
        self, tx: Transaction, owner_id: int, instead: Mapping[Fact, str], author: str, session_id: int | None = None
    ) -> None:
        """Have the newest summaries say other words than facts did, or nothing, and the profile no longer the facts'.

        session_id: only the summary of this row.
        """
        which = SessionRow.owner_id == owner_id if session_id is None else SessionRow.id == session_id
        rewrite_newest(tx, which, partial(replace_texts, instead=instead), author, self.settings, self.now())
        remove_values(tx, owner_id, instead, self.now())

    def _check_quote(self, caller: Caller, text: str, quote: str) -> Sequence[Fact]:
        """Return the known facts about the person. Raises InvalidRequest for a text that does not rest on its quote."""
        known = self.page(caller, limit=CURRENT_FACTS_MAX).items
        message = Message.of_person(quote, self.now())
        try:
            Grounding([message], [fact.text for fact in known]).check(FactDraft(text, message.position, quote))
        except Ungrounded as reason:
            advice = "State what the person said and no more, and quote their own words."
            raise InvalidRequest("ungrounded", f"Nothing was stored: {reason}. {advice}", param="text") from None
        return known


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
    newest = [sorted(merged[fact.id], key=lambda fact: fact.valid_from, reverse=True) for fact in facts]
    return [replace(fact, merged_facts=tuple(others)) for fact, others in zip(facts, newest, strict=True)]


def facts_of(caller: Caller) -> Select[Any]:
    """Return a query for the caller's facts, each with its session's public id."""
    query = visible_to(select(FactRow, SessionRow.public_id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
    return query.outerjoin(SessionRow, SessionRow.id == FactRow.session_id)


def _find(tx: Transaction, caller: Caller, fact_id: int) -> tuple[FactRow, str | None]:
    """Return a caller's fact and the public id of its session.  Raises NotFound."""
    missing = NotFound("fact_not_found", f"There is no fact {fact_id}.")
    row, public_id = get_row(tx, facts_of(caller).where(FactRow.id == fact_id), missing, OwnerRow, FactRow)
    return row, public_id
