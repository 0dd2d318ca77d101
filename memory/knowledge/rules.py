"""Rules of what is kept, of a tenant for all of its people and of a person for themselves; and facts at their end.

Every version of them is kept. A turn reads none: they are read where facts and summaries are written.

Invariants:
- From its `expires_at` on a fact is not valid, by the one condition for valid facts; a job closes it later
  [test_facts].
- Rules that keep out what is stored already say so first, and close it only where the caller says which [test_rules].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select

from memory.access.owners import OWNER_AND_TENANT, find_or_make_owner, lock_owner
from memory.errors import InvalidRequest, NotFound
from memory.jobs import JobQueue
from memory.knowledge.fact_writes import invalidate
from memory.knowledge.rule_set import EVERYTHING, Decision, RuleSet, check_word
from memory.llm.mini_model import TEXT, list_of, object_of
from memory.store import documents
from models import Database, FactRow, ItemRow, Transaction
from models.jobs import Job, JobRequest
from models.owners import Caller
from models.store import OWN, Item, ItemVersion, Put

NAMESPACE, KEY = (OWN, "rules"), "rules"
_BOOLEAN, _DAYS = {"type": "boolean"}, {"type": ["integer", "null"], "minimum": 1}
SHAPE = object_of(
    categories=list_of(object_of(name=TEXT, keep=_BOOLEAN, days=_DAYS, about=TEXT)),
    topics=list_of(TEXT),
    words=list_of(TEXT),
    review=_BOOLEAN,
)
_I = ItemRow.__table__.c
STORED = _I.owner_id.in_(OWNER_AND_TENANT), _I.namespace == documents.join_namespace(NAMESPACE), _I["key"] == KEY
"""True of the items with the rules of an `owner` and of the `tenant`."""
_STORED = select(_I.owner_id, _I.value).where(*STORED)


@dataclass(frozen=True)
class RulesVersion:
    """Version of the rules of a person or a tenant; version 0 has none, and nobody has written it.

    in_force: with those of the tenant.
    """

    version: int = 0
    rules: RuleSet = EVERYTHING
    author: str | None = None
    created_at: datetime | None = None
    in_force: RuleSet = EVERYTHING

    @classmethod
    def of(cls, stored: ItemVersion, of_tenant: RuleSet) -> RulesVersion:
        rules = RuleSet.of(stored.value)
        return cls(stored.version, rules, stored.author, stored.created_at, of_tenant.narrowed(rules))


def rules_in_force(stored: Mapping[int, Mapping[str, Any]], owner_id: int) -> RuleSet:
    """Return the rules that hold for an owner. stored: their own and the tenant's, by the ids of who has them."""
    of_tenant = next((rules for has_them, rules in stored.items() if has_them != owner_id), None)
    return RuleSet.of(of_tenant).narrowed(RuleSet.of(stored.get(owner_id)))


