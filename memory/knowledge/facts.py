"""Facts: ranked statements, each resting on words that somebody said.

Guarantee: a fact taken from a conversation is grounded in the person's own message (see `grounding`), which holds its
quote.  A correction closes the old fact's validity and never deletes it: reads show what holds now, with `as_of` what
held then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, or_, select, update

from config import Settings
from memory.access.owners import find_or_make_owner, get_session, owner_and_session, visible_to
from memory.errors import InvalidRequest, NotFound
from memory.knowledge.entities import strip_possessive
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.grounding import Grounding, Ungrounded, is_duplicate, named_in, stems, words_of
from memory.knowledge.supersession import find_superseded, supersession_chain
from memory.llm import DigestMaterial
from memory.paging import Page, page_of, rows_of_page
from models import Database, FactRevisionRow, FactRow, OwnerRow, SessionRow, Transaction, for_update
from models.facts import SELF, Fact, FactDraft, FactRevision, Relation
from models.messages import Message
from models.owners import Caller
from search_index import Nearness

log = logging.getLogger(__name__)

READ_MAX = 500  # facts of one session and its person that are read at once, the most important first
DIGEST_TOKENS = 600  # of known facts that the mini model sees, so that it can say which of them changed


class Facts:
    """Reads and writes facts on behalf of callers."""

    def __init__(
        self, settings: Settings, database: Database, now: Callable[[], datetime], nearness: Nearness | None = None
    ) -> None:
        self.ranking = Ranking(settings, nearness)
        self._ranked_max = min(READ_MAX, settings.fact_tokens)  # ten or more for each fact that fits a prompt
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
        """What holds now (or held at `as_of`), newest first, each with its score without a message.

        With `session_id`: that session's facts and those its person has everywhere.  With `q`: facts whose text has
        all of its words, or parts of words.  Raises NotFound.
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
            found = with_merged_facts(tx, [as_fact(row, public_id) for row, public_id in rows])
        page = page_of(found, limit, lambda fact: (fact.id,))
        return Page(self.ranking.scored(page.items, "", as_of or self._now()), page.next_cursor)

    def add(self, caller: Caller, *, session_id: str | None = None, **stated: Any) -> Fact:
        """A fact that the person states, for one session or (without) for all of theirs; `stated` are its columns.

        Raises NotFound, and InvalidRequest when neither a session nor a user is named.
        """
        now = self._now()
        with self._database.write() as tx:
            owner, session = owner_and_session(tx, caller, session_id)
            owner = owner or find_or_make_owner(tx, caller, now)
            of_session = {"session_id": session.id, "scope": "session"} if session is not None else {"scope": "user"}
            row = FactRow(owner_id=owner.id, **of_session, **stated, valid_from=now, created_at=now)
            _save_revision(tx, row, "made", "person", now)
            return self.ranking.scored([as_fact(row, session_id)], "", now)[0]

    def history(self, caller: Caller, fact_id: int) -> list[FactRevision]:
        """Every change to the fact and to those it superseded, oldest first.  Raises NotFound."""
        with self._database.read() as tx:
            _find(tx, caller, fact_id)
            line = supersession_chain(tx, [fact_id])
            rows = select(FactRevisionRow).where(FactRevisionRow.fact_id.in_(line)).order_by(FactRevisionRow.id)
            return list(map(as_revision, tx.scalars(rows)))

    # -- for the engine's own transactions

    def change(
        self, tx: Transaction, caller: Caller, fact_id: int, changes: Mapping[str, Any]
    ) -> tuple[FactRow, Fact, Fact]:
        """Set the text, category, importance, scope or pin, as the person does.  Returns the fact's row, and the fact
        as it was and is now.  Raises NotFound, InvalidRequest.
        """
        row, session_id = _find(tx, caller, fact_id)
        if changes.get("scope") == "session" and row.session_id is None:
            raise InvalidRequest(
                "fact_has_no_session",
                "This fact was stated outside any session, so it can't be narrowed to one. State it anew with a "
                "session_id, and forget this one.",
                param="scope",
            )
        old, now = as_fact(row, session_id), self._now()
        if changes.get("text", row.text) != row.text:
            row.valid_from = now  # the new words hold from now on: nothing said earlier takes them back
            row.links = [vars(link) for link in links_of(row) if _names_ends(link, changes["text"])] or None
        for name, value in changes.items():
            setattr(row, name, value)
        if changes:
            _save_revision(tx, row, "edited", "person", now)
        return row, old, self.ranking.scored(with_merged_facts(tx, [as_fact(row, session_id)]), "", now)[0]

    def current(self, tx: Transaction, session: SessionRow, most: int | None = None) -> list[Fact]:
        """What holds now for a session: its own facts and its person's, at most as many as a prompt can rank.

        Pinned facts come first, then the most important, then the newest.
        """
        named = {"session": session.id, "owner": session.owner_id, "most": most or self._ranked_max}
        return [Fact(*row) for row in tx.execute(_CURRENT, named)]

    def known_for_update(self, tx: Transaction, session: SessionRow, messages: Sequence[Message]) -> tuple[Fact, ...]:
        """The known facts that the mini model sees beside `messages`."""
        said = " ".join(message.content for message in messages)
        return self.ranking.prioritise(self.current(tx, session, READ_MAX), said, DIGEST_TOKENS, self._now())

    def add_proposed(
        self, tx: Transaction, session: SessionRow, drafts: Sequence[FactDraft], material: DigestMaterial
    ) -> tuple[dict[str, int], dict[Fact, str]]:
        """Store the drafts that are grounded in what the mini model was shown, and close the facts they correct.

        Facts are taken from each message once, and none is stored that only repeats known facts.  Returns counts of
        what became of the drafts, and the new words of each fact that was corrected.
        """
        grounding, now = Grounding(material, session.facts_through), self._now()
        known = {fact.id: fact for fact in self.current(tx, session, READ_MAX)}
        added, repeated, refused = 0, 0, list[str]()
        corrected: dict[Fact, str] = {}
        for draft in drafts:
            try:
                source = grounding.check(draft)
            except Ungrounded as reason:
                refused.append(str(reason))
                continue
            if is_duplicate(draft.text, frozenset[str]().union(*map(words_of, known.values()))):
                repeated += 1
                continue
            draft = replace(draft, links=grounding.links(draft, source) if material.links else ())
            replaced = find_superseded(tx, draft, source, known.values())
            new = FactRow(
                owner_id=session.owner_id,
                session_id=session.id,
                source_message_id=source.id,
                valid_from=source.created_at,
                created_at=now,
                pinned=any(old.pinned for old in replaced),  # the person's pin stays when a fact is corrected
                links=list(map(vars, draft.links)) or None,
                **{name: getattr(draft, name) for name in ("text", "quote", "category", "importance", "scope")},
            )
            _save_revision(tx, new, "made", "model", now)
            for old in replaced:
                invalidate(tx, tx.get_one(FactRow, old.id), now, "superseded", "model", by=new)
                corrected[known.pop(old.id)] = draft.text
            known[new.id] = as_fact(new, session.public_id)
            added += 1
        session.facts_through = max(session.facts_through, material.messages[-1].position)
        if refused:
            log.info("%d facts refused: %s", len(refused), "; ".join(refused))
        counts = {"added": added, "superseded": len(corrected), "repeated": repeated, "refused": len(refused)}
        return counts, corrected

    def count_recalls(self, tx: Transaction, shown: Iterable[Fact]) -> None:
        """Count the use of those facts of a prompt that were relevant to its message."""
        used = [fact.id for fact in shown if self.ranking.is_used(fact)]
        if used:
            more = {"recalled_count": FactRow.recalled_count + 1}
            tx.execute(update(FactRow).where(FactRow.id.in_(used)).values(more))


