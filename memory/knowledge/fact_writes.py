"""Write facts: every insert, invalidation, revision and deletion of one, for callers, jobs and erasing alike.

Invariants:
- Each change stores how the fact is now as a revision, and gives its owner another `facts_revision`, so that no process
  shows what it kept before [test_current_facts].
- A correction ends the validity of the old fact and never deletes it [test_facts].
- From its `expires_at` on a fact is not valid, by the one condition for valid facts; a job closes it later
  [test_facts].
- A person's new words for a fact rest on no quote of the old ones, which stay as the fact that they supersede
  [test_edited_facts].
- A deleted fact is as if it had never been taken: what it alone corrected is valid again [test_facts, test_erasing].
"""

import logging
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, delete, exists, func, insert, select, update

from memory.access.owners import lock_owner
from memory.engine import Engine
from memory.events import FORGOTTEN, tell
from memory.knowledge import overview
from memory.knowledge.entities import strip_possessive
from memory.knowledge.fact_reads import read_facts
from memory.knowledge.grounding import (
    DATE,
    RELATIVE_TIME,
    Grounding,
    Ungrounded,
    is_duplicate,
    named_in,
    stems,
    words_of,
)
from memory.knowledge.rule_set import Decision, RuleSet
from memory.knowledge.supersession import find_successor, find_superseded
from models import FactRevisionRow, FactRow, OwnerRow, SessionRow, Transaction
from models.facts import SELF, Fact, FactDraft, Relation, columns_of_waiting
from models.jobs import Job, JobRequest
from models.messages import Message

log = logging.getLogger(__name__)

DELETED_AT_ONCE = 10_000  # facts: a statement of PostgreSQL has 65,535 parameters, and one of SQLite may have 32,766

_F, _R = FactRow.__table__.c, FactRevisionRow.__table__.c
_DRAFTED = {field.name for field in fields(FactDraft)} & {field.name for field in fields(Fact)}
_REVISED = [column.name for column in _R if column.name in _F and column.name != "id"]

_INSERT = insert(FactRow.__table__).returning(_F.id)
_COUNT = (
    update(FactRow.__table__)
    .where(_F.id == bindparam("fact"))
    .values(recalled_count=_F.recalled_count + bindparam("more"))
)
_REVISE = insert(FactRevisionRow.__table__).from_select(
    ["fact_id", *_REVISED, "action", "author", "at"],
    select(
        *(_F[name] for name in ("id", *_REVISED)),
        *(bindparam(name, type_=_R[name].type) for name in ("action", "author", "at")),
    ).where(_F.id == bindparam("fact")),
)
_CHANGED = (
    update(OwnerRow.__table__)
    .where(OwnerRow.__table__.c.id.in_(bindparam("owners", expanding=True)))
    .values(facts_revision=bindparam("revision"))
)


def relations_within(relations: Iterable[Relation], text: str) -> list[Relation]:
    """Return the relations whose two ends a text names."""
    return [
        relation
        for relation in relations
        if all(end == SELF or named_in(strip_possessive(end), text) for end in (relation.subject, relation.object))
    ]


def end_of(day: date) -> datetime:
    """Return when a day is over everywhere; for the last days of the calendar, which mean never, its last one."""
    after = timedelta(days=2)
    return datetime.combine(min(day, date.max - after), time(), UTC) + after


# -- writing


def mark_changed(tx: Transaction | Connection, owner_ids: Collection[int]) -> None:
    """Give owners whose facts this transaction changes another revision of their facts.

    It is a random number: one that a rolled-back transaction gave never comes back with other facts.
    """
    tx.execute(_CHANGED, {"owners": sorted(owner_ids), "revision": secrets.randbits(62)})


def change_fact(
    tx: Transaction, fact_id: int, now: datetime, action: str = "edited", author: str = "person", **columns: Any
) -> None:
    """Change columns of a fact, and store it as a revision."""
    changed = update(FactRow.__table__).where(_F.id == fact_id).values(columns).returning(_F.owner_id)
    owner_ids = tx.scalars(changed).all()
    if "text" in columns or (columns.get("valid_to") is not None and action != "merged"):
        for owner_id in owner_ids:
            overview.outdate(tx, owner_id, now, fact_id=fact_id)
    tx.execute(_REVISE, {"fact": fact_id, "action": action, "author": author, "at": now})
    mark_changed(tx, owner_ids)


