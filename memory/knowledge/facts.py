"""Facts on behalf of callers: ranked statements about a person, each with the quote that it rests on.

A fact that a model found may wait until somebody accepts or refuses it. It was never valid then (see `models.facts`),
so a query for valid facts passes it over. No event tells of it, and no profile is made from it.

Invariant: what waits is in no prompt, search or list, but in that of what waits; a refused fact is erased [test_rules].
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import aliased

from memory.access.owners import find_or_make_owner, get_row, get_session, owner_and_session, visible_to
from memory.engine import Engine
from memory.errors import InvalidRequest, NotFound
from memory.knowledge import consolidation, fact_reads, fact_writes, profile
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.grounding import Grounding, Ungrounded, check_restated, is_duplicate, stems, words_of
from memory.knowledge.rule_set import decide_on_stated, rules_of
from memory.knowledge.summaries import replace_texts, rewrite_newest, undo_correction
from memory.knowledge.supersession import find_superseded
from memory.paging import Page, read_page
from memory.sessions.messages import MESSAGES
from models import (
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
from models.facts import Fact, FactDraft, FactRevision, FactScore, columns_of_waiting
from models.messages import Message
from models.owners import Caller

_KEPT = ("category", "importance", "scope", "session_id", "pinned", "valid_from", "expires_at")
"""Columns that what stays of a forgotten fact takes over."""
_QUESTION = aliased(MessageRow)
_REPORTS = (
    select(TurnRow.memory)
    .join(MessageRow, MessageRow.id == TurnRow.reply_message_id)
    .join(_QUESTION, _QUESTION.id == TurnRow.user_message_id)
    .where(TurnRow.reply_message_id.in_(bindparam("replies", expanding=True)))
    .where(MessageRow.indexed_in.is_(None), _QUESTION.role == "user")  # once a message, not again after calls of tools
)


def page(  # noqa: PLR0913 - by keyword, as a query has them
    engine: Engine,
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
    """Return the facts that are valid now (or were at `as_of`), newest first, each with its score without a message.

    session_id: only that session's facts and those its person has everywhere.
    state: "waiting" for what waits for review instead.
    q: only facts whose text has all of its words, or parts of words.  Raises NotFound.
    """
    query = visible_to(fact_reads.FACTS.join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
    query = query.where(*(FactRow.text.icontains(word, autoescape=True) for word in (q or "").split()))
    query = query.where(FactRow.waiting if state == "waiting" else fact_reads.valid_at(as_of))
    if category is not None:
        query = query.where(FactRow.category == category)
    with engine.database.read() as tx:
        if session_id is not None:
            session = get_session(tx, caller, session_id)
            query = query.where(fact_reads.in_scope(session.id, session.owner_id))
        page = read_page(tx, query.params({fact_reads.NOW.key: engine.now()}), cursor, limit, FactRow.id)
        facts = _with_merged(tx, [Fact(*columns) for *columns, _ in page.items])
    return Page(Ranking.of(engine).scored(facts, "", as_of or engine.now()), page.next_cursor)


def add(
    engine: Engine, caller: Caller, *, session_id: str | None = None, by_model: bool = False, **columns: Any
) -> Fact:
    """Store a fact that the person states, for one session or (without) for all of theirs.

    by_model: a model found it; it waits for review where the rules say so, once.
    Raises NotFound, and InvalidRequest for what the rules keep out and when neither a session nor a user is named.
    """
    now = engine.now()
    with engine.database.write() as tx:
        owner, session = owner_and_session(tx, caller, session_id)
        owner = owner or find_or_make_owner(tx, caller, now)
        decision = decide_on_stated(tx, owner.id, owner.tenant, columns, since=now, by_model=by_model)
        supersedes = columns.pop("replaces", ())
        columns |= {"expires_at": decision.expires_at}
        columns |= columns_of_waiting(now, supersedes) if decision.waits else {}
        columns |= {"scope": "user"} if session is None else {"scope": "session", "session_id": session.id}
        fact_id = _waiting_already(tx, owner.id, columns) if decision.waits else None
        fact_id = fact_id or fact_writes.add_fact(tx, owner.id, now, **columns)
        fact_writes.mark_changed(tx, [owner.id])
        fact_writes.schedule_end(engine, tx, owner.id, owner.tenant, decision.expires_at)
        facts = fact_reads.read_facts(tx, FactRow.id == fact_id)
    return Ranking.of(engine).scored(facts, "", now)[0]


def _waiting_already(tx: Transaction, owner_id: int, columns: Mapping[str, Any]) -> int | None:
    """Return the id of the owner's fact that waits for review in place of the same facts, and says the same."""
    rows = tx.scalars(select(FactRow).where(FactRow.owner_id == owner_id, FactRow.waiting).order_by(FactRow.id))
    waiting = (as_value(Fact, row, session_id=None) for row in rows if row.replaces == columns["replaces"])
    return next((fact.id for fact in waiting if is_duplicate(columns["text"], words_of(fact))), None)


