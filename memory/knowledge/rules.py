"""Rules of what is kept, on behalf of callers: of a tenant for all of its people, and of a person for themselves.

Every version is kept. New rules list the stored facts, summaries and profiles that they keep out, and close them if
the caller says so.

A closed fact keeps its history, and a summary or a profile its earlier versions: to erase what they say, forget facts
and erase messages.

Invariants [test_rules]:
- Rules that keep out something stored are refused until the caller says whether to close it.
- A tenant's rules reach all of its people, a person's nobody else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Self

from sqlalchemy import Select, select

from memory.access.owners import find_or_make_owner, visible_to
from memory.engine import Engine
from memory.errors import Conflict, NotFound
from memory.knowledge import overview, profile
from memory.knowledge.fact_reads import FACTS, NOW, valid_at
from memory.knowledge.fact_writes import change_fact, invalidate, schedule_end
from memory.knowledge.profile_patch import Profile
from memory.knowledge.rule_set import EVERYTHING, KEY, NAMESPACE, RuleSet, check
from memory.knowledge.summaries import rewrite_newest
from memory.store import item_rows
from models import IS_SUMMARY_IN_USE, FactRow, ItemRow, OwnerRow, SessionRow, SummaryRow, Transaction, retry_on_conflict
from models.facts import Fact
from models.overview import Overview
from models.owners import Caller
from models.sections import Sections
from models.store import Item, ItemVersion, Put

LISTED_MAX = 1_000  # facts that a preview lists
_DESCRIBING = {item_rows.join_namespace(part.NAMESPACE): part.NAMESPACE for part in (profile, overview)}
BATCH_ROWS = 200  # that are closed in one transaction: others write in between


@dataclass(frozen=True)
class RulesVersion(ItemVersion):
    """Version of the rules of a person or a tenant. in_force: with those of the tenant."""

    in_force: RuleSet = EVERYTHING

    @classmethod
    def of(cls, stored: ItemVersion, of_tenant: RuleSet) -> Self:
        version = stored.read(RuleSet.of)
        return cls(**vars(version), in_force=of_tenant.narrowed(version.value))


@dataclass(frozen=True)
class Effect:
    """Effect of rules on what is stored: facts to close, ids of sessions and profiles; and ends of other facts.

    profiles: ids of items, overviews among them.
    """

    facts: tuple[Fact, ...]
    ends: tuple[tuple[int, datetime], ...]
    sessions: tuple[int, ...]
    profiles: tuple[int, ...]


def get(engine: Engine, caller: Caller) -> RulesVersion:
    """Return the newest version of the caller's rules."""
    with engine.database.read() as tx:
        of_tenant = _of_tenant(engine, tx, caller)
        return RulesVersion.of(item_rows.newest_version(tx, _item(engine, tx, caller)), of_tenant)


def versions(engine: Engine, caller: Caller) -> list[RulesVersion]:
    """Return all versions, newest first."""
    with engine.database.read() as tx:
        of_tenant, item = _of_tenant(engine, tx, caller), _item(engine, tx, caller)
        history = item_rows.list_versions(tx, item.id) if item is not None else []
        return [RulesVersion.of(version, of_tenant) for version in history]


def preview(engine: Engine, caller: Caller, rules: RuleSet) -> Effect:
    """Return the effect that these rules would have, a person's together with the tenant's.

    Raises InvalidRequest as `check` does.
    """
    check(rules)
    with engine.database.read() as tx:
        return _effect(engine, tx, caller, _of_tenant(engine, tx, caller).narrowed(rules))


def put(
    engine: Engine,
    caller: Caller,
    rules: RuleSet,
    expected: int | None = None,
    *,
    close: bool | None = None,
    author: str = "person",
) -> RulesVersion:
    """Store a new version of the caller's rules.

    close: whether to close stored facts and texts that they keep out; None: refuse rules that keep any out. What others
    store in between is closed too, unless it is False.
    Raises InvalidRequest, and Conflict for another version and where `close` has to be said.
    """
    effect = preview(engine, caller, rules)
    if close is None and (effect.facts or effect.sessions or effect.profiles):
        raise Conflict(
            "rules_close_facts",
            f"These rules keep out what is stored already: {len(effect.facts):,} facts, and parts of "
            f"{len(effect.sessions):,} summaries and {len(effect.profiles):,} profiles and overviews. Nothing was "
            "changed. `POST /api/rules/preview` lists them. Send `close`: true to close them, false to leave them.",
            param="close",
        )
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, caller, engine.now())
        put = Put(NAMESPACE, KEY, rules.as_dict(), expected)
        item_rows.write(tx, owner.id, put, engine.now(), author=author)
    stored = get(engine, caller)
    if close is not False:
        _close(engine, caller, stored.in_force)
    return stored


def rollback(engine: Engine, caller: Caller, version: int, *, close: bool | None = None) -> RulesVersion:
    """Store an earlier version as the newest, as `put` does. Raises NotFound, and Conflict as it does."""
    with engine.database.read() as tx:
        if (item := _item(engine, tx, caller)) is None:
            raise not_found()
        old = RuleSet.of(item_rows.get_version(tx, item, version).value)
    return put(engine, caller, old, close=close, author="rollback")


def not_found() -> NotFound:
    return NotFound("rules_not_found", "There are no rules of this person or tenant.")


def _item(engine: Engine, tx: Transaction, caller: Caller) -> Item | None:
    return item_rows.read_own(tx, caller, NAMESPACE, KEY, engine.now())


def _of_tenant(engine: Engine, tx: Transaction, caller: Caller) -> RuleSet:
    """Return the rules that a caller's own can only narrow."""
    item = _item(engine, tx, Caller(caller.tenant)) if caller.owner is not None else None
    return RuleSet.of(item.value) if item is not None else EVERYTHING