def reword_fact(tx: Transaction, row: FactRow, now: datetime, **columns: Any) -> None:
    """Change the words of a fact, which keeps its id and loses its source.

    Another fact gets the old words, with their source and the facts merged into them, and is superseded by it: from
    now on, or from the start where the fact is valid no longer. It has no revisions: the history stays with the id.
    Of words that wait for review nothing is left, as of refused ones.
    """
    if row.waiting:
        tx.execute(delete(FactRevisionRow).where(FactRevisionRow.fact_id == row.id))
    else:
        old = {column.key: getattr(row, column.key) for column in FactRow.__table__.columns if column.key != "id"}
        valid_to = row.valid_from if row.valid_to is not None else max(now, row.valid_from)
        old |= {"valid_to": valid_to, "superseded_by": row.id, "merged": False}
        before = update(FactRow.__table__).where(_F.superseded_by == row.id)
        fact_id: int = tx.execute(_INSERT, old).scalar_one()
        tx.execute(before.where(_F.id != fact_id).values(superseded_by=fact_id))
    change_fact(tx, row.id, now, source_message_id=None, **columns)


def accept(tx: Transaction, fact: Fact, superseded: Sequence[Fact], now: datetime) -> None:
    """Make a waiting fact valid from the time it was stated, and invalidate the facts that it supersedes."""
    is_pinned = fact.pinned or any(old.pinned for old in superseded)
    change_fact(tx, fact.id, now, "accepted", valid_to=None, replaces=None, pinned=is_pinned)
    for old in superseded:
        invalidate(tx, old.id, now, author="person", by=fact)


def add_fact(tx: Transaction, owner_id: int, now: datetime, author: str = "person", **columns: Any) -> int:
    """Store a fact with its first revision; return its id. It is valid from now on, unless `columns` say otherwise.

    The caller marks the owner's facts as changed, once for all that it adds.
    """
    row = {"owner_id": owner_id, "valid_from": now, "created_at": now} | columns
    fact_id: int = tx.execute(_INSERT, row).scalar_one()
    action = "made" if row.get("replaces") is None else "proposed"
    tx.execute(_REVISE, {"fact": fact_id, "action": action, "author": author, "at": now})
    return fact_id


def invalidate(  # noqa: PLR0913 - how it ends, and who ends it
    tx: Transaction,
    fact_id: int,
    now: datetime,
    action: str = "superseded",
    *,
    author: str = "model",
    valid_to: datetime | None = None,
    by: Fact | None = None,
) -> None:
    """Invalidate a fact from `valid_to` or now, but not from before it begins.

    by: the fact that replaces it; its `valid_from` then counts.
    """
    valid_to = by.valid_from if by is not None else valid_to or now
    columns = {"superseded_by": by.id if by is not None else None, "merged": action == "merged"}
    not_before = case((_F.valid_from > valid_to, _F.valid_from), else_=valid_to)
    change_fact(tx, fact_id, now, action, author, valid_to=not_before, **columns)


def revalidate(tx: Transaction, fact_id: int, expires_at: datetime | None, now: datetime) -> None:
    """Make a fact valid again that another one invalidated, or close it at its end if that is over."""
    is_over = expires_at is not None and expires_at <= now
    valid_to, action = (expires_at, "ended") if is_over else (None, "reopened")
    change_fact(tx, fact_id, now, action, valid_to=valid_to, superseded_by=None, merged=False)


def merge(tx: Transaction, fact: Fact, into: Fact, now: datetime) -> None:
    """Merge a fact into another one that says the same.

    That one takes over the relations that its own words name, so that nothing of the merged fact is left in it when
    the merged fact is erased.
    """
    stored = dict(tx.execute(select(_F.id, _F.links).where(_F.id.in_((fact.id, into.id)))).all())
    words = set(stems(f"{into.text} {into.quote}"))
    merged = relations_within(stored[fact.id], into.text)
    merged = [relation for relation in merged if words.issuperset(stems(relation.relation))]
    links = tuple(dict.fromkeys([*stored[into.id], *merged]))
    tx.execute(update(FactRow.__table__).where(_F.id == into.id).values(links=links))
    invalidate(tx, fact.id, now, "merged", by=into)