@dataclass(frozen=True)
class Rules:
    """Stores rules for callers: those of the user, or without one the tenant's; closes facts at their end."""

    database: Database
    job_queue: JobQueue
    now: Callable[[], datetime]

    def of(self, tx: Transaction, owner_id: int, tenant: str) -> RuleSet:
        """Return the rules that hold for an owner."""
        rows = tx.execute(_STORED, {"owner": owner_id, "tenant": tenant})
        return rules_in_force(dict(rows.all()), owner_id)

    def decide_on_stated(  # noqa: PLR0913 - whose fact, what it says, and how it came
        self,
        tx: Transaction,
        owner_id: int,
        tenant: str,
        fact: Mapping[str, Any],
        *,
        since: datetime,
        by_model: bool = False,
        has_new_category: bool = True,
    ) -> Decision:
        """Return what becomes of a fact that a caller states or changes.

        Raises InvalidRequest for what is kept out, and for a new category that is unknown.
        """
        texts, ends = (fact["text"], fact.get("quote", "")), fact.get("expires_at")
        decision = self.of(tx, owner_id, tenant).decide(
            fact["category"], *texts, since=since, ends=ends, by_model=by_model
        )
        if has_new_category and decision.category != fact["category"]:
            text = f"There is no category {fact['category']!r}. Nothing was stored. Add it to the rules (`/api/rules`)."
            raise InvalidRequest("unknown_category", text, param="category")
        if decision.refused:
            raise InvalidRequest("kept_out", f"By the rules of what is kept, {decision.refused}. Nothing was stored.")
        return decision

    def get(self, caller: Caller) -> RulesVersion:
        """Return the newest version of the caller's rules."""
        with self.database.read() as tx:
            of_tenant = self._of_tenant(tx, caller)
            stored = documents.newest_version(tx, self._item(tx, caller))
        return RulesVersion.of(stored, of_tenant) if stored is not None else RulesVersion(in_force=of_tenant)

    def versions(self, caller: Caller) -> list[RulesVersion]:
        """Return all versions, newest first."""
        with self.database.read() as tx:
            of_tenant, item = self._of_tenant(tx, caller), self._item(tx, caller)
            history = documents.list_versions(tx, item.id) if item is not None else []
            return [RulesVersion.of(version, of_tenant) for version in history]

    def check(self, rules: RuleSet) -> None:
        """Raise InvalidRequest for a word that can't be looked for, and for a category that has two rules."""
        for word in rules.words:
            check_word(word)
        if len({category.name for category in rules.categories}) < len(rules.categories):
            text = "A category stands there twice. Nothing was stored."
            raise InvalidRequest("category_twice", text, param="categories")

    def put(self, caller: Caller, rules: RuleSet, expected: int | None = None) -> RulesVersion:
        """Store a new version, as it was checked. Raises Conflict."""
        with self.database.write() as tx:
            owner = find_or_make_owner(tx, caller, self.now())
            put = Put(NAMESPACE, KEY, rules.as_dict(), expected)
            documents.write(tx, owner.id, put, self.now(), author="person")
        return self.get(caller)

    def rollback(self, caller: Caller, version: int) -> RulesVersion:
        """Store an earlier version as the newest. Raises NotFound."""
        with self.database.write() as tx:
            owner = find_or_make_owner(tx, caller, self.now())
            old = documents.get_version(tx, self._get_item(tx, caller), version)
            documents.write(tx, owner.id, Put(NAMESPACE, KEY, old.value), self.now(), author="rollback")
        return self.get(caller)

    def find(self, tx: Transaction, caller: Caller) -> list[int]:
        """Return the id of the item of the caller's own rules. Raises NotFound."""
        return [self._get_item(tx, caller).id]

    def _get_item(self, tx: Transaction, caller: Caller) -> Item:
        item = self._item(tx, caller)
        if item is None:
            raise NotFound("rules_not_found", "There are no rules of this person or tenant.")
        return item

    def _item(self, tx: Transaction, caller: Caller) -> Item | None:
        return documents.read_own(tx, caller, NAMESPACE, KEY, self.now())

    def _of_tenant(self, tx: Transaction, caller: Caller) -> RuleSet:
        """Return the rules that a caller's own can only narrow."""
        item = self._item(tx, Caller(caller.tenant)) if caller.owner is not None else None
        return RuleSet.of(item.value) if item is not None else EVERYTHING

    # -- ends of facts

    def schedule_end(self, tx: Transaction, owner_id: int, tenant: str, *ends: datetime | None) -> None:
        """Ask for the job that closes an owner's facts at the first of their ends, if they have any."""
        first = min(filter(None, ends), default=None)
        if first is not None:
            delay = max(0.0, (first - self.now()).total_seconds())
            self.job_queue.enqueue(tx, JobRequest("fact_ends", owner_id, tenant, owner_id, delay=delay))

    def close_ended(self, job: Job) -> None:
        """Run the job that closes an owner's facts that have reached their end. Idempotent."""
        now, valid = self.now(), (FactRow.owner_id == job.owner_id, FactRow.valid_to.is_(None))
        with self.database.write() as tx:
            owner = lock_owner(tx, job.owner_id)
            if owner is None:
                return
            ended = select(FactRow.id, FactRow.expires_at).where(*valid, FactRow.expires_at <= now)
            for fact_id, end in tx.execute(ended).all():
                invalidate(tx, fact_id, now, "ended", until=end)
            following = tx.scalar(select(func.min(FactRow.expires_at)).where(*valid))
            self.schedule_end(tx, owner.id, owner.tenant, following)