def get(engine: Engine, caller: Caller, fact_id: int) -> Fact:
    """Return a fact, valid or not, with its score without a message.  Raises NotFound."""
    with engine.database.read() as tx:
        row, _ = _find(tx, caller, fact_id)
        facts = _with_merged(tx, fact_reads.read_facts(tx, FactRow.id == row.id))
    return Ranking.of(engine).scored(facts, "", engine.now())[0]


def history(engine: Engine, caller: Caller, fact_id: int) -> list[FactRevision]:
    """Return every change of the fact and of those it superseded, oldest first.  Raises NotFound."""
    with engine.database.read() as tx:
        _find(tx, caller, fact_id)
        chain = fact_reads.supersession_chain(tx, [fact_id])
        rows = select(FactRevisionRow).where(FactRevisionRow.fact_id.in_(chain)).order_by(FactRevisionRow.id)
        return [as_value(FactRevision, row) for row in tx.scalars(rows)]


def count_uses(tx: Transaction, ranking: Ranking, message_ids: Collection[int]) -> None:
    """Count the facts that were of use in the turns that these messages answer, for those not indexed yet.

    The job that indexes the messages does so once for each.
    """
    reports = tx.execute(_REPORTS, {"replies": list(message_ids)}).scalars()
    shown = [fact for report in reports if report for fact in report["facts"]]  # none where the message was erased
    fact_writes.add_uses(tx, Counter(fact_id for fact_id, *score in shown if ranking.is_used(FactScore(*score))))


def search(engine: Engine, caller: Caller, query: str) -> list[Fact]:
    """Return the valid facts of a person, those nearest to the query in words and meaning first."""
    facts = page(engine, caller, limit=fact_reads.CURRENT_FACTS_MAX).items
    return Ranking.of(engine).by_relevance(Ranking.of(engine).scored(facts, query, engine.now()))


def add_quoted(engine: Engine, caller: Caller, *, text: str, quote: str, **columns: Any) -> Fact:
    """Store a fact that rests on a quote, for all sessions of the person; return the one that says it already.

    Raises InvalidRequest for a text that does not rest on its quote, and when no user is named.
    """
    known = _check_quote(engine, caller, text, quote)
    same = next((fact for fact in known if is_duplicate(text, words_of(fact))), None)
    return same or add(engine, caller, text=text, quote=quote, by_model=True, **columns)


def add_from_message(
    engine: Engine,
    tx: Transaction,
    session: SessionRow,
    draft: FactDraft,
    messages: Sequence[Message],
    known: Sequence[Fact],
) -> tuple[Fact | None, Collection[Fact]]:
    """Store a fact that rests on one of these messages of a session, as a summary does.

    It may wait for review. The newest summaries and the profile say it instead of the facts that it corrects.
    Return the fact, None where it is known, and the corrected ones. Raises Ungrounded.
    """
    grounding = Grounding(messages, facts=known)
    rules = rules_of(tx, session.owner_id, session.tenant)
    fact_writes.decide_on_draft(draft, grounding.check(draft), rules)
    _, corrected, stored = fact_writes.add_proposed(tx, session, [draft], grounding, known, rules, engine.now())
    fact_writes.schedule_end(engine, tx, session.owner_id, session.tenant, *(fact.expires_at for fact in stored))
    if corrected:
        instead = {old: new.text for old, new in corrected.items()}
        _say_instead(engine, tx, session.owner_id, instead, "correction")
    return next(iter(stored), None), corrected


