"""Read the rules of what is kept, of an owner and their tenant together. A turn reads none."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, select

from memory.errors import InvalidRequest
from memory.knowledge.rule_set import Decision, RuleSet
from memory.llm.mini_model import TEXT, list_of, object_of
from memory.store import item_rows
from models import ItemRow, OwnerRow, Transaction
from models.store import OWN

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
    of_owner, of_tenant = (stored.where(_I.owner_id == who).scalar_subquery() for who in (owner_id, tenant_id))
    return of_owner.label("own_rules"), of_tenant.label("tenant_rules")


_STORED = select(*stored_rules(bindparam("owner"), bindparam("tenant")))


def rules_in_force(row: Any) -> RuleSet:
    """Return the rules of an owner and their tenant. row: has the columns of `stored_rules`."""
    return RuleSet.of(row.tenant_rules).narrowed(RuleSet.of(row.own_rules))


def rules_of(tx: Transaction, owner_id: int, tenant: str) -> RuleSet:
    """Return the rules of an owner and their tenant together."""
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