# -- rows


def _save_revision(tx: Transaction, row: FactRow, action: str, author: str, now: datetime) -> None:
    """Write `row`, and a revision that says how it is now."""
    tx.add(row)
    tx.flush()
    same = {name: getattr(row, name) for name in ("text", "category", "importance", "pinned")}
    tx.add(FactRevisionRow(fact_id=row.id, action=action, author=author, at=now, **same))
    tx.flush()


def invalidate(
    tx: Transaction,
    row: FactRow,
    now: datetime,
    action: str = "superseded",
    author: str = "person",
    *,
    until: datetime | None = None,
    by: FactRow | None = None,
) -> None:
    """Let a fact hold no longer: from `until` or now on or, if another takes its place, from when that one holds."""
    row.valid_to = max(row.valid_from, by.valid_from if by is not None else until or now)
    row.superseded_by, row.merged = by.id if by is not None else None, action == "merged"
    _save_revision(tx, row, action, author, now)


def revalidate(tx: Transaction, row: FactRow, now: datetime) -> None:
    """Let a closed fact hold again, as the person says."""
    row.valid_to, row.superseded_by, row.merged = None, None, False
    _save_revision(tx, row, "reopened", "person", now)


def merge(tx: Transaction, row: FactRow, into: FactRow, now: datetime) -> None:
    """Make a fact a proof of another one that says the same.  That one takes over the links that its own words name, so
    that nothing of the proof is left in it if the proof is erased."""
    words = set(stems(f"{into.text} {into.quote}"))
    named = [one for one in links_of(row) if _names_ends(one, into.text) and words.issuperset(stems(one.relation))]
    into.links = list(map(vars, dict.fromkeys([*links_of(into), *named]))) or None
    invalidate(tx, row, now, "merged", "model", by=into)