# -- what is stored


def _effect(engine: Engine, tx: Transaction, caller: Caller, rules: RuleSet) -> Effect:
    now = engine.now()
    closed: list[Fact] = []
    ends: list[tuple[int, datetime]] = []
    of_persons = _categories_of_persons(tx, caller, rules)
    valid = _of(caller, FACTS.add_columns(FactRow.owner_id), FactRow).where(valid_at(None))
    for *row, owner_id in tx.execute(valid, {NOW.key: now}):
        fact = Fact(*row)
        since, expires_at = fact.valid_from, fact.expires_at
        decision = of_persons.get(owner_id, rules).decide(
            fact.category, fact.text, fact.quote, since=since, expires_at=expires_at
        )
        end = decision.expires_at
        if decision.refused or (end is not None and end <= now):
            closed.append(fact)
        elif end is not None and end != fact.expires_at:
            ends.append((fact.id, end))
    sessions, profiles = set[int](), list[int]()
    if rules.topics or rules.words:
        summaries = select(SessionRow.id, SummaryRow.sections).join(SummaryRow, IS_SUMMARY_IN_USE)
        for session_id, stored in tx.execute(_of(caller, summaries, SessionRow)):
            if rules.kept_of(sections := Sections.from_dict(stored)) != sections:
                sessions.add(session_id)
        items = select(ItemRow.id, ItemRow.namespace, ItemRow.value).where(ItemRow.namespace.in_(_DESCRIBING))
        found = tx.execute(_of(caller, items, ItemRow))
        profiles = [item_id for item_id, *item in found if _kept_of(rules, *item) is not None]
    return Effect(tuple(closed), tuple(ends), tuple(sessions), tuple(profiles))


def _categories_of_persons(tx: Transaction, caller: Caller, rules: RuleSet) -> dict[int, RuleSet]:
    """Return a tenant's rules together with the categories of each person who has rules, by the ids of the owners.

    What a person keeps out by topics and words was decided with their own rules.
    """
    stored = select(ItemRow.owner_id, ItemRow.value).where(ItemRow.namespace == item_rows.join_namespace(NAMESPACE))
    own = tx.execute(_of(caller, stored, ItemRow)).all() if caller.owner is None else []
    of_persons = {owner_id: replace(RuleSet.of(value), topics=(), words=()) for owner_id, value in own}
    return {owner_id: rules.narrowed(categories) for owner_id, categories in of_persons.items()}


# -- closing


def _close(engine: Engine, caller: Caller, rules: RuleSet) -> None:
    """Close what the rules keep out, some rows in each transaction; what has changed meanwhile is left alone."""
    with engine.database.read() as tx:
        effect = _effect(engine, tx, caller, rules)
    texts = {fact.id: fact.text for fact in effect.facts}
    ends = dict(effect.ends)
    for batch in _batches([*texts, *ends]):
        _close_facts(engine, batch, texts, ends)
    for batch in _batches(effect.sessions):
        _clean_summaries(engine, batch, rules)
    for batch in _batches(effect.profiles):
        _clean_profiles(engine, batch, rules)


@retry_on_conflict
def _close_facts(engine: Engine, ids: Sequence[int], texts: dict[int, str], ends: dict[int, datetime]) -> None:
    rows = select(FactRow.id, FactRow.text, OwnerRow.id, OwnerRow.tenant).join(OwnerRow)
    with engine.database.write() as tx:
        for fact_id, text, owner_id, tenant in tx.execute(rows.where(FactRow.id.in_(ids), valid_at(None))).all():
            if fact_id in ends:
                change_fact(tx, fact_id, engine.now(), expires_at=ends[fact_id])
                schedule_end(engine, tx, owner_id, tenant, ends[fact_id])
            elif text == texts[fact_id]:
                invalidate(tx, fact_id, engine.now(), "excluded", author="person")


@retry_on_conflict
def _clean_summaries(engine: Engine, session_ids: Sequence[int], rules: RuleSet) -> None:
    which = SessionRow.id.in_(session_ids)
    with engine.database.write() as tx:
        for row in rewrite_newest(engine, tx, which, rules.kept_of, "erasure"):
            overview.outdate(tx, row.owner_id, engine.now(), session_id=row.public_id)


@retry_on_conflict
def _clean_profiles(engine: Engine, item_ids: Sequence[int], rules: RuleSet) -> None:
    with engine.database.write() as tx:
        for row in tx.scalars(select(ItemRow).where(ItemRow.id.in_(item_ids))).all():
            if (value := _kept_of(rules, row.namespace, row.value)) is not None:
                put = Put(_DESCRIBING[row.namespace], row.key, value)
                item_rows.write(tx, row.owner_id, put, engine.now(), author="erasure")


def _kept_of(rules: RuleSet, namespace: str, value: Any) -> Any:
    """Return what the rules keep of a stored profile or overview; None for all of it."""
    if _DESCRIBING[namespace] == overview.NAMESPACE:
        written = Overview.of(value)
        kept = overview.kept_by(rules, written)
        return kept.value if kept != written else None
    document = Profile.of(value)
    kept_document = document.kept_by(rules)
    return asdict(kept_document) if kept_document != document else None


def _batches(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + BATCH_ROWS] for start in range(0, len(ids), BATCH_ROWS))


def _of(caller: Caller, query: Select[*tuple[Any, ...]], table: Any) -> Select[*tuple[Any, ...]]:
    """Narrow a query to the rows of a table that belong to the caller: without a user, to all of the tenant's."""
    return visible_to(query.join(OwnerRow, OwnerRow.id == table.owner_id), caller)