def add_proposed(  # noqa: PLR0913 - what was proposed, what decides about it, and when
    tx: Transaction,
    session: Row[Any] | SessionRow,
    drafts: Sequence[FactDraft],
    grounding: Grounding,
    known: Iterable[Fact],
    rules: RuleSet,
    now: datetime,
) -> tuple[dict[str, int], dict[Fact, Fact], list[Fact]]:
    """Store the drafts that are grounded and that the rules let in, and invalidate the facts they correct.

    session: its ids, and its owner's. known: the facts that are valid now.  A draft that only repeats them is not
    stored. Return counts of what became of the drafts, the new fact of each that was corrected, and the new facts,
    last those that wait for review.
    """
    valid = {fact.id: fact for fact in known}
    waiting_already = read_facts(tx, FactRow.owner_id == session.owner_id, FactRow.waiting) if rules.review else ()
    stated = (*valid.values(), *waiting_already)
    words = {fact.id: words_of(fact) for fact in stated} if drafts else {}
    repeated = 0
    refused: list[str] = []
    added: list[Fact] = []
    waiting: list[Fact] = []
    corrected: dict[Fact, Fact] = {}
    for draft in drafts:
        try:
            source = grounding.check(draft)
            decision = decide_on_draft(draft, source, rules)
        except Ungrounded as reason:
            refused.append(str(reason))
            continue
        if is_duplicate(draft.text, frozenset[str]().union(*words.values())):
            repeated += 1
            continue
        draft = replace(draft, links=grounding.links(draft, source), category=decision.category)
        superseded = find_superseded(tx, draft, source, valid.values())
        columns = {name: getattr(draft, name) for name in _DRAFTED} | {"expires_at": decision.expires_at}
        columns |= {"source_message_id": source.id, "valid_from": source.created_at, "created_at": now}
        columns["pinned"] = any(old.pinned for old in superseded)  # the person's pin stays
        row = {**columns, "session_id": session.id, "links": draft.links}
        row |= columns_of_waiting(source.created_at, (old.id for old in superseded)) if decision.waits else {}
        fact_id = add_fact(tx, session.owner_id, now, "model", **row)
        new = Fact(fact_id, session_id=session.public_id, waiting=decision.waits, **columns)
        words[new.id] = words_of(new)
        if new.waiting:
            waiting.append(new)
            continue
        for old in superseded:
            invalidate(tx, old.id, now, by=new)
            del words[old.id]
            corrected[valid.pop(old.id)] = new
        added.append(new)
        if (successor := find_successor(tx, draft, source, valid.values())) is not None:
            invalidate(tx, new.id, now, by=successor)
            corrected[new] = successor
        else:
            valid[new.id] = new
    if added or waiting:
        mark_changed(tx, [session.owner_id])
    if refused:
        log.info("%d facts refused: %s", len(refused), "; ".join(refused))
    counts = {"added": len(added), "superseded": len(corrected), "repeated": repeated, "refused": len(refused)}
    counts |= {"waiting": len(waiting)} if waiting else {}
    return counts, corrected, [*added, *waiting]


def decide_on_draft(draft: FactDraft, source: Message, rules: RuleSet) -> Decision:
    """Return the decision about a draft. It expires after its last day where the person named a time that is not over.

    Raises Ungrounded for what the rules keep out.
    """
    since = source.created_at
    names_time = any(pattern.search(source.content) for pattern in (RELATIVE_TIME, DATE))
    last_day = draft.last_day
    expires_at = end_of(last_day) if last_day and names_time and last_day >= since.date() else None
    decision = rules.decide(draft.category, draft.text, draft.quote, since=since, expires_at=expires_at, by_model=True)
    if decision.refused:
        raise Ungrounded(decision.refused)
    return decision


def delete_with_history(tx: Transaction, fact_ids: Iterable[int], now: datetime, action: str = "forgotten") -> None:
    """Delete facts and their revisions; revalidate the facts that they alone corrected.

    Of several facts that were merged into a deleted one, the newest takes its place. action: why they are deleted, as
    the event says it; it says `superseded` where another fact stands or stood for the deleted one.
    """
    ids = list(fact_ids)
    for start in range(0, len(ids), DELETED_AT_ONCE):
        _delete(tx, ids[start : start + DELETED_AT_ONCE], now, action)


def _delete(tx: Transaction, fact_ids: Sequence[int], now: datetime, action: str) -> None:
    deleted = {fact.id: fact for fact in tx.scalars(select(FactRow).where(FactRow.id.in_(fact_ids)))}
    if not deleted:
        return
    taken_over = _relink(tx, deleted, now)
    revised = set(tx.scalars(select(FactRevisionRow.fact_id).where(FactRevisionRow.fact_id.in_(deleted))))
    # Old words of another fact, which no event named: they have no revisions (see `reword_fact`).
    old_words = {fact for fact in deleted.values() if fact.superseded_by and fact.id not in revised}
    for fact in old_words:
        _forget_words(tx, fact)
    tx.execute(delete(FactRow).where(FactRow.id.in_(deleted)))
    overview.forget_facts(tx, deleted.values(), old_words, now)
    mark_changed(tx, {fact.owner_id for fact in deleted.values()})
    actions = {fact: "superseded" if fact.superseded_by or fact in taken_over else action for fact in deleted.values()}
    announced = [fact for fact in actions if not fact.waiting and fact not in old_words]
    events = [(fact.owner_id, {"fact_id": fact.id, "action": actions[fact]}) for fact in announced]
    tell(tx, FORGOTTEN, events, now)