@retry_on_conflict
def change(engine: Engine, caller: Caller, fact_id: int, changes: Mapping[str, Any]) -> Fact:
    """Set the text, category, importance, scope, pin or end, as the person does.

    New words are their own source: they have no quote but that of the `changes`. Where the fact is valid, the newest
    summaries say them instead of the old, and the profile says the old ones no longer. Raises NotFound, InvalidRequest.
    """
    with engine.database.write() as tx:
        row, session_id = _find(tx, caller, fact_id)
        if changes.get("scope") == "session" and row.session_id is None:
            raise InvalidRequest(
                "fact_has_no_session",
                "This fact was stated outside any session, so it can't be narrowed to one. State it anew with a "
                "session_id, and forget this one.",
                param="scope",
            )
        old = as_value(Fact, row, session_id=session_id)
        columns = dict(changes)
        now = engine.now()
        is_valid = row.valid_to is None
        since = now if is_valid and "text" in changes else old.valid_from
        if changes.keys() & {"text", "category", "expires_at"}:
            now_says = {**vars(old), **changes}
            is_new = "category" in changes
            decision = decide_on_stated(tx, row.owner_id, caller.tenant, now_says, since=since, has_new_category=is_new)
            columns["expires_at"] = decision.expires_at
        is_reworded = columns.get("text", old.text) != old.text
        if is_reworded:  # the quote proves the old words; and nothing that was said earlier takes the new ones back
            own = {"quote": "", "valid_from": since, "links": fact_writes.relations_within(row.links, columns["text"])}
            fact_writes.reword_fact(tx, row, now, **{**own, **columns})
        elif changes:
            fact_writes.change_fact(tx, row.id, now, **columns)
        fact_writes.schedule_end(engine, tx, row.owner_id, caller.tenant, columns.get("expires_at"))
        (new,) = fact_reads.read_facts(tx, FactRow.id == row.id)
        if is_reworded and is_valid:
            session_row_id = row.session_id if new.scope == "session" else None
            _say_instead(engine, tx, row.owner_id, {old: new.text}, "correction", session_row_id)
        return Ranking.of(engine).scored(_with_merged(tx, [new]), "", now)[0]


def change_quoted(engine: Engine, caller: Caller, fact_id: int, *, text: str, quote: str, **changes: Any) -> Fact:
    """Change a fact as `change` does, to what a quote of the person says. Raises InvalidRequest as `add_quoted`.

    Where facts wait for review, the new words are a fact that waits to take the place of this one.
    """
    _check_quote(engine, caller, text, quote)
    with engine.database.read() as tx:
        row, session_id = _find(tx, caller, fact_id)
        is_reviewed = not row.waiting and rules_of(tx, row.owner_id, caller.tenant).review
        same = {"category": row.category, "importance": row.importance, "replaces": [row.id]} | changes
        in_session = session_id if row.scope == "session" else None
    if is_reviewed:
        return add(engine, caller, session_id=in_session, text=text, quote=quote, by_model=True, **same)
    return change(engine, caller, fact_id, {"text": text, "quote": quote, **changes})


