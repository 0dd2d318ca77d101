"""Rules of what is kept, of a tenant for all of its people and of a person for themselves.

Every version of them is kept. A turn reads none: they are read where facts and summaries are written.

Invariant: rules that keep out what is stored already say so first, and close it only where the caller says which
[test_rules].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, select

from memory.access.owners import find_or_make_owner
from memory.engine import Engine
from memory.errors import InvalidRequest, NotFound
from memory.knowledge.rule_set import EVERYTHING, Decision, RuleSet, check_word
from memory.llm.mini_model import TEXT, list_of, object_of
from memory.store import item_rows
from models import ItemRow, OwnerRow, Transaction
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
_T = OwnerRow.__table__.alias().c


def stored_rules(owner_id: ColumnElement[Any], tenant: ColumnElement[Any]) -> tuple[Any, Any]:
    """Return two columns: the stored rules of an owner and of a tenant."""
    tenant_id = select(_T.id).where(_T.tenant == tenant, _T.kind == "tenant").scalar_subquery()
    stored = select(_I.value).where(_I.namespace == item_rows.join_namespace(NAMESPACE), _I["key"] == KEY)
    own, of_tenant = (stored.where(_I.owner_id == who).scalar_subquery() for who in (owner_id, tenant_id))
    return own.label("own_rules"), of_tenant.label("tenant_rules")


_STORED = select(*stored_rules(bindparam("owner"), bindparam("tenant")))


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


def rules_in_force(row: Any) -> RuleSet:
    """Return the rules that hold for an owner. row: has the columns of `stored_rules`."""
    return RuleSet.of(row.tenant_rules).narrowed(RuleSet.of(row.own_rules))


def rules_of(tx: Transaction, owner_id: int, tenant: str) -> RuleSet:
    """Return the rules that hold for an owner."""
    return rules_in_force(tx.execute(_STORED, {"owner": owner_id, "tenant": tenant}).one())


def decide_on_stated(  # noqa: PLR0913 - whose fact, what it says, and how it came
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
    decision = rules_of(tx, owner_id, tenant).decide(
        fact["category"], *texts, since=since, ends=ends, by_model=by_model
    )
    if has_new_category and decision.category != fact["category"]:
        text = f"There is no category {fact['category']!r}. Nothing was stored. Add it to the rules (`/api/rules`)."
        raise InvalidRequest("unknown_category", text, param="category")
    if decision.refused:
        raise InvalidRequest("kept_out", f"By the rules of what is kept, {decision.refused}. Nothing was stored.")
    return decision


def get(engine: Engine, caller: Caller) -> RulesVersion:
    """Return the newest version of the caller's rules."""
    with engine.database.read() as tx:
        of_tenant = _of_tenant(engine, tx, caller)
        stored = item_rows.newest_version(tx, _item(engine, tx, caller))
    return RulesVersion.of(stored, of_tenant) if stored is not None else RulesVersion(in_force=of_tenant)


def versions(engine: Engine, caller: Caller) -> list[RulesVersion]:
    """Return all versions, newest first."""
    with engine.database.read() as tx:
        of_tenant, item = _of_tenant(engine, tx, caller), _item(engine, tx, caller)
        history = item_rows.list_versions(tx, item.id) if item is not None else []
        return [RulesVersion.of(version, of_tenant) for version in history]


def check_rules(rules: RuleSet) -> None:
    """Raise InvalidRequest for a word that can't be looked for, and for a category that has two rules."""
    for word in rules.words:
        check_word(word)
    if len({category.name for category in rules.categories}) < len(rules.categories):
        text = "A category stands there twice. Nothing was stored."
        raise InvalidRequest("category_twice", text, param="categories")


def put_rules(engine: Engine, caller: Caller, rules: RuleSet, expected: int | None = None) -> RulesVersion:
    """Store a new version, as it was checked. Raises Conflict."""
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, caller, engine.now())
        put = Put(NAMESPACE, KEY, rules.as_dict(), expected)
        item_rows.write(tx, owner.id, put, engine.now(), author="person")
    return get(engine, caller)


def rollback(engine: Engine, caller: Caller, version: int) -> RulesVersion:
    """Store an earlier version as the newest. Raises NotFound."""
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, caller, engine.now())
        old = item_rows.get_version(tx, _get_item(engine, tx, caller), version)
        item_rows.write(tx, owner.id, Put(NAMESPACE, KEY, old.value), engine.now(), author="rollback")
    return get(engine, caller)


def find(engine: Engine, tx: Transaction, caller: Caller) -> list[int]:
    """Return the id of the item of the caller's own rules. Raises NotFound."""
    return [_get_item(engine, tx, caller).id]


def _get_item(engine: Engine, tx: Transaction, caller: Caller) -> Item:
    item = _item(engine, tx, caller)
    if item is None:
        raise NotFound("rules_not_found", "There are no rules of this person or tenant.")
    return item


def _item(engine: Engine, tx: Transaction, caller: Caller) -> Item | None:
    return item_rows.read_own(tx, caller, NAMESPACE, KEY, engine.now())


def _of_tenant(engine: Engine, tx: Transaction, caller: Caller) -> RuleSet:
    """Return the rules that a caller's own can only narrow."""
    item = _item(engine, tx, Caller(caller.tenant)) if caller.owner is not None else None
    return RuleSet.of(item.value) if item is not None else EVERYTHING