def _relink(tx: Transaction, deleted: Mapping[int, FactRow], now: datetime) -> Collection[FactRow]:
    """Link the facts that deleted ones superseded to a successor that is left, or make them valid again.

    Return the deleted facts whose place a fact takes over that was merged into them.
    """
    superseded = select(FactRow).where(FactRow.superseded_by.in_(deleted), FactRow.id.not_in(deleted))
    rows = tx.scalars(superseded.order_by(FactRow.valid_from.desc(), FactRow.id.desc())).all()
    newest_merged: dict[FactRow, int] = {}  # into a deleted fact that no other one supersedes
    for row in rows:
        last = deleted[row.superseded_by or 0]
        says_same = row.merged
        while (successor := deleted.get(last.superseded_by or 0)) is not None:
            says_same = says_same and last.merged
            last = successor
        row.superseded_by = last.superseded_by
        row.merged = says_same and last.merged
        if last.superseded_by is None and says_same and last in newest_merged:
            row.superseded_by = newest_merged[last]
            row.merged = True
        else:
            row.valid_to = last.valid_to if says_same or last.superseded_by is not None else None
            newest_merged |= {last: row.id} if says_same and last.superseded_by is None else {}
    tx.flush()
    for row in rows:
        if row.valid_to is None:
            revalidate(tx, row.id, row.expires_at, now)
    return newest_merged.keys()


def _forget_words(tx: Transaction, old: FactRow) -> None:
    """Delete the revisions with the old words of a reworded fact, from the history of the fact that has its id."""
    fact_id = old.superseded_by
    while fact_id is not None:
        own = FactRevisionRow.fact_id == fact_id
        tx.execute(delete(FactRevisionRow).where(own, FactRevisionRow.text == old.text))
        if tx.scalar(select(exists().where(own))):
            return
        fact_id = tx.scalar(select(FactRow.superseded_by).where(FactRow.id == fact_id))


def move_source(tx: Transaction, message_id: int, to_message_id: int) -> None:
    """Let facts that were taken from one message rest on another one with the same words."""
    moved = update(FactRow.__table__).where(_F.source_message_id == message_id).values(source_message_id=to_message_id)
    if owner_ids := set(tx.scalars(moved.returning(_F.owner_id))):
        mark_changed(tx, owner_ids)


def add_uses(tx: Transaction | Connection, counts: Mapping[int, int]) -> None:
    """Add to the `recalled_count` of facts for how many more messages they were of use, by their ids.

    That is no change of a fact: the count may be older where facts are kept.  When it doubles, which changes its rank,
    they are read again.
    """
    if not counts:
        return
    before = tx.execute(select(_F.id, _F.owner_id, _F.recalled_count).where(_F.id.in_(list(counts)))).all()
    tx.execute(_COUNT, [{"fact": fact_id, "more": more} for fact_id, more in sorted(counts.items())])
    if owner_ids := {owner for fact, owner, old in before if (old + counts[fact]).bit_length() > old.bit_length()}:
        mark_changed(tx, owner_ids)


# -- ends of facts


def schedule_end(engine: Engine, tx: Transaction, owner_id: int, tenant: str, *expires_at: datetime | None) -> None:
    """Ask for the job that closes an owner's facts at the first of these ends, if there are any."""
    first = min(filter(None, expires_at), default=None)
    if first is not None:
        delay = max(0.0, (first - engine.now()).total_seconds())
        engine.job_queue.enqueue(tx, JobRequest("fact_ends", owner_id, tenant, owner_id, delay=delay))


def close_ended(engine: Engine, job: Job) -> None:
    """Run the job that closes an owner's facts that have reached their end. Idempotent.

    It runs at the ends of all facts: one that is not valid may be valid again by then.
    """
    now = engine.now()
    theirs = FactRow.owner_id == job.owner_id
    with engine.database.write() as tx:
        owner = lock_owner(tx, job.owner_id)
        if owner is None:
            return
        ended = select(FactRow.id, FactRow.expires_at).where(
            theirs, FactRow.valid_to.is_(None), FactRow.expires_at <= now
        )
        for fact_id, expires_at in tx.execute(ended).all():
            invalidate(tx, fact_id, now, "ended", valid_to=expires_at)
        following = tx.scalar(select(func.min(FactRow.expires_at)).where(theirs, FactRow.expires_at > now))
        schedule_end(engine, tx, owner.id, owner.tenant, following)