@retry_on_conflict
def review(engine: Engine, caller: Caller, accepted: Collection[int], refused: Collection[int]) -> dict[str, int]:
    """Accept and refuse facts that wait; others are passed over.

    An accepted fact is valid from the time it was stated, and supersedes the facts that it corrects. A fact that the
    rules keep out by now is refused, and a refused fact is erased. Return how many were accepted and refused.
    """
    now = engine.now()
    waiting = facts_of(caller).where(FactRow.waiting, FactRow.id.in_({*accepted, *refused}))
    waiting = waiting.order_by(OwnerRow.id, FactRow.id)  # in which they are locked
    with engine.database.write() as tx:
        dropped: set[int] = set()
        count = 0
        for row, session_id in tx.execute(for_update(tx, waiting, OwnerRow, FactRow)).all():
            fact = as_value(Fact, row, session_id=session_id)
            rules = rules_of(tx, row.owner_id, caller.tenant)
            decision = rules.decide(fact.category, fact.text, fact.quote, since=fact.valid_from)
            if fact.id in refused or decision.refused:
                dropped.add(fact.id)
                continue
            fact_writes.accept(tx, fact, _superseded(tx, row), now)
            _let_jobs_read(engine, tx, row.owner_id, fact)
            count += 1
        fact_writes.delete_with_history(tx, dropped, now)
        return {"accepted": count, "refused": len(dropped)}


def _let_jobs_read(engine: Engine, tx: Transaction, owner_id: int, fact: Fact) -> None:
    """Let the jobs that read each new fact read this one, although they have read newer ones; schedule its end."""
    owner = tx.get_one(OwnerRow, owner_id)
    owner.profile_through = min(owner.profile_through, fact.id - 1)
    owner.consolidated_through = min(owner.consolidated_through, fact.id - 1)
    tx.flush()
    profile.enqueue_update(engine, tx, owner)
    consolidation.enqueue_run(engine, tx, owner)
    fact_writes.schedule_end(engine, tx, owner.id, owner.tenant, fact.expires_at)


def _superseded(tx: Transaction, row: FactRow) -> list[Fact]:
    """Return the valid facts that a waiting fact corrects."""
    in_place = fact_reads.in_scope(row.session_id, row.owner_id)
    valid = fact_reads.read_facts(tx, FactRow.owner_id == row.owner_id, fact_reads.valid_at(None), in_place)
    message = tx.execute(MESSAGES.where(MessageRow.id == row.source_message_id)).first()
    source = Message._make(message) if message is not None else Message.of_person(row.quote, row.valid_from)
    draft = FactDraft(row.text, source.position, row.quote, supersedes=tuple(row.replaces or ()), links=row.links)
    return find_superseded(tx, draft, source, valid)