def with_merged_facts(tx: Transaction, facts: Sequence[Fact]) -> list[Fact]:
    """The facts, each with all that were merged into it, the newest first."""
    merged_facts: dict[int, list[Fact]] = {fact.id: [] for fact in facts}
    stands_for = {fact.id: fact.id for fact in facts}
    wave = set(stands_for)
    while wave:
        found = [Fact(*row) for row in tx.execute(FACTS.where(FactRow.superseded_by.in_(wave), FactRow.merged))]
        for one in found:
            stands_for[one.id] = stands_for[one.superseded_by or 0]
            merged_facts[stands_for[one.id]].append(one)
        wave = {one.id for one in found}
    newest = {id: sorted(found, key=lambda one: one.valid_from, reverse=True) for id, found in merged_facts.items()}
    return [replace(fact, merged_facts=tuple(newest[fact.id])) for fact in facts]


def _of_caller(caller: Caller) -> Select[Any]:
    """The caller's facts, each with its session's public id."""
    query = visible_to(select(FactRow, SessionRow.public_id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
    return query.outerjoin(SessionRow, SessionRow.id == FactRow.session_id)


def _find(tx: Transaction, caller: Caller, fact_id: int) -> tuple[FactRow, str | None]:
    found = tx.execute(for_update(tx, _of_caller(caller).where(FactRow.id == fact_id), OwnerRow, FactRow)).first()
    if found is None:
        raise NotFound("fact_not_found", f"There is no fact {fact_id}.")
    return found[0], found[1]


def valid_at(as_of: datetime | None) -> ColumnElement[bool]:
    """What holds now, or held at `as_of`."""
    if as_of is None:  # without the clock, which may have been set back since a fact was said
        return FactRow.valid_to.is_(None)
    return and_(or_(FactRow.valid_to.is_(None), FactRow.valid_to > as_of), FactRow.valid_from <= as_of)


def in_scope(session: Any, owner: Any) -> ColumnElement[bool]:
    """A session's own facts and its person's; both are ids, or parameters for them."""
    return or_(FactRow.session_id == session, and_(FactRow.owner_id == owner, FactRow.scope == "user"))


_FIELDS = [field.name for field in fields(Fact) if field.name not in ("score", "merged_facts")]
FACTS = select(
    *(SessionRow.public_id if name == "session_id" else getattr(FactRow, name) for name in _FIELDS)
).outerjoin(SessionRow, SessionRow.id == FactRow.session_id)
"""Facts with the fields of a `Fact`, without its score."""
_CURRENT = (
    FACTS.where(FactRow.valid_to.is_(None), in_scope(bindparam("session"), bindparam("owner")))
    .order_by(FactRow.pinned.desc(), FactRow.importance.desc(), FactRow.id.desc())
    .limit(bindparam("most"))
)


def as_fact(row: FactRow, session_id: str | None) -> Fact:
    """A row as a value; `session_id` is its session's public id."""
    values: list[Any] = [session_id if name == "session_id" else getattr(row, name) for name in _FIELDS]
    return Fact(*values)


def _names_ends(link: Relation, text: str) -> bool:
    return all(end == SELF or named_in(strip_possessive(end), text) for end in (link.subject, link.object))


def links_of(row: FactRow) -> tuple[Relation, ...]:
    return tuple(Relation(**one) for one in row.links or ())


def as_revision(row: FactRevisionRow) -> FactRevision:
    return FactRevision(row.fact_id, row.action, row.author, row.text, row.category, row.importance, row.pinned, row.at)