def forget(
    engine: Engine,
    tx: Transaction,
    caller: Caller,
    fact_ids: Collection[int],
    *,
    restore: bool = False,
    rests: Mapping[int, str] = MappingProxyType({}),
) -> tuple[Sequence[int], int, dict[str, int]]:
    """Delete facts with their histories and the facts that they superseded.

    The newest summaries and the profile lose what says the same. restore: superseded facts are valid again, and
    summaries say these instead. rests: what else facts say, by their ids: it stays, as a fact without a message, if it
    is not all that the fact says, or more.
    Return the ids of their owners, how many of the facts there were, and counts of the rows that were deleted.
    """
    query = visible_to(select(FactRow.id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
    named = query.where(FactRow.id.in_(fact_ids)).order_by(OwnerRow.id)  # in which they are locked
    ids = tx.scalars(for_update(tx, named, OwnerRow)).all()
    chain = fact_reads.supersession_chain(tx, ids, *([FactRow.merged.is_(True)] if restore else []))
    revisions = tx.scalar(select(func.count()).where(FactRevisionRow.fact_id.in_(chain))) or 0
    corrected = select(FactRow).where(FactRow.superseded_by.in_(ids), FactRow.merged.is_(False)).order_by(FactRow.id)
    corrected_texts: dict[int, list[str]] = defaultdict(list)  # by the id of the fact that corrected them
    for row in tx.scalars(corrected) if restore else ():
        corrected_texts[row.superseded_by or 0].append(row.text)
    valid_again = {fact_id: "; ".join(texts) for fact_id, texts in corrected_texts.items()}
    rows = tx.scalars(select(FactRow).where(FactRow.id.in_(chain))).all()
    parts = {row.id: rest for row in rows if (rest := rests.get(row.id)) and _is_part(rest, row)}
    instead = parts | valid_again
    by_owner: dict[int, list[Fact]] = defaultdict(list)
    for row in rows:
        by_owner[row.owner_id].append(as_value(Fact, row, session_id=None))
    for owner_id, facts in by_owner.items():
        _say_instead(engine, tx, owner_id, {fact: instead.get(fact.id, "") for fact in facts}, "erasure")
    for row in rows:
        if row.id in parts:
            fact_writes.add_fact(
                tx, row.owner_id, engine.now(), text=parts[row.id], **{name: getattr(row, name) for name in _KEPT}
            )
        if row.id in valid_again:
            undo_correction(engine, tx, row, valid_again[row.id])
    fact_writes.delete_with_history(tx, chain, engine.now(), "superseded" if valid_again else "forgotten")
    return list(by_owner), len(ids), {"facts": len(chain), "fact_revisions": revisions}


def _is_part(text: str, fact: FactRow) -> bool:
    """Return whether a text says some of what a fact says, and nothing else."""
    with suppress(Ungrounded):
        check_restated(text, [fact.text], fact.valid_from)
        return set(stems(text)) < set(stems(fact.text))
    return False


def _say_instead(
    engine: Engine,
    tx: Transaction,
    owner_id: int,
    instead: Mapping[Fact, str],
    author: str,
    session_row_id: int | None = None,
) -> None:
    """Have the newest summaries say other words than facts did, or nothing, and the profile no longer the facts'.

    session_row_id: only the summary of this session.
    """
    which = SessionRow.owner_id == owner_id if session_row_id is None else SessionRow.id == session_row_id
    rewrite_newest(engine, tx, which, partial(replace_texts, instead=instead), author)
    profile.remove_values(tx, owner_id, instead, engine.now())


def _check_quote(engine: Engine, caller: Caller, text: str, quote: str) -> Sequence[Fact]:
    """Return the known facts about the person. Raises InvalidRequest for a text that does not rest on its quote."""
    known = page(engine, caller, limit=fact_reads.CURRENT_FACTS_MAX).items
    message = Message.of_person(quote, engine.now())
    try:
        Grounding([message], facts=known).check(FactDraft(text, message.position, quote))
    except Ungrounded as reason:
        advice = "State what the person said and no more, and quote their own words."
        raise InvalidRequest("ungrounded", f"Nothing was stored: {reason}. {advice}", param="text") from None
    return known


def _with_merged(tx: Transaction, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts, each with all that were merged into it, the newest first."""
    ids = {fact.id for fact in facts}
    chain = fact_reads.supersession_chain(tx, ids, FactRow.merged.is_(True)) - ids
    others = {fact.id: fact for fact in fact_reads.read_facts(tx, FactRow.id.in_(chain))} if chain else {}
    merged: dict[int, list[Fact]] = defaultdict(list)
    for fact in sorted(others.values(), key=lambda fact: fact.valid_from, reverse=True):
        into = fact.superseded_by or 0
        while into in others:
            into = others[into].superseded_by or 0
        merged[into].append(fact)
    return [replace(fact, merged_facts=tuple(merged[fact.id])) for fact in facts]


def facts_of(caller: Caller) -> Select[Any]:
    """Return a query for the caller's facts, each with its session's public id."""
    query = visible_to(select(FactRow, SessionRow.public_id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
    return query.outerjoin(SessionRow, SessionRow.id == FactRow.session_id)


def _find(tx: Transaction, caller: Caller, fact_id: int) -> tuple[FactRow, str | None]:
    """Return a caller's fact and the public id of its session.  Raises NotFound."""
    missing = NotFound("fact_not_found", f"There is no fact {fact_id}.")
    row, public_id = get_row(tx, facts_of(caller).where(FactRow.id == fact_id), missing, OwnerRow, FactRow)
    return row, public_id
